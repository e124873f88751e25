"""Grids: what a text means, and names that are folders."""

import itertools
import re

import pytest

from ornstein.sweep import Cell, Grid


def test_every_combination_once_in_order():
    """Catches a range without its end, and a grid that changes its first option."""
    grid = Grid.parse(["seed=-1..1", "learning-rate=1e-3,3e-3", "data=a.csv"])
    found = [tuple(cell.settings.values()) for cell in grid]
    rates = ["1e-3", "3e-3"]
    assert found == list(itertools.product(["-1", "0", "1"], rates, ["a.csv"]))
    assert len(grid) == len(found) == 6
    assert list(grid.values) == ["seed", "learning_rate", "data"]


def test_names_are_folders_and_differ():
    """Catches two runs in one folder: values differ in what a name cannot hold."""
    nasty = [
        "a/b",
        "a-b",
        "a b",
        "a_b=c",
        "a",
        "b",
        "ü",
        "..",
        "",
        "x" * 300,
        "x" * 301,
    ]
    cells = [Cell({"a": p, "b": q}) for p, q in itertools.product(nasty, nasty)]
    cells += [Cell({"a": "1_b=2"}), Cell({"a": "1", "b": "2"})]
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w.+=~-]{1,120}", name, re.ASCII) for name in names)
    assert Cell({"seed": "3", "lr": "1e-3"}).name == "seed=3_lr=1e-3"


REFUSED = {
    "no values": (["seed"], "seed has no values"),
    "no option": (["=1,2"], "has no values"),
    "twice": (["seed=0,1", "seed=2"], "`seed` twice"),
    "two spellings": (["batch-size=8,9", "batch_size=2"], "`batch_size` twice"),
    "value twice": (["seed=0..3,2"], "has 2 twice"),
    "number twice": (["lr=1e-3,0.001"], "has 0.001 twice"),
    "empty range": (["seed=4..0"], "empty range: write 0..4"),
    "empty value": (["seed=1,,2"], "empty value"),
    "one run": (["seed=0", "width=3"], "grid of one run"),
    "nothing": ([], "grid of one run"),
    "a long range": (["seed=0..9999999999"], "are the most"),
    "many": (["seed=0..999", "width=1..999"], "grid of 999,000 runs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_grid_is_refused(case: str):
    """Catches a grid that is empty, endless, or not what was meant."""
    texts, said = REFUSED[case]
    with pytest.raises(ValueError, match=said):
        Grid.parse(texts)


def test_a_grid_grows_and_never_shrinks():
    """Catches values that are lost from one call to the next, or other options."""
    grid = Grid.parse(["seed=0,1", "width=3"])
    more = grid.extended(Grid.parse(["width=3,4", "seed=5,1,0"]))
    assert more.values == {"seed": ("0", "1", "5"), "width": ("3", "4")}
    assert grid.extended(Grid.parse(["seed=0,2", "width=3"])) is None
    assert grid.extended(Grid.parse(["seed=0,1"])) is None
    assert grid.extended(Grid.parse(["seed=0,1", "width=3", "depth=1"])) is None


def test_a_number_in_another_spelling_is_no_further_value():
    """Catches (seen) a run that is there twice: its standard error is too small."""
    begun = Grid.parse(["lr=1e-3,3e-3"])
    joined = begun.extended(Grid.parse(["lr=0.001,0.003,0.01"]))
    assert joined is not None
    assert joined.values == {"lr": ("1e-3", "3e-3", "0.01")}
