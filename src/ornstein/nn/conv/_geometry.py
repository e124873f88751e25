"""The static numbers of a 2-D convolution."""

import dataclasses
from typing import TypeAlias

Pads: TypeAlias = tuple[tuple[int, int], ...]
"""Zeros before and after each of the two axes."""


@dataclasses.dataclass(frozen=True)
class Geometry:
    """All static numbers of one convolution: hashable, so that it can be a jit key.

    Attributes:
        stride: along both axes.
        pads: zeros added before and after each axis of the image.
        image_shape: height and width of x.
        kernel_shape: height and width of k.
    """

    stride: int
    pads: Pads
    image_shape: tuple[int, int]
    kernel_shape: tuple[int, int]

    @property
    def out_shape(self) -> tuple[int, int]:
        """Height and width of g."""
        height, width = (
            (size + sum(pad) - kernel) // self.stride + 1
            for size, pad, kernel in zip(
                self.image_shape, self.pads, self.kernel_shape, strict=True
            )
        )
        return height, width

    @property
    def flipped(self) -> "Geometry":
        """At stride 1, of the convolution of g with k flipped that gives dx."""
        pads = tuple(
            (taps - 1 - low, taps - 1 - high)
            for taps, (low, high) in zip(self.kernel_shape, self.pads, strict=True)
        )
        return Geometry(1, pads, self.out_shape, self.kernel_shape)
