"""`ornstein train`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import tyro

from ..._files import lock_folder
from ...evaluation import fit_scores
from ...prediction import Prediction
from ...recipe import (
    HELD_OUT,
    MAX_CHAIN_ROWS,
    MODELS,
    POINTS,
    Keys,
    Prepared,
    PresetName,
    Recipe,
    SampleRecipe,
    check_data_there,
    check_kept,
    check_options,
    check_tuned,
    hand_over,
    is_handed_over,
    is_sampled,
    keep_schema,
    keep_tuning,
    kept_tuning,
    kl_weight_of,
    load_data,
    prepare,
    read_recipe,
    save_final,
    train,
    tune_recipe,
)
from ...report import write_figures
from ...train import Fit, ProgressBar, RunFolder
from .._calls import entered
from .._diagnosis import diagnosis_of, say_diagnosis
from .._output import check_outside, inputs_of
from .._run_folder import (
    Untouched,
    check_new,
    free_folder,
    new_run,
    resumable,
    say_data,
    say_finished,
    say_joint_nll,
    say_where,
    say_written,
)
from .._several import ALONE, Several
from .._terminal import Terminal, as_json
from ._report import leave_report
from ._sample import Sample

_TABLE = (
    "accuracy",
    "rmse",
    "rmse_in_target_units",
    "nll",
    "joint_nll",
    "nll_in_target_units",
    "nll_errors",
    "top_3_accuracy",
    "top_5_accuracy",
    "ece",
    "brier",
    "crps",
    "coverage_90",
    "entropy",
    "aleatoric",
    "epistemic",
    "epistemic_share",
    "disagreement",
    "pairwise_kl",
    "elbo",
    "kl_path",
    "kl_initial",
    "kl_weights",
    "kl_mixture",
    "kl_mixture_se",
    "kl_nodes",
    "kl_weight",
    "noise_share",
    "drift_gain",
    "drift_gain_se",
    "num_parameters",
    "num_skipped",
    "train_seconds",
)


@dataclasses.dataclass(frozen=True)
class Train:
    """Train a Bayesian network, or a model of sequences, and judge it on test rows.

    A table with --time COLUMN holds sequences: --model is then latent-sde by default.
    Other tables are sampled by Markov chains, as `ornstein sample` does, unless --model
    names a family.
    Defaults are those of a preset for the data, the model and the network: `ornstein
    train --data mnist --model ensemble --help` shows an ensemble's on MNIST. Writes a
    run folder that `evaluate`, `predict` and --resume read.

    Attributes:
        recipe: what, on what, and how.
        preset: where the defaults come from: cpu is minutes on two cores, paper is the
            architecture and budget of the paper.
        tune: search these first, joined by commas: lr, noise-lr, components, sigma. By
            the validation rows; without any, a tenth of the training rows is held out
            of the search alone, and the run trains on all of them.
        tune_epochs: passes over the data in each trial; a quarter of --epochs.
        out: the run folder; the first free runs/DATA-N by default.
        overwrite: replace a run that is there.
        resume: go on with a run that was interrupted; it keeps its own options.
        mesh: several devices that share the work, such as data=4 (rows of a batch) or
            data=2,fsdp=2 (parameters too): the same result on each.
        several: processes that share the work.
        json: print the result as JSON, and nothing else, on standard output.
        given: options of the recipe that were typed; the program fills it in.
    """

    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = dataclasses.field(
        default_factory=Recipe
    )
    preset: PresetName = "cpu"
    tune: str | None = None
    tune_epochs: int | None = None
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
            return self._resume(self.resume, terminal, command)
        self.check()
        if is_handed_over(self.recipe):
            return self._hand_over(terminal, command)
        data = self.recipe.data.data
        path = free_folder(data) if self.out is None else self.out
        check_new(path, inputs_of(self.recipe), overwrite=self.overwrite)
        check_outside(path, data)
        prepared = prepare(self.recipe)
        say_data(prepared.data, terminal)
        table = None
        if self.tune is not None:
            terminal.say(f"Tuning {self.tune}{_held_out(prepared)}")
            recipe, tuning = tune_recipe(
                prepared, self._tuned(), trial_epochs=self.tune_epochs
            )
            table = tuning.table
            terminal.grid("Trials, best first", table)
            prepared = prepare(recipe, prepared.data)
        config = {"command": command, "recipe": prepared.recipe.to_json()}
        replaces = self.overwrite
        with new_run(self.out, config, data=data, overwrite=replaces) as (run, guard):
            keep_schema(run, prepared.data)
            if table is not None:
                keep_tuning(run, as_json(table))
            say_where(run, terminal)
            return _carry_out(run, prepared, terminal, command, guard=guard)

    def check(self) -> None:
        """Refuse what cannot be carried out, before any data are read.

        Raises:
            ValueError: naming an option.
        """
        check_options(self.recipe, self.given)
        model = self.recipe.model.model
        if is_handed_over(self.recipe):
            if self.tune is not None or self.tune_epochs is not None:
                raise ValueError(
                    f"--tune does nothing for --model {model}: name another --model, "
                    "such as ensemble, or leave it out."
                )
            return
        if self.tune is None and self.tune_epochs is not None:
            raise ValueError(
                "--tune-epochs does nothing without --tune: give --tune lr, or leave "
                "it out."
            )
        if self.tune_epochs is not None and self.tune_epochs < 1:
            raise ValueError(f"--tune-epochs must be positive, got {self.tune_epochs}.")
        if self.tune is not None:
            check_tuned(self.recipe, self._tuned())

    def _tuned(self) -> list[str]:
        """Names of what is searched first."""
        return [name.strip() for name in (self.tune or "").split(",")]

    def _resume(self, path: Path, terminal: Terminal, command: str) -> dict[str, Any]:
        run = RunFolder.open(path)
        if is_sampled(run):
            chains = Sample(
                resume=path, mesh=self.mesh, several=self.several, json=self.json
            )
            return chains.run(terminal, command)
        with lock_folder(run.path):  # first: its recipe may be replaced
            recipe = read_recipe(run)
            check_kept(run)
            check_data_there(run, recipe)
            prepared = prepare(recipe)
            keep_schema(run, prepared.data)
            say_data(prepared.data, terminal)
            say_finished(run, terminal)
            return _carry_out(run, prepared, terminal, command, guard=None)

    def _hand_over(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry out what chains, or auto, mean once the data are read."""
        model = self.recipe.model.model
        recipe = hand_over(self.recipe, load_data(self.recipe))
        if isinstance(recipe, SampleRecipe):
            options = recipe.sampling
            terminal.say(
                f"--model {model}: {options.num_chains} chains of {options.kernel}, as "
                "`ornstein sample` has them, with more options"
            )
            chains = Sample(
                recipe, self.out, self.overwrite, mesh=self.mesh, json=self.json
            )
            return chains.run(terminal, command)
        terminal.say(
            f"--model {model}: {recipe.model.model}, for more than {MAX_CHAIN_ROWS:,} "
            "training rows; --model chains samples them all the same"
        )
        return dataclasses.replace(self, recipe=recipe).run(terminal, command)


def _held_out(prepared: Prepared) -> str:
    """Which rows a search is judged by."""
    rows = prepared.data.validation
    if rows is not None:
        return f" on {len(rows)} validation rows"
    return (
        f" on {HELD_OUT:.0%} of the training rows; the run then trains on all of them"
    )


def _carry_out(
    run: RunFolder,
    prepared: Prepared,
    terminal: Terminal,
    command: str,
    *,
    guard: Untouched | None,
) -> dict[str, Any]:
    tuning = kept_tuning(run)
    guards = [] if guard is None else [guard]
    seed = prepared.recipe.training.seed
    with (
        resumable(run, guard, terminal, command="train") as interruption,
        entered(run, command, seed=seed, is_first=guard is not None) as calls,
    ):
        callbacks = [ProgressBar(terminal.errors), calls, *guards, interruption]
        fit = train(prepared, run=run, resume=guard is None, callbacks=callbacks)
        interruption.raise_if_met()
        written = [save_final(run, fit)]  # first: judging it may fail
        result, prediction = _judge(fit, prepared)
        draws = prepared.recipe.training.test_draws
        found = diagnosis_of(fit, prepared, prediction, result, num_draws=draws)
        result |= {"diagnosis": found}
        result |= {} if tuning is None else {"tuning": tuning}
        result["provenance"] = calls.provenance()
        result = as_json(result)
        written.append(run.write_result(result))
        written += _figures(run, fit, prediction, prepared)
        written += leave_report(run, fit, prediction, prepared.data, terminal)
        _report(result, run, written, terminal)
        for note in fit.notes:
            terminal.say(note)
        return result


def _judge(fit: Fit, prepared: Prepared) -> tuple[dict[str, Any], Prediction]:
    recipe, data, _, _ = prepared
    options, keys = recipe.training, Keys.of(recipe)
    scores, prediction = fit_scores(
        fit,
        data,
        num_draws=options.test_draws,
        test_key=keys.test,
        bound_key=keys.bound,
    )
    result: dict[str, Any] = {
        "model": recipe.model.model,
        **_network(recipe),
        "data": recipe.data.data,
        "train_seconds": float(fit.history["seconds"][-1]),
        "num_epochs": len(fit.history["seconds"]),
        **_objective(recipe, has_bound=fit.model.posterior_parts().has_bound),
        "kl_weight": kl_weight_of(recipe),
        **_skipped(fit),
        "weights": _weights(fit, recipe),
        "notes": [*data.notes, *fit.notes],
    }
    return result | scores, prediction


def _objective(recipe: Recipe, *, has_bound: bool = True) -> dict[str, Any]:
    """What was climbed, and with how many draws: `elbo` is the plain bound's."""
    options = recipe.training
    name = "importance-weighted" if options.importance_weighted else "elbo"
    if recipe.model.model in ("map", "laplace"):
        name = "log joint density"
    elif not has_bound:
        name = "log likelihood"
    num_draws = 1 if recipe.model.model in POINTS else options.num_draws
    return {"objective": name, "training_draws": num_draws}


def _weights(fit: Fit, recipe: Recipe) -> str:
    """Which ones are judged: with patience, of the epoch that was best."""
    options = recipe.training
    of_epoch = "last" if options.ema is None else "running mean"
    if options.patience is None or fit.epoch in (None, len(fit.history["seconds"])):
        return of_epoch
    is_mean = "" if options.ema is None else "running mean, "
    return f"{is_mean}best epoch: {fit.epoch}"


def _skipped(fit: Fit) -> dict[str, int]:
    """Batches that were no numbers, of runs that skip them."""
    counted = fit.history.get("num_skipped")
    return {} if counted is None else {"num_skipped": int(counted.sum())}


def _network(recipe: Recipe) -> dict[str, str]:
    """The plain network, of families that have one."""
    has_one = "network" in MODELS[recipe.model.model].options
    return {"network": recipe.network.network} if has_one else {}


def _figures(
    run: RunFolder, fit: Fit, prediction: Prediction, prepared: Prepared
) -> list[Path]:
    return write_figures(
        run.figures,
        fit,
        prediction,
        prepared.data,
        history=fit.history,
        key=Keys.of(prepared.recipe).test,
        num_draws=prepared.recipe.training.test_draws,
        has_bound=prepared.model.posterior_parts().has_bound,
    )


def _report(
    result: dict[str, Any], run: RunFolder, written: list[Path], terminal: Terminal
) -> None:
    table = {name: result[name] for name in _TABLE if result.get(name) is not None}
    terminal.table(f"{result['model']} on the test rows of {result['data']}", table)
    if "without_drift" in result:
        zeroed = result["without_drift"]
        names = [name for name in _TABLE if name in zeroed]
        terminal.table(
            "the same with the drift network zeroed",
            {name: zeroed[name] for name in names},
        )
    if result["kl_weight"] not in (None, 1):
        has_bound = result["objective"] in ("elbo", "importance-weighted")
        terminal.say(
            f"Trained at KL weight {result['kl_weight']:g}: not the bound on the "
            "evidence, which `elbo` is."
            if has_bound
            else f"Trained with {result['kl_weight']:g} of the energy of its prior."
        )
    say_joint_nll(result, terminal)
    if "kl_mixture" in result:
        terminal.say(
            "`elbo` has the KL of the mixture of nodes, and so is a bound on the "
            "evidence; kl_nodes is that of the components' mean."
        )
    say_diagnosis(result, terminal)
    say_written(run, written, terminal)
