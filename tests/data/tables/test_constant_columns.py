"""Columns of one value in training: what is said of them, then and of other rows."""

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ornstein.data as od

N = 40


def table(plant: object = 7) -> pd.DataFrame:
    x = np.arange(N, dtype=float)
    return pd.DataFrame({"x": x, "plant": [plant] * N, "y": x + 0.5})


def load(folder, frame: pd.DataFrame, **options) -> od.Data:
    if options.get("stream"):
        path = folder / "own.parquet"
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    else:
        path = folder / "own.csv"
        frame.to_csv(path, index=False)
    return od.load(path, target="y", **options)


def notes_on(data: od.Data, **cells: list) -> list[str]:
    values = {"x": [1.5, 2.5, 3.5], "plant": [7, 7, 7]} | cells
    return list(od.frame_inputs(pd.DataFrame(values), data, "new").notes)


def schema(folder, data: od.Data) -> od.Data:
    """As a run keeps it."""
    od.save_schema(folder / "data.json", data)
    return od.load_schema(folder / "data.json")


@pytest.mark.parametrize("stream", [False, True])
def test_a_constant_column_is_said_in_training(tmp_path, stream):
    """Catches (seen) a column that is learned from without a word."""
    data = load(tmp_path, table(), stream=stream)
    (note,) = [note for note in data.notes if "plant" in note]
    assert note.endswith(
        "column 'plant' is 7 in all training rows: it says nothing of the target; "
        "leave it out, or add rows in which it differs."
    )
    varying = load(tmp_path, table().assign(plant=np.arange(N) % 2), stream=stream)
    assert not [note for note in varying.notes if "plant" in note]


@pytest.mark.parametrize("stream", [False, True])
def test_another_value_is_said_in_predicting(tmp_path, stream):
    """However near it is. Catches (seen) plant 8 without a word, and plant 7000 as far
    off in standard deviations, of which there are none.
    """
    data = schema(tmp_path, load(tmp_path, table(), stream=stream))
    assert notes_on(data) == []
    assert notes_on(data, plant=[7.0, 7.0, np.float32(7)]) == []
    assert notes_on(data, plant=[7, 8, 7]) == [
        "new: column 'plant' has 8 in 1 row, and all training rows have 7: what that "
        "changes was not learned."
    ]
    (many,) = notes_on(data, plant=[9, 7000, 8])
    assert "has 8, 9, 7000 in 3 rows, and all" in many
    assert "standard deviations" not in many
    rows = pd.DataFrame({"x": np.ones(100), "plant": np.r_[[8], np.full(99, 7)]})
    assert "has 8 in 1 row, and" in od.frame_inputs(rows, data, "new").notes[0]


@pytest.mark.parametrize(
    ("value", "other", "said"),
    [
        (True, False, "has false in 1 row, and all training rows have true"),
        ("2021-03-04", "2022-03-04", "has 2022-03-04 in 1 row, and all .* 2021-03-04:"),
        ("Graz", "Oslo", "has 'Oslo' in 1 row, not among the 1 categories"),
        (1234567.5, 1234568.5, "has 1234568.5 in 1 row, and all .* 1234567.5:"),
        (0.1, 0.25, "has 0.25 in 1 row, and all training rows have 0.1:"),
    ],
)
def test_values_are_said_as_they_are_written(tmp_path, value, other, said):
    data = load(tmp_path, table(value))
    written = {True: "true"}.get(value, repr(value) if value == "Graz" else str(value))
    assert any(f"'plant' is {written} in all training rows" in n for n in data.notes)
    (note,) = notes_on(data, plant=[value, value, other])
    assert pd.Series([note]).str.contains(said).all(), note


def test_a_constant_in_single_precision_is_the_same(tmp_path):
    """Catches a new table of float32 whose 0.1 is another 0.1."""
    data = load(tmp_path, table(0.1))
    assert notes_on(data, plant=np.float32([0.1, 0.1, 0.1])) == []


def test_many_constant_columns_are_one_note(tmp_path):
    """As pixels at the edge are."""
    more = {f"p{i}": np.full(N, i) for i in range(6)}
    data = load(tmp_path, table().assign(**more))
    (note,) = [note for note in data.notes if "in all training rows" in note]
    assert "columns 'plant', 'p0', 'p1' and 4 more are each of one value" in note
    cells = {name: [0, 1, 2] for name in more}
    (note,) = notes_on(data, **cells)
    assert (
        "'p0' has 1, 2 in 2 rows, and all training rows have 0 (and so on for 5 "
        in note
    )


def test_gaps_of_a_constant_column_say_something(tmp_path):
    """Whether a cell is empty may tell of the target."""
    data = load(tmp_path, table().assign(plant=np.where(np.arange(N) % 3, 7, np.nan)))
    assert not [note for note in data.notes if "plant" in note]
    (note,) = notes_on(data, plant=[7, 8, np.nan])
    assert "has 8 in 1 row, and all training rows with a value have 7" in note


def test_runs_and_arrays_of_before_have_no_false_deviations(tmp_path):
    """Where nobody kept that a column is constant: no standard deviation is 1 there."""
    data = load(tmp_path, table())
    before = schema(tmp_path, data)
    columns = [dataclasses.replace(c, is_constant=False) for c in data.encoding.columns]
    encoding = dataclasses.replace(data.encoding, columns=tuple(columns))
    before = dataclasses.replace(before, encoding=encoding)
    assert notes_on(before, plant=[7, 8, 7]) == []
    assert notes_on(before, plant=[7, 7000, 7]) == [
        "new: column 'plant' has 7000, and the training rows' mean is 7: is it in "
        "their unit?"
    ]
    before.check_same(data)  # of which a run of before goes on
    x = np.stack([np.arange(N), np.full(N, 7.0)], axis=1)
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(N) + 0.5)
    arrays = od.load(tmp_path / "own.npz")
    found = od.array_inputs(np.array([[1.0, 7000.0]]), arrays)
    assert found.notes == (
        "x: column 1 has 7000, and the training rows' mean is 7: is it in their unit?",
    )
