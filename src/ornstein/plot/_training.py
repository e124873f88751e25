"""Training curves."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ._style import PALETTE, add_legend, clean, new_figure

_PREFIX = "validation_"


def training_curves(
    history: Mapping[str, Sequence[float]],
    *,
    units: Mapping[str, str] | None = None,
    xlabel: str = "epoch",
) -> Figure:
    """One panel for each quantity over epochs, its validation twin beside it.

    Args:
        history: values of each quantity, an epoch each. `"validation_nll"` is drawn in
            the panel of `"nll"`. NaN is passed over: validation may be of some epochs.
        units: of some quantities, such as `{"nll": "nats"}`.
        xlabel: what the values are counted by.
    """
    names = [name.removeprefix(_PREFIX) for name in history]
    names = list(dict.fromkeys(names))
    if not names:
        raise ValueError("`training_curves` got an empty history: train for an epoch.")
    units = {} if units is None else units
    num_columns = min(3, len(names))
    num_rows = -(-len(names) // num_columns)
    figure = new_figure(2.9 * num_columns, 2.2 * num_rows)
    panels = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        pairs = [(name, "training"), (_PREFIX + name, "validation")]
        for (key, label), colour in zip(pairs, PALETTE, strict=False):
            if key in history:
                values = np.asarray(history[key], float)
                there = np.flatnonzero(np.isfinite(values))
                marker = "o" if there.size == 1 else None
                axes.plot(
                    there + 1,
                    values[there],
                    color=colour,
                    linewidth=1.5,
                    marker=marker,
                    label=label,
                )
        unit = f" ({units[name]})" if name in units else ""
        clean(axes, xlabel=xlabel, ylabel=name.replace("_", " ") + unit)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if name in history and _PREFIX + name in history:
            add_legend(axes)
    for axes in panels[len(names) :]:
        axes.remove()
    return figure
