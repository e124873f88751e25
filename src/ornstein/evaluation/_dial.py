"""The dial: speed against precision at prediction time, without training again.

Xu et al. (2022), figures 6a, 11 and 12: scores and drift evaluations of one trained
network over its solver's step or tolerance.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import PRNGKeyArray
from ..data import Split
from ..functions import Draw, has_integrator, map_draws, with_solver
from ..network import in_inference
from ..prediction import Fitted, FittedByDraw, FittedModel, predict
from ..sde import Adaptive, Backprop, Fixed, Heun
from ._evaluate import evaluate

_Model = TypeVar("_Model")

_COST_ROWS = 128
"""Drift evaluations are counted on this many rows, which adaptive steps depend on."""

_KEPT = ("accuracy", "rmse", "nll", "nll_se", "ece", "brier", "epistemic_share")


def dial(
    fit: Fitted,
    split: Split,
    *,
    key: PRNGKeyArray,
    num_draws: int,
    dts: Sequence[float] = (),
    rtols: Sequence[float] = (),
    say: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Scores and drift evaluations of a fit over steps, and over tolerances.

    All fixed steps follow one path: their increments are sums of those of the finest
    grid that they share. Adaptive steps (`Heun`) follow another, finer than any of
    theirs.

    Args:
        fit: whose model solves differential equations.
        split: rows to score.
        key: which functions.
        num_draws: functions averaged over.
        dts: steps; each divides depth, which is 1.
        rtols: relative tolerances, which absolute ones equal.
        say: hears a line for each setting.

    Returns:
        For each setting `dt` or `rtol`, `num_drift_evaluations` (a draw's mean, for a
        batch of at most 128 rows) and scores.

    Raises:
        TypeError: a model without a differential equation.
        ValueError: a step that does not divide depth.
    """
    if isinstance(fit, FittedByDraw):
        fit = fit.for_draws(num_draws)
    rows = []
    for name, model in dial_settings(fit.model, dts=dts, rtols=rtols):
        turned = FittedModel(model, fit.likelihood, fit.state)
        cost = _evaluations(turned, split, key=key, num_draws=num_draws)
        prediction = predict(turned, split.x, key=key, num_draws=num_draws)
        scores = evaluate(prediction, split.y)
        kept = {score: scores[score] for score in _KEPT if score in scores}
        rows.append(name | {"num_drift_evaluations": cost} | kept)
        ((what, value),) = name.items()
        say(f"{what} {value:g}: {cost:g} drift evaluations, NLL {kept['nll']:.4f}")
    return rows


def dial_settings(
    model: _Model, *, dts: Sequence[float] = (), rtols: Sequence[float] = ()
) -> list[tuple[dict[str, float], _Model]]:
    """The model at each setting of `dial`, which has what it may raise.

    Args:
        model: solves differential equations.
        dts: steps.
        rtols: relative tolerances.
    """
    if not has_integrator(model):
        raise TypeError(
            "The dial turns the solver of a differential equation, which "
            f"`{type(model).__name__}` has none of: give an SDE-BNN or ODE network."
        )
    finest = common_step(dts)
    settings: list[tuple[dict[str, float], dict[str, Any]]] = [
        ({"dt": dt}, {"stepsize": Fixed(dt, noise_dt=finest)}) for dt in dts
    ]
    settings += [
        ({"rtol": tol}, {"stepsize": Adaptive(tol, tol), "solver": Heun()})
        for tol in rtols
    ]
    return [
        (name, with_solver(model, gradient=Backprop(), **choice))
        for name, choice in settings
    ]


def common_step(dts: Sequence[float]) -> float | None:
    """The largest step that all of these are whole multiples of.

    Args:
        dts: steps that divide 1.

    Raises:
        ValueError: for one that does not.
    """
    if not dts:
        return None
    counts = [round(1 / dt) if dt > 0 else 0 for dt in dts]
    for dt, count in zip(dts, counts, strict=True):
        if count < 1 or not math.isclose(dt * count, 1.0, rel_tol=1e-4):
            raise ValueError(
                f"A step must divide depth, which is 1, and dt = {dt} does not: give "
                "steps such as 0.5, 0.25 or 0.2."
            )
    return float(Fraction(1, math.lcm(*counts)))


def _evaluations(
    fit: FittedModel, split: Split, *, key: PRNGKeyArray, num_draws: int
) -> float:
    x = jnp.asarray(split.x[:_COST_ROWS])
    return float(np.mean(_counts(fit, x, key, num_draws=num_draws)))


@eqx.filter_jit
def _counts(fit: FittedModel, x: jax.Array, key: PRNGKeyArray, *, num_draws: int):
    def evaluations(draw: Draw) -> jax.Array:
        assert draw.report is not None
        return draw.report.num_drift_evaluations

    model, state = in_inference(fit.model), fit.state
    return map_draws(evaluations, model, x, key=key, num_draws=num_draws, state=state)
