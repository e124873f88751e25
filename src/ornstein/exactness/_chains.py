"""Many chains side by side, their moments, and how far those are from known ones."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._types import Array, Float, Params, PRNGKeyArray
from ..mcmc import AbstractKernel, AbstractState, warm_up_stages
from ..potential import AbstractPotential
from ._targets import Moments, flat

BOUND = 4.5
"""Standard errors that a moment may be off."""


class Plan(NamedTuple):
    """How long chains are.

    Attributes:
        thin: steps between positions that are looked at.
        num_samples: positions kept of each chain.
        num_dropped: positions before them, of the way there.
        num_chains: side by side.
    """

    thin: int
    num_samples: int = 8
    num_dropped: int = 12
    num_chains: int = 2048


class Estimate(NamedTuple):
    """Moments with their Monte Carlo errors.

    Attributes:
        moments: the values.
        standard_error: of each value.
    """

    moments: Moments
    standard_error: Moments


@eqx.filter_jit
def warm_state(
    kernel: AbstractKernel,
    potential: AbstractPotential,
    start: Params,
    *,
    num_steps: int,
    key: PRNGKeyArray,
) -> AbstractState:
    """The state of one chain after its warm-up, moved back to its start.

    Args:
        kernel: that adapts.
        potential: on which.
        start: the first position.
        num_steps: of the warm-up; may be none.
        key: of everything random.
    """
    init_key, key = jax.random.split(key)
    state = kernel.init(potential, start, key=init_key)
    if num_steps == 0:
        return state

    def adapt(state, inputs):
        stage, key = inputs
        return kernel.warm_up(potential, state, stage, key=key)[0], None

    stages = warm_up_stages(num_steps)
    keys = jax.random.split(key, num_steps)
    adapted = jax.lax.scan(adapt, state, (stages, keys))[0]
    return eqx.tree_at(lambda s: s.position, adapted, start)


@eqx.filter_jit
def run_chains(
    kernel: AbstractKernel,
    potential: AbstractPotential,
    state: AbstractState,
    *,
    plan: Plan,
    key: PRNGKeyArray,
) -> Float[Array, "chains samples dim"]:
    """The kept positions of independent chains.

    Args:
        kernel: its steps.
        potential: on which.
        state: that all start from.
        plan: how long.
        key: of everything random.
    """

    def move(state, key):
        return kernel.step(potential, state, key=key)[0], None

    def look(state, key):
        state, _ = jax.lax.scan(move, state, jax.random.split(key, plan.thin))
        return state, flat(state.position)

    def chain(key):
        keys = jax.random.split(key, plan.num_dropped + plan.num_samples)
        return jax.lax.scan(look, state, keys)[1][plan.num_dropped :]

    return jax.vmap(chain)(jax.random.split(key, plan.num_chains))


def estimate(
    samples: Float[Array | np.ndarray, "chains samples dim"],
) -> Estimate:
    """Moments over all samples; errors from the spread between chains.

    However much a chain's own samples have to do with each other, chains are
    independent.

    Args:
        samples: of independent chains.
    """
    values = np.asarray(samples, np.float64)
    error = lambda of_chains: of_chains.std(axis=0, ddof=1) / math.sqrt(len(values))
    # Chains that diverged become a NaN, which is outside of every bound.
    with np.errstate(over="ignore", invalid="ignore"):
        mean = values.mean(axis=(0, 1))
        centred = values - mean
        products = np.einsum("csi,csj->cij", centred, centred) / values.shape[1]
        return Estimate(
            Moments(mean, products.mean(axis=0)),
            Moments(error(values.mean(axis=1)), error(products)),
        )


def known(moments: Moments) -> Estimate:
    """Moments without an error."""
    return Estimate(moments, Moments(*map(np.zeros_like, moments)))


def extrapolate(coarse: Estimate, fine: Estimate) -> Estimate:
    """Richardson's: 2 fine − coarse, for a bias that is linear in the step size.

    Args:
        coarse: at ε.
        fine: at ε / 2.
    """
    value = lambda c, f: 2 * f - c
    error = lambda c, f: np.sqrt(4 * f**2 + c**2)
    return Estimate(
        Moments(*map(value, coarse.moments, fine.moments)),
        Moments(*map(error, coarse.standard_error, fine.standard_error)),
    )


def compare(
    found: Estimate, exact: Estimate, posterior: Moments
) -> list[dict[str, Any]]:
    """A row for the mean and one for the covariance.

    Args:
        found: by a sampler.
        exact: what it should be.
        posterior: whose standard deviations (mean) and variances (covariance) are the
            unit of `power`, the size of an error that would be seen, and of
            `method_gap`, how far the method's own moments are from the posterior's.
    """
    scale = np.sqrt(np.diag(posterior.covariance))
    rows = []
    for moment, unit in (("mean", scale), ("covariance", np.outer(scale, scale))):
        value, target = (getattr(e.moments, moment) for e in (found, exact))
        errors = (getattr(e.standard_error, moment) for e in (found, exact))
        standard_error = np.hypot(*errors)
        difference = abs(value - target)
        # Off-diagonals of a mean-field posterior are 0, without error.
        surprise = np.where(difference > 0, np.inf, 0.0)
        np.divide(difference, standard_error, out=surprise, where=standard_error != 0)
        error = np.max(surprise)
        gap = np.max(abs(target - getattr(posterior, moment)) / unit)
        rows.append(
            {
                "moment": moment,
                "error": float(error),
                "bound": BOUND,
                "within_bound": bool(error <= BOUND),
                "power": float(np.max(BOUND * standard_error / unit)),
                "method_gap": float(gap),
            }
        )
    return rows
