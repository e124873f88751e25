"""Timing that two programs on one noisy machine can be compared by."""

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import jax
from rich.console import Console
from rich.table import Table

from ornstein.nn.conv import processor
from ornstein.nn.conv._choice import num_cores

_PACKAGES = (
    "ornstein",
    "jax",
    "jaxlib",
    "blackjax",
    "diffrax",
    "equinox",
    "torch",
    "torchsde",
    "posteriors",
    "bayesian-torch",
)


class Compiled(NamedTuple):
    """A compiled program, what compiling took, and its scratch memory."""

    run: Callable[..., Any]
    seconds: float
    temp_bytes: int


def compile_fn(fn: Callable[..., Any], *args: Any) -> Compiled:
    """Compile `fn` for `args`, apart from running it."""
    start = time.perf_counter()
    program = jax.jit(fn).lower(*args).compile()
    seconds = time.perf_counter() - start
    return Compiled(program, seconds, program.memory_analysis().temp_size_in_bytes)


def interleaved(
    cases: Mapping[str, Callable[[], Any]], *, num_rounds: int, num_repeats: int = 3
) -> dict[str, float]:
    """The median seconds of each case, after a warm-up.

    Every round runs every case, so that what else the machine does meets all alike.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for run in cases.values():
        jax.block_until_ready(run())
    for _ in range(num_rounds):
        for name, run in cases.items():
            time.sleep(0.01)  # idle threads of the case before spin for a while
            for _ in range(num_repeats):
                start = time.perf_counter()
                jax.block_until_ready(run())
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


class Target(NamedTuple):
    """A ratio that has to be at least, or at most, a number."""

    name: str
    ratio: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_met(self) -> bool:
        low = -float("inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= self.ratio <= high

    @property
    def bound(self) -> str:
        if self.at_most is None:
            return f"≥ {self.at_least}"
        low = "≤" if self.at_least is None else f"{self.at_least} to"
        return f"{low} {self.at_most}"


def print_table(title: str, header: tuple[str, ...], rows: list[tuple]) -> None:
    """A table on standard output; numbers to the right."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(_text, row))
    Console().print(table)


def print_targets(targets: list[Target]) -> None:
    """Each ratio with its target beside it."""
    rows = [(t.name, t.ratio, t.bound, "yes" if t.is_met else "NO") for t in targets]
    print_table("Targets", ("ratio", "measured", "target", "met"), rows)


def write_json(
    path: Path, rows: Mapping[str, Mapping[str, Any]], targets: list[Target]
) -> None:
    """Results with where they come from.

    Args:
        path: a file that ends in .json; or a folder, for NAME-PROCESSOR.json there, as
            ratios do not carry from one kind of processor to another.
        rows: what was timed.
        targets: and aimed at.
    """
    if path.suffix != ".json":
        path.mkdir(parents=True, exist_ok=True)
        name, kind = Path(sys.argv[0]).stem, slug(_cpu(), processor())
        path = path / f"{name}-{kind}.json"
    result = {
        "rows": rows,
        "targets": [t._asdict() | {"is_met": t.is_met} for t in targets],
        "provenance": provenance(),
    }
    path.write_text(json.dumps(result, indent=2) + "\n")


def provenance() -> dict[str, Any]:
    """Versions, machine, its load, and the commit."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "versions": versions | {"python": platform.python_version()},
        "cpu": _cpu(),
        "instructions": processor(),
        "num_cpus": os.cpu_count(),
        "num_cores": num_cores(),
        "load_average": os.getloadavg(),
        "device": jax.devices()[0].device_kind,
    }


def slug(cpu: str, kind: str = "") -> str:
    """A processor as part of a file's name: `Intel(R) Xeon(R)` to `intel-xeon`.

    With its vector instructions, the last word of `kind`: clouds call machines of
    either sort by one name.
    """
    known = re.sub(r"\((?:r|tm)\)|\bcpu\b|@.*", " ", cpu.lower())
    vectors = [word for word in kind.split() if word.startswith("avx")]
    return "-".join(re.findall("[a-z0-9.]+", known) + vectors) or "unknown"


def _commit() -> str | None:
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    folder = Path(__file__).parent
    try:
        done = subprocess.run(describe, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
