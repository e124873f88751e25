"""A point w₀ that carries the fit, while the posterior over paths is the prior."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._sentence import Choice, Sentence
from ..functions import AbstractRandomFunction, SDEBlock, WeightDrift
from ._base import NOT_CHECKED, CheckResult
from ._evidence import SOME_SKILL, Evidence
from ._num_data import num_data_of

IDLE = 0.01
"""Nats a row. Paths that do something gain tenths (0.2 to 0.9 on `toy/cos`); a drift
that gains less than a hundredth, and pays as little KL, does nothing one would see."""


def point_start(evidence: Evidence) -> CheckResult:
    """Zero NN_φ, keep the draws: does anything change?"""
    posterior = evidence.posterior
    if not posterior.has_noisy_path or "drift" not in posterior.ablations:
        return NOT_CHECKED
    without = _zeroed_in_place(evidence.model, otherwise=posterior.ablations["drift"])
    zeroed = evidence.draw(without).prediction
    rows = evidence.log_prob - np.asarray(zeroed.log_prob(evidence.y), np.float64)
    gain = float(rows.mean())
    error = float(rows.std(ddof=1)) / math.sqrt(rows.size) if rows.size > 1 else 0.0
    kl = evidence.draws.terms["kl_path"]
    numbers = {"drift_gain": gain, "drift_gain_se": error, "kl_path": kl}
    is_idle = abs(gain) < max(IDLE, 2 * error) and kl < IDLE * num_data_of(evidence)
    is_carried = posterior.starts_at_points and evidence.skill > SOME_SKILL
    if not (is_carried and is_idle):
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "Zeroing the drift network changes the log likelihood by {:.2g} ± {:.1g} "
            "nats a row, and the path KL is {:.2g} nats: the point w0 carries the fit, "
            "and the posterior of the path is its prior. Give w0 a distribution ({}, "
            "trained with a KL warm-up of 0.4) or the drift more to see ({}).",
            gain,
            error,
            kl,
            Choice("`start_width=0.02`", "{start} gaussian {start_width} 0.02"),
            Choice("`num_inducing=8`", "{num_inducing} 8"),
        ),
    )


def _zeroed_in_place(
    model: AbstractRandomFunction, *, otherwise: AbstractRandomFunction
) -> AbstractRandomFunction:
    """The package's own drifts with zeros in their last arrays: compiles nothing."""
    is_own = lambda node: isinstance(node, WeightDrift)
    is_block = lambda node: isinstance(node, SDEBlock)
    nodes = jax.tree.leaves(model, is_leaf=is_block)
    if not all(is_own(node.drift) for node in nodes if is_block(node)):
        return otherwise
    last = lambda drift: (drift.writes, drift.biases)
    zero = lambda tree: jax.tree.map(jnp.zeros_like, tree)
    zeroed = lambda drift: eqx.tree_at(last, drift, replace_fn=zero)
    each = lambda node: zeroed(node) if is_own(node) else node
    return jax.tree.map(each, model, is_leaf=is_own)
