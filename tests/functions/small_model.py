"""A small SDE-BNN whose posterior is not its prior, and compiled ways to call it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from ornstein.functions import SDEBNN, Draw, Integrator, SDEBlock, WeightDrift
from ornstein.sde import Fixed

X = np.linspace(-1.5, 1.5, 12, dtype=np.float32).reshape(6, 2)
DEPTHS = np.linspace(0.0, 1.0, 6)


def small_model(**changes: Any) -> SDEBNN:
    """Two inputs, one augmented, 45 random weights, two inducing inputs."""
    choices: dict[str, Any] = {
        "width_sizes": (5,),
        "augment": 1,
        "drift_widths": (3, 4),
        "num_inducing": 2,
        "start_width": 0.5,
        "integrator": Integrator(stepsize=Fixed(0.2)),
        "key": jr.key(0),
    }
    return SDEBNN.for_vectors(2, 1, **(choices | changes))


def away_from_prior(model: SDEBNN, *, scale: float = 0.5, seed: int = 1) -> SDEBNN:
    """With the last layer of each drift drawn, where it starts at zero."""

    def draw(block: SDEBlock) -> SDEBlock:
        where = lambda b: (b.drift.writes, b.drift.biases)
        leaves, treedef = jax.tree.flatten(where(block))
        keys = jr.split(jr.key(seed), len(leaves))
        drawn = [
            scale * jr.normal(k, a.shape) for k, a in zip(keys, leaves, strict=True)
        ]
        return eqx.tree_at(where, block, jax.tree.unflatten(treedef, drawn))

    is_block = lambda layer: isinstance(layer, SDEBlock)
    layers = tuple(draw(a) if is_block(a) else a for a in model.layers)
    return eqx.tree_at(lambda m: m.layers, model, layers)


def two_blocks() -> SDEBNN:
    """A second block, of another size of drift, behind the first."""
    first = away_from_prior(small_model())
    second = away_from_prior(small_model(key=jr.key(5), drift_widths=(2,)), seed=2)
    layers = (*first.layers, second.layers[-1])
    return eqx.tree_at(lambda m: m.layers, first, layers)


def drift_of(model: SDEBNN) -> WeightDrift:
    """The first block's network."""
    return blocks_of(model)[0].drift


def blocks_of(model: SDEBNN) -> list[Any]:
    """The solves."""
    return [layer for layer in model.layers if isinstance(layer, SDEBlock)]


@eqx.filter_jit
def draw(
    model: SDEBNN,
    x: Array | np.ndarray,
    key: PRNGKeyArray,
    index: int | Array | None = None,
) -> Draw:
    return model(jnp.asarray(x), key=key, index=index)


@eqx.filter_jit
def trajectory(
    model: SDEBNN,
    x: Array | np.ndarray,
    key: PRNGKeyArray,
    index: int | Array | None = None,
    num_intervals: int = 5,
) -> list[Any]:
    depths = np.linspace(0.0, 1.0, num_intervals + 1)
    return model.trajectory(jnp.asarray(x), depths, key=key, index=index)
