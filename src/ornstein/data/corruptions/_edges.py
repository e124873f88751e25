"""Canny's edges, as OpenCV finds them with its default gradient."""

import numpy as np
import scipy
from jaxtyping import Bool, UInt8

WEAK, STRONG = 50, 150
_TAN_22 = np.tan(np.pi / 8)


def edges(images: UInt8[np.ndarray, "rows h w"]) -> Bool[np.ndarray, "rows h w"]:
    """Ridges of the gradient above `WEAK` that touch one above `STRONG`.

    The gradient is Sobel's, its size |gx| + |gy|; a ridge is no lower than the pixel
    before it and the one behind it across the edge, to one of eight directions.

    References:
        Canny (1986), "A computational approach to edge detection".
    """
    x = images.astype(np.int32)
    gx, gy = (
        scipy.ndimage.correlate1d(
            scipy.ndimage.correlate1d(x, [-1, 0, 1], axis, mode="nearest"),
            [1, 2, 1],
            3 - axis,
            mode="nearest",
        )
        for axis in (2, 1)
    )
    size = np.abs(gx) + np.abs(gy)
    padded = np.pad(size, ((0, 0), (1, 1), (1, 1)))
    height, width = x.shape[1:]

    def beside(dy: int, dx: int) -> np.ndarray:
        return padded[:, 1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    is_level = np.abs(gy) < _TAN_22 * np.abs(gx)
    is_upright = np.abs(gy) > np.abs(gx) / _TAN_22
    falls = (gx < 0) == (gy < 0)  # the gradient points down and right, or back
    is_ridge = np.select(
        [is_level, is_upright, falls],
        [
            (size > beside(0, -1)) & (size >= beside(0, 1)),
            (size > beside(-1, 0)) & (size >= beside(1, 0)),
            (size > beside(-1, -1)) & (size > beside(1, 1)),
        ],
        (size > beside(-1, 1)) & (size > beside(1, -1)),
    )
    weak = is_ridge & (size > WEAK)
    # Neighbours of an image's own pixels only.
    touching = np.zeros((3, 3, 3), int)
    touching[1] = 1
    names = np.zeros(weak.shape, np.int32)
    scipy.ndimage.label(weak, touching, output=names)
    strong = np.unique(names[weak & (size > STRONG)])
    return weak & np.isin(names, strong)
