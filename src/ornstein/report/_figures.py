"""The figures that a run leaves, for whatever data it has."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .. import metrics
from .._files import write_atomically
from .._types import PRNGKeyArray
from ..data import Data
from ..likelihood import AbstractLocationScaleLikelihood, Categorical, OverTime
from ..plot import image_gallery, predictive_bands, reliability_diagram, training_curves
from ..prediction import Fitted, Prediction, predict
from ._series import series_figure

_NUM_GALLERY = 24
_GRID_SIZE = 200
_CURVES = ("elbo", "kl", "kl_weight", "accuracy", "ece", "learning_rate", "val_nll")


def write_figures(
    folder: Path,
    fit: Fitted,
    prediction: Prediction,
    data: Data,
    *,
    history: Mapping[str, np.ndarray],
    key: PRNGKeyArray,
    num_draws: int,
) -> list[Path]:
    """Draw all that applies, and say what was written.

    Args:
        folder: where to write PNG files.
        fit: what was trained.
        prediction: of the test rows.
        data: what it was trained on.
        history: of the training.
        key: which functions the bands show.
        num_draws: how many.
    """
    figures: dict[str, Figure] = {}
    curves = {
        name.replace("val_", "validation_"): history[name].tolist()
        for name in _CURVES
        if name in history and np.any(np.isfinite(history[name]))
    }
    if curves:
        units = {"elbo": "nats", "kl": "nats", "nll": "nats"}
        figures["training"] = training_curves(curves, units=units)
    if isinstance(prediction.likelihood, Categorical):
        figures |= _class_figures(prediction, data)
    elif isinstance(prediction.likelihood, OverTime):
        test = data.test
        figures["series"] = series_figure(prediction, test.x, data, asked=test.y)
    elif isinstance(
        prediction.likelihood, AbstractLocationScaleLikelihood
    ) and data.example_shape == (1,):
        grid = _grid(data)
        bands = predict(fit, grid, key=key, num_draws=num_draws)
        figures["bands"] = predictive_bands(
            grid,
            bands,
            data=(data.train.x, data.train.y),
            xlabel="x (standardised)",
            ylabel="y (standardised)",
            title=data.name,
        )
    return [save_figure(folder / f"{name}.png", figures[name]) for name in figures]


def save_figure(path: Path, figure: Figure) -> Path:
    """Write a figure, whole or not at all, and say where.

    Args:
        path: of the file; its suffix is the format.
        figure: any.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.removeprefix(".") or None)
    write_atomically(path, content.getvalue())
    return path


def _class_figures(prediction: Prediction, data: Data) -> dict[str, Figure]:
    y = np.asarray(data.test.y)
    bins = metrics.reliability(prediction.probs, y)
    figures = {"reliability": reliability_diagram(bins, title=data.name)}
    x = data.test.x
    if x.ndim != 4 or x.shape[-1] not in (1, 3):
        return figures
    order = np.argsort(np.asarray(prediction.entropy))
    names = {"most_certain": order, "least_certain": order[::-1]}
    for name, rows in names.items():
        rows = rows[:_NUM_GALLERY]
        figures[name] = image_gallery(
            x[rows],
            _titles(prediction, data, rows),
            title=f"{data.name}: {name.replace('_', ' ')} of {len(y)} test images",
        )
    return figures


def _titles(prediction: Prediction, data: Data, rows: np.ndarray) -> list[str]:
    """Guess and confidence; the truth too where it is another."""
    probs = np.asarray(prediction.probs)[rows]
    titles = []
    for row, p in zip(rows, probs, strict=True):
        guess, truth = int(p.argmax()), int(data.test.y[row])
        wrong = "" if guess == truth else f" not {data.class_names[truth]}"
        titles.append(f"{data.class_names[guess]}{wrong} {100 * p[guess]:.0f}%")
    return titles


def _grid(data: Data) -> np.ndarray:
    """Inputs beyond the training rows on both sides, where a band should open."""
    low, high = data.train.x.min(), data.train.x.max()
    margin = 0.4 * (high - low)
    grid = np.linspace(low - margin, high + margin, _GRID_SIZE, dtype=np.float32)
    return grid[:, None]
