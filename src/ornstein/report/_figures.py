"""The figures that a run leaves, for whatever data it has."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from .. import metrics
from .._files import write_atomically
from .._types import PRNGKeyArray
from ..data import Data, in_raw_units
from ..likelihood import AbstractLocationScaleLikelihood, Categorical, OverTime
from ..plot import image_gallery, predictive_bands, reliability_diagram, training_curves
from ..prediction import Fitted, Prediction, predict
from ._series import series_figure

_NUM_GALLERY = 24
_GRID_SIZE = 200
_SHARED = ("accuracy", "ece", "learning_rate", "val_nll")
_CURVES = ("elbo", "kl", "kl_weight", *_SHARED)
_CURVES_OF_POINTS = ("loss", "energy of the prior", *_SHARED)


class Run(NamedTuple):
    """What figures are made of.

    Attributes:
        fit: what was trained.
        prediction: of the test rows.
        data: what it was trained on.
        history: of the training.
        key: which functions are drawn for figures.
        num_draws: how many.
        has_bound: whether training climbed a bound on the evidence.
    """

    fit: Fitted
    prediction: Prediction
    data: Data
    history: Mapping[str, np.ndarray]
    key: PRNGKeyArray
    num_draws: int
    has_bound: bool


def write_figures(
    folder: Path,
    fit: Fitted,
    prediction: Prediction,
    data: Data,
    *,
    history: Mapping[str, np.ndarray],
    key: PRNGKeyArray,
    num_draws: int,
    has_bound: bool = True,
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
        has_bound: whether training climbed a bound on the evidence. Of a mode, around
            which Laplace's approximation has one, it did not.
    """
    run = Run(fit, prediction, data, history, key, num_draws, has_bound)
    figures = {name: figure for draw in FIGURES for name, figure in draw(run).items()}
    return [save_figure(folder / f"{name}.png", figures[name]) for name in figures]


def save_figure(path: Path, figure: Figure) -> Path:
    """Write a figure, whole or not at all, and say where.

    Args:
        path: of the file; its suffix is the format.
        figure: any.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    ours = {id(text) for axes in figure.axes for text in _of_ticks(axes)}
    for text in figure.findobj(Text):  # names of files and classes may have dollars
        if id(text) not in ours:
            text.set_parse_math(False)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.removeprefix(".") or None)
    write_atomically(path, content.getvalue())
    return path


def _of_ticks(axes: Axes) -> list[Text]:
    """Labels of numbers, which are mathematics on a logarithmic axis."""
    found: list[Text] = []
    for axis in (axes.xaxis, axes.yaxis):
        found += [*axis.get_majorticklabels(), *axis.get_minorticklabels()]
        found.append(axis.get_offset_text())
    return found


def _training(run: Run) -> dict[str, Figure]:
    """What was recorded, over epochs."""
    history, names = run.history, _CURVES
    if not run.has_bound:
        energy = history.get("kl", np.zeros(1))
        history = {**history, "energy of the prior": np.where(energy, energy, np.nan)}
        names = _CURVES_OF_POINTS
    curves = {
        name.replace("val_", "validation_"): history[name].tolist()
        for name in names
        if name in history and np.any(np.isfinite(history[name]))
    }
    if not curves:
        return {}
    units = {"elbo": "nats", "kl": "nats", "nll": "nats", "energy of the prior": "nats"}
    units["loss"] = "nats per example"
    return {"training": training_curves(curves, units=units)}


def _reliability(run: Run) -> dict[str, Figure]:
    """Confidence and frequency, of classes."""
    if not isinstance(run.prediction.likelihood, Categorical):
        return {}
    y = np.asarray(run.data.test.y)
    bins = metrics.reliability(run.prediction.probs, y)
    return {"reliability": reliability_diagram(bins, title=run.data.name)}


def _galleries(run: Run) -> dict[str, Figure]:
    """The images whose class is surest, and least sure."""
    prediction, data, x = run.prediction, run.data, run.data.test.x
    is_of_classes = isinstance(prediction.likelihood, Categorical)
    if not is_of_classes or x.ndim != 4 or x.shape[-1] not in (1, 3):
        return {}
    order = np.argsort(np.asarray(prediction.entropy))
    names = {"most_certain": order, "least_certain": order[::-1]}
    figures = {}
    for name, rows in names.items():
        rows = rows[:_NUM_GALLERY]
        figures[name] = image_gallery(
            x[rows],
            _titles(prediction, data, rows),
            title=f"{data.name}: {name.replace('_', ' ')} of {len(order)} test images",
        )
    return figures


def _series(run: Run) -> dict[str, Figure]:
    """Bands over time, of sequences."""
    if not isinstance(run.prediction.likelihood, OverTime):
        return {}
    test, names = run.data.test, run.data.test_names
    figure = series_figure(run.prediction, test.x, run.data, asked=test.y, names=names)
    return {"series": figure}


def _bands(run: Run) -> dict[str, Figure]:
    """Bands over a grid, of one number given another."""
    data, likelihood = run.data, run.prediction.likelihood
    is_real = isinstance(likelihood, AbstractLocationScaleLikelihood)
    if not is_real or data.example_shape != (1,):
        return {}
    grid = _grid(data)
    bands = predict(run.fit, grid, key=run.key, num_draws=run.num_draws)
    of_grid, of_rows, xlabel = (
        grid,
        np.asarray(data.train.in_memory().x),
        "x (standardised)",
    )
    encoding = data.encoding
    if encoding is not None and encoding.columns[0].kind == "date":
        of_grid, of_rows = (_dates(x, data) for x in (of_grid, of_rows))
        xlabel = encoding.columns[0].name
    figure = predictive_bands(
        of_grid,
        bands,
        data=(of_rows, data.train.in_memory().y),
        xlabel=xlabel,
        ylabel="y (standardised)",
        title=data.name,
    )
    return {"bands": figure}


def _dates(x: np.ndarray, data: Data) -> np.ndarray:
    """Of standardised days since 1970."""
    days = in_raw_units(x.astype(float), data.x_scaling)
    passed = np.round(days * 86_400e6).astype("timedelta64[us]")
    return np.datetime64("1970-01-01", "us") + passed


FIGURES: tuple[Callable[[Run], dict[str, Figure]], ...] = (
    _training,
    _reliability,
    _galleries,
    _series,
    _bands,
)
"""What a run may leave: figures by the names of their files, none where one does not
apply. A new one is a function in this list."""


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
    x = data.train.in_memory().x
    low, high = x.min(), x.max()
    margin = 0.4 * (high - low)
    grid = np.linspace(low - margin, high + margin, _GRID_SIZE, dtype=np.float32)
    return grid[:, None]
