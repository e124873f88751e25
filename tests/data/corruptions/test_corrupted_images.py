"""Where corrupted images come from: CIFAR-10-C's files, or a cache of our own."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import ornstein.data as od
from ornstein.data import (
    CORRUPTIONS,
    ByteScale,
    Data,
    DataError,
    Split,
    Standardisation,
    corrupt,
    corrupted_images,
)

CLASSES = ("a", "b", "c")
TOTAL = 50_000


def pictures(white: float, name: str = "pictures", size: int = 32) -> Data:
    """A few images of whole bytes, in units where `white` is white."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (12, size, size, 3), np.uint8)
    pixels[0, 0, 0] = 255
    raw = pixels * white / 255
    scaling = Standardisation.fit(raw, (0, 1, 2))
    y = rng.integers(0, 3, 12).astype(np.int32)
    split = Split(scaling.apply(raw), y)
    return Data(name, "classification", split, split, None, 3, CLASSES, scaling)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ORNSTEIN_DATA", raising=False)
    return tmp_path / "cache" / "ornstein" / "corruptions"


@pytest.mark.parametrize("white", [1.0, 16.0, 255.0])
def test_bytes_and_back(white: float):
    """Catches a scaling applied twice, and shares taken for bytes."""
    data = pictures(white)
    pixels = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)
    pixels[0, 0, 0] = 255
    scale = ByteScale.of(data)
    assert scale.white == white
    images = scale.to_bytes(data.test.x)
    assert np.array_equal(images, pixels)
    np.testing.assert_allclose(scale.from_bytes(images), data.test.x, atol=2e-6)
    # Darker images keep to the same white, and the digits to theirs.
    dark = dataclasses.replace(data, test=Split(data.test.x[:1] * 0, data.test.y[:1]))
    mean = 255 * data.x_scaling.mean / white
    found = ByteScale.of(dark).to_bytes(dark.test.x)[0].astype(float)
    assert np.abs(found - mean).max() <= 0.501
    digits = od.load("digits")
    assert ByteScale.of(digits).white == 16
    raw = digits.x_scaling.undo(digits.test.x)
    found = ByteScale.of(digits).to_bytes(digits.test.x)
    assert np.array_equal(found, np.round(raw * 255 / 16).astype(np.uint8))


def test_generated_ones_are_kept_and_mended(cache: Path, monkeypatch):
    data = pictures(255)
    found = corrupted_images(data, num_rows=5, seed=3)
    assert found.generated
    assert "not the published files" in found.note
    assert str(cache) not in found.note  # which results keep
    assert not cache.exists()
    pixels = ByteScale.of(data).to_bytes(data.test.x)
    expected = corrupt(pixels[:5], "fog", 2, seed=3)
    assert np.array_equal(found.images("fog", 2), expected)
    (file,) = cache.rglob("*.npy")
    assert file.is_relative_to(found.folder)
    assert not list(cache.rglob("*.tmp"))

    # Read rather than made; and made again where the file is damaged or another's.
    calls = []
    again = lambda *args, **kwargs: calls.append(args) or corrupt(*args, **kwargs)
    monkeypatch.setattr("ornstein.data.corruptions._corrupted_images.corrupt", again)
    assert np.array_equal(found.images("fog", 2), expected)
    assert not calls
    whole = file.read_bytes()
    for damaged in (b"", whole[:90], whole[:-5], b"not an array"):
        file.write_bytes(damaged)
        assert np.array_equal(found.images("fog", 2), expected)
        assert file.read_bytes() == whole
    np.save(file, expected[:2])
    assert np.array_equal(found.images("fog", 2), expected)
    assert len(calls) == 5


def test_other_images_have_other_files(cache: Path):
    """Catches a cache by name alone: rows, pixels, seed, severity and corruption."""
    data = pictures(255)
    other = dataclasses.replace(data, test=data.test.rows(np.arange(12)[::-1]))
    for source, options in [
        (data, {}),
        (data, {"num_rows": 5}),
        (data, {"seed": 1}),
        (other, {}),
    ]:
        corrupted_images(source, **options).images("fog", 2)
    found = corrupted_images(data)
    found.images("fog", 3)
    found.images("frost", 2)
    assert len(list(cache.rglob("*.npy"))) == 6


@pytest.fixture
def published(tmp_path: Path) -> tuple[Data, Path]:
    """CIFAR-10-C's layout, its files sparse but for the rows that are looked at."""
    data = pictures(255, "cifar10")
    folder = tmp_path / "data" / "CIFAR-10-C"
    folder.mkdir(parents=True)
    for number, name in enumerate(CORRUPTIONS):
        shape = (TOTAL, 32, 32, 3)
        file = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.uint8, shape)
        for severity in range(5):
            file[10_000 * severity + np.arange(12)] = 10 * number + severity
    labels = np.zeros(10_000, np.uint8)
    labels[:12] = data.test.y
    np.save(folder / "labels.npy", np.tile(labels, 5))
    return data, folder


def test_published_ones_are_read_in_order(published: tuple[Data, Path], cache: Path):
    data, folder = published
    found = corrupted_images(data, num_rows=7, data_dir=folder.parent)
    assert not found.generated
    assert found.folder == folder
    for number, name in enumerate(CORRUPTIONS):
        for severity in (1, 5):
            images = found.images(name, severity)
            assert images.shape == (7, 32, 32, 3)
            assert (images == 10 * number + severity - 1).all()
    assert not cache.exists()
    # Not for other data, nor from another folder.
    other = dataclasses.replace(data, name="cifar100")
    assert corrupted_images(other, data_dir=folder.parent).generated
    assert corrupted_images(data, data_dir=folder).generated
    folder.rename(folder.parent / "cifar10_c")
    assert not corrupted_images(data, data_dir=folder.parent).generated


def test_damaged_files_are_refused(published: tuple[Data, Path]):
    data, folder = published
    fog, labels = folder / "fog.npy", folder / "labels.npy"

    def refused(match: str, **options):
        with pytest.raises(DataError, match=match):
            corrupted_images(data, data_dir=folder.parent, **options)

    kept = labels.read_bytes()
    np.save(labels, np.roll(np.load(labels), 1))
    refused("labels.npy has other classes than the test rows")
    swapped = np.load(labels)
    np.save(labels, swapped[:10_000])
    refused(r"labels.npy has shape \(10000,\) and type uint8, where CIFAR-10-C has")
    labels.write_bytes(kept[:1000])
    refused("labels.npy.*cannot be read as a NumPy array: it is cut short")
    labels.write_bytes(kept)
    with fog.open("r+b") as file:
        file.truncate(100_000)
    refused(r"fog.npy \(100,000 bytes\) cannot be read.*cut short.*copy it again")
    assert not corrupted_images(
        data, data_dir=folder.parent, corruptions=["frost"]
    ).generated
    np.save(fog, np.zeros((10, 32, 32, 3), np.uint8))
    refused(r"fog.npy has shape \(10, 32, 32, 3\)")
    np.lib.format.open_memmap(fog, "w+", np.float32, (TOTAL, 32, 32, 3))
    refused("fog.npy has .* type float32")
    np.save(fog, np.array([{}]), allow_pickle=True)
    refused("fog.npy.*cannot be read as a NumPy array")
    fog.write_bytes(b"")
    refused(r"fog.npy \(0 bytes\) cannot be read")
    fog.unlink()
    (folder / "snow.npy").unlink()
    refused("has no snow.npy, fog.npy: copy all files of CIFAR-10-C")


def test_bad_input(cache: Path):
    data = pictures(255)
    with pytest.raises(DataError, match="no corruption 'rain'"):
        corrupted_images(data, corruptions=["rain"])
    for count in (0, 13):
        with pytest.raises(DataError, match=f"{count} rows are not among the 12"):
            corrupted_images(data, num_rows=count)
    with pytest.raises(
        DataError, match="cos has rows of 1 numbers.*give data of images"
    ):
        corrupted_images(od.load("toy/cos"))
    for change, match in [(3.0, "go from 0 to 765"), (-1.0, "go from -255 to 0")]:
        x_scaling = Standardisation(np.zeros((1, 1, 3)), np.full((1, 1, 3), change))
        raw = np.zeros((2, 32, 32, 3), np.float32)
        raw[0] = 255
        split = Split(raw, data.test.y[:2])
        wrong = dataclasses.replace(data, train=split, test=split, x_scaling=x_scaling)
        with pytest.raises(DataError, match=f"pictures {match} and cannot become"):
            corrupted_images(wrong)
    tiny = pictures(255, size=7)
    with pytest.raises(DataError, match="7 x 7 pixels.*at least 8 x 8"):
        corrupted_images(tiny).images("fog", 1)
    assert not cache.exists()
