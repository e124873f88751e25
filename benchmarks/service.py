"""What a request costs: a run's prediction of a few rows, after its first.

    python -m benchmarks.service [--quick] [--json PATH]

A mean-field network with 50 hidden units and 32 draws, of eight numbers or of a table
with numbers, gaps, categories, truths and dates, as `orn.load_run` reads it. A request
is `run.predict` of the rows, their mean and standard deviation (or probabilities).
Compilations are counted over requests of 1 to 64 rows.
"""

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import tyro
from jax import export
from rich.console import Console

import ornstein as orn
from ornstein.cli import main as ornstein

from ._timing import Target, interleaved, print_table, print_targets, write_json

NUM_TRAINING_ROWS = 300
MOST_SECONDS = 5e-3
COMPILED = "/jax/core/compile/backend_compile_duration"


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    number = NUM_TRAINING_ROWS
    area = rng.normal(100, 20, number).round(2)
    rooms = rng.integers(1, 6, number)
    age = np.where(rng.random(number) < 0.1, np.nan, rng.integers(0, 90, number))
    days = pd.date_range("2020-01-01", periods=number).strftime("%Y-%m-%d")
    return pd.DataFrame(
        {
            "area": area,
            "rooms": rooms,
            "age": age,
            "town": rng.choice(["Ulm", "Bonn", "Trier"], number),
            "new": rng.choice([True, False], number),
            "sold": days,
            "price": 2 * area + 10 * rooms + rng.normal(0, 5, number),
        }
    )


def train(data: Path, *options: str) -> orn.TrainedRun:
    out = data.with_suffix("")
    line = ["train", "--data", str(data), "--model", "mean-field", "--steps", "50"]
    line += ["--width", "50", "--test-draws", "32", "--out", str(out), *options]
    with contextlib.redirect_stdout(io.StringIO()):
        if ornstein(line) != 0:
            raise RuntimeError(f"`ornstein {' '.join(line)}` failed")
    return orn.load_run(out)


def count_compilations(cases: list[Callable[[], Any]]) -> int:
    number = 0

    def note(name: str, seconds: float, **kwargs: Any) -> None:
        nonlocal number
        del seconds, kwargs
        number += name == COMPILED

    jax.monitoring.register_event_duration_secs_listener(note)
    for run in cases:
        run()
    jax.monitoring.unregister_event_duration_listener(note)
    return number


def main(quick: bool = False, json: Path | None = None) -> None:
    """Run the benchmark.

    Args:
        quick: fewer rounds.
        json: where to write the result.
    """
    rng = np.random.default_rng(1)
    frame, x = make_table(), rng.normal(size=(NUM_TRAINING_ROWS, 8)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        frame.to_csv(root / "table.csv", index=False)
        np.savez(root / "array.npz", x=x, y=rng.integers(0, 3, len(x)))
        of_table = train(root / "table.csv", "--target", "price")
        of_array = train(root / "array.npz", "--task", "classification")
        of_array.export(root / "array.hlo")
        program = export.deserialize(bytearray((root / "array.hlo").read_bytes()))
    call = jax.jit(program.call)

    def table(num_rows: int) -> Any:
        said = of_table.predict(frame.iloc[:num_rows])
        return said.mean, said.std

    def array(num_rows: int) -> Any:
        return of_array.predict(x[:num_rows]).probs

    table(1), array(1)
    sizes = range(1, 65)
    compilations = count_compilations([lambda n=n: (table(n), array(n)) for n in sizes])
    cases = {
        "array, 1 row": lambda: array(1),
        "array, 64 rows": lambda: array(64),
        "DataFrame, 1 row": lambda: table(1),
        "DataFrame, 64 rows": lambda: table(64),
        "exported program, 1 row": lambda: call(x[:1]),
    }
    rounds = 10 if quick else 50
    seconds = interleaved(cases, num_rounds=rounds)
    rows = {name: {"ms": 1e3 * value} for name, value in seconds.items()}
    print_table(
        "A request", ("", "ms"), [(name, row["ms"]) for name, row in rows.items()]
    )
    Console().print(f"{compilations} compilations in requests of 1 to 64 rows")
    targets = [
        Target(f"{name}, of 5 ms", value / MOST_SECONDS, at_most=1.0)
        for name, value in seconds.items()
    ]
    targets.append(Target("compilations, 1 to 64 rows", compilations, at_most=0))
    print_targets(targets)
    if json is not None:
        write_json(json, rows, targets)


if __name__ == "__main__":
    tyro.cli(main)
