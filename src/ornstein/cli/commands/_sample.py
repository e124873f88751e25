"""`ornstein sample`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from ..._files import lock_folder
from ...evaluation import fit_scores
from ...recipe import (
    SAMPLES,
    Keys,
    Prepared,
    SampleRecipe,
    check_data_there,
    check_kept,
    check_members,
    check_options,
    check_own,
    has_starts,
    keep_schema,
    load_run,
    origin_of_run,
    prepare,
    read_sample_recipe,
    run_sampling,
    starts_from_run,
)
from ...report import write_figures
from ...sampling import (
    ChainProgress,
    RunningPrediction,
    StuckChainError,
    is_stuck,
)
from ...train import Fit, RunFolder
from .._calls import entered
from .._diagnosis import diagnosis_of, say_diagnosis
from .._flags import flagged
from .._output import check_outside, inputs_of
from .._run_folder import (
    Untouched,
    check_new,
    free_folder,
    new_run,
    resumable,
    say_data,
    say_draws,
    say_finished,
    say_where,
    say_written,
)
from .._several import ALONE, Several, where_first_has
from .._terminal import Terminal, as_json
from ._report import leave_report

_TABLE = (
    "accuracy",
    "rmse",
    "rmse_in_target_units",
    "nll",
    "nll_in_target_units",
    "ece",
    "brier",
    "crps",
    "coverage_90",
    "epistemic_share",
    "r_hat",
    "ess_bulk",
    "ess_tail",
    "samples_diagnosed",
    "acceptance_rate",
    "num_divergent",
    "step_size",
    "num_parameters",
    "train_seconds",
)


@dataclasses.dataclass(frozen=True)
class Sample:
    """Sample a network's weights by Markov chains, and judge them on test rows.

    Defaults are those of a preset for the data and the kernel: `ornstein sample --data
    uci/yacht --help` shows that set's. Writes a run folder that `evaluate`, `predict`
    and --resume read.

    Attributes:
        recipe: what, on what, and how.
        out: the run folder; the first free runs/DATA-N by default.
        overwrite: replace a run that is there.
        resume: go on with a run that was interrupted; it keeps its own options.
        mesh: several devices that share the work, such as chains=4 or chains=2,data=2
            (rows, where every step sees them all).
        several: processes that share the work.
        json: print the result as JSON, and nothing else, on standard output.
        given: options of the recipe that were typed; the program fills it in.
    """

    recipe: Annotated[SampleRecipe, tyro.conf.arg(name="")] = dataclasses.field(
        default_factory=SampleRecipe
    )
    out: Path | None = None
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    resume: Path | None = None
    mesh: str | None = None
    several: Annotated[Several, tyro.conf.arg(name="")] = ALONE
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    given: Annotated[tuple[str, ...], tyro.conf.Suppress] = ()

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        if self.resume is not None:
            run = RunFolder.open(self.resume)
            with lock_folder(run.path):  # first: its recipe may be replaced
                recipe = read_sample_recipe(run)
                check_kept(run)
                check_data_there(run, recipe.recipe)
                prepared = prepare(recipe.recipe)
                keep_schema(run, prepared.data)
                check_own(run)
                say_data(prepared.data, terminal)
                say_finished(run, terminal)
                members = None
                if not has_starts(run.checkpoints / SAMPLES):
                    members = _members(recipe, prepared, None)
                return _carry_out(
                    run, recipe, prepared, members, terminal, command, guard=None
                )
        self.check()
        recipe = self.recipe
        data = recipe.data.data
        path = free_folder(data) if self.out is None else self.out
        others = starts_from_run(recipe.sampling.start_from)
        inputs = [*inputs_of(recipe.recipe), *([] if others is None else [others])]
        check_new(path, inputs, overwrite=self.overwrite)
        check_outside(path, data)
        prepared = prepare(recipe.recipe)
        say_data(prepared.data, terminal)
        recipe = recipe.for_rows(len(prepared.data.train))
        members = _members(recipe, prepared, self.given)
        config = {
            "command": command,
            "recipe": recipe.recipe.to_json(),
            "sampling": recipe.to_json(),
        }
        replaces = self.overwrite
        with new_run(self.out, config, data=data, overwrite=replaces) as (run, guard):
            keep_schema(run, prepared.data)
            say_where(run, terminal)
            return _carry_out(
                run, recipe, prepared, members, terminal, command, guard=guard
            )

    def check(self) -> None:
        """Refuse what cannot be carried out, before any data are read.

        Raises:
            ValueError: naming an option.
        """
        check_options(self.recipe, self.given)


def _members(
    recipe: SampleRecipe, prepared: Prepared, given: tuple[str, ...] | None
) -> Fit | None:
    """What another run fitted, if chains are to start at its members."""
    path = starts_from_run(recipe.sampling.start_from)
    if path is None:
        return None
    theirs = load_run(path).with_rows()
    members = Fit(theirs.fit.model, theirs.fit.likelihood, None, {})
    check_members(recipe, prepared, members, theirs.prepared, given)
    return members


def _seconds_of_finished(run: RunFolder) -> float | None:
    """What sampling took, where it has ended before: judging again adds nothing."""
    try:
        return run.read_result().get("train_seconds")
    except (FileNotFoundError, ValueError):  # not finished; or damaged, and made again
        return None


def _carry_out(
    run: RunFolder,
    recipe: SampleRecipe,
    prepared: Prepared,
    members: Fit | None,
    terminal: Terminal,
    command: str,
    *,
    guard: Untouched | None,
) -> dict[str, Any]:
    guards = [] if guard is None else [guard]
    folder = where_first_has(run.checkpoints / SAMPLES)
    options, data = recipe.sampling, prepared.data
    spent = _seconds_of_finished(run)
    with (
        resumable(run, guard, terminal, command="sample") as interruption,
        entered(run, command, seed=options.seed, is_first=guard is not None) as calls,
    ):
        callbacks = [ChainProgress(terminal.errors), calls, *guards, interruption]
        running = None
        if options.store_every > 1:
            how = {"store_every": options.store_every}
            running = RunningPrediction(data.test.x, data.test.y, **how)
        samples = run_sampling(
            recipe,
            prepared,
            folder,
            members=members,
            resume=guard is None,
            origin=origin_of_run(run),
            running=running,
            callbacks=callbacks,
        )
        interruption.raise_if_met()
        result: dict[str, Any] = {
            "model": "samples",
            "kernel": options.kernel,
            "network": options.network,
            "data": recipe.data.data,
            "train_seconds": calls.seconds if spent is None else spent,
            "num_chains": options.num_chains,
            "num_samples": options.num_samples,
            "kl_weight": None,
            "notes": [*data.notes, *samples.notes],
        }
        keys = Keys.of(prepared.recipe)
        scores, prediction = fit_scores(
            samples,
            data,
            num_draws=options.test_draws,
            test_key=keys.test,
            bound_key=keys.bound,
        )
        result |= scores
        if running is not None:
            result["all_samples"] = {
                "num_draws": running.num_draws,
                "nll": float(-np.mean(running.log_likelihood)),
            }
        draws = options.test_draws
        result["diagnosis"] = diagnosis_of(
            samples, prepared, prediction, scores, num_draws=draws
        )
        result["provenance"] = calls.provenance()
        result = as_json(result)
        written = [run.checkpoints / SAMPLES]
        written.append(run.write_result(result))
        written += write_figures(
            run.figures,
            samples,
            prediction,
            data,
            history={},
            key=keys.test,
            num_draws=options.test_draws,
        )
        written += leave_report(run, samples, prediction, data, terminal)
        say_draws(samples, options.test_draws, terminal)
        table = {name: result[name] for name in _TABLE if result.get(name) is not None}
        terminal.table(
            f"{options.kernel} on the test rows of {recipe.data.data}", table
        )
        if running is not None:
            nll = result["all_samples"]["nll"]
            terminal.say(
                f"NLL of all {running.num_draws:,} samples, of which one in "
                f"{options.store_every} is stored: {nll:.4f}"
            )
        say_diagnosis(result, terminal)
        say_written(run, written, terminal)
    if is_stuck(samples):
        note = flagged(samples.notes[0])
        raise StuckChainError(f"{note} What was sampled is in {run.path}.")
    return result
