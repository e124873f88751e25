"""The reference: chains of HMC from optimised starts of their own, kept in pieces.

Whitened by the prior: the inverse mass is the prior's variance, so that a trajectory of
π / 2 turns directions that the data say nothing of by a quarter of their period. Each
draw has a fresh momentum and a step size that is jittered by itself, against
directions whose period divides the trajectory. A piece is so many draws, and has the
position that the next piece starts from: an interrupted chain goes on.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from ..._types import Array, Float, Params, PRNGKeyArray
from ...functions import PosteriorSamples
from ...mcmc import HMC, MCMCInfo, MCMCState, warm_up_stages
from ...nn import fan_ins
from ...potential import Potential
from ...prediction import predict
from ...recipe import ScaleName
from .._experiment import Study
from ._predictive import Predictive, mixture, nll, packed, predictive, unpacked
from ._problems import PRIOR_SCALES, Problem

_TRAJECTORY = math.pi / 2
_JITTER = 0.2
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


BUDGETS: dict[ScaleName, Budget] = {
    "quick": Budget(2, 2, 25, 160, 500, 25),
    "full": Budget(4, 4, 500, 200, 1500, 100),
}
"""Of the references that this program samples itself."""


class Chain(NamedTuple):
    """One chain of a reference, as far as it is there.

    Attributes:
        pieces: its predictive distributions, in order.
        facts: of each piece: acceptance, gradients, seconds.
    """

    pieces: list[Predictive]
    facts: list[dict[str, Any]]


def choose_prior(study: Study, problem: Problem) -> float:
    """The scale whose short chain gives the validation rows the best log likelihood.

    No test row is looked at: `Problem.validation` are training rows.
    """
    budget = BUDGETS[study.scale]

    def choose() -> dict[str, Any]:
        rows, tried = problem.to_choose(), []
        for scale in PRIOR_SCALES[problem.name]:
            key = jax.random.key(study.seed)
            start = begin(rows, scale, budget, key=key)
            part, facts, _ = go_on(
                rows, scale, start, num_draws=budget.num_tried, key=key
            )
            found = {"nll": nll(part, problem.y_scale)} | facts
            tried.append({"prior_scale": scale} | found)
            study.say(f"{problem.name}: prior scale {scale:g}: {found['nll']:.4f} nats")
        best = min(tried, key=lambda found: found["nll"])
        return {"best": best["prior_scale"], "tried": tried}

    return study.piece(*_prior_piece(study, problem.name), choose)["best"]


def found_prior(study: Study, name: str) -> float | None:
    """The scale that was chosen for a problem, if it was.

    Args:
        study: whose pieces.
        name: of the problem.
    """
    found = study.find(*_prior_piece(study, name))
    return None if found is None else found["best"]


def _prior_piece(study: Study, name: str) -> tuple[str, dict[str, Any]]:
    budget = BUDGETS[study.scale]
    return f"{name}_prior", {
        "seed": study.seed,
        "scales": list(PRIOR_SCALES[name]),
        "num_warmup": budget.num_warmup,
        "num_adam": budget.num_adam,
        "num_draws": budget.num_tried,
    }


def sample_reference(study: Study, problem: Problem, scale: float) -> None:
    """Compute the pieces that are not there yet, chains in turn."""
    budget = BUDGETS[study.scale]
    for number in range(-1, budget.num_pieces):
        for chain in range(budget.num_chains):
            _piece(study, problem, scale, chain, number)


def found_reference(study: Study, problem: Problem, scale: float) -> list[Chain]:
    """The chains that have a piece, without computing.

    Raises:
        ValueError: if a piece is of other rows, or of another model.
    """
    budget, chains = BUDGETS[study.scale], []
    for chain in range(budget.num_chains):
        pieces, facts = [], []
        for number in range(budget.num_pieces):
            name, settings = _named(study, problem, scale, chain, number)
            found = study.find(name, settings)
            if found is None:
                break
            check_same(problem, found["fingerprint"])
            pieces.append(Predictive.from_json(found["predictive"], problem.test.y))
            facts.append(found["facts"] | {"seconds": study.ledger.seconds_of(name)})
        if pieces:
            chains.append(Chain(pieces, facts))
    return chains


def check_same(problem: Problem, fingerprint: dict[str, Any]) -> None:
    """Refuse a reference of other rows or of another network.

    Raises:
        ValueError: naming what differs.
    """
    own = problem.fingerprint
    differs = [name for name in own if fingerprint.get(name) != own[name]]
    if differs:
        raise ValueError(
            f"The reference of {problem.name} is of another "
            f"{' and another '.join(differs)} than these methods: take its pieces "
            "away, or bring back the data and network that it was sampled with."
        )


def _named(
    study: Study, problem: Problem, scale: float, chain: int, number: int
) -> tuple[str, dict[str, Any]]:
    """The name and the settings of a piece; number -1 is the start."""
    budget = BUDGETS[study.scale]
    settings: dict[str, Any] = {
        "seed": study.seed,
        "prior_scale": scale,
        "num_warmup": budget.num_warmup,
        "num_adam": budget.num_adam,
    }
    name = f"{problem.name}_reference_{chain}"
    if number < 0:
        return f"{name}_start", settings
    return f"{name}_{number}", settings | {"num_draws": budget.num_draws}


def _piece(
    study: Study, problem: Problem, scale: float, chain: int, number: int
) -> dict[str, Any]:
    def compute() -> dict[str, Any]:
        key = jax.random.fold_in(jax.random.key(study.seed), chain)
        budget = BUDGETS[study.scale]
        if number < 0:
            return begin(problem, scale, budget, key=key)
        before = _piece(study, problem, scale, chain, number - 1)
        check_same(problem, before["fingerprint"])
        key = jax.random.fold_in(key, 1 + number)
        part, facts, end = go_on(
            problem, scale, before, num_draws=budget.num_draws, key=key
        )
        return end | {"predictive": part.to_json(has_sd=True), "facts": facts}

    name, settings = _named(study, problem, scale, chain, number)
    found = study.find(name, settings)
    return study.piece(name, settings, compute) if found is None else found


def begin(
    problem: Problem, scale: float, budget: Budget, *, key: PRNGKeyArray
) -> dict[str, Any]:
    """An optimised start of its own initialisation, and a step size."""
    network_key, init_key, warm_up_key = jax.random.split(key, 3)
    potential = problem.potential(scale, key=network_key)
    position, energy = optimised(potential, num_steps=budget.num_adam)
    kernel = HMC(
        _WARM_UP_STEPS,
        step_size=_START_STEP,
        inverse_mass=prior_variances(potential, scale),
        adapt_mass=False,
    )
    state = kernel.init(potential, position, key=init_key)
    state = _warmed_up(kernel, potential, state, warm_up_key, budget.num_warmup)
    return {
        "position": packed(_raveled(state.position)),
        "step_size": float(state.step_size),
        "start_energy": energy,
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
        step_size=step_size,
        inverse_mass=prior_variances(potential, scale),
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
) -> tuple[Params, float]:
    """The end of Adam's path on the whole energy, and the energy there."""
    rule = optax.adam(optax.cosine_decay_schedule(rate, num_steps))
    position = _descended(potential, rule, num_steps)
    return position, float(potential(position))


def halves(chain: Chain) -> list[Predictive]:
    """Its first and its second half; of one piece, that."""
    half = len(chain.pieces) // 2
    if half == 0:
        return [chain.pieces[0]]
    return [mixture(chain.pieces[:half]), mixture(chain.pieces[half : 2 * half])]


def prior_variances(potential: Potential, scale: float) -> Params:
    """Of each parameter; 1 of a learned scale's logarithm."""
    params, rest = potential.start
    variances = jax.tree.map(
        lambda fan_in, a: jnp.full(a.shape, scale**2 / fan_in, a.dtype),
        fan_ins(params),
        params,
    )
    return variances, jax.tree.map(jnp.ones_like, rest)


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
    base: Float[Array, ""] = state.step_size

    def move(state, inputs):
        step_key, factor = inputs
        state = eqx.tree_at(lambda s: s.step_size, state, base * factor)
        state, info = kernel.step(potential, state, key=step_key)
        return state, (state.position, info)

    move_key, jitter_key = jax.random.split(key)
    factors = jax.random.uniform(jitter_key, (num_draws,), base.dtype, 1 - _JITTER, 1.0)
    inputs = (jax.random.split(move_key, num_draws), factors)
    state, (positions, info) = jax.lax.scan(move, state, inputs)
    return eqx.tree_at(lambda s: s.step_size, state, base), positions, info
