"""Memory along a chain of a million steps, whose samples go to a folder as it runs.

    python -m benchmarks.long_chain [--steps 1000000] [--json PATH]

SGLD on a network of 31 weights and 64 points, every tenth position kept. Memory is what
the process has for itself (RssAnon of /proc/self/status) and what it has of files
(RssFile: the samples' pages, which the system takes back when it needs them), once a
second from the first sample on. The target compares the last fifth with the first, of
the process's own memory.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import tyro

import ornstein as orn
from ornstein.data import Split

from ._timing import Target, print_table, print_targets, write_json

_THIN = 10
_STATUS = Path("/proc/self/status")


def memory_mb() -> dict[str, float]:
    """What the process has in memory, by kind."""
    lines = (line.partition(":") for line in _STATUS.read_text().splitlines())
    kilobytes = {name: text.split()[0] for name, _, text in lines if "kB" in text}
    return {name: int(kilobytes[name]) / 1024 for name in ("RssAnon", "RssFile")}


class Watch:
    """A callback that notes memory, at most once a second."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def start(self, plan: Any) -> None:
        """Time runs from here."""
        self.begun = self.last = time.monotonic()

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """A row, if a second has gone by."""
        now = time.monotonic()
        if record["phase"] != "sampling" or now - self.last < 1.0:
            return
        self.last = now
        row = {"step": step, "seconds": now - self.begun} | memory_mb()
        self.rows.append(row)

    def stop(self) -> None:
        """Nothing."""


def watched_chain(num_steps: int, folder: Path) -> list[dict[str, float]]:
    """Memory along a chain.

    Args:
        num_steps: of it.
        folder: of its samples.
    """
    data_key, model_key, key = jr.split(jr.key(0), 3)
    x = jr.normal(data_key, (64, 1))
    watch = Watch()
    orn.sample(
        eqx.nn.MLP(1, 1, 10, 1, activation=jnp.tanh, key=model_key),
        Split(x, jnp.sin(2 * x)),
        orn.Gaussian(0.1),
        kernel=orn.SGLD(1e-5),
        prior=orn.GaussianPrior(1.0),
        key=key,
        num_samples=num_steps // _THIN,
        num_warmup=1000,
        num_chains=1,
        thin=_THIN,
        batch_size=32,
        folder=folder,
        callbacks=(watch,),
    )
    return watch.rows


def growth_mb(rows: list[dict[str, float]], name: str) -> float:
    """The median of the last fifth of the rows, less that of the first."""
    fifth = max(1, len(rows) // 5)
    median = lambda part: statistics.median(row[name] for row in part)
    return median(rows[-fifth:]) - median(rows[:fifth])


def main(*, steps: int = 1_000_000, json: Path | None = None) -> None:
    """Run the chain, and compare its memory at the end with that at its start.

    Args:
        steps: of the chain.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    jax.devices()
    with tempfile.TemporaryDirectory() as scratch:
        rows = watched_chain(steps, Path(scratch) / "samples")
    every = rows[:: max(1, len(rows) // 10)]
    print_table(
        "Memory along the chain, MB",
        ("step", "seconds", "own", "of files"),
        [(r["step"], r["seconds"], r["RssAnon"], r["RssFile"]) for r in every],
    )
    targets = [
        Target("growth of its own memory, MB", growth_mb(rows, "RssAnon"), at_most=8.0),
    ]
    print_targets(targets)
    if json is not None:
        write_json(json, {f"step {row['step']}": row for row in rows}, targets)


if __name__ == "__main__":
    tyro.cli(main)
