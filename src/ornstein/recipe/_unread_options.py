"""Options that a run would refuse or pass over: what its help leaves out."""

import dataclasses
from pathlib import Path

from ..data import expanded
from ._check_sampling import unread_by_chains
from ._recipe import Recipe
from ._sampling import SampleRecipe
from .checks import unread_by_model
from .models import WHITENED
from .options import DataOptions, LikelihoodOptions, SeriesOptions
from .presets import HANDED_OVER, is_table, kind_of_data, kind_of_sequences

_OF_TABLES = {"target", "task", "features", "drop", "id_column", "separator", "test"}
_OF_IMAGES = {"blocks", "readout", "space_to_depth", "stem", "normalised"}
_POINTS = ("deterministic", "map", "laplace", "swag")
"""Models whose training has one function, however often it is drawn."""
_OF_OWN_TABLES = {"time", "series", "value", "time_unit", "time_scale"}


def unread_options(recipe: Recipe | SampleRecipe) -> frozenset[str]:
    """Names of options that runs of these data, and this model or kernel, never read.

    From the recipe alone: files are not opened, and what only they tell counts as read.

    Args:
        recipe: whose data, model, network, kernel and likelihood decide.
    """
    if isinstance(recipe, SampleRecipe):
        by_model = unread_by_chains(recipe.sampling)
        series = None
    else:
        by_model = _by_model(recipe)
        series = recipe.series
    by_data = _by_data(recipe.data, series)
    return frozenset(by_model | by_data | _by_likelihood(recipe.likelihood))


def _by_model(recipe: Recipe) -> set[str]:
    if recipe.model.model in HANDED_OVER:
        kept = {"model", "seed", *_names(DataOptions, LikelihoodOptions)}
        parts = (getattr(recipe, field.name) for field in dataclasses.fields(recipe))
        return _names(*(type(part) for part in parts)) - kept - {"time"}
    unread = set(unread_by_model(recipe))
    if recipe.training.optimiser != "ivon":
        unread |= {"empirical_bayes", "init_hessian", "hessian_decay"}
    if recipe.network.network != WHITENED:
        unread.add("random_weights")
    if recipe.model.model in _POINTS:
        unread |= {"num_draws", "importance_weighted", "draw_per_part"}
    return unread


def _by_data(options: DataOptions, series: SeriesOptions | None) -> set[str]:
    """From the name of the data alone."""
    data, suffix = options.data, Path(options.data).suffix.lower()
    is_uci = data.startswith("uci/")
    is_stream_of_rows = options.stream and kind_of_data(data) != "images"
    is_own_table = (is_table(data) and not is_uci) or is_stream_of_rows
    is_folder = data != "digits" and expanded(data).is_dir()
    sequences = None if series is None else kind_of_sequences(data, time=series.time)
    unread = set()
    if not is_own_table or sequences is not None:
        unread |= _OF_TABLES - ({"task"} if suffix == ".npz" else set())
    if not is_uci:
        unread.add("split")
    if is_own_table or is_folder or suffix == ".npz" or data.startswith("toy/"):
        unread.add("data_dir")
    if not is_folder or is_stream_of_rows:
        unread |= {"image_size", "image_fit"}
    if not options.stream:
        unread.add("shuffle_buffer")
    if suffix != ".csv":
        unread.add("separator")
    if kind_of_data(data) != "images" or sequences is not None:
        unread |= {"image_augmentation"} | _OF_IMAGES
    if series is None or sequences is None:
        unread |= _names(SeriesOptions) - ({"time"} if is_own_table else set())
    elif not is_own_table:
        unread |= _OF_OWN_TABLES
    return unread


def _by_likelihood(options: LikelihoodOptions) -> set[str]:
    if options.likelihood in ("categorical", "bernoulli"):
        return {"scale", "learn_scale", "df"}
    return set() if options.likelihood == "student-t" else {"df"}


def _names(*parts: type) -> set[str]:
    return {field.name for part in parts for field in dataclasses.fields(part)}
