"""The recipes of a table's rows: JSON files, the package's or a user's own.

`{"about": ..., "quick": {"seeds": [0, 1], "options": {...}}, "gpu": ..., "full": ...}`;
options are those of `ornstein train`, or of `ornstein sample` where they name a kernel.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._files import UnreadableError, check_regular, parse_json
from .._sentence import OptionError, Sentence
from .._types import PRNGKeyArray
from ..data import Data, Series, Split
from ..evaluation import num_trained
from ..prediction import FittedModel
from ._recipe import Recipe
from ._sampling import SampleRecipe
from .models import build_likelihood, build_model

ScaleName = Literal["quick", "hours", "gpu", "full"]
"""Minutes on two cores; hours on them; 25 minutes on one accelerator; the paper's own
budget."""

_SCALES: tuple[ScaleName, ...] = ("quick", "hours", "gpu", "full")
_NOT_OPTIONS = {
    "data": Sentence("{data} says what is learned from"),
    "seed": '"seeds" has those of all runs',
}
_SHAPES: dict[str, tuple[int, ...]] = {
    **{"mnist": (28, 28, 1), "cifar10": (32, 32, 3)},
    "mocap": (300, 50),
}


class RowRecipe(NamedTuple):
    """How a row of a table is made at one scale.

    Attributes:
        about: one line.
        seeds: of its runs.
        recipe: of each, but for its seed.
    """

    about: str
    seeds: tuple[int, ...]
    recipe: Recipe | SampleRecipe


def recipe_names(scale: ScaleName | None = None) -> dict[str, tuple[str, ...]]:
    """The package's recipes: models by data set.

    Args:
        scale: those that have this one; all by default.
    """
    folders = sorted(_folder().iterdir(), key=lambda folder: folder.name)
    found = {}
    for folder in folders:
        if not folder.is_dir():
            continue
        names = sorted(
            file.name.removesuffix(".json")
            for file in folder.iterdir()
            if file.name.endswith(".json")
        )
        has_scale = lambda name, data=folder.name: scale in scales_of(data, name)
        found[folder.name] = tuple(n for n in names if scale is None or has_scale(n))
    return {data: names for data, names in found.items() if names}


def scales_of(data: str, model: str) -> tuple[ScaleName, ...]:
    """The scales that a model's recipe has.

    Args:
        data: the data set.
        model: one of `recipe_names`, or a .json file.

    Raises:
        ValueError: for a model without a recipe, or a file that is none.
        FileNotFoundError: for a file that is not there.
    """
    content = _read(_find(data, model), f"{data}/{model}.json")
    return tuple(scale for scale in _SCALES if scale in content)


def model_name(model: str) -> str:
    """What a row is called: `mine` for the recipe mine.json."""
    return Path(model).stem if model.endswith(".json") else model


def load_row(data: str, model: str, scale: ScaleName) -> RowRecipe:
    """The recipe of a row, checked.

    Args:
        data: the data set.
        model: one of `recipe_names`, or a .json file.
        scale: of the budget.

    Raises:
        ValueError: for a model without a recipe, or a recipe that cannot be; naming the
            file and the key.
        FileNotFoundError: for a file that is not there.
    """
    file = _find(data, model)
    name = str(file) if model.endswith(".json") else f"{data}/{model}.json"
    content = _read(file, name)
    _check_keys(content, {"about", *_SCALES}, {"about", scale}, name)
    entry = content[scale]
    if not isinstance(entry, dict):
        raise ValueError(f'{name}: "{scale}" must hold "seeds" and "options".')
    _check_keys(entry, {"seeds", "options"}, {"seeds", "options"}, f"{name}, {scale}")
    seeds = _seeds(entry["seeds"], f"{name}, {scale}")
    try:
        recipe = _recipe(entry["options"], data)
    except ValueError as error:
        raise OptionError("{}, {}: {}", name, scale, error.args[0]) from error
    return RowRecipe(content["about"], seeds, recipe)


def load_recipe(
    data: str, model: str, scale: ScaleName
) -> tuple[tuple[int, ...], Recipe | SampleRecipe]:
    """Seeds and recipe of a row: see `load_row`."""
    _, seeds, recipe = load_row(data, model, scale)
    return seeds, recipe


def with_seed(recipe: Recipe | SampleRecipe, seed: int) -> Recipe | SampleRecipe:
    """The recipe of one run."""
    return recipe.changed(seed=seed)


def network_recipe(recipe: Recipe | SampleRecipe) -> Recipe:
    """The recipe itself, or that of the plain network whose weights are sampled."""
    return recipe.recipe if isinstance(recipe, SampleRecipe) else recipe


def list_recipes() -> list[dict[str, Any]]:
    """The package's recipes: data, model, scale, what it is, and numbers trained."""
    rows = []
    for data, models in recipe_names().items():
        for model in models:
            for scale in scales_of(data, model):
                about, seeds, recipe = load_row(data, model, scale)
                row = {"data": data, "model": model, "scale": scale, "about": about}
                size = count_parameters(recipe, _SHAPES[data])
                rows.append(row | {"seeds": len(seeds), "num_parameters": size})
    return rows


def count_parameters(
    recipe: Recipe | SampleRecipe, shape: tuple[int, ...], num_classes: int = 10
) -> int:
    """How many numbers training moves, from shapes: nothing is loaded or drawn.

    Args:
        recipe: of a row.
        shape: of one example: an image, or the times and features of a series.
        num_classes: of images.
    """
    data = _images(shape, num_classes) if len(shape) == 3 else _sequences(shape)
    plain = network_recipe(recipe)
    likelihood = build_likelihood(plain.likelihood, data)

    def count(key: PRNGKeyArray) -> int:
        return num_trained(FittedModel(build_model(plain, data, key=key), likelihood))

    return eqx.filter_eval_shape(count, jax.random.key(0))


def _images(shape: tuple[int, ...], num_classes: int) -> Data:
    labels = np.arange(num_classes, dtype=np.int32)
    split = Split(np.zeros((num_classes, *shape), np.float32), labels)
    names = tuple(map(str, labels))
    return Data("shapes", "classification", split, split, None, num_classes, names)


def _sequences(shape: tuple[int, ...]) -> Data:
    num_times, num_features = shape
    values = np.zeros((2, num_times, num_features), np.float32)
    rows = Series.of(np.arange(num_times), values)
    return Data("shapes", "series", Split(rows, rows), Split(rows, rows))


def _folder() -> Traversable:
    return files("ornstein.recipe").joinpath("published")


def _find(data: str, model: str) -> Traversable | Path:
    if model.endswith(".json"):
        return Path(model)
    known = recipe_names()
    if data not in known:
        raise OptionError(
            "There are no recipes for {!r}, only for {}: name files of your own, such "
            "as {models} mine.json.",
            data,
            ", ".join(known),
        )
    if model not in known[data]:
        raise OptionError(
            "There is no recipe {!r} for {}: give {models} one of {}, or a .json file "
            "of your own.",
            model,
            data,
            ", ".join(known[data]),
        )
    return _folder().joinpath(data, f"{model}.json")


def _read(file: Traversable | Path, name: str) -> dict[str, Any]:
    try:
        if isinstance(file, Path) and file.exists():
            check_regular(file)
        elif not file.is_file():
            raise FileNotFoundError(
                f"There is no recipe {name}: give a file that exists."
            )
        content = parse_json(file.read_bytes())
    except UnreadableError as error:
        raise ValueError(
            f"{name} is not JSON of a recipe: {error}; mend it there."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{name} must be a JSON object with about, {_SCALES[0]}, ….")
    return content


def _check_keys(
    content: dict[str, Any], known: set[str], needed: set[str], name: str
) -> None:
    if unknown := sorted(set(content) - known):
        raise ValueError(
            f"{name} has the unknown key {unknown[0]!r}: its keys are "
            f"{', '.join(sorted(known))}."
        )
    if missing := sorted(needed - set(content)):
        raise ValueError(f"{name} lacks the key {missing[0]!r}: add it.")


def _seeds(seeds: Any, name: str) -> tuple[int, ...]:
    is_seed = lambda seed: isinstance(seed, int) and not isinstance(seed, bool)
    if not isinstance(seeds, list) or not seeds or not all(map(is_seed, seeds)):
        raise ValueError(
            f'{name}: "seeds" is {seeds!r}, but must be a list of whole numbers, such '
            "as [0, 1, 2]."
        )
    if len(set(seeds)) < len(seeds):
        raise ValueError(
            f'{name}: "seeds" is {seeds}, and a seed that is repeated is one run '
            "counted twice: name each once."
        )
    return tuple(seeds)


def _recipe(options: Any, data: str) -> Recipe | SampleRecipe:
    if not isinstance(options, dict):
        raise ValueError('"options" must be an object of options and their values.')
    for option, reason in _NOT_OPTIONS.items():
        if option in options:
            raise OptionError("the option {!r} is not a recipe's: {}.", option, reason)
    kind = SampleRecipe if "kernel" in options else Recipe
    return kind().changed(data=data, **options)
