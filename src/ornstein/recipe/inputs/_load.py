"""A recipe's data: rows, images or sequences, by one door."""

from collections.abc import Callable

from ..._sentence import OptionError
from ...data import Data, check_load_options, load
from .._recipe import Recipe
from ..options import DataOptions, SeriesOptions
from ._arrange_series import arrange_series
from ._first_rows import first_rows
from ._series_table import load_sequences, on_model_time


def load_data(
    recipe: Recipe, *, change: Callable[[Data], Data] = lambda data: data
) -> Data:
    """What a recipe learns from, and is tested on.

    Rows are left out as the recipe says, and validation rows held out of the training
    rows that are left, but of a table of sequences before others are left out.
    Sequences are learned from the points and at the tempos that the recipe says, and
    cut into what is shown and what is asked.

    Args:
        recipe: its data and their options; for sequences its model's, too.
        change: made to what is loaded, before sequences are cut.

    Raises:
        ValueError: for options that these data cannot have.
    """
    data = change(_whole(recipe))
    return arrange_series(recipe, data) if data.task == "series" else data


def check_data_options(options: DataOptions, series: SeriesOptions) -> None:
    """Refuse options of other data than those of this name, before they are read.

    Args:
        options: of the data.
        series: of sequences.

    Raises:
        ValueError: naming the first of them.
    """
    if options.stream and series.time is not None:
        raise OptionError(
            "{time} is for sequences, which are read whole: leave {stream} out."
        )
    if options.stream and options.train_rows is not None:
        raise OptionError(
            "{train_rows} takes the first rows of those in memory: leave {stream} out."
        )
    if series.time is not None:
        return
    columns = ("features", "drop", "id_column", "separator", "test")
    check_load_options(
        options.data,
        split=options.split,
        target=options.target or None,
        task=options.task,
        columns={name: getattr(options, name) for name in columns},
        image_size=options.image_size,
        image_fit=options.image_fit,
        stream=options.stream,
        shuffle_buffer=options.shuffle_buffer,
    )


def _whole(recipe: Recipe) -> Data:
    """All that is asked for, of which series are whole."""
    options, series, seed = recipe.data, recipe.series, recipe.training.seed
    check_data_options(options, series)
    if series.time is not None:
        data = load_sequences(options, series, seed=seed)
        data = first_rows(data, options.train_rows, options.test_rows)
        return on_model_time(data, series.time_scale)
    data = load(
        options.data,
        data_dir=options.data_dir,
        split=options.split,
        seed=seed,
        target=options.target or None,
        task=options.task,
        features=options.features,
        drop=options.drop,
        id_column=options.id_column,
        separator=options.separator,
        test=options.test,
        image_size=options.image_size,
        image_fit=options.image_fit,
        stream=options.stream,
        shuffle_buffer=options.shuffle_buffer,
        validation_fraction=options.validation_fraction if options.stream else 0.0,
    )
    data = first_rows(data, options.train_rows, options.test_rows)
    if options.validation_fraction == 0 or options.stream:
        return data
    return data.with_validation(options.validation_fraction, seed=seed)
