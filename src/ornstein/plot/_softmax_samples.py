"""What each draw says of a few images."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .._types import Array, Float, Shaped
from ._style import BLUE, RED, clean, new_figure


def softmax_samples(
    panels: Mapping[
        str,
        Sequence[
            tuple[
                Shaped[Array | np.ndarray, "height width *channels"],
                Float[Array | np.ndarray, "draws classes"],
                str,
            ]
        ],
    ],
    *,
    class_names: Sequence[str],
) -> Figure:
    """Images with every draw's class probabilities, a dot for each, and their mean.

    Args:
        panels: a row's name to its panels: an image, the probabilities, a title.
        class_names: of all classes, in order.
    """
    num_columns = max(len(row) for row in panels.values())
    figure = new_figure(2.6 * num_columns, 1.9 * len(panels) + 0.5)
    ratios = [2 if j % 2 else 1 for j in range(2 * num_columns)]
    all_axes = figure.subplots(
        len(panels), 2 * num_columns, squeeze=False, width_ratios=ratios
    )
    for axes in all_axes.ravel():
        axes.set_axis_off()
    where = np.arange(len(class_names))
    for line, (name, row) in zip(all_axes, panels.items(), strict=True):
        for j, (image, probs, title) in enumerate(row):
            picture, axes = line[2 * j], line[2 * j + 1]
            pixels = np.asarray(image, float)
            low, high = pixels.min(), pixels.max()
            pixels = (pixels - low) / max(high - low, 1e-12)
            is_grey = pixels.ndim == 2 or pixels.shape[-1] == 1
            pixels = pixels.reshape(pixels.shape[:2]) if is_grey else pixels
            picture.imshow(pixels, cmap="gray_r")
            axes.set_axis_on()
            draws = np.asarray(probs)
            spots = np.broadcast_to(where, draws.shape)
            axes.plot(spots.T, draws.T, "o", color=BLUE, markersize=2.5, alpha=0.25)
            axes.plot(where, draws.mean(axis=0), "_", color=RED, markersize=9)
            axes.set_ylim(-0.05, 1.05)
            axes.set_xticks(where, class_names, rotation=90)
            label = f"{name}: probability" if j == 0 else ""
            clean(axes, xlabel="", ylabel=label, title=title)
    return figure
