"""One pass over a folder of images: all that is to be known of them."""

import dataclasses
import math
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from .._assemble import CHANNELS
from .._base import Data
from .._source import Source
from .._split import Split
from ..images import (
    ImageFit,
    check_every_class,
    check_image_size,
    find_classes,
    labelled_files,
    relative_names,
    unread_notes,
)
from ..stream import Streamed
from ._deal import MOST_HELD, Dealt, deal, digest_of_names, inside
from ._image_rows import ImageFiles, ImageRows
from ._moments import Moments

HELD_BYTES = 2**28
"""Of test images in memory, of validation images, and of sampled training images."""


def load_images(
    folder: Path,
    *,
    size: int | None,
    fit: ImageFit,
    test_fraction: float,
    validation_fraction: float,
    seed: int,
    shuffle_buffer: int | None,
) -> Data:
    """Look at all images once, and leave those of the training where they are.

    Test and validation images, and some of the training images, are kept in memory: of
    each at most `MOST_HELD`, and no more than `HELD_BYTES` hold.

    Args:
        folder: `folder/CLASS/image.png`; or `folder/train/CLASS/image.png` and
            `folder/test/CLASS/image.png`, where the test is drawn from the latter.
        size: of their sides in pixels, to which all are brought; by default they are
            left as they are, which must be of one size.
        fit: how: see `images.decode`.
        test_fraction: of the images, where none are given for the test.
        validation_fraction: of the training images.
        seed: decides which are held out.
        shuffle_buffer: see `Streamed`.

    Raises:
        DataNotFoundError: if an image is gone when it is looked at.
        DataError: if there are no classes in it, or images that cannot be used.
    """
    check_image_size(size)
    classes = find_classes(folder)
    paths, labels = labelled_files(classes.train, classes.names)
    labels = labels.astype(np.int32)
    files = ImageFiles.of(paths, size=size, fit=fit)
    most = min(MOST_HELD, max(1, HELD_BYTES // (4 * math.prod(files.shape))))
    dealt = deal(
        len(paths),
        test_fraction=0.0 if classes.test is not None else test_fraction,
        validation_fraction=validation_fraction,
        seed=seed,
        most=most,
    )
    training = np.flatnonzero(dealt.kept(0, len(paths)))
    check_every_class(labels, classes, training)
    moments, pixels = _pass(files, dealt)
    scaling = moments.scaling(CHANNELS)
    kept = {
        name: Split(scaling.apply(pixels[name]), labels[numbers])
        for name, numbers in dealt._asdict().items()
    }
    test_paths, num_given = files.some(dealt.test).paths, len(paths)
    if classes.test is not None:
        given, own = labelled_files(classes.test, classes.names)
        drawn, num_given = _drawn(len(given), most, seed), len(given)
        test_files = dataclasses.replace(files, paths=given).some(drawn)
        test_paths, y = test_files.paths, own[drawn].astype(np.int32)
        kept["test"] = Split(scaling.apply(test_files.read_all()), y)
    rows = ImageRows(
        files=files.some(training),
        labels=labels[training],
        x_scaling=scaling,
        block_rows=np.ones(len(training), np.int64),
        digest=digest_of_names(relative_names(files.some(training).paths, folder)),
    )
    streamed = Streamed(rows, kept["sample"], shuffle_buffer, files.num_readers)
    num_rows = len(paths) + (0 if classes.test is None else num_given)
    is_drawn = len(test_paths) == most and most < num_given
    return Data(
        name=str(folder),
        task="classification",
        train=streamed,
        test=kept["test"],
        validation=kept["validation"] if len(kept["validation"]) else None,
        num_classes=len(classes.names),
        class_names=tuple(classes.names),
        x_scaling=scaling,
        notes=[
            *unread_notes(folder, classes.folders),
            _note(folder, streamed, len(test_paths), num_given, is_drawn),
        ],
        image_size=size,
        image_fit=fit,
        source=Source.of([folder], num_rows=num_rows),
        test_names=relative_names(test_paths, folder),
    )


def _pass(
    files: ImageFiles, dealt: Dealt
) -> tuple[Moments, dict[str, UInt8[np.ndarray, "rows h w c"]]]:
    """Look at every image once, some at a time.

    Args:
        files: all of them.
        dealt: which are kept in memory, and for what.

    Returns:
        Of each channel of the training images; and what is kept, by its name.
    """
    moments = Moments.none(files.shape[-1:])
    kept = {
        name: np.empty((len(numbers), *files.shape), np.uint8)
        for name, numbers in dealt._asdict().items()
    }
    for first, pixels in files.chunks():
        for name, numbers in dealt._asdict().items():
            begin = np.searchsorted(numbers, first)
            own = inside(numbers, first, len(pixels))
            kept[name][begin : begin + len(own)] = pixels[own]
        training = pixels[dealt.kept(first, len(pixels))]
        moments = moments.with_more(Moments.of(training, CHANNELS))
    return moments, kept


def _drawn(num_rows: int, most: int, seed: int) -> Int[np.ndarray, " rows"]:
    """All row numbers, or as many at random as there may be."""
    if num_rows <= most:
        return np.arange(num_rows)
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(num_rows, most, replace=False))


def _note(
    folder: Path, streamed: Streamed, num_test: int, num_given: int, is_drawn: bool
) -> str:
    """What readers of scores must know of images that were not all looked at."""
    drawn = f", drawn from {num_given:,}," if is_drawn else ""
    return (
        f"{folder}: {len(streamed):,} training images stay on disk, shuffled as a "
        f"whole in each epoch; {num_test:,} test images{drawn} are in memory."
    )
