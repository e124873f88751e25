"""Shards of arrays that stay on disk, against the same arrays in memory."""

from pathlib import Path

import numpy as np
import pytest

from ornstein.data import Data, DataError, Standardisation, Streamed, load


def write(folder: Path, x: np.ndarray, y: np.ndarray, parts: int = 4) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(x)), parts)):
        np.savez(folder / f"{number}.npz", x=x[rows], y=y[rows])
    return folder


def all_rows(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    assert isinstance(data.train, Streamed)
    shards = data.train.shards
    x, y = zip(*map(shards.read, range(len(shards.block_rows))), strict=True)
    x, y = np.concatenate(x), np.concatenate(y)
    rows = np.setdiff1d(np.arange(len(x) + len(shards.left_out)), shards.left_out)
    return x, y, rows


def test_numbers_are_those_of_arrays_in_memory(tmp_path: Path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(3, 2, (200, 3)), rng.normal(size=200)
    data = load(str(write(tmp_path / "shards", x, y)), stream=True)
    found_x, found_y, rows = all_rows(data)
    expected = Standardisation.fit(x[rows])
    np.testing.assert_allclose(data.x_scaling.mean, expected.mean, rtol=1e-13)
    np.testing.assert_array_equal(found_x, data.x_scaling.apply(x[rows]))
    scaled = data.y_scaling.apply(y[rows, None])
    np.testing.assert_array_equal(found_y, scaled)
    assert data.task == "regression"
    assert len(data.test) == 40


def test_images_share_a_channel_and_classes_their_numbers(tmp_path: Path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (120, 4, 5, 3)).astype(np.uint8)
    y = rng.choice([3, 5, 9], 120)
    data = load(str(write(tmp_path / "shards", x, y)), stream=True)
    found_x, found_y, rows = all_rows(data)
    expected = Standardisation.fit(x[rows], (0, 1, 2))
    np.testing.assert_allclose(found_x, expected.apply(x[rows]), atol=1e-5)
    assert data.class_names == ("3", "5", "9")
    np.testing.assert_array_equal(np.array([3, 5, 9])[found_y], y[rows])
    assert data.example_shape == (4, 5, 3)


def test_many_different_targets_are_not_counted(tmp_path: Path):
    """Catches a count that ends early, told as the number of targets."""
    x, y = np.ones((1600, 2)), np.arange(1600) % 1200
    data = load(str(write(tmp_path / "shards", x, y)), stream=True)
    assert any("y has more than 1,000 different whole" in note for note in data.notes)


ROWS = np.zeros((9, 2))
BROKEN = {
    "shape": ({"x": np.zeros((9, 3)), "y": np.zeros(9)}, r"of shape \(3,\) and tar"),
    "no y": ({"x": ROWS}, r"b.npz has no array 'y' of rows, only x: write it with"),
    "lengths": ({"x": ROWS, "y": np.zeros(8)}, "x has 9 rows and y has 8"),
    "nan": ({"x": ROWS, "y": np.full(9, np.nan)}, "y has 9 NaN or infinite values"),
    "text": ({"x": ROWS, "y": np.array(["a"] * 9)}, "y has type <U1, and .*another"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_shards_are_refused(name: str, tmp_path: Path):
    arrays, said = BROKEN[name]
    np.savez(tmp_path / "a.npz", x=np.arange(18.0).reshape(9, 2), y=np.arange(9.0))
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(DataError, match=said):
        load(str(tmp_path), stream=True)


def test_options_of_tables_are_refused(tmp_path: Path):
    folder = write(tmp_path / "shards", np.ones((9, 2)), np.arange(9.0))
    with pytest.raises(DataError, match="`target` is for tables"):
        load(str(folder), target="y", stream=True)


def test_a_file_that_changed_is_refused(tmp_path: Path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.choice([1, 2], 40)
    folder = write(tmp_path / "shards", x, y)
    data = load(str(folder), stream=True)
    np.savez(folder / "0.npz", x=x[:10], y=y[:10] + 7)
    with pytest.raises(DataError, match="not among its classes"):
        all_rows(data)
    np.savez(folder / "0.npz", x=x[:9], y=y[:9])
    with pytest.raises(DataError, match="not what it was when rows were counted"):
        all_rows(data)
