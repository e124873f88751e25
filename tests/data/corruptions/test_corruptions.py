"""What all corruptions have in common, and what they refuse."""

import numpy as np
import pytest

from ornstein.data import CORRUPTIONS, SEVERITIES, DataError, corrupt
from ornstein.data.corruptions import _registry
from ornstein.data.corruptions._base import to_bytes, to_unit
from ornstein.data.corruptions._motion import move

NOISES = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise")
DETERMINISTIC = {
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
}


# Where harsher constants move pixels less: glass copies fewer that differ after a wider
# blur, frost and elastic lower one amount while they raise another, motion only adds a
# tail that weighs nothing, spatter turns from water to mud, and saturation goes from
# too little to too much.
FALLS = {
    "glass_blur": {2, 3, 5},
    "frost": {4},
    "motion_blur": {4},
    "elastic_transform": {2, 3, 4, 5},
    "spatter": {4},
    "saturate": {3},
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_distortion_grows_with_severity(photos: np.ndarray, name: str):
    """Catches a table in the wrong order, and a severity that is off by one."""
    errors = [
        np.sqrt(np.mean((corrupt(photos, name, severity) - photos.astype(float)) ** 2))
        for severity in SEVERITIES
    ]
    assert errors[0] > 1
    falls = {i for i in (2, 3, 4, 5) if errors[i - 1] < 1.02 * errors[i - 2]}
    assert falls <= FALLS.get(name, set()), errors


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_rows_do_not_depend_on_those_after(
    photos: np.ndarray, name: str, monkeypatch: pytest.MonkeyPatch
):
    """Nor on calls before; in a block and beyond it. Catches a shared generator."""
    monkeypatch.setattr(_registry, "_BLOCK", 4)
    all_rows = corrupt(photos[:9], name, 3, seed=1)
    for count in (1, 3, 6):
        assert np.array_equal(
            corrupt(photos[:count], name, 3, seed=1), all_rows[:count]
        )
    other = corrupt(photos[:9], name, 3, seed=2)
    assert np.array_equal(other, all_rows) == (name in DETERMINISTIC)
    if name not in DETERMINISTIC:
        same = corrupt(np.tile(photos[:1], (8, 1, 1, 1)), name, 2)
        assert len(np.unique(same, axis=0)) > 4  # no two rows corrupted alike


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(8, 8), (11, 20)])
def test_grey_and_small_images(photos: np.ndarray, name: str, shape: tuple[int, int]):
    """Grey is corrupted as colours that are equal; noises alone differ by channel."""
    height, width = shape
    grey = photos[:3, :height, :width, 1:2]
    before = grey.copy()
    found = corrupt(grey, name, 4)
    assert (found.shape, found.dtype) == (grey.shape, np.uint8)
    assert np.array_equal(grey, before)
    if name not in NOISES:
        colour = corrupt(np.repeat(grey, 3, axis=-1), name, 4)
        assert np.abs(found[..., 0] - colour.astype(float).mean(-1)).max() <= 1


def test_bad_input(photos: np.ndarray):
    with pytest.raises(DataError, match="no corruption 'snov' .did you mean 'snow'"):
        corrupt(photos, "snov", 1)
    with pytest.raises(DataError, match="no severity 6 of fog: give one of 1 to 5"):
        corrupt(photos, "fog", 6)
    with pytest.raises(DataError, match="7 x 32 pixels and 3 channels.*at least 8 x 8"):
        corrupt(photos[:, :7], "fog", 1)
    with pytest.raises(DataError, match="2 channels cannot be corrupted"):
        corrupt(photos[..., :2], "fog", 1)


def test_names_are_those_of_the_files():
    assert len(CORRUPTIONS) == 19
    assert list(CORRUPTIONS)[-4:] == [
        "speckle_noise",
        "gaussian_blur",
        "spatter",
        "saturate",
    ]


def test_bytes_go_there_and_back():
    every = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    assert np.array_equal(to_bytes(to_unit(every), 1), every)
    half = move(to_unit(every), np.zeros(1), radius=1, sigma=1e-3)
    np.testing.assert_allclose(half, to_unit(every))
