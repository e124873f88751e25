"""A contextual bandit made from a table: Thompson sampling against greedy choices.

The mushroom task of Blundell et al. (2015) on the digits that ship with scikit-learn:
each interaction shows a digit, to take or to leave. Leaving pays 0; taking pays 5 for
an even digit and, for an odd one, 5 or -35 with equal odds, -15 on average. A network
predicts the reward of (context, action); after each choice it is trained on what was
met so far. Regret is what an agent that knows the digits would have earned more.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from ..._types import Array, Float, Int, PRNGKeyArray, PyTree
from ...data import load
from ...functions import AbstractRandomFunction, Deterministic, MeanField
from ...likelihood import Gaussian
from ...nn import MLP
from ...plot import method_curves
from ...prior import fan_in_prior
from ...recipe import ScaleName
from ...report import save_figure
from ...train import elbo_loss
from .._experiment import Experiment, Study

_NUM_INTERACTIONS: dict[ScaleName, int] = {
    "quick": 4_000,
    "gpu": 50_000,
    "full": 50_000,
}
_NUM_SEEDS: dict[ScaleName, int] = {"quick": 3, "gpu": 5, "full": 5}
_STEPS_EACH = 8
_BATCH_SIZE = 64
_REWARD_UNIT = 10.0
_NOISE = 0.3
"""Standard deviation of the modelled reward, in its unit of 10; an odd digit's own is 2
when taken, all others' 0."""


class _Agent(NamedTuple):
    """How actions are chosen: from a draw of which posterior, how often at random."""

    is_bayesian: bool
    epsilon: float


_AGENTS = {
    "Bayes by Backprop, Thompson": _Agent(True, 0.0),
    "greedy": _Agent(False, 0.0),
    "5 % greedy": _Agent(False, 0.05),
}


class _Memory(NamedTuple):
    """What was met so far, in arrays as long as the run."""

    inputs: Float[Array, "interactions features"]
    rewards: Float[Array, "interactions 1"]
    count: Int[Array, ""]


def _run(study: Study) -> list[dict[str, Any]]:
    num_interactions = _NUM_INTERACTIONS[study.scale]
    rows, curves = [], {}
    for name, agent in _AGENTS.items():
        regrets = []
        for seed in range(study.seed, study.seed + _NUM_SEEDS[study.scale]):

            def compute(agent=agent, seed=seed) -> list[float]:
                data = load("digits")
                contexts = jnp.asarray(data.train.x).reshape(len(data.train), -1)
                is_good = jnp.asarray(np.asarray(data.train.y) % 2 == 0)
                key = jax.random.key(seed)
                regret = _play(agent, contexts, is_good, num_interactions, key=key)
                return np.cumsum(np.asarray(regret, np.float64)).tolist()

            piece = f"{name.replace(' ', '_').replace('%', 'percent')}_{seed}"
            settings = {"interactions": num_interactions, "steps": _STEPS_EACH}
            regrets.append(study.piece(piece.replace(",", ""), settings, compute))
        curves[name] = np.mean(regrets, axis=0)
        ends = [float(r[-1]) for r in regrets]
        late = [float(r[-1] - r[-len(r) // 4]) / (len(r) // 4) for r in regrets]
        rows.append(
            {
                "agent": name,
                "cumulative_regret": float(np.mean(ends)),
                "cumulative_regret_sd": float(np.std(ends, ddof=1)),
                "late_regret_an_interaction": float(np.mean(late)),
                "num_interactions": num_interactions,
                "num_seeds": len(ends),
            }
        )
    figure = method_curves(curves, xlabel="interaction", ylabel="cumulative regret")
    study.say(f"Wrote {save_figure(study.folder / 'bandit.png', figure)}")
    return rows


def _build(num_features: int, is_bayesian: bool, *, key: PRNGKeyArray):
    network = MLP(num_features, 1, [100, 100], activation=jax.nn.relu, key=key)
    if is_bayesian:
        return MeanField(network, fan_in_prior(network), init_scale=0.02)
    return Deterministic(network)


@eqx.filter_jit
def _play(
    agent: _Agent,
    contexts: Float[Array, "rows features"],
    is_good: Array,
    num_interactions: int,
    *,
    key: PRNGKeyArray,
) -> Float[Array, " interactions"]:
    """The regret of each interaction."""
    model_key, run_key = jax.random.split(key)
    num_features = contexts.shape[1] + 2
    model = _build(num_features, agent.is_bayesian, key=model_key)
    optimiser = optax.adam(1e-3)
    params, frozen = eqx.partition(model, _is_trained(model))
    memory = _Memory(
        jnp.zeros((num_interactions, num_features)),
        jnp.zeros((num_interactions, 1)),
        jnp.zeros((), jnp.int32),
    )

    def interact(carry, step_key):
        params, opt_state, memory = carry
        row_key, act_key, reward_key, train_key = jax.random.split(step_key, 4)
        row = jax.random.randint(row_key, (), 0, contexts.shape[0])
        inputs = jnp.concatenate([jnp.tile(contexts[row], (2, 1)), jnp.eye(2)], axis=1)
        action = _choose(agent, eqx.combine(params, frozen), inputs, key=act_key)
        is_taken = action == 1
        is_bitten = ~is_good[row] & jax.random.bernoulli(reward_key)
        reward = jnp.where(is_taken, jnp.where(is_bitten, -35.0, 5.0), 0.0)
        mean_reward = jnp.where(is_taken, jnp.where(is_good[row], 5.0, -15.0), 0.0)
        regret = jnp.where(is_good[row], 5.0, 0.0) - mean_reward
        count = memory.count
        memory = _Memory(
            memory.inputs.at[count].set(inputs[action]),
            memory.rewards.at[count].set(reward / _REWARD_UNIT),
            count + 1,
        )
        params, opt_state = _learn(
            optimiser, params, frozen, opt_state, memory, key=train_key
        )
        return (params, opt_state, memory), regret

    start = (params, optimiser.init(params), memory)
    keys = jax.random.split(run_key, num_interactions)
    return lax.scan(interact, start, keys)[1]


def _choose(
    agent: _Agent,
    model: AbstractRandomFunction,
    inputs: Float[Array, "2 features"],
    *,
    key: PRNGKeyArray,
) -> Int[Array, ""]:
    """Leave (0) or take (1), by one draw of the function."""
    draw_key, whether_key, which_key = jax.random.split(key, 3)
    values = model(inputs, key=draw_key, index=0).output[:, 0]
    is_random = jax.random.bernoulli(whether_key, agent.epsilon)
    random = jax.random.randint(which_key, (), 0, 2)
    return jnp.where(is_random, random, jnp.argmax(values).astype(random.dtype))


def _learn(
    optimiser: optax.GradientTransformation,
    params: PyTree,
    frozen: PyTree,
    opt_state: PyTree,
    memory: _Memory,
    *,
    key: PRNGKeyArray,
) -> tuple[PyTree, PyTree]:
    """Some steps on batches of what was met so far."""
    num_data = memory.rewards.shape[0]

    def step(carry, step_key):
        params, opt_state = carry
        rows_key, draw_key = jax.random.split(step_key)
        rows = jax.random.randint(rows_key, (_BATCH_SIZE,), 0, memory.count)

        def loss(params):
            return elbo_loss(
                eqx.combine(params, frozen),
                Gaussian(_NOISE),
                (memory.inputs[rows], memory.rewards[rows]),
                num_data=num_data,
                # The data so far are `count`, which is no constant.
                kl_weight=num_data / memory.count.astype(float),
                key=draw_key,
            )[0]

        updates, opt_state = optimiser.update(jax.grad(loss)(params), opt_state)
        return (optax.apply_updates(params, updates), opt_state), None

    keys = jax.random.split(key, _STEPS_EACH)
    return lax.scan(step, (params, opt_state), keys)[0]


def _is_trained(model: AbstractRandomFunction) -> PyTree:
    return jax.tree.map(lambda label: label == "weights", model.labels())


BANDIT = Experiment(
    "regret of Thompson sampling by Bayes by Backprop, and of greedy choices",
    "Jospin et al. (2022), section 2.2.1, name the use; in Blundell et al. (2015), "
    "figure 6, Bayes by Backprop explores at first and then beats the greedy agents.",
    _run,
)
