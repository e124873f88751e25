"""Encoded images (PNG, JPEG) to one array of bytes."""

import io
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from ._error import DataError

MODES = {1: "L", 3: "RGB"}
"""Pillow's name for images of so many channels."""

# The sum of the standard luminance table (ITU T.81, table K.1), which encoders scale
# by the quality.
_STANDARD_TABLE_SUM = 3688


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
        try:
            with Image.open(io.BytesIO(data)) as image:
                pixels = np.asarray(image.convert(MODES[channels]))
        except (OSError, SyntaxError, ValueError) as error:
            raise DataError(
                f"{name} cannot be read as an image ({error}): replace it or leave it "
                "out."
            ) from error
        if out is None:
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


def _size(pixels: UInt8[np.ndarray, "height width ..."]) -> str:
    return f"{pixels.shape[0]} × {pixels.shape[1]}"


def jpeg_quality(image: bytes) -> int | None:
    """The quality that a JPEG was written with, 1 … 100, or `None` for other formats.

    Read off its luminance table, which is the standard one scaled by (200 - 2q) / 100,
    or by 50 / q below q = 50.
    """
    if not image.startswith(b"\xff\xd8"):
        return None
    with Image.open(io.BytesIO(image)) as opened:
        table = opened.quantization[0]  # type: ignore[attr-defined]
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
