"""What commas and points in numbers mean, by all columns of a table."""

import numpy as np
import pytest

import ornstein.data as od

THOUSANDS = ("1,234", "12,500", "2,000", "3,750")
POINTS = ("0.5", "12.25", "3.75", "1.5")


def load(tmp_path, columns, separator):
    """A table of `x` and `y`, whose cells repeat."""
    cells = list(columns.values())
    rows = [separator.join(c[i % len(c)] for c in cells) for i in range(40)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join([separator.join(columns), *rows, ""]))
    return od.load(str(path), target="y", task="regression", test_fraction=0.1)


def seen(scaling, values):
    """The different raw numbers of a column."""
    return np.unique(np.ravel(scaling.undo(values.astype(float))).round(3))


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("of", ["x", "y"])
def test_commas_beside_decimal_points_part_thousands(of, separator, tmp_path):
    """Catches (seen) 1,234 that is 1.234 beside 0.5, of a feature and of a target."""
    other = {"x": "y", "y": "x"}[of]
    columns = {of: THOUSANDS, other: POINTS}
    data = load(tmp_path, {name: columns[name] for name in "xy"}, separator)
    found = {
        "x": seen(data.x_scaling, data.train.x),
        "y": seen(data.y_scaling, data.train.y),
    }
    np.testing.assert_allclose(found[of], [1234, 2000, 3750, 12500], rtol=1e-5)
    np.testing.assert_allclose(found[other], [0.5, 1.5, 3.75, 12.25], rtol=1e-5)
    assert any(f"commas in '{of}' are taken" in note for note in data.notes)


def test_points_in_the_same_column_part_decimals(tmp_path):
    """Catches (seen) a column that is refused for 0.5 beside 1,234."""
    columns = {"x": ("1,234", "0.5", "2,000"), "y": ("1", "2", "4")}
    data = load(tmp_path, columns, ";")
    found = seen(data.x_scaling, data.train.x)
    np.testing.assert_allclose(found, [0.5, 1234, 2000], rtol=1e-5)
    assert not any("commas in" in note for note in data.notes)


@pytest.mark.parametrize("others", [("1.234", "2.320"), ("1,5", "0,25"), ("7", "8")])
def test_commas_part_decimals_where_no_point_certainly_does(others, tmp_path):
    """Catches points of 2.320 that are taken for decimals, beside commas."""
    data = load(tmp_path, {"x": THOUSANDS, "y": others}, ";")
    found = seen(data.x_scaling, data.train.x)
    np.testing.assert_allclose(found, [1.234, 2, 3.75, 12.5], rtol=1e-5)


def test_commas_that_certainly_part_decimals_win(tmp_path):
    """Where a table has both: catches decimals that are thousands for 0.5 elsewhere."""
    columns = {"x": THOUSANDS, "z": ("0,5", "1,25"), "y": POINTS}
    data = load(tmp_path, columns, ";")
    names = list(data.feature_names)
    raw = data.x_scaling.undo(data.train.x.astype(float))
    assert raw[:, names.index("x")].max() < 13
    assert raw[:, names.index("z")].max() < 2
