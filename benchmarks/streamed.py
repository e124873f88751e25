"""Ten million rows from disk: memory over time, and what a step costs beside memory's.

    python -m benchmarks.streamed [--rows 10000000] [--steps 20000] [--json PATH]

A table of 20 numbers and a category is written in shards of Parquet into a temporary
folder, then a process of its own reads it once (`load(..., stream=True)`) and trains a
network on it. Memory is what the process has for itself (RssAnon of /proc/self/status),
noted four times a second. The target compares the highest in the second half of the
training with the highest in the first, so that what grows with the rows read is seen.

Steps are compared on rows that fit into memory: the same rows, batch and network, from
arrays and from shards, turn by turn in one process. A thread reads beside the steps, so
that on one core a step costs the sum of both and on two the larger: of a small network
reading takes longer than the step, and the loader does not keep up. What reading takes
stands beside it.
"""

import json as json_module
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tyro

import ornstein as orn

from ._timing import Target, print_table, print_targets, write_json
from .long_chain import memory_mb

_SHARD = 500_000
_GROUP = 100_000
_NUM_FEATURES = 20
_CATEGORIES = np.array(["red", "green", "blue", "none"])
_BATCH = 256
_NETWORKS = {"64-64": (64, 2), "256-256-256": (256, 3)}
"""Hidden widths: one whose steps are shorter than reading, and one that is not."""
_WARM_STEPS = 200


def write_shards(folder: Path, num_rows: int) -> int:
    """A regression of 20 numbers and a category; its bytes on disk.

    Args:
        folder: that is made.
        num_rows: in all.
    """
    folder.mkdir()
    rng = np.random.default_rng(0)
    slope = rng.normal(size=_NUM_FEATURES)
    num_shards = -(-num_rows // _SHARD)
    for number in range(num_shards):
        rows = min(_SHARD, num_rows - number * _SHARD)
        x = rng.normal(size=(rows, _NUM_FEATURES)) * np.arange(1, _NUM_FEATURES + 1)
        colour = rng.integers(0, len(_CATEGORIES), rows)
        y = np.tanh(x @ slope / 50) + 0.3 * colour + rng.normal(size=rows) / 10
        columns = {f"x{i}": x[:, i] for i in range(_NUM_FEATURES)}
        table = pa.table(columns | {"colour": _CATEGORIES[colour], "y": y})
        name = f"part-{number:05d}-of-{num_shards:05d}.parquet"
        pq.write_table(table, folder / name, row_group_size=_GROUP)
    return sum(file.stat().st_size for file in folder.iterdir())


class Watch:
    """Notes memory, and the phase of the work, from a thread."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.phase, self.step = "start", 0
        self.begun = time.monotonic()
        threading.Thread(target=self._note, daemon=True).start()

    def _note(self) -> None:
        while True:
            now = time.monotonic() - self.begun
            row = {"phase": self.phase, "step": self.step, "seconds": now}
            self.rows.append(row | memory_mb())
            time.sleep(0.25)

    def start(self, plan: Any) -> None:
        """A callback's: training begins."""
        self.phase = "training"

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """A callback's: steps were taken."""
        self.step = step

    def epoch(self, record: dict[str, Any]) -> None:
        """A callback's: nothing."""

    def stop(self) -> None:
        """A callback's: training has ended."""
        self.phase = "end"


def network(data: Any, name: str) -> orn.Deterministic:
    """One of `_NETWORKS`."""
    sizes = (data.example_shape[0], 1, *_NETWORKS[name])
    return orn.Deterministic(eqx.nn.MLP(*sizes, key=jr.key(0)))


def watched_training(folder: Path, num_steps: int) -> dict[str, Any]:
    """Memory along the pass and the training, in this process.

    Args:
        folder: of shards.
        num_steps: of training, in whole epochs at least one.
    """
    jax.devices()
    watch = Watch()
    watch.phase = "pass"
    begun = time.monotonic()
    data = orn.data.load(str(folder), target="y", stream=True)
    seconds = time.monotonic() - begun
    steps_per_epoch = len(data.train) // _BATCH
    num_epochs = max(1, round(num_steps / steps_per_epoch))
    begun = time.monotonic()
    fit = orn.fit(
        network(data, "64-64"),
        data.train,
        orn.Gaussian(0.3),
        key=jr.key(1),
        num_epochs=num_epochs,
        batch_size=_BATCH,
        snr_decay=None,
        callbacks=[watch],
    )
    return {
        "rows": watch.rows,
        "pass_seconds": seconds,
        "train_seconds": time.monotonic() - begun,
        "num_epochs": num_epochs,
        "num_steps": num_epochs * steps_per_epoch,
        "num_training_rows": len(data.train),
        "shuffled_among": data.train.most_rows,
        "loss": float(fit.history["loss"][-1]),
    }


def step_seconds(folder: Path, name: str, *, num_rounds: int) -> dict[str, float]:
    """Seconds of a step from arrays and from shards, medians of rounds in turn.

    Args:
        folder: of shards whose rows fit into memory.
        name: of the network.
        num_rounds: of both.
    """
    data = orn.data.load(str(folder), target="y", stream=True)
    num_steps = data.train.steps_per_epoch(_BATCH)
    batches = data.train.batches(_BATCH, seed=[0], start=0)
    begun = time.process_time()
    rows = [next(batches) for _ in range(num_steps)]
    reading = (time.process_time() - begun) / num_steps
    batches.close()
    x, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    del rows
    splits = {"memory": orn.data.Split(x, y), "disk": data.train}
    seconds: dict[str, list[float]] = {name: [] for name in splits}
    num_epochs = -(-5 * _WARM_STEPS // num_steps)
    for _ in range(num_rounds):
        for where, split in splits.items():
            clock = StepClock()
            orn.fit(
                network(data, name),
                split,
                orn.Gaussian(0.3),
                key=jr.key(1),
                num_epochs=num_epochs,
                batch_size=_BATCH,
                snr_decay=None,
                callbacks=[clock],
            )
            seconds[where].append(clock.seconds_per_step())
    found = {where: statistics.median(times) for where, times in seconds.items()}
    return found | {"reading": reading}


class StepClock:
    """A callback that times steps once the program is compiled and calls are long."""

    def start(self, plan: Any) -> None:
        """Nothing was seen yet."""
        self.seen: list[tuple[int, float]] = []

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Steps were taken."""
        self.seen.append((step, time.perf_counter()))

    def epoch(self, record: dict[str, Any]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def seconds_per_step(self) -> float:
        """From the first call after a few hundred steps to the last."""
        later = [seen for seen in self.seen if seen[0] >= _WARM_STEPS]
        (first, begun), (last, ended) = later[0], later[-1]
        return (ended - begun) / (last - first)


def highest_mb(rows: list[dict[str, Any]], part: slice) -> float:
    """Of the process's own memory, in a part of the training."""
    trained = [row["RssAnon"] for row in rows if row["phase"] == "training"]
    return max(trained[part])


def main(
    *,
    rows: int = 10_000_000,
    steps: int = 40_000,
    small_rows: int = 1_000_000,
    rounds: int = 3,
    folder: Path | None = None,
    only_train: bool = False,
    json: Path | None = None,
) -> None:
    """Write shards, train on them in a process of its own, and compare steps.

    Args:
        rows: of the large table.
        steps: of training on it, in whole epochs at least one.
        small_rows: of the table whose steps are compared with those from memory.
        rounds: of that comparison.
        folder: with shards, in place of a temporary one.
        only_train: print what training on `folder` showed as JSON, and nothing else.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    if only_train:
        assert folder is not None
        json_module.dump(watched_training(folder, steps), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as scratch:
        large = Path(scratch) / "large" if folder is None else folder
        if folder is None:
            num_bytes = write_shards(large, rows)
            print(f"{rows:,} rows, {num_bytes / 2**20:,.0f} MB of Parquet")
        own = [sys.executable, "-m", "benchmarks.streamed", "--only-train"]
        own += ["--folder", str(large), "--steps", str(steps)]
        done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True)
        found = json_module.loads(done.stdout)
        small = Path(scratch) / "small"
        write_shards(small, small_rows)
        timed = {n: step_seconds(small, n, num_rounds=rounds) for n in _NETWORKS}
    noted = found.pop("rows")
    every = noted[:: max(1, len(noted) // 16)]
    print_table(
        "Memory over time, MB",
        ("phase", "step", "seconds", "own", "of files"),
        [
            (r["phase"], r["step"], r["seconds"], r["RssAnon"], r["RssFile"])
            for r in every
        ],
    )
    print_table(
        f"Steps of {_BATCH} rows, microseconds",
        ("network", "memory", "disk", "ratio", "reading alone"),
        [
            (
                name,
                *(1e6 * t[where] for where in ("memory", "disk")),
                t["disk"] / t["memory"],
                1e6 * t["reading"],
            )
            for name, t in timed.items()
        ],
    )
    half = sum(row["phase"] == "training" for row in noted) // 2
    first, second = (highest_mb(noted, s) for s in (slice(half), slice(half, None)))
    slow = timed["256-256-256"]
    ratio = slow["disk"] / slow["memory"]
    targets = [
        Target("own memory, second half less first, MB", second - first, at_most=32.0),
        Target("step from disk / memory, 256-256-256", ratio, at_most=1.1),
    ]
    print_targets(targets)
    if json is not None:
        table = {f"{r['phase']} {r['seconds']:.0f} s": r for r in every}
        table |= {f"network {name}": t for name, t in timed.items()}
        table["training"] = found | {"cores": len(os.sched_getaffinity(0))}
        write_json(json, table, targets)


if __name__ == "__main__":
    tyro.cli(main)
