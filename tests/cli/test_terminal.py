"""Tables on a terminal: whole words, whichever way they fit."""

import io

import pytest
from rich.console import Console

from ornstein.cli._terminal import Terminal


def printed(rows, width):
    terminal = Terminal(is_json=False)
    file = io.StringIO()
    terminal.output = Console(file=file, width=width)
    terminal.grid("title", rows)
    return file.getvalue()


def rows_of(num_rows, num_columns):
    names = [f"score_{j}" for j in range(num_columns)]
    return [
        {name: f"r{i}c{j}" for j, name in enumerate(names)} for i in range(num_rows)
    ]


@pytest.mark.parametrize(
    ("num_rows", "num_columns", "num_lines"),
    [(4, 3, 1 + 4), (2, 12, 12), (9, 9, 81)],
    ids=["lines", "columns", "blocks"],
)
def test_grid_never_breaks_a_word(num_rows, num_columns, num_lines):
    rows = rows_of(num_rows, num_columns)
    text = printed(rows, 60)
    for row in rows:
        for value in row.values():
            assert value in text
    for j in range(num_columns):
        assert f"score {j}" in text
    assert sum("score" in s or "c0" in s for s in text.split("\n")) == num_lines
