"""`ornstein evaluate --audit`: whether a run's posterior does anything."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .._files import write_atomically
from .._types import PRNGKeyArray
from ..evaluation import Audit, Retraining, audit, check_claims
from ..functions import AbstractRandomFunction
from ..likelihood import AbstractLikelihood
from ..network import initial_state
from ..prediction import Fitted, FittedModel
from ..recipe import (
    Prepared,
    final_path,
    find_mode,
    is_sampled,
    mode_at_start,
    prepare,
    read_recipe,
    read_sample_recipe,
    save_final,
    train,
    with_points,
)
from ..sampling import ChainProgress
from ..train import ProgressBar, RunFolder, checkpoints, load_model
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
    if twins == "trained":
        make = _retraining_of_chains if is_sampled(run) else _retraining
        retraining = make(run, prepared, terminal)
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
    prepared = prepared._replace(recipe=with_points(prepared.recipe))

    def train_twin(model: AbstractRandomFunction, name: str) -> Fitted:
        recipe = prepared.recipe.to_json()
        twin = _Twin.of(run, name, recipe, (model, prepared.likelihood))

        def make(interruption: Interruption) -> Fitted:
            return train(
                prepared._replace(model=model),
                run=twin.folder,
                resume=not twin.is_new,
                callbacks=[ProgressBar(terminal.errors), interruption],
            )

        what = "the run; a second call goes on where this one ends"
        return twin.kept_or(make, what, terminal)

    return Retraining(prepared.model, train_twin)


def _retraining_of_chains(
    run: RunFolder, prepared: Prepared, terminal: Terminal
) -> Retraining:
    """The twin of chains: a mode of what they sample, under their own prior."""
    recipe = read_sample_recipe(run)

    def train_twin(model: AbstractRandomFunction, name: str) -> Fitted:
        twin = _Twin.of(run, name, recipe.to_json(), (model, prepared.likelihood))

        def make(interruption: Interruption) -> Fitted:
            callbacks = [ChainProgress(terminal.errors), interruption]
            return find_mode(recipe, prepared, callbacks=callbacks)

        return twin.kept_or(make, "one of its chains", terminal)

    return Retraining(mode_at_start(recipe, prepared), train_twin)


class _Twin(NamedTuple):
    """A twin's own folder, in that of the run.

    Attributes:
        name: the twin's.
        folder: where it is trained, and kept.
        is_new: whether nothing was trained there.
        like: model and likelihood, as they are read from a file.
    """

    name: str
    folder: RunFolder
    is_new: bool
    like: tuple[AbstractRandomFunction, AbstractLikelihood]

    @classmethod
    def of(
        cls,
        run: RunFolder,
        name: str,
        recipe: dict[str, Any],
        like: tuple[AbstractRandomFunction, AbstractLikelihood],
    ) -> "_Twin":
        path = run.path / _FOLDER / name.replace(" ", "-").replace("=", "is")
        recipe = json.loads(json.dumps(recipe))  # no tuples
        config = {"twin": name, "of": type(like[0]).__name__, "recipe": recipe}
        return cls(name, *_folder(path, config), like)

    def kept_or(
        self, make: Callable[[Interruption], Fitted], what: str, terminal: Terminal
    ) -> Fitted:
        """The twin that is there, or what `make` trains, in about as long as `what`."""
        final = final_path(self.folder)
        if final.is_file():
            terminal.say(f"The twin {self.name} is in {self.folder.path}")
            model, likelihood = self.like
            like = (model, likelihood, initial_state(model))
            return FittedModel(*load_model(final, like))
        terminal.say(
            f"Training the twin {self.name} in {self.folder.path}, which takes about "
            f"as long as {what}"
        )
        interruption = Interruption()
        with handled(interruption):
            fit = make(interruption)
            interruption.raise_if_met()
        save_final(self.folder, fit)
        return fit


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
