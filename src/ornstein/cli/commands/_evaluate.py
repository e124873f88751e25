"""`ornstein evaluate`."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import tyro

from ... import sde
from ..._files import lock_folder, write_atomically
from ..._processes import is_first
from ..._types import Float
from ...data import Data, load
from ...evaluation import (
    check_claims,
    corruption_scores,
    dial,
    dial_settings,
    entropy_correlation,
    evaluate_ood,
    fit_scores,
    inputs_like,
    noise_sweep,
    ood_scores,
)
from ...functions import has_integrator, with_solver
from ...prediction import Fitted, FittedModel, predict
from ...recipe import (
    SOLVERS,
    Keys,
    Prepared,
    SolverName,
    TrainedRun,
    build_stepsize,
    first_rows,
    kl_weight_of,
    load_run,
    provenance,
)
from ...train import RunFolder
from .._audit import TwinsName, audit_run, show_audit
from .._diagnosis import diagnosis_of, recorded, say_diagnosis
from .._later_rows import evaluate_rows
from .._run_folder import check_draws, say_draws, say_joint_nll, say_notes
from .._several import ALONE, Several
from .._terminal import Terminal, as_json, shown


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Judge a trained run on its test rows again, with other numerics if you like.

    Attributes:
        run_folder: what `ornstein train` or `sample` wrote.
        test: judge it by the rows of this file instead, such as later ones, which have
            the columns of the training file and its target (a folder of images: a
            sub-folder for each class); needs the run folder alone.
        separator: for --test: between the cells of a .csv; seen from its header by
            default.
        solver: in place of the run's; the same weights.
        dt: the solver's step in place of the run's; the same weights.
        rtol: adaptive steps with this relative tolerance.
        atol: and this absolute one.
        draws: functions averaged over; the run's number by default.
        ood: also how well uncertainty tells noise, and rotated images, from test rows.
        ood_data: also how well it tells the test rows of another data set, brought to
            the same form.
        noise_sweep: also the entropy, accuracy and NLL of test rows that turn into
            noise: Gaussian, and salt and pepper for images.
        audit: also whether the posterior does anything: put back to its prior part by
            part, and beside twins trained without noise and with q = p, which takes
            about twice as long as the run; finished twins are kept in its folder. The
            twin of chains is a mode of what they sample, as long as one of them.
        audit_twins: for --audit: none leaves the trained twins out.
        corruptions: also errors and calibration under the corruptions of CIFAR-10-C at
            five severities, for images: its own files from --data-dir, or generated.
        corruption_rows: of the first test rows, for --corruptions; all by default.
        dial: also scores and drift evaluations at each of these steps, all along one
            path, such as --dial 0.5 0.25 0.1.
        dial_rtol: also scores and drift evaluations at each of these relative
            tolerances.
        mesh: several devices that share the work, such as data=4 (rows) or draws=4.
        several: processes that share the work.
        json: print the result as JSON, and nothing else, on standard output.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    test: Path | None = None
    separator: str | None = None
    solver: SolverName | None = None
    dt: float | None = None
    rtol: float | None = None
    atol: float | None = None
    draws: int | None = None
    ood: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    ood_data: str | None = None
    noise_sweep: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    audit: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    audit_twins: TwinsName = "trained"
    corruptions: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    corruption_rows: int | None = None
    dial: tuple[float, ...] = ()
    dial_rtol: tuple[float, ...] = ()
    mesh: str | None = None
    several: Annotated[Several, tyro.conf.arg(name="")] = ALONE
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        with lock_folder(RunFolder.open(self.run_folder).path, is_shared=True):
            return self._judge(terminal, command)

    def _judge(self, terminal: Terminal, command: str) -> dict[str, Any]:
        started = time.monotonic()
        trained = load_run(self.run_folder)
        self._check_test()
        check_draws(self.draws)
        if self.test is not None:
            return self._judge_others(trained, self.test, terminal, command)
        trained = trained.with_rows()
        run, prepared, fit = trained.folder, trained.prepared, trained.fit
        recipe, data = prepared.recipe, prepared.data
        if data.task == "series":
            self._check_series(data)
        is_sampled = fit.model.posterior_parts().has_stored_samples
        fit = self._turned(trained)
        if self.noise_sweep and data.task != "classification":
            raise ValueError(
                f"--noise-sweep is about the entropy of classes, and the targets of "
                f"{data.name} are numbers: leave it out."
            )
        draws = recipe.training.test_draws if self.draws is None else self.draws
        self._check_corruptions(data)
        self._check_audit(fit, draws)
        if self.dial or self.dial_rtol:  # what cannot be turned stops it here
            dial_settings(fit.model, dts=self.dial, rtols=self.dial_rtol)
        others = self._other_inputs(prepared)
        say_draws(fit, draws, terminal)
        keys = Keys.of(recipe)
        notes = list(trained.notes)
        result: dict[str, Any] = {
            "run": str(run.path),
            "model": "samples" if is_sampled else recipe.model.model,
            "data": recipe.data.data,
            "kl_weight": None if is_sampled else kl_weight_of(recipe),
            "num_draws": draws,
            "notes": notes,
        }
        scores, prediction = fit_scores(
            fit, data, num_draws=draws, test_key=keys.test, bound_key=keys.bound
        )
        result |= scores
        history = {} if is_sampled else recorded(run)
        result["diagnosis"] = diagnosis_of(
            fit, prepared, prediction, scores, num_draws=draws, history=history
        )
        key = jax.random.fold_in(keys.test, draws)
        ood: dict[str, Any] = {}
        if self.ood:
            ood |= ood_scores(fit, data, prediction, num_draws=draws, key=key)
        if others is not None:
            other_key = jax.random.fold_in(key, 1)
            outside = predict(fit, others, key=other_key, num_draws=draws)
            ood[f"{self.ood_data}"] = evaluate_ood(prediction, outside)
        if ood:
            result["ood"] = ood
        if self.noise_sweep:
            sweep_key = jax.random.fold_in(key, 2)
            rows = noise_sweep(fit, data.test, key=sweep_key, num_draws=draws)
            correlation = entropy_correlation(rows)
            result["noise_sweep"] = {"rows": rows, "entropy_correlation": correlation}
        if self.corruptions:
            result["corruptions"] = corruption_scores(
                fit,
                data,
                key=jax.random.fold_in(key, 3),
                num_draws=draws,
                num_rows=self.corruption_rows,
                data_dir=recipe.data.data_dir,
                say=terminal.say,
            )
        found = None
        if self.audit:
            how = {"num_draws": draws, "key": keys.test, "twins": self.audit_twins}
            found = audit_run(run, prepared, fit, terminal, **how)
            result["audit"] = found.to_json()
        if self.dial or self.dial_rtol:
            result["dial"] = dial(
                fit,
                data.test,
                key=keys.test,
                num_draws=draws,
                dts=self.dial,
                rtols=self.dial_rtol,
            )
        result["provenance"] = provenance(
            command,
            seed=recipe.training.seed,
            seconds=time.monotonic() - started,
        )
        result = as_json(result)
        say_notes(notes, terminal)
        flat = {k: v for k, v in result.items() if isinstance(v, float | int)}
        for name, scores in result.get("ood", {}).items():
            flat |= {f"{name} {score}": value for score, value in scores.items()}
        terminal.table(f"{run.path} on the test rows of {data.name}", flat)
        say_joint_nll(result, terminal)
        if "dial" in result:
            terminal.grid("The solver's steps and tolerances", result["dial"])
        if self.noise_sweep:
            sweep = result["noise_sweep"]
            terminal.grid("Test rows that turn into noise", sweep["rows"])
            for noise, rho in sweep["entropy_correlation"].items():
                terminal.say(f"Spearman's rho of entropy and {noise} noise: {rho:.3f}")
        if self.corruptions:
            _show_corruptions(result["corruptions"], terminal)
        if found is not None:
            show_audit(found, terminal)
        say_diagnosis(result, terminal)
        path = _write(run, result)
        terminal.say(f"Wrote {path}")
        return result

    def _judge_others(
        self, trained: TrainedRun, test: Path, terminal: Terminal, command: str
    ) -> dict[str, Any]:
        """The run on the rows of another file."""
        draws = trained.prepared.recipe.training.test_draws
        draws = draws if self.draws is None else self.draws
        turned = dataclasses.replace(trained, fit=self._turned(trained))
        say_draws(turned.fit, draws, terminal)
        how = {"num_draws": draws, "separator": self.separator, "command": command}
        return evaluate_rows(turned, test, terminal, **how)

    def _turned(self, trained: TrainedRun) -> Fitted:
        """The fit with the numerics that were asked for."""
        fit = trained.fit
        if not has_integrator(fit.model) and self._turns_the_solver():
            is_sampled = fit.model.posterior_parts().has_stored_samples
            what = "samples of a plain network" if is_sampled else "a plain network"
            raise ValueError(
                f"{trained.folder.path} holds {what}, which has no "
                "solver: leave --solver, --dt, --rtol, --atol and --dial out."
            )
        turned = self._with_solver(fit.model)
        # Samples are their own fit: each has its own scale of the likelihood.
        is_own = fit.model is fit
        return turned if is_own else FittedModel(turned, fit.likelihood, fit.state)

    def _check_test(self) -> None:
        """What goes with the rows of another file, and what only with them."""
        if self.test is None and self.separator is not None:
            raise ValueError(
                "--separator is of the file that --test names: give that, too, or "
                "leave it out."
            )
        others = {
            "ood": self.ood,
            "ood-data": self.ood_data is not None,
            "noise-sweep": self.noise_sweep,
            "audit": self.audit,
            "audit-twins": self.audit_twins != "trained",
            "corruptions": self.corruptions,
            "corruption-rows": self.corruption_rows is not None,
            "dial": bool(self.dial),
            "dial-rtol": bool(self.dial_rtol),
        }
        given = [name for name, is_given in others.items() if is_given]
        if self.test is not None and given:
            raise ValueError(
                f"--{given[0]} is about the run's own test rows, and --test judges it "
                "by those of another file: leave one of them out."
            )

    def _check_series(self, data: Data) -> None:
        """What there is for rows of one input alone."""
        rows_alone = {
            "dt": (self.dt, "their solves step from one time to the next"),
            "dial": (self.dial, "their solves step from one time to the next"),
            "dial-rtol": (self.dial_rtol, "give --rtol and --atol for one tolerance"),
            "ood": (self.ood, "noise and rotations are of vectors and images"),
            "ood-data": (self.ood_data, "other data have other times and features"),
        }
        for name, (given, reason) in rows_alone.items():
            if given:
                raise ValueError(
                    f"--{name} is not for sequences, which {data.name} holds: {reason}."
                )

    def _check_audit(self, fit: Fitted, draws: int) -> None:
        if self.audit_twins != "trained" and not self.audit:
            raise ValueError(
                "--audit-twins says which twins --audit trains: give that, too, or "
                "leave it out."
            )
        if not self.audit:
            return
        if self._turns_the_solver():
            raise ValueError(
                "--audit compares the run with twins that solve as it does: leave "
                "--solver, --dt, --rtol, --atol and --dial out."
            )
        check_claims(fit.model)
        if draws < 2:
            raise ValueError(
                f"--audit asks how much other draws would change, which {draws} cannot "
                "say: give --draws 2 or more."
            )

    def _check_corruptions(self, data: Data) -> None:
        if self.corruption_rows is not None and not self.corruptions:
            raise ValueError(
                "--corruption-rows is the number of rows for --corruptions: give that, "
                "too, or leave it out."
            )
        if self.corruptions and data.task != "classification":
            raise ValueError(
                f"--corruptions is about classes of images, and the targets of "
                f"{data.name} are numbers: leave it out."
            )
        if self.corruptions and len(data.example_shape) != 3:
            raise ValueError(
                f"--corruptions is about images, and {data.name} has rows of numbers: "
                "leave it out."
            )
        rows = self.corruption_rows
        if rows is not None and not 1 <= rows <= len(data.test):
            raise ValueError(
                f"--corruption-rows {rows} is not among the {len(data.test)} test rows "
                f"of the run on {data.name}: give a number from 1 to that."
            )

    def _turns_the_solver(self) -> bool:
        numerics = (self.solver, self.dt, self.rtol, self.atol)
        return any(n is not None for n in numerics) or bool(self.dial or self.dial_rtol)

    def _other_inputs(self, prepared: Prepared) -> Float[np.ndarray, "..."] | None:
        """Test rows of --ood-data as the model takes them, no more than the run's."""
        if self.ood_data is None:
            return None
        options = prepared.recipe.data
        other = load(self.ood_data, data_dir=options.data_dir)
        if options.test_rows is not None:
            other = first_rows(other, None, min(options.test_rows, len(other.test)))
        return inputs_like(other, prepared.data)

    def _with_solver(self, model: Any) -> Any:
        stepsize: sde.AbstractStepsize | None = None
        if (self.dt, self.rtol, self.atol) != (None, None, None):
            if self.dt is not None and (self.rtol, self.atol) != (None, None):
                raise ValueError(
                    "--dt is for fixed steps and --rtol and --atol are for adaptive "
                    "ones: give one or the other."
                )
            dt = 0.1 if self.dt is None else self.dt
            stepsize = build_stepsize(dt, self.rtol, self.atol)
        if stepsize is None and self.solver is None:
            return model
        # Backprop goes with everything, and prediction differentiates nothing.
        solver = None if self.solver is None else SOLVERS[self.solver]()
        return with_solver(
            model, solver=solver, stepsize=stepsize, gradient=sde.Backprop()
        )


def _show_corruptions(found: dict[str, Any], terminal: Terminal) -> None:
    scores = ("error", "nll", "ece")
    clean = {name: found["clean"][name] for name in scores}
    by_corruption = [
        {"corruption": row["corruption"], **{name: row[name] for name in scores}}
        for row in found["per_corruption"]
    ]
    columns = [column for name in scores for column in (name, f"{name}_std")]
    by_severity = [
        {name: row[name] for name in ("severity", *columns)}
        for row in found["per_severity"]
    ]
    terminal.grid(
        "Corruptions, means over severities",
        [{"corruption": "none", **clean}, *by_corruption],
    )
    terminal.grid("Severities, means and deviations over corruptions", by_severity)
    terminal.say(
        f"Mean corruption error {found['mce']:.4f} on {found['num_rows']} rows, "
        f"{shown(found['mce_relative_to_clean'])} times the clean error"
        f"{' (generated corruptions)' if found['generated'] else ''}"
    )


def _write(run: RunFolder, result: dict[str, Any]) -> Path:
    """Beside the run's own result, which is of its own numerics."""
    path = run.path / "evaluation.json"
    if is_first():
        write_atomically(path, json.dumps(result, indent=2).encode())
    return path
