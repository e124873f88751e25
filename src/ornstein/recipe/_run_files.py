"""The files of a run folder."""

import hashlib
import json
from pathlib import Path
from typing import Any

from .._files import UnreadableError, check_regular, read_json, write_atomically
from .._processes import from_first
from ..data import Data, expanded, load_schema, save_schema
from ..prediction import Fitted
from ..sampling import origin_of
from ..train import (
    CheckpointError,
    RunFolder,
    checkpoints,
    load_hyperparameters,
    save_model,
)
from ._recipe import Recipe
from ._sampling import SampleRecipe

SAMPLES = "samples"
"""The folder of a run's samples, among its checkpoints."""

_MODEL = "final.npz"
_SCHEMA = "data.json"
_TUNING = "tuning.json"
_RECIPE = "sha256 of the recipe"
_KNOWN = "sha256 of what is known of the data"
_NOTES = "notes"


def read_recipe(run: RunFolder) -> Recipe:
    """The recipe of a run.

    Raises:
        ValueError: if its config.json is damaged or of another version.
    """
    config = _read_config(run)
    if "sampling" in config:
        raise ValueError(
            f"{run.path} is a run of `ornstein sample`: go on with {run.resuming}."
        )
    return Recipe.from_json(config["recipe"])


def is_sampled(run: RunFolder) -> bool:
    """Whether a run is one of chains."""
    return "sampling" in _read_config(run)


def read_sample_recipe(run: RunFolder) -> SampleRecipe:
    """The options of a run of `ornstein sample`.

    Raises:
        ValueError: if its config.json is damaged, of another version or command.
    """
    config = _read_config(run)
    if "sampling" not in config:
        raise ValueError(
            f"{run.path} is a run of `ornstein train`: go on with {run.resuming}."
        )
    return SampleRecipe.from_json(config["sampling"])


def _read_config(run: RunFolder) -> dict[str, Any]:
    config = run.config
    if "recipe" not in config:
        raise ValueError(
            f"{run.path / 'config.json'} holds no recipe: give a folder that "
            "`ornstein train` or `sample` wrote."
        )
    return config


def save_final(run: RunFolder, fit: Fitted) -> Path:
    """Write the trained model with its batch statistics, and say where."""
    path = final_path(run)
    known = _made_by(run) | {_NOTES: list(map(str, getattr(fit, "notes", ())))}
    tree = (fit.model, fit.likelihood, fit.state)
    save_model(path, tree, hyperparameters=known)
    return path


def final_notes(run: RunFolder) -> tuple[str, ...]:
    """What training had to say of the model, which the model itself does not know."""
    return tuple(load_hyperparameters(final_path(run)).get(_NOTES, ()))


def check_own(run: RunFolder) -> None:
    """Refuse a model or samples not made by the recipe and data of its folder.

    Raises:
        CheckpointError: naming what is another's.
    """
    if is_sampled(run):
        where, what = run.checkpoints / SAMPLES, "has the samples"
        kept = origin_of(where)
    else:
        where, what = final_path(run), "is the model"
        kept = load_hyperparameters(where)
    there = _made_by(run)
    for name, digest in kept.items():
        if name in (_RECIPE, _KNOWN) and there.get(name) != digest:
            file = "config.json" if name == _RECIPE else _SCHEMA
            raise CheckpointError(
                f"{where} {what} of another run, or {file} is another's: put the "
                "run's own back, or train again."
            )


def origin_of_run(run: RunFolder) -> dict[str, str]:
    """What the samples of a run are made from, the same in all its processes."""
    return json.loads(from_first(json.dumps(_made_by(run)).encode()))


def _made_by(run: RunFolder) -> dict[str, str]:
    """Digests of the recipe and of what is known of the data, if that was written."""
    config = _read_config(run)
    recipe = config.get("sampling", config["recipe"])
    parts = {_RECIPE: json.dumps(recipe, sort_keys=True).encode()}
    if schema_path(run).is_file():
        parts[_KNOWN] = schema_path(run).read_bytes()
    return {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}


def schema_path(run: RunFolder) -> Path:
    """Where a run keeps what it knows of its data."""
    return run.path / _SCHEMA


def keep_schema(run: RunFolder, data: Data) -> None:
    """Write what predicting takes to know of the data, or see that it is the same.

    Args:
        run: a new one, or one that goes on.
        data: that it learns from.

    Raises:
        DataError: for a run that learned from other data.
    """
    path = schema_path(run)
    if path.is_file():
        load_schema(path).check_same(data)
    else:  # of a new run, or of before there was such a file
        save_schema(path, data)


def check_data_there(run: RunFolder, recipe: Recipe) -> None:
    """Refuse a run to go on with whose files are not there, before they are read.

    Args:
        run: which may know nothing of its data yet.
        recipe: its own; where what it names is there, it is read.

    Raises:
        DataNotFoundError: if one is gone.
    """
    names = (recipe.data.data, recipe.data.test)
    if all(expanded(name).exists() for name in names if name):
        return
    path = schema_path(run)
    source = load_schema(path).source if path.is_file() else None
    if source is not None:
        source.check_there()


def keep_tuning(run: RunFolder, table: list[dict[str, Any]]) -> None:
    """Write the table of a search that chose the recipe, before the run begins.

    Args:
        run: a new one.
        table: of all trials, as JSON.
    """
    write_atomically(run.path / _TUNING, json.dumps(table, indent=2).encode())


def kept_tuning(run: RunFolder) -> list[dict[str, Any]] | None:
    """What `keep_tuning` wrote; `None` of a run without a search.

    Raises:
        ValueError: if the file is damaged.
    """
    path = run.path / _TUNING
    if not path.exists():
        return None
    try:
        return read_json(path)
    except UnreadableError as error:
        raise ValueError(
            f"{path} is truncated or damaged ({error}): move it away, and the run goes "
            "on without the table of its trials."
        ) from error


def final_path(run: RunFolder) -> Path:
    """Where a finished run has its trained model."""
    return run.checkpoints / _MODEL


def check_kept(run: RunFolder) -> None:
    """Refuse what is in the place of the checkpoints, or of the trained model.

    Raises:
        CheckpointError: naming what it is.
    """
    checkpoints(run.checkpoints)
    final = final_path(run)
    try:
        check_regular(final)
    except UnreadableError as error:
        raise CheckpointError(
            f"{final} should be the trained model's file ({error}): move it away, and "
            f"{run.resuming} writes the model again from the last checkpoint."
        ) from error
