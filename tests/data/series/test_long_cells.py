"""Cells of long tables: names as they are written, decimals of Parquet, line ends."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ornstein.data as od

COLUMNS = {"time": "t", "series": "id", "value": "a"}


def long(names, header="id,t,a", end=""):
    rows = [f"{name},{i // len(names)},{i}{end}" for i, name in enumerate(2 * names)]
    return "\n".join([header + end, *rows, ""])


def read(folder, text, **options):
    path = folder / "own.csv"
    path.write_text(text)
    return od.read_long_csv(path, **COLUMNS | options)


@pytest.mark.parametrize(
    "names", [["1.10", "1.1"], ["007", "7"], ["true", "True"], ["1e2", "100"]]
)
def test_names_are_as_written(names, tmp_path):
    """Catches (seen) two series that are one where names are read as numbers."""
    table = read(tmp_path, long(names))
    assert table.names == tuple(names)
    np.testing.assert_array_equal(table.values[..., 0], [[0, 2], [1, 3]])
    header = " id ,t,a"  # which is the column id all the same
    assert read(tmp_path, long(names, header)).names == tuple(names)


def test_spaces_around_names_are_none_of_theirs(tmp_path):
    """As where they were numbers: catches a series of its own for ' 7'."""
    assert read(tmp_path, "id,t,a\n7,0,1\n 7,1,2\n").names == ("7",)


@pytest.mark.parametrize("cell", ["", "NA", "nan"])
def test_what_is_empty_among_numbers_names_no_series(cell, tmp_path):
    """Catches a series called NA among series 1 and 2."""
    with pytest.raises(od.DataError, match="'id' names no series in row 2, counting"):
        read(tmp_path, long(["1", "2", cell]))


def test_namibia_is_a_series(tmp_path):
    assert read(tmp_path, long(["NA", "AT"])).names == ("NA", "AT")


@pytest.mark.parametrize("end", [",", ",,"])
def test_separators_at_line_ends(end, tmp_path):
    """Catches (seen) a file that is refused for two columns of no name."""
    table = read(tmp_path, long(["u", "v"], end=end))
    np.testing.assert_array_equal(table.values[..., 0], [[0, 2], [1, 3]])
    assert not table.notes


def test_a_column_of_zeros_without_a_name_is_there(tmp_path):
    """Catches values that are taken for what is not there."""
    table = read(tmp_path, "id,t,\nu,0,0\nu,1,0\n", value="")
    np.testing.assert_array_equal(table.values[..., 0], [[0, 0]])


def test_decimals_of_parquet_are_numbers(tmp_path):
    """Times and values. Catches (seen) 0.5 that is 'no time', and no number."""
    decimals = lambda texts: pa.array(
        [None if text is None else Decimal(text) for text in texts],
        pa.decimal128(10, 2),
    )
    times, values = ["0.5", "1.25", "7.00", "8.00"], ["1.10", None, "-3", "4"]
    frame = {"t": decimals(times), "a": decimals(values), "id": ["u", "u", "v", "v"]}
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table(frame), path)
    table = od.read_long_csv(path, **COLUMNS)
    np.testing.assert_array_equal(table.ts, [[0.5, 1.25], [7, 8]])
    np.testing.assert_array_equal(table.values[..., 0], [[1.1, np.nan], [-3, 4]])
