"""The user's own images: a folder with a sub-folder for each class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from .._assemble import assemble, split_and_assemble
from .._base import Data
from .._error import DataError
from ._pixels import decode, jpeg_notes, open_image, read_encoded

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".webp")


def image_folder(folder: Path, *, test_fraction: float, seed: int) -> Data:
    """Learn the sub-folder's name from the image.

    With the two sub-folders `train` and `test` and nothing beside them, classes are
    looked for in each and the test rows are those given; otherwise they are drawn.

    Args:
        folder: `folder/CLASS/image.png`, or `folder/train/CLASS/image.png`.
        test_fraction: of the images, for the test.
        seed: decides which images.

    Raises:
        DataError: if there are no classes in it, or images that cannot be used.
    """
    parts = _subfolders(folder)
    if parts != ["test", "train"]:
        images, labels, notes = _read(folder, parts, None)
        return split_and_assemble(
            str(folder),
            images,
            labels,
            test_fraction=test_fraction,
            seed=seed,
            class_names=parts,
            notes=notes,
        )
    classes = _subfolders(folder / "train")
    unknown = sorted(set(_subfolders(folder / "test")) - set(classes))
    if unknown:
        raise DataError(
            f"{folder / 'test' / unknown[0]} is a class without training images: add "
            f"{folder / 'train' / unknown[0]} or take it away."
        )
    train = _read(folder / "train", classes, None)
    test = _read(folder / "test", classes, train[0].shape[-1])
    return assemble(
        str(folder),
        train[:2],
        test[:2],
        class_names=classes,
        notes=train[2],
    )


def images_below(folder: Path) -> list[Path]:
    """The image files at any depth, sorted."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def read_images(
    paths: Sequence[Path], channels: int
) -> UInt8[np.ndarray, "rows height width channels"]:
    """Decode files of one size.

    Args:
        paths: the files.
        channels: 1 for grey, 3 for colour.

    Raises:
        DataError: for a file that is no image, or one of another size.
    """
    encoded = [read_encoded(path) for path in paths]
    return decode(encoded, channels=channels, names=[str(path) for path in paths])


def _subfolders(folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    )


def _read(
    folder: Path, classes: Sequence[str], channels: int | None
) -> tuple[UInt8[np.ndarray, "rows h w c"], Int[np.ndarray, " rows"], list[str]]:
    """Images, class numbers and notes of the sub-folders `classes`."""
    paths, labels = [], []
    for number, name in enumerate(classes):
        found = images_below(folder / name) if (folder / name).is_dir() else []
        paths += found
        labels += [number] * len(found)
    if len(classes) < 2 or not paths:
        raise DataError(
            f"{folder} has {len(classes)} sub-folders and {len(paths)} images "
            f"({', '.join(SUFFIXES)}) in them: give a sub-folder of images for each of "
            "two or more classes."
        )
    if channels is None:
        channels = _channels(paths[0])
    notes = jpeg_notes(read_encoded(path) for path in paths[:1])
    return read_images(paths, channels), np.array(labels), notes


def _channels(path: Path) -> int:
    """Grey if the first image is: 1 channel; otherwise 3."""
    with open_image(read_encoded(path), str(path)) as image:
        return 1 if image.mode in ("1", "L", "I;16") else 3
