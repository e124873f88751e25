"""Rows of a folder of images: a block is a file.

A file is read by itself, wherever it is, so that nothing keeps images together: blocks
of one row are shuffled as a whole in each epoch, and folders may be sorted by class.
Blocks of many files would be read no faster, and rows of one would stay in one window.
"""

import dataclasses
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Float, Int, UInt8

from .._error import DataError, DataNotFoundError
from .._standardise import Standardisation
from ..images import (
    ImageFit,
    channels_of,
    check_shape,
    decode_one,
    read_encoded,
)
from ..stream import AbstractShards

_CHUNK_BYTES = 2**23  # of pixels that are looked at together
_LARGE_FILE = 2**15  # of smaller ones threads wait for each other: see `decode`
_MOST_READERS = 16
_MOST_SIZES = 100


@dataclasses.dataclass(frozen=True)
class ImageFiles:
    """Files of images, and how they become pixels.

    Attributes:
        paths: of them.
        shape: height, width and channels of each, as it becomes.
        first: the file whose shape that is.
        size: of their sides, to which they are brought; `None` leaves them as they are.
        fit: how.
    """

    paths: Sequence[Path]
    shape: tuple[int, int, int]
    first: Path
    size: int | None
    fit: ImageFit

    @classmethod
    def of(
        cls, paths: Sequence[Path], *, size: int | None, fit: ImageFit
    ) -> "ImageFiles":
        """Images of one size, or brought to one: in colour if one has colour.

        Args:
            paths: of the files.
            size: as in the attributes.
            fit: as in the attributes.

        Raises:
            DataError: for a first file that is no image.
        """
        channels = channels_of(paths)
        first = decode_one(
            read_encoded(paths[0]),
            str(paths[0]),
            channels,
            size=size,
            fit=fit,
            is_photograph=True,
        )
        height, width, _ = first.shape
        return cls(paths, (height, width, channels), paths[0], size, fit)

    def some(self, numbers: Int[np.ndarray, " some"]) -> "ImageFiles":
        """Those of some numbers.

        Args:
            numbers: of the files, in the order that is asked for.
        """
        paths = [self.paths[number] for number in numbers.tolist()]
        return dataclasses.replace(self, paths=paths)

    def read(self, number: int) -> UInt8[np.ndarray, "height width channels"]:
        """One image, upright.

        Args:
            number: of its file.

        Raises:
            DataNotFoundError: if the file is gone.
            DataError: if it is no image, or one of another size.
        """
        path = self.paths[number]
        try:
            encoded = read_encoded(path)
        except FileNotFoundError:
            raise DataNotFoundError(
                f"{path} is gone, which was there when images were counted: put it "
                "back, and go on from the last checkpoint."
            ) from None
        pixels = decode_one(
            encoded,
            str(path),
            self.shape[-1],
            size=self.size,
            fit=self.fit,
            is_photograph=True,
        )
        check_shape(pixels.shape, str(path), self.shape, str(self.first))
        return pixels

    def chunks(self) -> Iterator[tuple[int, UInt8[np.ndarray, "some h w c"]]]:
        """All images in their order, some together: the first one's number, and they.

        Raises:
            DataNotFoundError: if a file is gone.
            DataError: if one is no image, or of another size.
        """
        num_together = max(1, _CHUNK_BYTES // math.prod(self.shape))
        num_readers = self.num_readers
        with ThreadPoolExecutor(num_readers, "ornstein-read") as readers:
            mapped = map if num_readers == 1 else readers.map
            for begin in range(0, len(self.paths), num_together):
                end = min(begin + num_together, len(self.paths))
                yield begin, np.stack(list(mapped(self.read, range(begin, end))))

    def read_all(self) -> UInt8[np.ndarray, "rows h w c"]:
        """All images in their order.

        Raises:
            DataNotFoundError: if a file is gone.
            DataError: if one is no image, or of another size.
        """
        out = np.empty((len(self.paths), *self.shape), np.uint8)
        for begin, pixels in self.chunks():
            out[begin : begin + len(pixels)] = pixels
        return out

    @property
    def num_readers(self) -> int:
        """Threads that read at the same time: one for each core, if files are large."""
        some = self.paths[:: math.ceil(len(self.paths) / _MOST_SIZES)]
        sizes = [path.stat().st_size for path in some if path.is_file()]
        if not sizes or sum(sizes) < _LARGE_FILE * len(sizes):
            return 1
        has_affinity = hasattr(os, "sched_getaffinity")
        num_cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
        return min(num_cores or 1, _MOST_READERS)


class ImageRows(AbstractShards):
    """Training images of a folder; a block is a file, which has one row.

    Attributes:
        files: of training images.
        labels: class number of each.
        x_scaling: of the pixels.
        block_rows: 1 of each.
        digest: of files' places in their folder, not of pixels: see `digest_of_names`.
    """

    files: ImageFiles
    labels: Int[np.ndarray, " blocks"]
    x_scaling: Standardisation
    block_rows: Int[np.ndarray, " blocks"]
    digest: str

    @property
    def x_like(self) -> jax.ShapeDtypeStruct:
        """See `AbstractShards`."""
        return jax.ShapeDtypeStruct(self.files.shape, np.float32)

    @property
    def y_like(self) -> jax.ShapeDtypeStruct:
        """See `AbstractShards`."""
        return jax.ShapeDtypeStruct((), np.int32)

    def read(
        self, block: int
    ) -> tuple[Float[np.ndarray, "rows h w c"], Int[np.ndarray, " rows"]]:
        """See `AbstractShards.read`."""
        try:
            pixels = self.files.read(block)
        except DataNotFoundError:
            raise
        except DataError as error:
            raise DataError(
                f"{self.files.paths[block]} is not what it was when images were "
                "counted: put it back, and go on from the last checkpoint."
            ) from error
        return self.x_scaling.apply(pixels[None]), self.labels[block : block + 1]
