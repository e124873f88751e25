r"""The SDE-BNN that is linear regression, sampled and fitted over whitened coordinates.

Outputs are linear in $\xi$, so that the posterior is a Gaussian. It is computed here
from the covariance of the Ornstein-Uhlenbeck process, which no coordinate enters:
$h_x(1) = \langle s, \mathrm{features}(x) \rangle$ with slopes $s = \sum_k w(t_k) / n$,
independent $N(0, \sum_{kl} \mathrm{cov}(w_k, w_l) / n^2)$ a priori.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._types import Array, Float, PRNGKeyArray
from ..data import Split
from ..functions import (
    AbstractPathCoordinates,
    GridIncrements,
    LevyCiesielski,
    MeanField,
    WhitenedSDEBNN,
    whiten,
)
from ..likelihood import Gaussian
from ..mcmc import HMC
from ..network import split_where
from ..potential import Potential
from ..prior import GaussianPrior
from ..train import IVON
from ._chains import Plan, compare, estimate, known, run_chains, warm_state
from ._function_cases import (
    SDEBNN_DEVIATION,
    SDEBNN_NUM_STEPS,
    SDEBNN_RATE,
    SDEBNN_SCALE,
    SDEBNN_SIGMA,
    SDEBNN_XS,
    SDEBNN_YS,
    make_affine_sde_bnn,
    slope_features,
)
from ._functions import FunctionCase
from ._targets import Moments

_AT = (0, 4)
"""Rows at whose inputs functions are looked at."""


class PathCase(NamedTuple):
    """A sampler over whitened coordinates.

    Attributes:
        method: its name.
        coordinates: of the paths.
        num_steps: of the solver.
        kernel: what moves the chains.
        plan: how long they are.
    """

    method: str
    coordinates: AbstractPathCoordinates
    num_steps: int
    kernel: HMC
    plan: Plan


def path_cases() -> list[PathCase]:
    """One for increments, one for modes."""
    # A quarter of the period of the two directions that data see (deviation 0.47), and
    # less of the others' (1). Half a period would only ever turn the sign.
    kernel, plan = HMC(num_integration_steps=7, step_size=0.11), Plan(1)
    return [
        PathCase(
            "SDEBNN, whitened increments, HMC",
            GridIncrements(),
            SDEBNN_NUM_STEPS,
            kernel,
            plan,
        ),
        PathCase("SDEBNN, whitened modes, HMC", LevyCiesielski(16), 16, kernel, plan),
    ]


def path_rows(case: PathCase, *, seed: int) -> list[dict[str, Any]]:
    """Mean and covariance of the outputs at two inputs.

    Args:
        case: the sampler.
        seed: of the chains.
    """
    potential = path_potential(case.coordinates, case.num_steps)
    keys = jax.random.split(jax.random.key(seed), 2)
    state = warm_state(
        case.kernel, potential, potential.start, num_steps=0, key=keys[0]
    )
    positions = run_chains(case.kernel, potential, state, plan=case.plan, key=keys[1])
    found = estimate(_outputs(potential, positions))
    exact = path_posterior(case.num_steps)
    return compare(found, known(exact), exact)


def path_function_cases() -> list[FunctionCase]:
    """IVON over modes: the diagonal Gaussian nearest the posterior.

    Over increments it is further off: outputs vary 2.1 times as they should, and 1.7
    over modes, which data see one by one.
    """
    coordinates, num_steps = LevyCiesielski(16), 16
    mean, scale = best_diagonal(coordinates, num_steps)
    reads = _linear_map(coordinates, num_steps)[list(_AT)]
    split = path_split()
    return [
        FunctionCase(
            "SDEBNN, whitened modes, IVON",
            "optimum of its bound, linear regression",
            partial(_make_mean_field, coordinates, num_steps),
            split,
            Gaussian(SDEBNN_SCALE),
            split.x[list(_AT)],
            (0, 1),
            Moments(reads @ mean, (reads * scale**2) @ reads.T),
            path_posterior(num_steps),
            {
                "num_epochs": 6000,
                "batch_size": len(split.x),
                "num_draws": 16,
                "optimiser": IVON(),
            },
        )
    ]


def _make_mean_field(
    coordinates: AbstractPathCoordinates, num_steps: int, *, key: PRNGKeyArray
) -> MeanField:
    network = whitened_regression(coordinates, num_steps, key=key)
    return MeanField(network, GaussianPrior(1.0))


def whitened_regression(
    coordinates: AbstractPathCoordinates, num_steps: int, *, key: PRNGKeyArray
) -> WhitenedSDEBNN:
    """The network.

    Args:
        coordinates: of the paths.
        num_steps: of the solver.
        key: of its start.
    """
    return whiten(make_affine_sde_bnn(0, num_steps, key=key), coordinates)


def path_potential(coordinates: AbstractPathCoordinates, num_steps: int) -> Potential:
    """U over the coordinates.

    Args:
        coordinates: of the paths.
        num_steps: of the solver.
    """
    return Potential(
        whitened_regression(coordinates, num_steps, key=jax.random.key(0)),
        path_split(),
        Gaussian(SDEBNN_SCALE),
        prior=GaussianPrior(1.0),
    )


def path_split() -> Split:
    """The five rows."""
    x = np.asarray(SDEBNN_XS, np.float32)[:, None]
    return Split(x, SDEBNN_YS.astype(np.float32)[:, None])


@eqx.filter_jit
def _outputs(
    potential: Potential, positions: Float[Array, "chains samples dim"]
) -> Float[Array, "chains samples inputs"]:
    """What the networks at these positions say at the two inputs."""
    _, restore = ravel_pytree(potential.start)
    x = potential.x[jnp.array(_AT)]

    def at(position: Array) -> Array:
        params, _ = restore(position)
        return eqx.combine(params, potential.network)(x)[:, 0]

    return jax.vmap(jax.vmap(at))(positions)


def path_posterior(num_steps: int) -> Moments:
    """Exact moments of the outputs at the two inputs.

    Args:
        num_steps: of Euler's method for hidden units; weights are exact.
    """
    features = slope_features(SDEBNN_XS)
    prior = np.eye(2) / _slope_variance(num_steps)
    covariance = np.linalg.inv(features.T @ features / SDEBNN_SCALE**2 + prior)
    mean = covariance @ features.T @ SDEBNN_YS / SDEBNN_SCALE**2
    reads = features[list(_AT)]
    return Moments(reads @ mean, reads @ covariance @ reads.T)


def best_diagonal(
    coordinates: AbstractPathCoordinates, num_steps: int
) -> tuple[Float[np.ndarray, " dim"], Float[np.ndarray, " dim"]]:
    r"""Means and deviations of the diagonal Gaussian over $\xi$ nearest the posterior.

    Args:
        coordinates: of the paths.
        num_steps: of the solver.
    """
    reads = _linear_map(coordinates, num_steps)
    precision = reads.T @ reads / SDEBNN_SCALE**2 + np.eye(reads.shape[1])
    mean = np.linalg.solve(precision, reads.T @ SDEBNN_YS / SDEBNN_SCALE**2)
    return mean, 1 / np.sqrt(np.diag(precision))


def _linear_map(
    coordinates: AbstractPathCoordinates, num_steps: int
) -> Float[np.ndarray, "rows dim"]:
    """From coordinates to the outputs of the rows."""
    network = whitened_regression(coordinates, num_steps, key=jax.random.key(0))
    params, rest = split_where(network, None)
    flat, restore = ravel_pytree(params)
    x = jnp.asarray(path_split().x)
    at = lambda xi: eqx.combine(restore(xi), rest)(x)[:, 0]
    # Linear: the derivative at any place is the map itself.
    return np.asarray(jax.jacrev(at)(jnp.zeros_like(flat)), np.float64)


def _slope_variance(num_steps: int) -> float:
    """Of the mean of w over the steps' left ends."""
    times = np.arange(num_steps) / num_steps
    s, t = np.meshgrid(times, times)
    decay = np.exp(-SDEBNN_RATE * (s + t))
    noise = np.exp(-SDEBNN_RATE * abs(s - t)) - decay
    stationary = SDEBNN_SIGMA**2 / (2 * SDEBNN_RATE)
    return float((SDEBNN_DEVIATION**2 * decay + stationary * noise).mean())
