"""What programs write above a table's header."""

from pathlib import Path

import numpy as np
import pytest

import ornstein.data as od

ROWS = [f"{i},5;{i % 7};{2 * i}" for i in range(40)]


def load(path: Path, lines: list[str], *, encoding: str = "utf-8"):
    path.write_text("\r\n".join([*lines, *ROWS, ""]), encoding=encoding)
    return od.load(str(path), target="price")


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_separator_as_excel_writes_it(tmp_path: Path, first: str, encoding: str):
    """Catches a line that is taken for the header (seen), with a BOM before it too."""
    plain = load(tmp_path / "plain.csv", ["area;rooms;price"])
    told = load(tmp_path / "told.csv", [first, "area;rooms;price"], encoding=encoding)
    assert told.feature_names == plain.feature_names == ("area", "rooms")
    np.testing.assert_array_equal(told.train.x, plain.train.x)


def test_the_separator_that_is_told_wins(tmp_path: Path):
    """A header with more commas, in its names, than separators."""
    header = "area (m, gross, net);rooms;price"
    data = load(tmp_path / "told.csv", ["sep=;", header])
    assert data.feature_names == ("area (m, gross, net)", "rooms")


def test_comments_above_the_header_are_refused(tmp_path: Path):
    """By a sentence that names the line."""
    lines = ["# exported on Monday", "# by hand", "area;rooms;price"]
    with pytest.raises(od.DataError, match="begins with a comment, '# exported on Mon"):
        load(tmp_path / "comments.csv", lines)


def test_a_column_may_be_called_by_a_hash(tmp_path: Path):
    """Catches headers such as `#rooms;price` that are taken for comments."""
    data = load(tmp_path / "hash.csv", ["#area;# rooms;price"])
    assert data.feature_names == ("#area", "# rooms")
