"""Standardised images to bytes, and back."""

from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, UInt8

from .._base import Data
from .._error import DataError
from .._standardise import Standardisation, in_raw_units, in_standard_units

Images: TypeAlias = UInt8[np.ndarray, "rows height width channels"]
"""Bytes; one channel (grey) or three (red, green, blue)."""

# What sources call white: shares of it, scikit-learn's digits, bytes.
_WHITES = (1, 16, 255)

_BLOCK = 1024  # rows that are in double precision at once
_SLACK = 1e-3  # of white, for the precision of standardised numbers


class ByteScale(NamedTuple):
    """Between what a model takes and bytes.

    Attributes:
        white: 255 in bytes, in the data's own units; black is 0 in both.
        scaling: what was done to the inputs, or `None`.
    """

    white: int
    scaling: Standardisation | None

    @classmethod
    def of(cls, data: Data) -> "ByteScale":
        """White is the least of 1, 16 and 255 that the training images keep to.

        Of images on disk, that those in memory do.

        Raises:
            DataError: for inputs that are no images, or pixels that cannot be bytes.
        """
        if len(data.example_shape) != 3:
            raise DataError(
                f"{data.name} has rows of {data.example_shape[0]} numbers, and "
                "corruptions are of images: give data of images."
            )
        x, lowest, highest = data.train.in_memory().x, np.inf, -np.inf
        for start in range(0, len(x), _BLOCK):
            raw = in_raw_units(x[start : start + _BLOCK], data.x_scaling)
            lowest, highest = min(lowest, raw.min()), max(highest, raw.max())
        for white in _WHITES:
            if lowest >= -_SLACK * white and highest <= (1 + _SLACK) * white:
                return cls(white, data.x_scaling)
        raise DataError(
            f"The pixels of {data.name} go from {lowest:.4g} to {highest:.4g} and "
            "cannot become bytes for corruptions: give images from 0 to 255, or from "
            "0 to 1."
        )

    def to_bytes(self, x: Float[np.ndarray, "rows height width channels"]) -> Images:
        """Rounded to bytes."""
        out = np.empty(x.shape, np.uint8)
        for start in range(0, len(x), _BLOCK):
            block = slice(start, start + _BLOCK)
            share = np.clip(in_raw_units(x[block], self.scaling) / self.white, 0, 1)
            out[block] = np.round(255 * share).astype(np.uint8)
        return out

    def from_bytes(
        self, images: Images
    ) -> Float[np.ndarray, "rows height width channels"]:
        """As a model takes them."""
        raw = images.astype(np.float32) * np.float32(self.white / 255)
        return in_standard_units(raw, self.scaling)
