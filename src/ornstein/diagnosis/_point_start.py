"""A point w₀ that carries the fit, while the posterior over paths is the prior."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..functions import SDEBNN, SDEBlock, WeightDrift, without_drift
from ._base import NOT_CHECKED, Checked
from ._evidence import SOME_SKILL, Case
from ._num_data import num_data_of

IDLE = 0.01
"""Nats a row. Paths that do something gain tenths (0.2 to 0.9 on `toy/cos`); a drift
that gains less than a hundredth, and pays as little KL, does nothing one would see."""


def point_start(case: Case) -> Checked:
    """Zero NN_φ, keep the draws: does anything change?"""
    if not isinstance(case.model, SDEBNN) or not case.noisy_blocks:
        return NOT_CHECKED
    zeroed = case.draw(_without_drift(case.model)).prediction
    rows = case.log_prob - np.asarray(zeroed.log_prob(case.y), np.float64)
    gain = float(rows.mean())
    error = float(rows.std(ddof=1)) / math.sqrt(rows.size) if rows.size > 1 else 0.0
    kl = case.drawn.terms["kl_path"]
    numbers = {"drift_gain": gain, "drift_gain_se": error, "kl_path": kl}
    has_points = all(block.rho is None for block in case.noisy_blocks)
    is_idle = abs(gain) < max(IDLE, 2 * error) and kl < IDLE * num_data_of(case)
    if not (has_points and is_idle and case.skill > SOME_SKILL):
        return Checked(numbers)
    return Checked(
        numbers,
        f"Zeroing the drift network changes the log likelihood by {gain:.2g} ± "
        f"{error:.1g} nats a row, and the path KL is {kl:.2g} nats: the point w0 "
        "carries the fit, and the posterior of the path is its prior. Give w0 a "
        "distribution (`start_width=0.02`, trained with a KL warm-up of 0.4) or the "
        "drift more to see (`num_inducing=8`).",
    )


def _without_drift(model: SDEBNN) -> SDEBNN:
    """As `without_drift`; the package's own drift in place, which compiles nothing."""
    is_own = lambda node: isinstance(node, WeightDrift)
    if not all(is_own(b.drift) for b in model.layers if isinstance(b, SDEBlock)):
        return without_drift(model)
    last = lambda drift: (drift.writes, drift.biases)
    zero = lambda tree: jax.tree.map(jnp.zeros_like, tree)
    zeroed = lambda drift: eqx.tree_at(last, drift, replace_fn=zero)
    each = lambda node: zeroed(node) if is_own(node) else node
    return jax.tree.map(each, model, is_leaf=is_own)
