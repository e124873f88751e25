"""Encoded images (PNG, JPEG) to one array of bytes."""

import contextlib
import io
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from ..._files import UnreadableError, check_expansion, read_bytes
from .._error import DataError

MODES = {1: "L", 3: "RGB"}
"""Pillow's name for images of so many channels."""

# The sum of the standard luminance table (ITU T.81, table K.1), which encoders scale
# by the quality.
_STANDARD_TABLE_SUM = 3688

_FORMATS = ("BMP", "JPEG", "PNG", "WEBP")  # of Pillow's fifty: none runs a program
_MAX_PIXELS = 2**26  # of one image
_MAX_BYTES = 2**28  # of its file
# What Pillow's readers raise when they meet damage.
_DAMAGE = (
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,  # where warnings are errors
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OSError,
    OverflowError,
    SyntaxError,
    TypeError,
    ValueError,
    ZeroDivisionError,
    struct.error,
    zlib.error,
)


def read_encoded(path: Path) -> bytes:
    """The bytes of an image's file.

    Raises:
        DataError: for what is no regular file, or has more than 256 MiB.
    """
    try:
        return read_bytes(path, limit=_MAX_BYTES)
    except UnreadableError as error:
        raise _not_an_image(str(path), error) from error


@contextlib.contextmanager
def open_image(data: bytes, name: str) -> Iterator[Image.Image]:
    """An image to decode in the body.

    Args:
        data: of its file.
        name: what to call it in a message.

    Raises:
        DataError: for what is no image, or one of too many pixels; also from the body.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            width, height = image.size
            if width * height > _MAX_PIXELS:
                raise UnreadableError(
                    f"it says it has {width:,} × {height:,} pixels, and at most "
                    f"{_MAX_PIXELS:,} are read"
                )
            yield image
    except DataError:
        raise
    except _DAMAGE as error:
        raise _not_an_image(name, error) from error


def _not_an_image(name: str, error: Exception) -> DataError:
    reason = str(error).rstrip(".") or type(error).__name__
    return DataError(
        f"{name} cannot be read as an image ({reason}): replace it or leave it out."
    )


def decode(
    images: Sequence[bytes], *, channels: int, names: Sequence[str]
) -> UInt8[np.ndarray, "rows height width channels"]:
    """Decode images of one size.

    One thread: with small images Pillow's are twice as slow as none (60,000 of 28 × 28
    take 2 s alone and 4 s in two threads of two cores).

    Args:
        images: the bytes of each file.
        channels: 1 or 3; others are converted.
        names: what to call each in a message.

    Raises:
        DataError: for bytes that are no image, or an image of another size.
    """
    out = None
    for row, (data, name) in enumerate(zip(images, names, strict=True)):
        with open_image(data, name) as image:
            pixels = np.asarray(image.convert(MODES[channels]))
        if out is None:
            _check_sizes(images, pixels, name)
            out = np.empty((len(images), *pixels.shape[:2], channels), np.uint8)
        if pixels.shape[:2] != out.shape[1:3]:
            raise DataError(
                f"{name} has {_size(pixels)} pixels and {names[0]} {_size(out[0])}: "
                "bring all images to one size."
            )
        out[row] = pixels.reshape(out.shape[1:])
    if out is None:
        raise DataError("There are no images to decode: give at least one.")
    return out


def _check_sizes(images: Sequence[bytes], first: np.ndarray, name: str) -> None:
    """All are to be as large as the first one."""
    try:
        check_expansion(len(images) * first.nbytes, sum(map(len, images)))
    except UnreadableError as error:
        raise _not_an_image(f"{name}, with {len(images) - 1} others,", error) from error


def _size(pixels: UInt8[np.ndarray, "height width ..."]) -> str:
    return f"{pixels.shape[0]} × {pixels.shape[1]}"


def jpeg_quality(image: bytes) -> int | None:
    """The quality that a JPEG was written with, 1 … 100, or `None` for other formats.

    Read off its luminance table, which is the standard one scaled by (200 - 2q) / 100,
    or by 50 / q below q = 50.
    """
    if not image.startswith(b"\xff\xd8"):
        return None
    with open_image(image, "The image") as opened:
        table = getattr(opened, "quantization", {}).get(0)
    if table is None:
        return None
    scale = 100 * sum(table) / _STANDARD_TABLE_SUM
    return round((200 - scale) / 2 if scale <= 100 else 5000 / scale)


def jpeg_notes(images: Iterable[bytes]) -> list[str]:
    """What to say beside figures from images that lost detail, if these did."""
    qualities = {quality for image in images if (quality := jpeg_quality(image))}
    if not qualities:
        return []
    worst = min(qualities)
    return [
        f"Images went through JPEG (quality {worst}): accuracies run below published "
        "ones."
    ]
