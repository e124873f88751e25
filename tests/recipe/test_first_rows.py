"""Fewer test rows than there are: of folders of images, some of each class."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ornstein.data import Data, Split
from ornstein.recipe import Recipe, first_rows
from ornstein.recipe.inputs import load_data


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three classes, with 4, 8 and 12 test images of their own."""
    rng = np.random.default_rng(0)
    for part, scale in (("train", 3), ("test", 4)):
        for number, name in enumerate(("ant", "bee", "cat")):
            folder = tmp_path / "photos" / part / name
            folder.mkdir(parents=True)
            for i in range(scale * (number + 1)):
                pixels = rng.integers(0, 255, (8, 8), np.uint8)
                Image.fromarray(pixels).save(folder / f"{i:02d}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("stream", [False, True])
def test_test_images_are_of_all_classes(photos, stream):
    """As many of each as it has. Catches (seen) the first class alone."""
    load = lambda **how: load_data(Recipe().changed(data=str(photos), **how))
    whole = load(stream=stream)
    data = load(stream=stream, test_rows=6)
    assert np.bincount(data.test.y).tolist() == [1, 2, 3]
    names = list(whole.test_names)
    assert len(data.test_names) == len(set(data.test_names)) == 6
    rows = [names.index(name) for name in data.test_names]
    np.testing.assert_array_equal(data.test.x, whole.test.x[rows])
    again = load(stream=stream, test_rows=6)
    assert list(again.test_names) == list(data.test_names)
    assert len(load(stream=stream, test_rows=24).test) == 24
    assert load(stream=stream, test_rows=1).test_names[0] in names


def rows_of(y: list[int], num_classes: int | None = 3) -> Data:
    x = np.arange(float(len(y)))[:, None].astype(np.float32)
    split = Split(x, np.array(y, np.int32))
    task = "regression" if num_classes is None else "classification"
    return Data("own", task, split, split, num_classes=num_classes)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (rows_of([0, 1, 2, 0, 1, 2]), [0, 1, 2]),
        (rows_of([0, 1, 1, 2, 2, 1]), [0, 1, 2]),
        (rows_of([0, 0, 1, 1, 2, 2], None), [0, 1, 2]),
        (rows_of([1, 1, 1, 1, 1, 1]), [0, 1, 2]),
        (rows_of([0, 0, 1, 1, 2, 2]), [1, 3, 5]),
    ],
)
def test_other_rows_are_the_first(data, expected):
    """Catches other rows of built-in data, by which results of before are compared."""
    found = first_rows(data, None, 3)
    np.testing.assert_array_equal(found.test.x.ravel(), expected)
    assert any("evenly spread" in note for note in found.notes) == (expected[0] == 1)
