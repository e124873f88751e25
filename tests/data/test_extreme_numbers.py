"""Numbers at the ends of double precision, and tables at the ends of the parser."""

import numpy as np
import pytest

import ornstein.data as od


def columns(scale: float) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(40, 2))
    return x * [scale, 1.0]


@pytest.mark.parametrize("power", [-400, -100, 100, 400])
def test_standard_units_do_not_depend_on_the_unit(power: int, tmp_path):
    """A power of two changes no bit: catches scaling after a cast to single precision.

    Seen failing with `raw.astype(float32)` before the division: zeros and infinity.
    """
    y = np.arange(40) % 2
    found = []
    for scale in (1.0, 2.0**power):
        np.savez(tmp_path / "own.npz", x=columns(scale), y=y)
        found.append(od.load(str(tmp_path / "own.npz")).train.x)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("size", "why"),
    [(1e300, "beyond double"), (1e-300, "beyond double"), (1e200, "beyond double")],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_numbers_that_would_be_lost_are_named(name, size, why, tmp_path):
    """Seen failing: 1e300 gave a column of zeros, and 1e-300 one of infinities."""
    x, y = columns(1.0), columns(1.0)[:, :1]
    array = x if name == "x" else y
    array[:, 0] *= size
    row = int(np.argmax(np.abs(array[:, 0])))
    path = tmp_path / "own.npz"
    np.savez(path, x=x, y=y)
    what = "x" if name == "x" else "the target"
    match = rf"npz: {what} has \S+ in row {row} \(column 0\).*{why}"
    with pytest.raises(od.DataError, match=match):
        od.load(str(path))


def test_a_long_header_is_read(tmp_path):
    """More than the parser's own block of 1 MB: it was called an empty file."""
    names = [f"{'n' * 800}{i}" for i in range(2_000)]
    rows = [",".join(str(i + j) for j in range(2_000)) for i in range(6)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([",".join(names), *rows, ""]))
    assert len(",".join(names)) > 2**20
    data = od.load(str(path), target=names[-1], task="regression", test_fraction=0.5)
    assert data.example_shape == (1_999,)
    assert data.feature_names[7] == names[7]
    raw = data.x_scaling.undo(data.train.x)
    np.testing.assert_allclose(np.diff(raw, axis=1), 1, atol=1e-4)
