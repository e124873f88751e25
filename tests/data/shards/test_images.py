"""Images that stay on disk, against the same folder in memory."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ornstein.data import (
    Data,
    DataError,
    DataNotFoundError,
    Standardisation,
    Streamed,
    load,
    load_schema,
    read_inputs,
    save_schema,
)
from ornstein.data.stream._order import Part

CLASSES = ("beech", "oak", "pine")


def write(
    folder: Path, per_class: int = 12, classes: tuple[str, ...] = CLASSES
) -> Path:
    """Photographs of several sizes, no two alike: of each class others bright."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(per_class):
            shape = (20 + i % 9, 30 - i % 9, 3)
            pixels = rng.integers(60 * number, 60 * number + 120, shape)
            image = Image.fromarray(pixels.astype(np.uint8))
            image.save(folder / name / f"{i:03d}.{'jpg' if i % 2 else 'png'}")
    return folder


def streamed(folder: Path, **options: Any) -> Data:
    return load(str(folder), **({"image_size": 8, "stream": True} | options))


def rows_of(data: Data) -> Streamed:
    assert isinstance(data.train, Streamed)
    return data.train


def epoch(data: Data, number: int = 0, batch_size: int = 4, part: Part | None = None):
    """All batches of an epoch."""
    rows, num_parts = rows_of(data), 1 if part is None else part.count
    num_steps = rows.steps_per_epoch(batch_size, num_parts=num_parts)
    start = number * num_steps
    batches = rows.batches(batch_size, seed=[5], start=start, part=part)
    found = [next(batches) for _ in range(num_steps)]
    batches.close()
    return tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))


def pixels_of(data: Data, x: np.ndarray) -> np.ndarray:
    raw = data.x_scaling.undo(x)
    np.testing.assert_allclose(raw, np.round(raw), atol=1e-3)
    return np.round(raw).astype(np.uint8)


def as_set(data: Data, x: np.ndarray, y: np.ndarray) -> dict[bytes, int]:
    """The class of each image, by its pixels."""
    pairs = zip(pixels_of(data, x), y.tolist(), strict=True)
    return {pixels.tobytes(): label for pixels, label in pairs}


@pytest.mark.parametrize("fit", ["crop", "pad"])
def test_an_epoch_has_the_images_of_memory_once(tmp_path: Path, fit: str):
    """Catches other pixels, labels of other images, and an image that is lost, met
    twice, or both learned from and held out."""
    folder = write(tmp_path / "photos")
    data = streamed(folder, image_fit=fit, validation_fraction=0.2)
    whole = load(str(folder), image_size=8, image_fit=fit)
    x = np.concatenate([whole.train.x, whole.test.x])
    y = np.concatenate([whole.train.y, whole.test.y])
    expected = as_set(whole, x, y)
    assert (len(data.train), len(data.validation), len(data.test)) == (22, 6, 8)
    held = as_set(data, data.validation.x, data.validation.y)
    held |= as_set(data, data.test.x, data.test.y)
    for number in range(2):
        met = as_set(data, *epoch(data, number, batch_size=11))
        assert len(met) == 22
        assert met | held == expected
    sample = as_set(data, data.train.sample.x, data.train.sample.y)
    assert sample.items() <= met.items()
    assert data.class_names == whole.class_names


def test_pixels_are_standardised_as_in_memory(tmp_path: Path):
    """By the training images alone. Catches those of the test among them."""
    folder = write(tmp_path / "photos")
    data = streamed(folder, validation_fraction=0.2)
    x, _ = epoch(data, batch_size=22)
    expected = Standardisation.fit(pixels_of(data, x), (0, 1, 2))
    np.testing.assert_allclose(data.x_scaling.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(data.x_scaling.scale, expected.scale, rtol=1e-12)
    assert data.x_scaling.mean.shape == expected.mean.shape
    assert data.x_scaling.axes == expected.axes


def test_a_pass_in_chunks_finds_the_same(tmp_path: Path, monkeypatch):
    """Catches held images in another's place where chunks meet."""
    folder = write(tmp_path / "photos")
    whole = streamed(folder, validation_fraction=0.2)
    monkeypatch.setattr("ornstein.data.shards._image_rows._CHUNK_BYTES", 5 * 8 * 8 * 3)
    parts = streamed(folder, validation_fraction=0.2)
    assert parts.x_scaling.is_close(whole.x_scaling)
    for name in ("test", "validation"):
        ours, theirs = getattr(parts, name), getattr(whole, name)
        np.testing.assert_allclose(ours.x, theirs.x, atol=1e-5)
        np.testing.assert_array_equal(ours.y, theirs.y)


def test_a_folder_sorted_by_class_is_shuffled_as_a_whole(tmp_path: Path):
    """Few images are in memory at once, and all classes are among them.

    Catches windows of neighbours (seen: blocks in their order): the first third of an
    epoch then is of one class.
    """
    data = streamed(write(tmp_path / "photos", per_class=40), shuffle_buffer=5)
    orders = [epoch(data, number, batch_size=8)[1] for number in range(2)]
    for y in orders:
        assert np.bincount(y[:30], minlength=3).min() >= 3
    assert (orders[0] != orders[1]).any()
    assert "shuffled as a whole" in data.notes[-1]


def test_batches_are_the_same_from_any_step_on_and_by_any_readers(tmp_path: Path):
    """Catches threads that put images in the order in which they end."""
    folder = write(tmp_path / "photos")
    rows = rows_of(streamed(folder, shuffle_buffer=7))
    many = Streamed(rows.shards, rows.sample, 7, num_readers=4)
    begun = rows.batches(4, seed=[1], start=0)
    whole = [next(begun) for _ in range(20)]
    begun.close()
    for source, start in ((rows, 9), (many, 0), (many, 13)):
        batches = source.batches(4, seed=[1], start=start)
        for x, y in whole[start:]:
            x_there, y_there = next(batches)
            np.testing.assert_array_equal(x, x_there)
            np.testing.assert_array_equal(y, y_there)
        batches.close()
    assert rows.order == rows_of(streamed(folder, shuffle_buffer=7)).order
    other = rows_of(streamed(folder, shuffle_buffer=7, seed=1))
    assert rows.order != other.order


def test_processes_share_the_images_evenly(tmp_path: Path):
    data = streamed(write(tmp_path / "photos"), test_fraction=0.1)
    met = [as_set(data, *epoch(data, part=Part(n, 2))) for n in range(2)]
    assert [len(part) for part in met] == [16, 16]
    assert not met[0].keys() & met[1].keys()


def test_given_test_images_are_the_test(tmp_path: Path):
    write(tmp_path / "photos" / "train")
    write(tmp_path / "photos" / "test", per_class=4)
    data = streamed(tmp_path / "photos")
    whole = load(str(tmp_path / "photos"), image_size=8)
    assert len(data.train) == len(whole.train)
    assert list(data.test_names) == list(whole.test_names)
    np.testing.assert_allclose(data.test.x, whole.test.x, atol=1e-5)
    np.testing.assert_array_equal(data.test.y, whole.test.y)
    assert data.x_scaling.is_close(whole.x_scaling)


@pytest.mark.parametrize("is_given", [True, False])
def test_what_is_kept_in_memory_is_bounded(tmp_path: Path, monkeypatch, is_given: bool):
    """Catches a bound that is of one part alone: five images of 8 x 8 in colour."""
    most = 5
    monkeypatch.setattr(
        "ornstein.data.shards._load_images.HELD_BYTES", most * 8 * 8 * 3 * 4 + 1
    )
    folder = tmp_path / "photos"
    write(folder / "train" if is_given else folder)
    if is_given:
        write(folder / "test", per_class=7)
    data = streamed(folder, validation_fraction=0.5)
    held = (data.test, data.validation, data.train.sample)
    assert [len(split) for split in held] == [most] * 3
    assert len(data.train) == 36 - most - (0 if is_given else most)
    drawn_from = 21 if is_given else 36
    assert f"5 test images, drawn from {drawn_from}, are in memory" in data.notes[-1]
    for name, x in zip(data.test_names, data.test.x, strict=True):
        found = read_inputs(folder / name, data).x[0]
        np.testing.assert_array_equal(found, x)
    assert len(set(data.test_names)) == most
    # At random: other ones by another seed, and not of the first class alone.
    again = streamed(folder, validation_fraction=0.5, seed=1)
    assert set(again.test_names) != set(data.test_names)
    classes = {name.split("/")[-2] for name in (*data.test_names, *again.test_names)}
    assert len(classes) > 1


def test_new_images_are_read_as_those_on_disk(tmp_path: Path):
    """What a run keeps is enough: the size, the fit, the units."""
    folder = write(tmp_path / "photos")
    data = streamed(folder, image_fit="pad")
    save_schema(tmp_path / "data.json", data)
    known = load_schema(tmp_path / "data.json")
    shards = rows_of(data).shards
    for block in (0, 5):
        found = read_inputs(shards.files.paths[block], known).x
        np.testing.assert_array_equal(found, shards.read(block)[0])


def test_grey_images_stay_grey(tmp_path: Path):
    for i in range(12):
        path = tmp_path / "photos" / f"c{i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((6, 7), 20 * i, np.uint8)).save(path)
    data = streamed(tmp_path / "photos", image_size=None)
    assert data.example_shape == (6, 7, 1)
    assert rows_of(data).shards.read(0)[0].shape == (1, 6, 7, 1)


def test_what_is_beside_images_is_passed_over(tmp_path: Path):
    """Catches hidden files of other systems, and tables that describe images."""
    folder = write(tmp_path / "photos", per_class=4)
    num_rows = len(streamed(folder).train)
    (folder / "labels.csv").write_text("file,label")
    (folder / "oak" / "notes.txt").write_text("taken in May")
    (folder / "oak" / "._000.jpg").write_text("no image")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "x.parquet").write_text("none")
    assert len(streamed(folder).train) == num_rows
    (folder / "oak" / "000.png").rename(folder / "oak" / "000.PNG")
    assert len(streamed(folder).train) == num_rows


def broken(name: str, folder: Path) -> dict[str, Any]:
    """A folder that cannot be used, and the options to read it with."""
    if name == "one class":
        write(folder, classes=("oak",))
    elif name == "no class":
        folder.mkdir()
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / "a.png")
    elif name == "neither":
        folder.mkdir()
        (folder / "a.txt").write_text("text")
    else:
        write(folder)
    if name == "empty class":
        (folder / "yew").mkdir()
    if name == "lonely":
        for i in range(12):
            (folder / "oak" / f"{i:03d}.{'jpg' if i % 2 else 'png'}").unlink()
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / "oak" / "a.png")
        return {"test_fraction": 0.95}
    if name == "rows, too":
        (folder / "oak" / "meta.parquet").write_bytes(b"PAR1")
    if name == "link":
        (folder / "oak" / "far.png").symlink_to(folder / "not there.png")
    if name == "loop":
        (folder / "oak" / "far.png").symlink_to("far.png")
    if name == "no text":
        (folder / "oak" / "000.png").rename(
            os.fsdecode(bytes(folder) + b"/oak/\xff.png")
        )
    if name == "empty":
        (folder / "oak" / "004.png").write_bytes(b"")
    if name == "damaged":
        (folder / "oak" / "004.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    return {"image_size": None} if name in ("sizes", "neither") else {}


BROKEN = {
    "one class": "has 1 sub-folders and 12 images .*give a sub-folder of images",
    "no class": "has 0 sub-folders and 0 images",
    "neither": "has 1 files, none of them rows: .*or of images with a sub-folder",
    "empty class": "yew has no image: a class takes images to learn from; add some",
    "lonely": "oak has 1 images, all of them held out: a class takes images",
    "damaged": r"oak.004.png cannot be read as an image \(.*\): replace it or leave",
    "rows, too": r"has images, such as .*oak.*, and rows, such as .*meta.parquet: take",
    "link": "far.png is a link that leads to no file: take it away, or put back what",
    "loop": "far.png is a link that leads to no file: take it away",
    "no text": r"xff.png' has a name that is not UTF-8: rename it",
    "empty": r"004.png cannot be read as an image \(it is none of BMP, JPEG, PNG",
    "sizes": r"001.jpg has 21 × 29 pixels and .*000.png 20 × 30: bring all images to",
}


@pytest.mark.parametrize("name", BROKEN)
def test_folders_that_cannot_be_used_are_refused(name: str, tmp_path: Path):
    options = broken(name, tmp_path / "photos")
    with pytest.raises(DataError, match=BROKEN[name]):
        streamed(tmp_path / "photos", **options)


def test_an_image_that_changed_is_refused_by_its_name(tmp_path: Path):
    """Where it is come to. Catches another image in silence, or a bare error."""
    folder = write(tmp_path / "photos", classes=("oak", "pine"))
    for path in folder.rglob("*.*"):
        Image.new("RGB", (9, 7), (len(path.name), 3, 5)).save(path)
    shards = rows_of(streamed(folder, image_size=None)).shards
    path = shards.files.paths[3]
    said = f"{path.name} is not what it was when .*go on from the last checkpoint"
    Image.new("RGB", (9, 8)).save(path)
    with pytest.raises(DataError, match=said):
        shards.read(3)
    path.write_bytes(b"damaged")
    with pytest.raises(DataError, match=said):
        shards.read(3)
    path.unlink()
    with pytest.raises(DataNotFoundError, match=f"{path.name} is gone, which was the"):
        shards.read(3)


def test_options_of_tables_are_refused(tmp_path: Path):
    folder = write(tmp_path / "photos")
    with pytest.raises(DataError, match="has its own target: leave `target` out"):
        streamed(folder, target="oak")
    with pytest.raises(DataError, match="`id_column` is for a .csv or .parquet file"):
        streamed(folder, id_column="name")
    with pytest.raises(DataError, match="`image_size` must be from 1 to 4096"):
        streamed(folder, image_size=0)


def test_threads_are_for_large_files(tmp_path: Path, monkeypatch):
    """Of small ones two threads are slower than one: see `images.decode`."""
    folder = write(tmp_path / "photos")
    files = rows_of(streamed(folder)).shards.files
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    assert files.num_readers == 1
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3)).astype(np.uint8)
    for path in files.paths:
        Image.fromarray(noise).save(path, quality=95)
    assert files.num_readers == 3
    assert rows_of(streamed(folder)).num_readers == 3
