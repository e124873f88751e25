"""Rows of table 1, one file for each model and seed, and the runs behind them."""

import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..._files import UnreadableError, read_json, write_atomically
from ..._sentence import OptionError
from ..._version import __version__
from ...evaluation import fit_scores
from ...network import initial_state
from ...prediction import Fitted, FittedModel
from ...recipe import (
    Keys,
    Prepared,
    Recipe,
    SampleRecipe,
    check_sampling,
    kl_weight_of,
    load_recipe,
    model_name,
    open_sampling,
    prepare,
    run_sampling,
    train,
    with_seed,
)
from ...train import Plan, RunFolder, load_model, save_model
from .._experiment import Study
from .._ledger import Origin
from .._row_scores import RowScores

# Where `ornstein evaluate RUN` looks for them.
_FINAL = "final.npz"
_SAMPLES = "samples"


def finished_row(
    study: Study, data: str, model: str, seed: int
) -> dict[str, Any] | None:
    """The result of a run that is done, or `None`.

    Args:
        study: its folder and scale.
        data: the data set.
        model: a recipe's name, or a .json file.
        seed: of the run.

    Raises:
        ValueError: if the file there is of another version, scale or recipe.
    """
    recipe = _recipe_of(study, data, model, seed)
    return _finished(record_path(study, model, seed), study, data, model, recipe)


def _finished(
    path: Path, study: Study, data: str, model: str, recipe: Recipe | SampleRecipe
) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    record = read_record(path, study, data)
    if _read_recipe(record, type(recipe)) != recipe:
        raise OptionError(
            "{} was made by another recipe than {} has at scale {}: remove it, or "
            "name another folder with {out}.",
            path,
            model,
            study.scale,
        )
    return record


def trained_row(
    study: Study, data: str, model: str, seed: int
) -> tuple[Prepared, Fitted, dict[str, Any]]:
    """A trained row of table 1: its data, its fit, and its result.

    Trained if it is not there yet, or gone on with; else read from the study's folder:
    `runs/MODEL-SEED` has the model, `MODEL-SEED.json` the result, `MODEL-SEED.npz` the
    scores of each test row, so that models can be compared row by row. A result stays
    where its model is gone, as in a clone: the model is trained again, and its own
    result is in its folder alone.

    Args:
        study: its folder and scale.
        data: the data set.
        model: a recipe's name, or a .json file.
        seed: of the run.

    Raises:
        ValueError: if what is there is of another version, scale or recipe.
    """
    recipe = _recipe_of(study, data, model, seed)
    record = finished_row(study, data, model, seed)
    prepared = _prepared(recipe)
    name = f"{model_name(model)}-{seed}"
    folder = study.folder / "runs" / name
    if record is not None and _is_complete(folder):
        path = folder / "result.json"
        if path.is_file():  # else it was killed before it was judged
            own = record  # which may have been mended since
            if _provenance(path) not in (None, record.get("provenance")):
                own = _finished(path, study, data, model, recipe)
                assert own is not None
            study.ledger.take(name, own.get("provenance"))
            return prepared, _load(folder, prepared, recipe), own
    for note in prepared.data.notes:
        study.say(f"{data}: {note}")
    study.say(f"{name}: training in {folder}")

    def compute() -> tuple[_Trained, dict[str, Any], RowScores | None]:
        trained = _train(folder, prepared, recipe, study, name)
        return trained, *_judged(trained.fit, prepared, recipe)

    (trained, scores, rows), origin, _ = study.ledger.compute(compute)
    before = trained.seconds_before
    seconds = None if before is None else round(origin["seconds"] + before, 1)
    origin |= {"seed": seed, "seconds": seconds}
    origin |= {"begun": trained.begun} if trained.is_resumed else {}
    study.ledger.take(name, origin)
    result = {
        "model": model_name(model),
        "data": data,
        "scale": study.scale,
        "seed": seed,
        "version": __version__,
        "train_seconds": trained.seconds,
        "kl_weight": (
            None if isinstance(recipe, SampleRecipe) else kl_weight_of(recipe)
        ),
        "notes": [*prepared.data.notes, *map(str, getattr(trained.fit, "notes", ()))],
        **scores,
        "recipe": recipe.to_json(),
        "provenance": origin,
    }
    own = _as_json(result)
    path = record_path(study, model, seed)
    if record is None:
        if rows is not None:
            rows.save(path.with_suffix(".npz"))
        write_atomically(path, json.dumps(own, indent=2).encode())
    RunFolder.open(folder).write_result(own)
    where = f"wrote {path}"
    if record is not None:
        where = f"{path} stays as it was, this training's result is in {folder}"
    study.say(f"{name}: {where}")
    return prepared, trained.fit, own


def _provenance(path: Path) -> Any:
    """Where a result of a run's folder comes from; `None` where it does not say."""
    try:
        found = read_json(path)
    except UnreadableError:
        return None
    return found.get("provenance") if isinstance(found, dict) else None


def record_path(study: Study, model: str, seed: int) -> Path:
    """The file of a finished run."""
    return study.folder / f"{model_name(model)}-{seed}.json"


def row_scores(study: Study, record: dict[str, Any]) -> RowScores | None:
    """The scores of each test row of a finished run.

    `None` of results of before they were kept.

    Raises:
        ValueError: if the file is damaged.
    """
    path = record_path(study, record["model"], record["seed"])
    return RowScores.load(path.with_suffix(".npz"))


def read_record(path: Path, study: Study, data: str) -> dict[str, Any]:
    """A finished run, of this version, scale and data set.

    Raises:
        ValueError: if it is of others, or damaged.
    """
    try:
        record = read_json(path)
        found = [record[name] for name in ("version", "data", "scale")]
    except (UnreadableError, KeyError, TypeError) as error:
        raise OptionError(
            "{} is no result of `ornstein reproduce table1`, or is damaged: remove it, "
            "or name another folder with {out}.",
            path,
        ) from error
    ours = [__version__, data, study.scale]
    for what, theirs, this in zip(
        ("version", "data set", "scale"), found, ours, strict=True
    ):
        if theirs != this:
            raise OptionError(
                "{} is a result of the {} {}, and this is {}: a table has those of "
                "one alone, so name another folder with {out}, or remove the file.",
                path,
                what,
                theirs,
                this,
            )
    return record


def recipe_of(record: Mapping[str, Any]) -> Recipe | SampleRecipe | None:
    """The recipe of a result, at seed 0; `None` if this version has none like it.

    An option that the result does not name did not exist when it was made, and has its
    default: that is what the run did.
    """
    kinds = (Recipe, SampleRecipe)
    read = (_read_recipe(record, kind) for kind in kinds)
    found = next((recipe for recipe in read if recipe is not None), None)
    return None if found is None else with_seed(found, 0)


def _recipe_of(study: Study, data: str, model: str, seed: int) -> Recipe | SampleRecipe:
    return with_seed(load_recipe(data, model, study.scale)[1], seed)


class _Epochs:
    """Says how each epoch went: a callback."""

    def __init__(self, name: str, say: Callable[[str], None]):
        self.name, self.say = name, say
        self.num_epochs = 0

    def start(self, plan: Plan) -> None:
        self.num_epochs = plan.num_epochs

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Nothing."""

    def epoch(self, record: dict[str, Any]) -> None:
        names = ("loss", "accuracy", "seconds")
        shown = (f"{n} {record[n]:.4g}" for n in names if record.get(n) is not None)
        epoch = record.get("epoch", "")
        self.say(f"{self.name}: epoch {epoch} of {self.num_epochs}, {', '.join(shown)}")

    def stop(self) -> None:
        """Nothing."""


def _prepared(recipe: Recipe | SampleRecipe) -> Prepared:
    if isinstance(recipe, Recipe):
        return prepare(recipe)
    check_sampling(recipe.sampling)
    return prepare(recipe.recipe)


class _Trained(NamedTuple):
    """A fit, its seconds of training in all and before this call, and its beginning.

    Those of chains that went on are not known: nobody wrote down what came before.
    """

    fit: Any
    seconds: float | None
    seconds_before: float | None
    is_resumed: bool
    begun: Origin | None


def _train(
    folder: Path,
    prepared: Prepared,
    recipe: Recipe | SampleRecipe,
    study: Study,
    name: str,
) -> _Trained:
    is_new = not (folder / "config.json").is_file()
    if is_new:
        run = RunFolder.create(folder, _config(recipe, study))
    else:
        run = RunFolder.open(folder)
        key = "recipe" if isinstance(recipe, Recipe) else "sampling"
        if _read_recipe({"recipe": run.config.get(key)}, type(recipe)) != recipe:
            raise OptionError(
                "{} was begun with another recipe than this of {}: remove it, or name "
                "another folder with {out}.",
                folder,
                name,
            )
    begun = run.config.get("begun")
    started = time.monotonic()
    if isinstance(recipe, SampleRecipe):
        samples = run.checkpoints / _SAMPLES
        fit = run_sampling(recipe, prepared, samples, resume=samples.exists())
        seconds, before = time.monotonic() - started, 0.0
        if not is_new:
            seconds, before = None, None
        return _Trained(fit, seconds, before, not is_new, begun)
    epochs = _Epochs(name, study.say)
    fit = train(prepared, run=run, resume=not is_new, callbacks=[epochs])
    save_model(run.checkpoints / _FINAL, (fit.model, fit.likelihood, fit.state))
    total, now = float(fit.history["seconds"][-1]), time.monotonic() - started
    return _Trained(fit, total, max(0.0, total - now), not is_new, begun)


def _config(recipe: Recipe | SampleRecipe, study: Study) -> dict[str, Any]:
    config: dict[str, Any] = {"command": f"ornstein reproduce table1 ({study.scale})"}
    config["begun"] = study.ledger.origin
    if isinstance(recipe, Recipe):
        return config | {"recipe": recipe.to_json()}
    return config | {"recipe": recipe.recipe.to_json(), "sampling": recipe.to_json()}


def _is_complete(folder: Path) -> bool:
    checkpoints = folder / "checkpoints"
    return (checkpoints / _FINAL).is_file() or (checkpoints / _SAMPLES).is_dir()


def _load(folder: Path, prepared: Prepared, recipe: Recipe | SampleRecipe) -> Fitted:
    checkpoints = folder / "checkpoints"
    if isinstance(recipe, SampleRecipe):
        return open_sampling(recipe, prepared, checkpoints / _SAMPLES)
    like = (prepared.model, prepared.likelihood, initial_state(prepared.model))
    return FittedModel(*load_model(checkpoints / _FINAL, like))


def _judged(
    fit: Any, prepared: Prepared, recipe: Recipe | SampleRecipe
) -> tuple[dict[str, Any], RowScores | None]:
    """The scores, and those of each test row."""
    keys, draws = Keys.of(prepared.recipe), prepared.recipe.training.test_draws
    if isinstance(recipe, SampleRecipe):
        draws = recipe.sampling.test_draws
    how = {"num_draws": draws, "test_key": keys.test, "bound_key": keys.bound}
    scores, prediction = fit_scores(fit, prepared.data, **how)
    return scores, RowScores.of(prediction, prepared.data.test.y)


def _read_recipe(record: Mapping[str, Any], kind: Any) -> Recipe | SampleRecipe | None:
    """The recipe of a result; `None` if this version has none like it."""
    try:
        return kind.from_json(record.get("recipe"))
    except (ValueError, TypeError, AttributeError):
        return None


def _as_json(value: Any) -> Any:
    """`value` with `None` for NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _as_json(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(entry) for entry in value]
    is_number = not isinstance(value, float) or math.isfinite(value)
    return value if is_number else None
