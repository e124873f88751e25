r"""Warm-up: step size by dual averaging, mass from the variance in slow windows.

Stan's scheme, of blackjax's parts: Hoffman & Gelman (2014), section 3.2, and the Stan
reference manual, "HMC algorithm parameters". Mass is kept as a tree.
"""

import jax
import jax.numpy as jnp
from blackjax.adaptation.mass_matrix import WelfordAlgorithmState, welford_algorithm
from blackjax.adaptation.step_size import (
    DualAveragingAdaptationState,
    dual_averaging_adaptation,
)

from .._types import Array, Float, Params, PyTree
from ._base import Stage
from ._state import Adaptation

_, _update_moments, _variance = welford_algorithm(True)

# Stan's: as if five more draws had the variance 1e-3.
_NUM_PRIOR_DRAWS = 5
_PRIOR_VARIANCE = 1e-3


def start_adaptation(step_size: Float[Array, ""], position: Params) -> Adaptation:
    """Nothing seen yet."""
    start, _, _ = dual_averaging_adaptation(0.5)  # no target needed yet
    typed = lambda a: jnp.asarray(a, int if isinstance(a, int) else step_size.dtype)
    return Adaptation(
        averaging=jax.tree.map(typed, start(step_size)),
        moments=jax.tree.map(_no_moments, position),
    )


def adapt_step_size(
    averaging: DualAveragingAdaptationState,
    acceptance_rate: Float[Array, ""],
    stage: Stage,
    *,
    target_acceptance: float,
) -> tuple[DualAveragingAdaptationState, Float[Array, ""]]:
    """One step of dual averaging, started anew when the mass has changed.

    Returns:
        what to remember; and the next step size: the explorative one, at the end of
        the warm-up the average.
    """
    start, update, average = dual_averaging_adaptation(target_acceptance)
    # Counts are integers, which blackjax mixes with floats of the default type.
    like = lambda new, old: jnp.asarray(new, old.dtype)
    updated = jax.tree.map(like, update(averaging, acceptance_rate), averaging)
    anew = jax.tree.map(like, start(average(updated)), averaging)
    step_size = jnp.where(
        stage.is_last, average(updated), jnp.exp(updated.log_step_size)
    )
    averaging = jax.tree.map(
        lambda a, b: jnp.where(stage.is_window_end, a, b), anew, updated
    )
    return averaging, step_size


def adapt_mass(
    moments: PyTree[Array],
    inverse_mass: Params,
    position: Params,
    stage: Stage,
) -> tuple[PyTree[Array], Params]:
    """Count a position in a slow window; at its end the variances are the mass's."""

    def count():
        return jax.tree.map(lambda x, m: _update_moments(m, x), position, moments)

    def close():
        variances = jax.tree.map(lambda x, m: _shrunk_variance(m), position, moments)
        return jax.tree.map(_no_moments, position), variances

    moments = jax.lax.cond(stage.is_slow, count, lambda: moments)
    return jax.lax.cond(stage.is_window_end, close, lambda: (moments, inverse_mass))


def _no_moments(leaf: Float[Array, "*shape"]) -> WelfordAlgorithmState:
    zeros, num_draws = jnp.zeros_like(leaf), jnp.zeros((), int)
    return WelfordAlgorithmState(zeros, zeros, num_draws)  # pyright: ignore


def _shrunk_variance(moments: WelfordAlgorithmState) -> Float[Array, "*shape"]:
    variance, num_draws, _ = _variance(moments)
    weight = (num_draws / (num_draws + _NUM_PRIOR_DRAWS)).astype(variance.dtype)
    return weight * variance + (1 - weight) * _PRIOR_VARIANCE
