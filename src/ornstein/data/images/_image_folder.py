"""The user's own images: a folder with a sub-folder for each class."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from ..._sentence import Sentence
from .._assemble import assemble, split_and_assemble
from .._base import Data
from .._error import DataError
from .._hold_out import hold_out
from ._pixels import ImageFit, decode, is_grey, open_image, read_encoded

_MAX_SIZE = 4096
SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".webp")


def image_folder(
    folder: Path,
    *,
    size: int | None,
    fit: ImageFit = "crop",
    test_fraction: float,
    seed: int,
) -> Data:
    """Learn the sub-folder's name from the image.

    With the two sub-folders `train` and `test` and nothing beside them, classes are
    looked for in each and the test rows are those given; otherwise they are drawn.

    Args:
        folder: `folder/CLASS/image.png`, or `folder/train/CLASS/image.png`.
        size: of their sides in pixels, to which all are brought; by default they are
            left as they are, which must be of one size.
        fit: how: see `decode`.
        test_fraction: of the images, for the test.
        seed: decides which images.

    Raises:
        DataError: if there are no classes in it, or images that cannot be used.
    """
    if size is not None and not 1 <= size <= _MAX_SIZE:
        raise DataError(
            Sentence(
                "{image_size} must be from 1 to {} pixels, got {}.", _MAX_SIZE, size
            )
        )
    parts = class_folders(folder)
    if parts != ["test", "train"]:
        images, labels, paths = _read(folder, parts, None, size, fit)
        data = split_and_assemble(
            str(folder),
            images,
            labels,
            test_fraction=test_fraction,
            seed=seed,
            class_names=parts,
        )
        _, held = hold_out(len(labels), test_fraction, seed=seed, labels=labels)
        names = _names([paths[i] for i in held], folder)
        own = {"image_size": size, "image_fit": fit, "test_names": names}
        return dataclasses.replace(data, **own)
    classes = class_folders(folder / "train")
    unknown = sorted(set(class_folders(folder / "test")) - set(classes))
    if unknown:
        raise DataError(
            f"{folder / 'test' / unknown[0]} is a class without training images: add "
            f"{folder / 'train' / unknown[0]} or take it away."
        )
    train = _read(folder / "train", classes, None, size, fit)
    test = _read(folder / "test", classes, train[0].shape[-1], size, fit)
    data = assemble(str(folder), train[:2], test[:2], class_names=classes)
    names = _names(test[2], folder)
    own = {"image_size": size, "image_fit": fit, "test_names": names}
    return dataclasses.replace(data, **own)


def images_below(folder: Path) -> list[Path]:
    """The image files at any depth, sorted."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def read_images(
    paths: Sequence[Path],
    channels: int,
    *,
    size: int | None = None,
    fit: ImageFit = "crop",
) -> UInt8[np.ndarray, "rows height width channels"]:
    """Decode files of one size, or bring them to one, one after the other.

    They are turned as their EXIF says.

    Args:
        paths: the files.
        channels: 1 for grey, 3 for colour.
        size: of their sides, to which they are brought.
        fit: how: see `decode`.

    Raises:
        DataError: for a file that is no image, or one of another size.
    """
    return decode(
        map(read_encoded, paths),
        channels=channels,
        names=[str(path) for path in paths],
        num_bytes=sum(path.stat().st_size for path in paths),
        size=size,
        fit=fit,
        is_photograph=True,
    )


def read_labelled_images(
    folder: Path,
    classes: Sequence[str],
    channels: int,
    *,
    size: int | None = None,
    fit: ImageFit = "crop",
) -> tuple[UInt8[np.ndarray, "rows h w c"], Int[np.ndarray, " rows"], list[Path]]:
    """Images of known classes, some of which may have none here.

    Args:
        folder: with a sub-folder for each class.
        classes: in the order of their numbers.
        channels: 1 for grey, 3 for colour.
        size: of their sides, to which they are brought.
        fit: how: see `decode`.

    Returns:
        The images, their class numbers and their files.

    Raises:
        DataError: if there are none, or some that cannot be used.
    """
    return _read(folder, classes, channels, size, fit)


def class_folders(folder: Path) -> list[str]:
    """The names of a folder's sub-folders, sorted; hidden ones are passed over.

    Args:
        folder: of images.
    """
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    )


def _read(
    folder: Path,
    classes: Sequence[str],
    channels: int | None,
    size: int | None,
    fit: ImageFit,
) -> tuple[UInt8[np.ndarray, "rows h w c"], Int[np.ndarray, " rows"], list[Path]]:
    """Images, class numbers and files of the sub-folders `classes`."""
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
        channels = 1 if all(map(_is_grey, paths)) else 3
    return read_images(paths, channels, size=size, fit=fit), np.array(labels), paths


def _names(paths: Sequence[Path], folder: Path) -> tuple[str, ...]:
    return tuple(path.relative_to(folder).as_posix() for path in paths)


def _is_grey(path: Path) -> bool:
    with open_image(read_encoded(path), str(path)) as image:
        return is_grey(image)
