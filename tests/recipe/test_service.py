"""A run behind a service: requests of any size, from any thread."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import ornstein as orn
from ornstein.cli import main
from ornstein.recipe import beside

COMPILED = "/jax/core/compile/backend_compile_duration"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.normal(100, 20, 100)
    town = rng.choice(["Ulm", "Bonn"], 100)
    return pd.DataFrame({"area": area, "town": town, "price": 3 * area})


@pytest.fixture(scope="module")
def run(frame: pd.DataFrame, tmp_path_factory) -> orn.TrainedRun:
    folder: Path = tmp_path_factory.mktemp("service")
    frame.to_csv(folder / "own.csv", index=False)
    line = f"train --data {folder / 'own.csv'} --target price --model mean-field"
    line += f" --width 5 --steps 20 --test-draws 4 --out {folder / 'run'}"
    assert main(line.split()) == 0
    return orn.load_run(folder / "run")


@pytest.fixture
def compiled():
    """What is compiled while the test runs."""
    names: list[str] = []

    def note(name: str, seconds: float, **kwargs: object) -> None:
        del seconds, kwargs
        if name == COMPILED:
            names.append(name)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield names
    jax.monitoring.unregister_event_duration_listener(note)


def answers(run: orn.TrainedRun, rows: pd.DataFrame) -> list[np.ndarray]:
    said = run.predict(rows)
    return [said.mean, said.std, *said.interval(0.9), *map(np.array, said.to_columns())]


def test_requests_of_one_to_64_rows_compile_once(run, frame, compiled):
    """Catches (seen) means, intervals or the cut to the rows that were asked for, which
    compiled for each new number of them: a second for a request.
    """
    answers(run, frame.iloc[:3])
    assert compiled  # or nothing is counted
    compiled.clear()
    for num_rows in (1, 2, 31, 64):
        said = answers(run, frame.iloc[:num_rows])
        assert {len(values) for values in said[:4]} == {num_rows}
    assert not compiled
    raw = np.stack([frame["area"], frame["town"]], axis=1)
    raw = raw.astype(object)
    assert run.predict(raw[:9]).mean.shape == (9, 1)
    assert not compiled


def test_what_is_padded_is_not_said(run, frame):
    """Catches rows that nobody asked for, in a table, a prediction or its draws."""
    said = run.predict(frame.iloc[:3])
    assert len(said.to_frame()) == 3
    assert {len(values) for values in said.to_columns_beside().values()} == {3}
    assert said.prediction.outputs.shape[:2] == (4, 3)
    assert said.prediction.num_rows == 3
    one = run.predict(frame.iloc[2:3])
    np.testing.assert_array_equal(one.mean[0], said.mean[2])
    np.testing.assert_array_equal(said.prediction.mean[2], one.prediction.mean[0])


def test_every_column_of_the_table_stands_beside_what_is_said():
    """Catches (seen) one that is called as another is where both have a name taken."""
    given = {"mean (input)": [1], "mean": [2], "a": [3]}
    said = {"mean": [4], "median": [5]}
    assert beside(given, said) == {
        "mean (input)": [1],
        "mean (input) (input)": [2],
        "a": [3],
        "mean": [4],
        "median": [5],
    }
    assert beside({"mean": [2]}, said)["mean (input)"] == [2]
    both = {"mean": [4], "mean (input)": [5]}
    assert list(beside(given, both).values()) == [[1], [2], [3], [4], [5]]


def test_threads_are_answered_as_one_is(run, frame):
    """The same bits. Catches what requests share and write to."""
    requests = [
        frame.iloc[start : start + size]
        for start, size in itertools.product(range(0, 30, 3), (1, 5, 17))
    ]
    alone = [answers(run, rows) for rows in requests]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda rows: answers(run, rows), requests))
    for ours, theirs in zip(together, alone, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
