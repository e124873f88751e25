"""`ornstein evaluate --audit`: whether a run's posterior does anything."""

import contextlib
import json
from pathlib import Path
from typing import Any, Literal

from .._files import write_atomically
from .._types import PRNGKeyArray
from ..evaluation import Audit, Retraining, audit, check_claims
from ..functions import AbstractRandomFunction
from ..network import initial_state
from ..prediction import Fitted, FittedModel
from ..recipe import Prepared, prepare, recipe_of_points, train
from ..train import ProgressBar, RunFolder, checkpoints, load_model
from ._run_folder import final_path, read_recipe, save_final
from ._signals import Interruption, handled
from ._terminal import Terminal, as_json

TwinsName = Literal["trained", "none"]
"""What --audit-twins takes."""

_FOLDER = "audit"


def audit_run(
    run: RunFolder,
    prepared: Prepared,
    fit: Fitted,
    terminal: Terminal,
    *,
    twins: TwinsName,
    num_draws: int,
    key: PRNGKeyArray,
) -> Audit:
    """Audit a run, with twins of its own recipe, and write audit.json.

    Twins are kept in its folder: one that is finished is not trained again, and one
    that was interrupted goes on.

    Args:
        run: the run.
        prepared: what it was made of.
        fit: its fit, or samples.
        terminal: for people.
        twins: whether to train any.
        num_draws: functions averaged over.
        key: which functions.
    """
    check_claims(fit.model)
    retraining = None
    if twins == "trained" and not fit.model.posterior_parts().has_stored_samples:
        retraining = _retraining(run, prepared, terminal)
    found = audit(
        fit, prepared.data, key=key, num_draws=num_draws, retraining=retraining
    )
    result = as_json(found.to_json())
    path = run.path / "audit.json"
    write_atomically(path, json.dumps(result, indent=2).encode())
    return found


def show_audit(found: Audit, terminal: Terminal) -> None:
    """The table of an audit, what the posterior spent, and the sentence.

    Args:
        found: the audit.
        terminal: for people.
    """
    rows = [relative.as_row() for relative in found.relatives]
    terminal.grid("Does this posterior do anything?", rows)
    terminal.say(found.spent_and_bought)
    terminal.say(found.sentence)


def _retraining(run: RunFolder, prepared: Prepared, terminal: Terminal) -> Retraining:
    """How twins of a run are trained: by its recipe, in folders of their own."""
    prepared = prepare(read_recipe(run), prepared.data)  # with what it started from
    # No twin has normal weights left to train, which are all that IVON moves.
    prepared = prepared._replace(recipe=recipe_of_points(prepared.recipe))

    def train_twin(model: AbstractRandomFunction, name: str) -> Fitted:
        path = run.path / _FOLDER / name.replace(" ", "-").replace("=", "is")
        recipe = json.loads(json.dumps(prepared.recipe.to_json()))  # no tuples
        config = {"twin": name, "recipe": recipe}
        folder, is_new = _folder(path, config)
        final = final_path(folder)
        if final.is_file():
            terminal.say(f"The twin {name} is in {path}")
            like = (model, prepared.likelihood, initial_state(model))
            return FittedModel(*load_model(final, like))
        terminal.say(
            f"Training the twin {name} in {path}, which takes about as long as the "
            "run; a second call goes on where this one ends"
        )
        interruption = Interruption()
        with handled(interruption):
            fit = train(
                prepared._replace(model=model),
                run=folder,
                resume=not is_new,
                callbacks=[ProgressBar(terminal.errors), interruption],
            )
            interruption.raise_if_met()
        save_final(folder, fit)
        return fit

    return Retraining(prepared.model, train_twin)


def _folder(path: Path, config: dict[str, Any]) -> tuple[RunFolder, bool]:
    """A twin's folder, and whether nothing was trained there; another's is replaced."""
    if (path / "config.json").is_file():
        with contextlib.suppress(ValueError):  # damaged
            folder = RunFolder.open(path)
            if folder.config == config:
                return folder, not checkpoints(folder.checkpoints)
    folder = RunFolder.create(path, config, overwrite=True)
    folder.complete()
    return folder, True
