"""The figure of a prediction of sequences, in the units of the data."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from .._types import Bool
from ..data import Data, Series, in_raw_units
from ..plot import BAND_QUANTILES, SeriesPanel, series_bands
from ..prediction import Prediction

_MAX_SERIES, _MAX_FEATURES = 4, 3


def series_figure(
    prediction: Prediction,
    x: Series,
    data: Data,
    *,
    asked: Series | None = None,
    is_own: Bool[np.ndarray, "rows times"] | None = None,
    names: Sequence[str] = (),
) -> Figure:
    """Bands of the first few series and features.

    Args:
        prediction: of `x`, with its draws.
        x: what the model was shown.
        data: what it learned from, for units and names.
        asked: what it was asked for, where that is known.
        is_own: which times are no padding; up to the last value shown or asked for,
            without it.
        names: of the series.
    """
    outputs = prediction.outputs
    assert outputs is not None
    num_rows = min(_MAX_SERIES, len(x))
    num_features = min(_MAX_FEATURES, x.num_features)
    first = Prediction(outputs[:, :num_rows], prediction.likelihood)
    quantiles = in_raw_units(np.asarray(first.quantile(BAND_QUANTILES)), data.y_scaling)
    clock = data.clock
    ts, xlabel = np.asarray(x.ts), "time"
    if clock is not None:
        ts, xlabel = clock.undo(x.ts), clock.name
        if clock.has_dates:
            ts, xlabel = clock.dates(ts), clock.column
    own = _until_the_last(x, asked) if is_own is None else is_own

    def panel(row: int, feature: int) -> SeriesPanel:
        name = names[row] if row < len(names) and names[row] else f"series {row + 1}"
        label = data.target_names[feature] if data.target_names else "value"
        if x.num_features > 1 and not data.target_names:
            label = f"value {feature}"
        points = lambda series: _points(series, ts, data, row, feature)
        is_asked = asked is not None and not np.array_equal(asked.mask, x.mask)
        return SeriesPanel(
            ts[row][own[row]],
            quantiles[:, row][:, own[row], feature],
            seen=points(x),
            asked=points(asked) if is_asked else None,
            title=name if feature == 0 else "",
            ylabel=label,
        )

    rows = [[panel(r, f) for f in range(num_features)] for r in range(num_rows)]
    return series_bands(rows, xlabel=xlabel)


def _points(
    series: Series, ts: np.ndarray, data: Data, row: int, feature: int
) -> tuple[np.ndarray, np.ndarray]:
    mask = np.asarray(series.mask)[row, :, feature]
    values = in_raw_units(np.asarray(series.values)[row], data.y_scaling)
    return ts[row][mask], values[mask, feature]


def _until_the_last(x: Series, asked: Series | None) -> Bool[np.ndarray, "rows times"]:
    known = np.asarray(x.mask).any(-1)
    if asked is not None:
        known = known | np.asarray(asked.mask).any(-1)
    return np.flip(np.cumsum(np.flip(known, 1), axis=1), 1) > 0
