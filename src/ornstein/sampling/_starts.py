"""Where chains start: apart, so that R-hat can see that they stay apart."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Params, PRNGKeyArray
from ..potential import Potential

FROM_ONE_POINT = "from one point"
APART = (
    "each at a draw of its own from the prior, no larger in any array than the network "
    "that was given"
)
GIVEN = "where `starts` put them"


class Starts(NamedTuple):
    """Positions, and what to say of them.

    Attributes:
        positions: chains first.
        how: in words.
    """

    positions: Params
    how: str


def starts_of(
    potential: Potential, num_chains: int, *, jitter: float | None, key: PRNGKeyArray
) -> Starts:
    """Where chains start that nobody gave positions for.

    Args:
        potential: what is sampled.
        num_chains: side by side.
        jitter: to start near the network that was given, or `None`: apart.
        key: randomness.
    """
    if jitter is None:
        return Starts(apart(potential, num_chains, key=key), APART)
    positions = jittered(potential.start, num_chains, jitter, key=key)
    return Starts(positions, f"{FROM_ONE_POINT} within {jitter:g}")


@eqx.filter_jit
def apart(potential: Potential, num_chains: int, *, key: PRNGKeyArray) -> Params:
    """Positions, chains first, in directions of their own.

    Draws of the prior, each array of which is shortened to the length of the network's:
    to chains of an untrained network they are initialisations of their own. Draws of
    full length lie so far out that fixed steps leave the finite numbers and a warm-up
    does not come back in time (measured on `uci/yacht`). So they are not overdispersed,
    as R-hat asks: an R-hat near 1 says that chains from such starts met. An array of
    zeros has no length, and is shortened as all others are together; a learned scale
    is no weight, and stays.

    Args:
        potential: its prior, and the network that was given.
        num_chains: side by side.
        key: randomness.
    """
    params, scale = potential.start

    def one(key: PRNGKeyArray) -> Params:
        return _shortened(potential.prior.sample(params, key=key), params)

    same = lambda a: jnp.broadcast_to(a, (num_chains, *a.shape))
    drawn = jax.vmap(one)(jax.random.split(key, num_chains))
    return drawn, jax.tree.map(same, scale)


def _shortened(drawn: Params, own: Params) -> Params:
    norm = lambda a: jnp.linalg.norm(a.ravel().astype(jnp.float32))
    lengths, sizes = jax.tree.map(norm, drawn), jax.tree.map(norm, own)
    # Not of a length that is NaN, which is to show.
    ratio = lambda size, length: jnp.where(length <= size, 1.0, size / length)
    known = jax.tree.map(lambda s, n: jnp.where(s == 0, 0.0, n), sizes, lengths)
    together = ratio(*(norm(jnp.stack(jax.tree.leaves(t))) for t in (sizes, known)))

    def shorten(a: Array, size: Array, length: Array) -> Array:
        factor = jnp.where(size == 0, together, ratio(size, length))
        return a * factor.astype(a.dtype)

    return jax.tree.map(shorten, drawn, sizes, lengths)


@eqx.filter_jit
def jittered(
    position: Params, num_chains: int, jitter: float, *, key: PRNGKeyArray
) -> Params:
    """A position for each chain, chains first: a common one plus normal noise."""
    leaves, treedef = jax.tree.flatten(position)
    keys = jax.random.split(key, len(leaves))

    def spread(leaf, leaf_key):
        shape = (num_chains, *leaf.shape)
        noise = jax.random.normal(leaf_key, shape, leaf.dtype)
        return jnp.broadcast_to(leaf, shape) + jitter * noise

    spreads = [spread(a, k) for a, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(treedef, spreads)
