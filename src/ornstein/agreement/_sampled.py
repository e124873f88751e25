"""Methods that start from optimised positions: chains, their iterates, the optima.

Full-data chains are whitened by the prior; minibatch chains move in the weights' own
units, as the command line has them.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Params, PRNGKeyArray
from ..functions import (
    SWAG,
    ParameterExpanded,
    PosteriorSamples,
    expand_parameters,
)
from ..mcmc import NUTS, AbstractKernel, MicrocanonicalLangevin, PartialHMC
from ..prediction import FittedModel
from ..sampling import sample
from ..sgmcmc import SGHMC, SGLD, AdaptiveDriftSGLD, Cyclical
from ._effort import Approximation, Effort
from ._hmc import inverse_mass, optimised
from ._problems import Problem

_NUM_DRAWS = 200
_MOMENTUM = 0.9
_NUM_ITERATES = 40


def map_members(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    *,
    num_members: int,
    key: PRNGKeyArray,
) -> Approximation:
    optima = _optima(problem, prior_scale, effort, num_members, key=key)
    potential = problem.potential(prior_scale, key=key)
    samples = PosteriorSamples(
        potential.network,
        potential.likelihood,
        jax.tree.map(lambda a: np.asarray(a)[:, None], optima.positions),
        info={},
    )
    passes = num_members * effort.num_adam
    return Approximation(samples, num_members, passes, optima.spared_seconds)


def swag(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    *,
    rate: float,
    key: PRNGKeyArray,
) -> Approximation:
    """From the iterates of SGD on the posterior, at a constant rate."""
    kernel = SGLD(0.1 * rate / len(problem.train), temperature=0.0)
    one = effort._replace(num_chains=1, num_samples=_NUM_ITERATES)
    found = _sampled(problem, prior_scale, one, kernel, key=key)
    samples = found.fitted
    assert isinstance(samples, PosteriorSamples)
    iterates = jax.tree.map(lambda a: jnp.asarray(a[0]), samples.positions[0])
    swag = SWAG.from_iterates(samples.network_at(0), iterates)
    model = FittedModel(swag, samples.likelihood)
    return found._replace(fitted=model, num_draws=_NUM_DRAWS)


def minibatch_chains(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    *,
    kernel: Callable[[float, int], AbstractKernel],
    rate: float = 1.0,
    key: PRNGKeyArray,
) -> Approximation:
    """Chains at `rate` times the step that the command line takes by default.

    For an underdamped kernel the rate is the square of the step.
    """
    return _sampled(
        problem, prior_scale, effort, kernel(rate, len(problem.train)), key=key
    )


def underdamped(
    kind: Callable[[float, float], AbstractKernel], rate: float, num_data: int
) -> AbstractKernel:
    step_size = math.sqrt(0.02 * rate / num_data)
    return kind(step_size, (1 - _MOMENTUM) / step_size)


def adaptive_drift(rate: float, num_data: int) -> AbstractKernel:
    """Adam's part moves a weight by up to 1e-3 a step, as from the command line."""
    step_size = 0.1 * rate / num_data
    return AdaptiveDriftSGLD(step_size, 2e-3 / step_size)


def cyclic_sghmc(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    *,
    rate: float = 1.0,
    key: PRNGKeyArray,
) -> Approximation:
    """The last step of each cosine cycle is a sample: Zhang et al. (2020)."""
    step_size = math.sqrt(0.02 * rate / len(problem.train))
    kernel = SGHMC(
        Cyclical(step_size, _spacing(effort)), friction=(1 - _MOMENTUM) / step_size
    )
    return _sampled(problem, prior_scale, effort, kernel, key=key)


def expanded_sghmc(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    *,
    rate: float,
    key: PRNGKeyArray,
) -> Approximation:
    """PX-SGHMC from P = Q = I.

    Weights have the reference's variance a priori, and are no normals: its posterior is
    another one.
    """
    kernel = underdamped(SGHMC, rate, len(problem.train))
    return _sampled(problem, prior_scale, effort, kernel, is_expanded=True, key=key)


def partial_hmc(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    kernel = partial(PartialHMC, alpha=_MOMENTUM, num_integration_steps=10)
    return _whole_data_chains(problem, prior_scale, effort, kernel, thin=4, key=key)


def nuts(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    fewer = effort._replace(num_chains=2, num_samples=effort.num_samples // 2)
    return _whole_data_chains(problem, prior_scale, fewer, NUTS, thin=1, key=key)


def mclmc(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    """Steps of two gradients each, in the weights' own units: it adapts no mass."""
    thin = 20
    samples, spared = _chains(
        problem,
        prior_scale,
        effort,
        # MILE's own steps, by the energy alone.
        MicrocanonicalLangevin(
            0.01,
            start_energy_variance=0.5,
            end_energy_variance=0.1,
            max_phase=None,
        ),
        key=key,
        num_warmup=thin * effort.num_warmup,
        thin=thin,
    )
    num_steps = thin * (effort.num_warmup + effort.num_samples)
    passes = effort.num_chains * (2 * num_steps + effort.num_adam)
    return Approximation(samples, samples.num_strata, passes, spared)


class _Optima(NamedTuple):
    """Optimised positions, each of its own initialisation, on an axis in front.

    Attributes:
        positions: of the network and of a learned scale.
        spared_seconds: that they took when they were found before.
    """

    positions: Params
    spared_seconds: float = 0.0


_FOUND: dict[tuple[Any, ...], _Optima] = {}
"""By what they are of: the chains of all methods of a study start at the same."""


def _optima(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    num: int,
    *,
    key: PRNGKeyArray,
) -> _Optima:
    rows = problem.fingerprint["train"]
    key_data = np.asarray(jax.random.key_data(key)).tobytes()
    asked = (problem.name, str(rows), prior_scale, effort.num_adam, num, key_data)
    if asked in _FOUND:
        return _FOUND[asked]
    started, found = time.monotonic(), []
    for own_key in jax.random.split(key, num):
        potential = problem.potential(prior_scale, key=own_key)
        found.append(optimised(potential, num_steps=effort.num_adam))
    positions = jax.tree.map(lambda *leaves: jnp.stack(leaves), *found)
    jax.block_until_ready(positions)
    _FOUND[asked] = _Optima(positions, time.monotonic() - started)
    return _Optima(positions)


def _sampled(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    kernel: AbstractKernel,
    *,
    is_expanded: bool = False,
    key: PRNGKeyArray,
) -> Approximation:
    """Chains of minibatches."""
    thin = _spacing(effort)
    half = thin * effort.num_samples  # of whole cycles, where there are any
    batch_size = min(effort.batch_size, len(problem.train))
    samples, spared = _chains(
        problem,
        prior_scale,
        effort,
        kernel,
        is_expanded=is_expanded,
        key=key,
        num_warmup=half,
        thin=thin,
        batch_size=batch_size,
    )
    num_steps = half + thin * effort.num_samples
    passes = num_steps * batch_size / len(problem.train) + effort.num_adam
    passes *= effort.num_chains
    return Approximation(samples, samples.num_strata, passes, spared)


def _whole_data_chains(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    kernel: Callable[..., AbstractKernel],
    *,
    thin: int,
    key: PRNGKeyArray,
) -> Approximation:
    """Whitened by the prior. The warm-up counts at the kept steps' mean."""
    potential = problem.potential(prior_scale, key=key)
    samples, spared = _chains(
        problem,
        prior_scale,
        effort,
        kernel(
            step_size=0.005,
            inverse_mass=inverse_mass(problem, potential, prior_scale),
            adapt_mass=False,
        ),
        key=key,
        num_warmup=thin * effort.num_warmup,
        thin=thin,
    )
    kept = float(np.sum(np.asarray(samples.info["num_gradients"])))
    passes = kept * (1 + effort.num_warmup / effort.num_samples)
    passes += effort.num_chains * effort.num_adam
    return Approximation(samples, samples.num_strata, passes, spared)


def _chains(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    kernel: AbstractKernel,
    *,
    is_expanded: bool = False,
    key: PRNGKeyArray,
    **options: Any,
) -> tuple[PosteriorSamples, float]:
    """The samples, and the seconds that their starts did not take again."""
    network_key, start_key, key = jax.random.split(key, 3)
    network = problem.network(key=network_key)
    num_chains = effort.num_chains
    prior = problem.prior(network, prior_scale)
    optima = _optima(problem, prior_scale, effort, num_chains, key=start_key)
    starts = optima.positions
    if is_expanded:
        network = expand_parameters(network)
        prior = network.expanded_prior(prior, scale=None)
        tile = lambda a: jnp.broadcast_to(a, (num_chains, *a.shape))
        products = jax.tree.map(tile, (network.left, network.right))
        starts = (ParameterExpanded(starts[0], *products), starts[1])
    samples = sample(
        network,
        problem.train,
        problem.likelihood,
        kernel=kernel,
        prior=prior,
        likelihood_prior=problem.likelihood_prior,
        key=key,
        num_chains=num_chains,
        num_samples=effort.num_samples,
        starts=starts,
        **options,
    )
    return samples, optima.spared_seconds


def _spacing(effort: Effort) -> int:
    """Steps from one kept sample of minibatches to the next."""
    return max(10, effort.num_sg_steps // 2 // effort.num_samples)
