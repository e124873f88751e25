"""Few rows are read without pandas and scikit-learn, and give the same numbers."""

import numpy as np
import pandas as pd
import pytest

from ornstein.data import DataError, _columns, _inputs
from ornstein.data._columns import TableEncoding

NUM_ROWS = 40


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.normal(100, 20, NUM_ROWS)
    age = np.where(rng.random(NUM_ROWS) < 0.2, np.nan, rng.integers(0, 9, NUM_ROWS))
    return pd.DataFrame(
        {
            "area": area,
            "age": age,
            "rooms": rng.integers(1, 6, NUM_ROWS),
            "town": rng.choice(["Ulm", " Bonn ", "NA", "'=x"], NUM_ROWS),
            "new": rng.choice([True, False], NUM_ROWS),
            "sold": pd.date_range("1999-12-25", periods=NUM_ROWS).strftime("%Y-%m-%d"),
            "text": [f"{value:.2f}" for value in area],
            "day": pd.date_range("2020-01-01", periods=NUM_ROWS),
        }
    )


@pytest.fixture(scope="module")
def encoding(frame: pd.DataFrame) -> TableEncoding:
    return TableEncoding.learned(frame, list(frame), np.arange(30), "t")[0]


CHANGES = {
    "as they were": {},
    "floats of 32 bits": {"area": np.float32([1.1, 2.2])},
    "a gap": {"area": [np.nan, 1.5]},
    "numbers as text": {"area": ["1,234.5", " 7 "], "rooms": ["1", ""]},
    "whole numbers and none": {"rooms": [1, None]},
    "nullable": {"rooms": pd.array([1, None], "Int64")},
    "truths as text": {"new": ["true", "FALSE"]},
    "truths as numbers": {"new": [0.0, np.nan]},
    "another town": {"town": ["Köln", "Ulm"]},
    "a tab, and nothing": {"town": ["\tUlm", None]},
    "a town of numbers": {"town": [1.0, 2.5]},
    "categorical": {"town": pd.Categorical(["Ulm", "NA"])},
    "formulas": {"town": ["'=x", "=x"]},
    "times of a day": {"sold": ["2020-02-29", "2020-03-01 12:30"]},
    "days of another world": {"sold": ["1500-01-01", "2020-01-01"]},
    "days of NumPy's": {"sold": pd.to_datetime(["2020-01-01", "1999-01-01"])},
    "no days": {"sold": [None, "2020-01-01"]},
}


@pytest.mark.parametrize("case", CHANGES)
def test_few_rows_are_read_like_many(case, frame, encoding, monkeypatch):
    """Catches a number, a note or a cell that differs in a bit from pandas' and
    scikit-learn's (`TableEncoding.transformer`), which read more rows than 64.
    """
    rows = frame.iloc[:2].assign(**CHANGES[case])
    few, few_notes = encoding.apply(rows, "t")
    written = [_inputs._as_written(rows[name]) for name in rows]
    monkeypatch.setattr(_columns, "FEW", 0)
    monkeypatch.setattr(_inputs, "FEW", 0)
    many, notes = encoding.apply(rows, "t")
    np.testing.assert_array_equal(few, many)
    assert few.dtype == many.dtype
    assert few_notes == notes
    again = [_inputs._as_written(rows[name]) for name in rows]
    assert list(map(repr, written)) == list(map(repr, again))  # kinds, too


BAD = {
    "infinite": {"area": [np.inf, 1.0]},
    "no truth": {"new": [2, 1]},
    "no such day": {"sold": ["2021-02-29", "2020-01-01"]},
    "no day": {"sold": [3, 4]},
    "no number": {"rooms": ["many", "1"]},
}


@pytest.mark.parametrize("case", BAD)
def test_few_rows_are_refused_like_many(case, frame, encoding, monkeypatch):
    """Catches a cell that few rows get through, or another sentence."""
    rows = frame.iloc[:2].assign(**BAD[case])
    with pytest.raises(DataError) as few:
        encoding.apply(rows, "t")
    monkeypatch.setattr(_columns, "FEW", 0)
    with pytest.raises(DataError) as many:
        encoding.apply(rows, "t")
    assert str(few.value) == str(many.value)


def test_plain_cells_are_not_asked_of_pandas(frame, encoding, monkeypatch):
    """Catches a way around that no column takes: every request then costs 20 ms."""
    monkeypatch.setattr(_columns, "bad_cells", None)
    encoding = TableEncoding(encoding.columns[:6])
    monkeypatch.setattr(_columns, "_transformer", None)
    assert encoding.apply(frame.iloc[:3], "t")[0].shape[0] == 3
