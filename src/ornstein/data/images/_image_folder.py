"""The user's own images: a folder with a sub-folder for each class."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from ..._sentence import Sentence
from .._assemble import assemble, split_and_assemble
from .._base import Data
from .._error import DataError
from .._hold_out import hold_out
from ._pixels import ImageFit, decode, is_grey, open_image, read_encoded
from ._suffixes import SUFFIXES, unread_notes

_MAX_SIZE = 4096
_SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation"}
_SPLITS |= {"dev", "eval", "evaluation", "holdout"}


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
    check_image_size(size)
    found = find_classes(folder)
    notes = unread_notes(folder, found.folders)
    if found.test is None:
        images, labels, paths = _read(folder, found.names, None, size, fit)
        check_every_class(labels, found)
        data = split_and_assemble(
            str(folder),
            images,
            labels,
            test_fraction=test_fraction,
            seed=seed,
            class_names=found.names,
            notes=notes,
        )
        _, held = hold_out(len(labels), test_fraction, seed=seed, labels=labels)
        names = relative_names([paths[i] for i in held], folder)
        own = {"image_size": size, "image_fit": fit, "test_names": names}
        return dataclasses.replace(data, **own)
    train = _read(found.train, found.names, None, size, fit)
    check_every_class(train[1], found)
    test = _read(found.test, found.names, train[0].shape[-1], size, fit)
    data = assemble(
        str(folder), train[:2], test[:2], class_names=found.names, notes=notes
    )
    names = relative_names(test[2], folder)
    own = {"image_size": size, "image_fit": fit, "test_names": names}
    return dataclasses.replace(data, **own)


class Classes(NamedTuple):
    """Where the images of each class are.

    Attributes:
        names: of the classes, in the order of their numbers.
        train: the folder with a sub-folder for each class.
        test: the same of given test images; `None` where these are to be drawn.
    """

    names: list[str]
    train: Path
    test: Path | None

    @property
    def folders(self) -> list[Path]:
        """Those of the classes, in each part; there may be no images of one."""
        parts = [self.train] if self.test is None else [self.train, self.test]
        return [part / name for part in parts for name in self.names]


def find_classes(folder: Path) -> Classes:
    """See whether a folder of images has its test images apart.

    Args:
        folder: `folder/CLASS/image.png`, or `folder/train/CLASS/image.png`.

    Raises:
        DataError: for a class of test images alone, or splits by other names.
    """
    parts = class_folders(folder)
    if parts != ["test", "train"]:
        _check_not_splits(folder, parts)
        return Classes(parts, folder, None)
    train, test = folder / "train", folder / "test"
    classes = class_folders(train)
    unknown = sorted(set(class_folders(test)) - set(classes))
    if unknown:
        raise DataError(
            f"{test / unknown[0]} is a class without training images: add "
            f"{train / unknown[0]} or take it away."
        )
    return Classes(classes, train, test)


def check_every_class(
    labels: Int[np.ndarray, " rows"],
    classes: Classes,
    training: Int[np.ndarray, " training"] | None = None,
) -> None:
    """Refuse a class that no training image has.

    Args:
        labels: class numbers of the images of `classes.train`.
        classes: where they are.
        training: those that are learned from; all by default.

    Raises:
        DataError: naming the class's folder.
    """
    mine = labels if training is None else labels[training]
    counts = np.bincount(mine, minlength=len(classes.names))
    if counts.all():
        return
    lonely = int(np.argmin(counts))
    folder = classes.train / classes.names[lonely]
    there = int((labels == lonely).sum())
    what = "no image" if there == 0 else f"{there} images, all of them held out"
    raise DataError(
        f"{folder} has {what}: a class takes images to learn from; add some, or take "
        "the folder away."
    )


def check_image_size(size: int | None) -> None:
    """Refuse sides that no image can be brought to.

    Args:
        size: in pixels; `None` leaves images as they are.

    Raises:
        DataError: saying which can be.
    """
    if size is not None and not 1 <= size <= _MAX_SIZE:
        raise DataError(
            Sentence(
                "{image_size} must be from 1 to {} pixels, got {}.", _MAX_SIZE, size
            )
        )


def images_below(folder: Path) -> list[Path]:
    """The image files at any depth, sorted; hidden ones are passed over.

    Args:
        folder: of images.

    Raises:
        DataError: for a name that is not UTF-8, or a link that leads nowhere.
    """
    seen = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    found = sorted(path for path in seen if not _is_hidden(path, folder))
    for path in found:
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{os.fsencode(path)!r} has a name that is not UTF-8: rename it."
            ) from None
        if not path.exists():
            raise DataError(
                f"{path} is a link that leads to no file: take it away, or put back "
                "what it leads to."
            )
    return found


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


def labelled_files(
    folder: Path, classes: Sequence[str]
) -> tuple[list[Path], Int[np.ndarray, " rows"]]:
    """The image files of classes, and the class number of each.

    Args:
        folder: with a sub-folder for each class.
        classes: in the order of their numbers; some may have none here.

    Raises:
        DataError: for fewer than two classes, or no image.
    """
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
    return paths, np.array(labels)


def channels_of(paths: Sequence[Path]) -> int:
    """1 where all images are grey, 3 where one has colour.

    Args:
        paths: of the files.

    Raises:
        DataError: for a file that is no image.
    """
    return 1 if all(map(_is_grey, paths)) else 3


def relative_names(paths: Sequence[Path], folder: Path) -> tuple[str, ...]:
    """Where files are in a folder, as predictions name them.

    Args:
        paths: of files below the folder.
        folder: of images.
    """
    return tuple(path.relative_to(folder).as_posix() for path in paths)


def _check_not_splits(folder: Path, parts: Sequence[str]) -> None:
    """Refuse `train` and `val`, which would be learned as two classes."""
    low = {part.lower() for part in parts}
    if not (low <= _SPLITS and any(part.startswith("train") for part in low)):
        return
    if all(class_folders(folder / part) for part in parts):
        raise DataError(
            f"{folder} has the sub-folders {', '.join(parts)}, which are splits and no "
            "classes: leave two, named train and test, each with a sub-folder for each "
            "class."
        )


def _read(
    folder: Path,
    classes: Sequence[str],
    channels: int | None,
    size: int | None,
    fit: ImageFit,
) -> tuple[UInt8[np.ndarray, "rows h w c"], Int[np.ndarray, " rows"], list[Path]]:
    """Images, class numbers and files of the sub-folders `classes`."""
    paths, labels = labelled_files(folder, classes)
    channels = channels_of(paths) if channels is None else channels
    return read_images(paths, channels, size=size, fit=fit), labels, paths


def _is_hidden(path: Path, folder: Path) -> bool:
    """As of what other systems leave beside images: `._IMG_0412.jpg`."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _is_grey(path: Path) -> bool:
    with open_image(read_encoded(path), str(path)) as image:
        return is_grey(image)
