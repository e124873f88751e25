"""A grid of images with what was predicted of them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from .._types import Array, Shaped
from ._style import new_figure


def image_gallery(
    images: Shaped[Array | np.ndarray, "images height width *channels"],
    titles: Sequence[str],
    *,
    num_columns: int = 8,
    title: str | None = None,
) -> Figure:
    """Images in rows, a line of text above each.

    Each image is stretched over its own range of brightness, for it may have been
    standardised. One channel is drawn dark on light.

    Args:
        images: with one channel (also without its axis) or three.
        titles: one for each image.
        num_columns: images in a row.
        title: shown above all.
    """
    images = np.asarray(images, float)
    if len(titles) != len(images) or len(images) == 0:
        raise ValueError(
            f"Got {len(titles)} titles for {len(images)} images: give one for each, "
            "and at least one image."
        )
    images = images[..., None] if images.ndim == 3 else images
    if images.shape[-1] not in (1, 3):
        raise ValueError(
            f"Got images with {images.shape[-1]} channels: give 1 or 3, last."
        )
    num_columns = min(num_columns, len(images))
    num_rows = -(-len(images) // num_columns)
    figure = new_figure(0.95 * num_columns, 1.2 * num_rows + (0.3 if title else 0))
    panels = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
    for axes, image, text in zip(panels, images, titles, strict=False):
        low, high = image.min(), image.max()
        scaled = (image - low) / (high - low) if high > low else np.zeros_like(image)
        if image.shape[-1] == 1:
            axes.imshow(scaled[..., 0], cmap="gray_r", vmin=0, vmax=1)
        else:
            axes.imshow(scaled)
        axes.set_title(text, fontsize=7, pad=2)
    for axes in panels:
        axes.set_axis_off()
    if title is not None:
        figure.suptitle(title, fontsize=10)
    return figure
