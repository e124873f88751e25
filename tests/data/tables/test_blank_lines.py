"""Blank lines of a table, which are rows only where it has one column."""

from pathlib import Path

import numpy as np
import pytest

import ornstein.data as od


@pytest.fixture
def data(tmp_path: Path) -> od.Data:
    rows = [f"{i},{2 * i}.5" for i in range(40)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["x,y", *rows, ""]))
    return od.load(str(path), target="y")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x\n1\n\n2\n", [1, None, 2]),
        ("x\n1\n\n2", [1, None, 2]),
        ("x\n1\n\n2\n\n\n\n", [1, None, 2]),
        ("x\r\n\r\n1\r\n\r\n2\r\n\r\n", [None, 1, None, 2]),
        ("\ufeffx\n\n1\n", [None, 1]),
        ("sep=;\nx\n1\n\n2\n", [1, None, 2]),
        ("\n\nx\n1\n\n2\n", [1, None, 2]),
        ('x\n1\n""\n2\n""\n', [1, None, 2, None]),  # as pandas writes a gap
        ('x\n1\n""\n2\n""\n\n', [1, None, 2, None]),
        ("\r\rx\r1\r\r2\r\r", [1, None, 2]),
        ("x,z\n1,0\n\n2,0\n", [1, 2]),
        ("\ufeff\nx\n1\n", [1]),
        ("x\r\r\n1\r\r\n2\r\r\n", [1, 2]),  # as Python's csv does on Windows
    ],
)
def test_a_blank_line_of_one_column_is_an_empty_cell(text, expected, data, tmp_path):
    """Catches (seen) rows that are left out, so that predictions are of others."""
    path = tmp_path / "new.csv"
    path.write_bytes(text.encode())
    found = od.read_inputs(path, data)
    cells = [int(cell) if cell else None for cell in found.columns["x"]]
    assert cells == expected
    raw = data.x_scaling.undo(found.x.astype(float))[:, 0]
    fill = data.encoding.columns[0].fill
    wanted = [fill if cell is None else cell for cell in expected]
    np.testing.assert_allclose(raw, wanted, rtol=1e-5)


def test_blank_lines_alone_are_no_rows(data, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("x\n\n\n")
    with pytest.raises(od.DataError, match="has a header and no rows"):
        od.read_inputs(path, data)
