"""Options that a run would refuse or pass over: what its help leaves out."""

import dataclasses
from collections.abc import Collection
from pathlib import Path

from .._sentence import does_nothing
from ..data import expanded, kind_of_folder, list_data
from ._check_sampling import check_sample_recipe, unread_by_chains
from ._hand_over import check_handed_over, is_handed_over
from ._recipe import Recipe
from ._sampling import SampleRecipe
from .checks import check_before_data, check_recipe, unread_by_model
from .inputs import check_data_options
from .models import WHITENED
from .options import DataOptions, LikelihoodOptions, SeriesOptions
from .presets import HANDED_OVER, is_table, kind_of_data, kind_of_sequences

_OF_TABLES = {"target", "task", "features", "drop", "id_column", "separator", "test"}
_OF_IMAGES = {"blocks", "readout", "space_to_depth", "stem", "normalised"}
POINTS = ("deterministic", "map", "laplace", "swag")
"""Models whose training has one function, however often it is drawn."""
_OF_OWN_TABLES = {"time", "series", "value", "time_unit", "time_scale"}


_Why = tuple[str, str]
"""The option that decides it, and what that is."""


def unread_options(recipe: Recipe | SampleRecipe) -> frozenset[str]:
    """Names of options that runs of these data, and this model or kernel, never read.

    From the recipe alone: files are not opened, and what only they tell counts as read.

    Args:
        recipe: whose data, model, network, kernel and likelihood decide.
    """
    return frozenset(_unread(recipe))


def check_options(recipe: Recipe | SampleRecipe, given: Collection[str] = ()) -> None:
    """Refuse a recipe that no run could carry out, whatever is in its files.

    Args:
        recipe: of a run that is to begin.
        given: names of the options that somebody gave: of these, all must be read.

    Raises:
        ValueError: naming an option.
    """
    if isinstance(recipe, SampleRecipe):
        check_sample_recipe(recipe)
        check_recipe(recipe.recipe)
        check_before_data(recipe.recipe)
    elif is_handed_over(recipe):
        check_handed_over(recipe)
        check_data_options(recipe.data, recipe.series)
    else:
        check_recipe(recipe)
        check_before_data(recipe)
    _check_given(recipe, given)


def _check_given(recipe: Recipe | SampleRecipe, given: Collection[str]) -> None:
    """Refuse options that somebody gave, and that nothing reads.

    What a preset or an older run says beside them is no such thing.

    Args:
        recipe: with these options.
        given: their names.

    Raises:
        ValueError: naming the first of them.
    """
    for name, why in sorted(_unread(recipe).items()):
        # `evaluate` may find other data there, to tell these from.
        if name in given and name != "data_dir":
            raise does_nothing(name, *why)


def _unread(recipe: Recipe | SampleRecipe) -> dict[str, _Why]:
    if isinstance(recipe, SampleRecipe):
        by_model = unread_by_chains(recipe.sampling)
        series = None
    else:
        by_model = _by_model(recipe)
        series = recipe.series
    by_data = _by_data(recipe.data, series)
    return _by_likelihood(recipe.likelihood) | by_data | by_model


def _by_model(recipe: Recipe) -> dict[str, _Why]:
    of_model = ("model", recipe.model.model)
    if recipe.model.model in HANDED_OVER:
        kept = {"model", "seed", *_names(DataOptions, LikelihoodOptions)}
        parts = (getattr(recipe, field.name) for field in dataclasses.fields(recipe))
        names = _names(*(type(part) for part in parts)) - kept - {"time"}
        return dict.fromkeys(names, of_model)
    unread = {}
    optimiser, network = recipe.training.optimiser, recipe.network.network
    if optimiser != "ivon":
        of_ivon = ("empirical_bayes", "init_hessian", "hessian_decay")
        unread |= dict.fromkeys(of_ivon, ("optimiser", optimiser))
    if network != WHITENED:
        unread["random_weights"] = ("network", network)
    if recipe.model.model in POINTS:
        of_draws = ("num_draws", "importance_weighted", "draw_per_part")
        unread |= dict.fromkeys(of_draws, of_model)
    return unread | unread_by_model(recipe)


def _by_data(options: DataOptions, series: SeriesOptions | None) -> dict[str, _Why]:
    """From the name of the data alone."""
    data, suffix = options.data, Path(options.data).suffix.lower()
    is_uci = data.startswith("uci/")
    is_stream_of_rows = options.stream and kind_of_data(data) != "images"
    is_own_table = (is_table(data) and not is_uci) or is_stream_of_rows
    is_folder = not (is_uci or data in list_data()) and expanded(data).is_dir()
    sequences = None if series is None else kind_of_sequences(data, time=series.time)
    unread: set[str] = set()
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
    # Arrays may be images, which their name does not say.
    are_arrays = ".npz" in (suffix, kind_of_folder(expanded(data)))
    is_image = are_arrays or kind_of_data(data) == "images"
    if not is_image or sequences is not None:
        unread |= {"image_augmentation"} | _OF_IMAGES
    if series is None or sequences is None:
        unread |= _names(SeriesOptions) - ({"time"} if is_own_table else set())
    elif not is_own_table:
        unread |= _OF_OWN_TABLES
    found: dict[str, _Why] = dict.fromkeys(unread, ("data", data))
    if is_own_table and series is not None and series.time is not None:
        found |= dict.fromkeys(_OF_TABLES, ("time", series.time))
    return found


def _by_likelihood(options: LikelihoodOptions) -> dict[str, _Why]:
    why = ("likelihood", options.likelihood)
    if options.likelihood in ("categorical", "bernoulli"):
        return dict.fromkeys(("scale", "learn_scale", "df"), why)
    return {} if options.likelihood == "student-t" else {"df": why}


def _names(*parts: type) -> set[str]:
    return {field.name for part in parts for field in dataclasses.fields(part)}
