"""Chains of HMC from optimised starts of their own.

Whitened by the prior: the inverse mass is the prior's variance, so that a trajectory of
π / 2 turns directions that the data say nothing of by a quarter of their period. Each
draw has a fresh momentum and a step size that is jittered by itself, against
directions whose period divides the trajectory.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from .._types import Float, Params, PRNGKeyArray
from ..functions import PosteriorSamples
from ..mcmc import HMC, MCMCInfo, MCMCState, warm_up_stages
from ..potential import Potential
from ..prediction import predict
from ._predictive import Predictive, packed, predictive, unpacked
from ._problems import Problem

_TRAJECTORY = math.pi / 2
_JITTER = 0.2
"""Of the warm-up's step size, which trajectories take at most: from 0.8 of it to it."""
_MEAN_FACTOR = 1 - _JITTER / 2
_WARM_UP_STEPS = 40
_START_STEP = 0.005
_ADAM_RATE = 3e-3


class Budget(NamedTuple):
    """Of one reference.

    Attributes:
        num_chains: from starts of their own.
        num_pieces: of each chain.
        num_draws: of each piece.
        num_warmup: trajectories of `_WARM_UP_STEPS` before the first piece.
        num_adam: steps to a start.
        num_tried: draws of the one chain that a prior scale is tried with.
    """

    num_chains: int
    num_pieces: int
    num_draws: int
    num_warmup: int
    num_adam: int
    num_tried: int


def begin(
    problem: Problem, scale: float, budget: Budget, *, key: PRNGKeyArray
) -> dict[str, Any]:
    """An optimised start of its own initialisation, and a step size."""
    network_key, init_key, warm_up_key = jax.random.split(key, 3)
    potential = problem.potential(scale, key=network_key)
    position = optimised(potential, num_steps=budget.num_adam)
    kernel = HMC(
        _WARM_UP_STEPS,
        step_size=_START_STEP,
        inverse_mass=inverse_mass(problem, potential, scale),
        adapt_mass=False,
    )
    state = kernel.init(potential, position, key=init_key)
    state = _warmed_up(kernel, potential, state, warm_up_key, budget.num_warmup)
    return {
        "position": packed(_raveled(state.position)),
        "step_size": float(state.step_size),
        "start_energy": float(potential(position)),
        "energy": -float(state.log_density),
        "num_gradients": budget.num_adam + _WARM_UP_STEPS * budget.num_warmup,
        "fingerprint": problem.fingerprint,
    }


def go_on(
    problem: Problem,
    scale: float,
    before: dict[str, Any],
    *,
    num_draws: int,
    key: PRNGKeyArray,
) -> tuple[Predictive, dict[str, Any], dict[str, Any]]:
    """Draws from where a chain is.

    Args:
        problem: what is sampled.
        scale: of the prior.
        before: what `begin`, or the piece before, returned.
        num_draws: trajectories, each of which gives a draw.
        key: of momenta, jitter and tests.

    Returns:
        The predictive distribution of the draws; facts about them; and where to go on.
    """
    shape_key, init_key, draw_key, predict_key = jax.random.split(key, 4)
    potential = problem.potential(scale, key=shape_key)
    step_size = before["step_size"]
    num_steps = max(1, round(_TRAJECTORY / step_size))
    kernel = HMC(
        num_steps,
        step_size=_MEAN_FACTOR * step_size,
        jitter=_JITTER / 2 / _MEAN_FACTOR,
        inverse_mass=inverse_mass(problem, potential, scale),
        adapt_step_size=False,
        adapt_mass=False,
    )
    _, unravel = ravel_pytree(potential.start)
    position = unravel(jnp.asarray(unpacked(before["position"]), jnp.float32))
    state = kernel.init(potential, position, key=init_key)
    state, positions, info = _drawn(kernel, potential, state, draw_key, num_draws)
    samples = PosteriorSamples(
        potential.network,
        potential.likelihood,
        jax.tree.map(lambda a: np.asarray(a)[None], positions),
        info={},
    )
    prediction = predict(samples, problem.test.x, key=predict_key, num_draws=num_draws)
    found = predictive(prediction, problem.test.y, problem.edges)
    facts = {
        "acceptance_rate": float(jnp.mean(info.acceptance_rate)),
        "num_divergent": int(jnp.sum(info.is_divergent)),
        "num_steps": num_steps,
        "num_gradients": num_steps * num_draws,
    }
    end = {
        "position": packed(_raveled(state.position)),
        "step_size": step_size,
        "fingerprint": problem.fingerprint,
    }
    return found, facts, end


def optimised(
    potential: Potential, *, num_steps: int, rate: float = _ADAM_RATE
) -> Params:
    """The end of Adam's path on the whole energy; of no steps, the start."""
    if num_steps == 0:
        return potential.start
    rule = optax.adam(optax.cosine_decay_schedule(rate, num_steps))
    return _descended(potential, rule, num_steps)


def inverse_mass(problem: Problem, potential: Potential, scale: float) -> Params:
    """The prior's variances; 1 of a learned scale's logarithm."""
    params, rest = potential.start
    own = problem.prior_variances(params, scale)
    return own, jax.tree.map(lambda a: jnp.ones((), a.dtype), rest)


def _raveled(position: Params) -> Float[np.ndarray, " parameters"]:
    return np.asarray(ravel_pytree(position)[0], np.float32)


@eqx.filter_jit
def _descended(
    potential: Potential, rule: optax.GradientTransformation, num_steps: int
) -> Params:
    def move(carry, _):
        position, state = carry
        updates, state = rule.update(jax.grad(potential)(position), state)
        return (optax.apply_updates(position, updates), state), None

    start = (potential.start, rule.init(potential.start))
    return jax.lax.scan(move, start, length=num_steps)[0][0]


@eqx.filter_jit
def _warmed_up(
    kernel: HMC,
    potential: Potential,
    state: MCMCState,
    key: PRNGKeyArray,
    num_steps: int,
) -> MCMCState:
    def move(state, inputs):
        stage, step_key = inputs
        return kernel.warm_up(potential, state, stage, key=step_key)[0], None

    inputs = (warm_up_stages(num_steps), jax.random.split(key, num_steps))
    return jax.lax.scan(move, state, inputs)[0]


@eqx.filter_jit
def _drawn(
    kernel: HMC,
    potential: Potential,
    state: MCMCState,
    key: PRNGKeyArray,
    num_draws: int,
) -> tuple[MCMCState, Params, MCMCInfo]:
    def move(state, step_key):
        state, info = kernel.step(potential, state, key=step_key)
        return state, (state.position, info)

    state, (positions, info) = jax.lax.scan(
        move, state, jax.random.split(key, num_draws)
    )
    return state, positions, info
