"""Options of sequences and of rows, with data of the other kind."""

import dataclasses
from pathlib import Path

import numpy as np

from ..._sentence import Option, OptionError
from ...data import Data
from .._recipe import Recipe
from ..models import MODELS
from ..options import SeriesOptions

_TABLES = (".csv", ".parquet")
_OF_ALL = ("test_seen", "start_every", "tempos", "lengths", "input_noise")
"""Options that sequences have which are no table too."""


def check_named(recipe: Recipe) -> None:
    """Refuse columns that the name of the data cannot have, or that are missing."""
    name, series = recipe.data.data, recipe.series
    is_table = Path(name).suffix.lower() in _TABLES
    if series.time is not None:
        _check_columns(recipe, is_table)
    elif is_table and MODELS[recipe.model.model].takes_series:
        raise OptionError(
            "{model} {} learns sequences: name the column of times of {} with {time}, "
            "and the one that tells series apart, if any, with {series}.",
            recipe.model.model,
            name,
        )


def _check_columns(recipe: Recipe, is_table: bool) -> None:
    options = recipe.data
    if not is_table:
        raise OptionError(
            "{time} names a column of a .csv or .parquet file, and {data} {} is none: "
            "leave {time} out.",
            options.data,
        )
    if options.target:
        raise OptionError(
            "{target} is for tables with a row for each example: with {time}, name "
            "the columns to learn with {value}."
        )
    if options.task is not None or options.split != 0:
        raise OptionError(
            "{task} and {split} are not for sequences: leave them out, and hold out "
            "by {hold_out_by} and {test_fraction}."
        )


def check_task(recipe: Recipe, data: Data) -> None:
    """Refuse sequences for a model of rows, and the reverse; patience without rows."""
    has_validation = data.validation is not None
    check_kind(
        recipe,
        data.name,
        is_series=data.task == "series",
        has_validation=has_validation,
    )


def check_kind(
    recipe: Recipe, name: str, *, is_series: bool, has_validation: bool
) -> None:
    """The same of data that need not be read yet.

    Args:
        recipe: of a family.
        name: of the data.
        is_series: whether they are sequences.
        has_validation: whether they have validation rows.
    """
    if recipe.data.stream and MODELS[recipe.model.model].posthoc is not None:
        raise OptionError(
            "{model} {} passes over all training rows once the network is trained, and "
            "{stream} leaves them on disk: name another {model}, such as ensemble.",
            recipe.model.model,
        )
    if recipe.series.time is None:
        _check_without_time(recipe.series, is_series=is_series)
    model = recipe.model.model
    if is_series and not MODELS[model].takes_series:
        raise OptionError(
            "{} holds sequences, which {model} {} does not learn: use `ornstein train "
            "--model latent-sde` or latent-ode.",
            name,
            model,
        )
    if not is_series and MODELS[model].takes_series:
        raise OptionError(
            "{model} {} learns sequences, and {} holds none: give a table with {time} "
            "COLUMN, or mocap, toy/gbm, toy/lorenz, ...; or another {model}.",
            model,
            name,
        )
    if recipe.training.patience is not None and not has_validation:
        raise OptionError(
            "{patience} needs rows to judge epochs by: add {validation_fraction} 0.1."
        )


def check_ends(recipe: Recipe, data: Data) -> None:
    """Refuse a posterior that goes on where shorter series are padded."""
    is_option_read = recipe.model.model == "latent-sde"
    if not (is_option_read and recipe.latent.extrapolates_posterior):
        return
    series = recipe.series
    if series.start_every or series.tempos or series.lengths:
        return  # rows of one series, of which some are told to end early
    observed = np.asarray(data.train.in_memory().x.mask).any(-1)
    num_after = np.argmax(np.flip(observed, 1), axis=1)
    if num_after.max() > 0:
        raise OptionError(
            "{extrapolates_posterior} has a path pay for keeping to its posterior "
            "after the last value, and {} of {} training series end before the longest "
            "of the file, up to which they are padded: leave it out, or give series of "
            "one number of times.",
            int((num_after > 0).sum()),
            len(num_after),
        )


def _check_without_time(series: SeriesOptions, *, is_series: bool) -> None:
    """Refuse options that only a table with times reads."""
    default = SeriesOptions()
    for field in dataclasses.fields(series):
        if getattr(series, field.name) == getattr(default, field.name):
            continue
        if field.name in _OF_ALL and is_series:
            continue
        raise OptionError(
            "{} is for sequences in a table of your own, whose column of times {time} "
            "names: add it, or leave {} out.",
            Option(field.name),
            Option(field.name),
        )
