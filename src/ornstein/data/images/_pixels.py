"""Encoded images (PNG, JPEG) to one array of bytes."""

import contextlib
import io
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from ..._files import UnreadableError, check_expansion, read_bytes
from ..._sentence import Sentence
from .._error import DataError

ImageFit = Literal["crop", "pad"]
"""How an image becomes a square: without the ends of its longer side, or with black
beside its shorter one."""

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
    if isinstance(error, UnidentifiedImageError):  # which names an object in memory
        reason = f"it is none of {', '.join(_FORMATS)}"
    return DataError(
        f"{name} cannot be read as an image ({reason}): replace it or leave it out."
    )


def decode(
    images: Iterable[bytes],
    *,
    channels: int,
    names: Sequence[str],
    num_bytes: int | None = None,
    size: int | None = None,
    fit: ImageFit = "crop",
    is_photograph: bool = False,
) -> UInt8[np.ndarray, "rows height width channels"]:
    """Decode images of one size, or bring them to one.

    One thread: with small images Pillow's are twice as slow as none (60,000 of 28 × 28
    take 2 s alone and 4 s in two threads of two cores).

    Args:
        images: the bytes of each file.
        channels: 1 or 3; others are converted.
        names: what to call each in a message.
        num_bytes: of all files; of a sequence it is counted.
        size: of the sides, to which they are brought. `None` leaves images as they are.
        fit: how: "crop" cuts both ends of the longer side off and scales what is left;
            "pad" scales the whole image and puts black on both sides of the shorter
            one.
        is_photograph: turn images as their EXIF says.

    Raises:
        DataError: for bytes that are no image, or an image of another size.
    """
    out = None
    if num_bytes is None:
        images = list(images)
        num_bytes = sum(map(len, images))
    how: dict[str, Any] = {"size": size, "fit": fit, "is_photograph": is_photograph}
    for row, (data, name) in enumerate(zip(images, names, strict=True)):
        pixels = decode_one(data, name, channels, **how)
        if out is None:
            _check_sizes(len(names), num_bytes, pixels, name)
            out = np.empty((len(names), *pixels.shape), np.uint8)
        check_shape(pixels.shape, name, out.shape[1:], names[0])
        out[row] = pixels
    if out is None:
        raise DataError("There are no images to decode: give at least one.")
    return out


def decode_one(
    data: bytes,
    name: str,
    channels: int,
    *,
    size: int | None,
    fit: ImageFit,
    is_photograph: bool,
) -> UInt8[np.ndarray, "height width channels"]:
    """Decode an image as `decode` does.

    Args:
        data: of its file.
        name: what to call it in a message.
        channels: 1 or 3.
        size: as of `decode`.
        fit: as of `decode`.
        is_photograph: as of `decode`.

    Raises:
        DataError: for bytes that are no image.
    """
    with open_image(data, name) as image:
        if size is not None:  # of a JPEG an eighth is read as fast as it is small
            image.draft(None, (2 * size, 2 * size))
        turned = ImageOps.exif_transpose(image) if is_photograph else image
        found = _in_mode(turned, MODES[channels])
        if size is not None:
            bring = ImageOps.pad if fit == "pad" else ImageOps.fit
            found = bring(found, (size, size), Image.Resampling.LANCZOS)
        pixels = np.asarray(found)
    return pixels.reshape(*pixels.shape[:2], channels)


def check_shape(
    shape: tuple[int, ...], name: str, first: tuple[int, ...], first_name: str
) -> None:
    """Refuse an image of another size than the first one's.

    Args:
        shape: height and width, and channels.
        name: of the image.
        first: shape of the first one.
        first_name: its name.

    Raises:
        DataError: saying both sizes.
    """
    if shape[:2] != first[:2]:
        raise DataError(
            Sentence(
                "{} has {} pixels and {} {}: bring all images to one size, for "
                "instance by {image_size} {}.",
                *(name, _size(shape), first_name, _size(first)),
                min(64, *first[:2]),
            )
        )


def is_grey(image: Image.Image) -> bool:
    """Whether an image has no colour, by its mode."""
    return image.mode in ("1", "L", "LA", "La") or image.mode.startswith("I")


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    """Converted as it looks: on white where it is transparent, 16 bits scaled."""
    if image.mode.startswith("I"):  # which Pillow clips at 255
        raw = np.asarray(image)
        image = Image.fromarray((raw.clip(0, 65535) // 257).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        own = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", own.size, "white"), own)
    return image.convert(mode)


def _check_sizes(num_images: int, num_bytes: int, first: np.ndarray, name: str) -> None:
    """All are to be as large as the first one."""
    try:
        check_expansion(num_images * first.nbytes, num_bytes)
    except UnreadableError as error:
        raise _not_an_image(f"{name}, with {num_images - 1} others,", error) from error


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} × {shape[1]}"


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
