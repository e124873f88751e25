"""Several draws of a random function: one after another, and fairly among its strata.

Where a number of draws is no multiple of the strata, some of them count more often than
others. What the package chooses by itself is rounded up (`whole_rounds`). What a user
gives stands: `predict` takes the first strata once more, a command says so or refuses,
and what compares strata with each other (`component_diversity`) needs whole rounds.
"""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from .._mesh import DRAWS, each_apart
from .._types import Array, PRNGKeyArray, PyTree
from ._base import AbstractRandomFunction, Draw

_Kept = TypeVar("_Kept")


def map_draws(
    keep: Callable[[Draw], _Kept],
    model: AbstractRandomFunction,
    x: PyTree[Array],
    *,
    key: PRNGKeyArray,
    num_draws: int,
    state: eqx.nn.State | None = None,
    draws_at_once: int = 1,
    mesh: Mesh | None = None,
) -> _Kept:
    """What is kept of draws 0 to `num_draws - 1` on one batch, draws first.

    Not compiled by itself: call it where everything else is.

    Args:
        keep: from a draw to arrays.
        model: the random function, as it is in prediction.
        x: the batch.
        key: which functions.
        num_draws: how many.
        state: batch statistics; each draw has its own copy.
        draws_at_once: computed side by side; the others follow one after another,
            which on a CPU is several times faster than a `vmap` over kernels.
        mesh: of several devices, along whose `draws` each has its own; or `None`.
    """

    def of(whole: PyTree, indices: Array) -> _Kept:
        model, x, key, state = whole

        def one(index: Array) -> _Kept:
            return keep(model(x, key=key, index=index, state=copied(state)))

        batch_size = None if draws_at_once == 1 else draws_at_once
        return jax.lax.map(one, indices, batch_size=batch_size)

    return each_apart(of, mesh, DRAWS)((model, x, key, state), jnp.arange(num_draws))


def copied(state: eqx.nn.State | None) -> eqx.nn.State | None:
    """The same batch statistics once more: a state may be used only once.

    Args:
        state: to be used again; `None` for a model without any.
    """
    return jax.tree.map(lambda leaf: leaf, state)


def are_whole_rounds(num_draws: int, num_strata: int) -> bool:
    """Whether so many draws take every stratum equally often.

    Args:
        num_draws: how many.
        num_strata: the random function's.
    """
    return num_draws % num_strata == 0


def whole_rounds(num_draws: int, num_strata: int) -> int:
    """The least number of draws from `num_draws` on that uses all strata equally.

    Args:
        num_draws: how many are wanted.
        num_strata: the random function's.
    """
    return -(-num_draws // num_strata) * num_strata
