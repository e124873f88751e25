"""Where chains start that go on from a fit: one at each member, or all at a network."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._sentence import Choice, OptionError, Sentence
from .._types import Params, PyTree
from ..functions import MAP, AbstractRandomFunction, Deterministic, Ensemble
from ..likelihood import AbstractLikelihood
from ..network import as_network
from ..potential import Potential
from ..train import Fit
from ._starts import FROM_ONE_POINT, Starts

_MOST_SAID = 6
"""Arrays of a network, in a sentence."""


def starts_of_members(
    given: Fit | AbstractRandomFunction, potential: Potential, num_chains: int
) -> Starts:
    """A position for each chain: a network's weights, and the scale that was learned.

    All members of a `fit` have one scale; those of a function by itself have none, and
    start at the likelihood's own.

    Args:
        given: an `Ensemble` of deterministic members, one for each chain; or a `MAP` or
            `Deterministic`, at whose network all chains start.
        potential: of the network and likelihood that are sampled.
        num_chains: of an ensemble as many as there are members.

    Raises:
        TypeError: for what has no networks to start at.
        ValueError: for another number of members, network, or likelihood.
    """
    model = given.model if isinstance(given, Fit) else given
    networks, how = _networks(model, num_chains)
    params = _weights(networks, potential)
    scale = _with_chains(potential.start[1], num_chains)
    if isinstance(given, Fit) and jax.tree.leaves(scale):
        scale = _with_chains(_scale(given.likelihood, potential), num_chains)
    return Starts((params, scale), how)


def _networks(model: AbstractRandomFunction, num_chains: int) -> tuple[PyTree, str]:
    """Each chain's, with an axis of chains in front of the arrays; and in words."""
    if isinstance(model, Deterministic | MAP):
        arrays, rest = eqx.partition(model.network, _is_array)

        def spread(a: Any) -> Any:  # NumPy's 64 bits are to stay
            xp = np if isinstance(a, np.ndarray) else jnp
            return xp.broadcast_to(a, (num_chains, *a.shape))

        networks = eqx.combine(jax.tree.map(spread, arrays), rest)
        return networks, f"{FROM_ONE_POINT}, a network that was trained"
    if not isinstance(model, Ensemble) or not isinstance(model.members, Deterministic):
        kind = type(model).__name__
        if isinstance(model, Ensemble):
            kind = f"Ensemble of {type(model.members).__name__}"
        whose = Choice(
            "`starts` an `Ensemble` of plain networks, a `MAP` or a `Deterministic`, "
            "or the `Fit` of one",
            "{start_from} a run of `ornstein train {model} ensemble`, map or "
            "deterministic",
        )
        template = (
            "Chains start from the networks of an ensemble, one from each, or all from "
            "one network, and got `{}`: give {}."
        )
        raise TypeError(Sentence(template, kind, whose))
    if model.num_members != num_chains:
        raise OptionError(
            "The ensemble has {} members, from each of which one chain starts, and "
            "{num_chains} is {}: give {num_chains} {}.",
            model.num_members,
            num_chains,
            model.num_members,
        )
    how = f"at the {num_chains} members of an ensemble, one chain from each"
    return model.members.network, how


def _weights(network: PyTree, potential: Potential) -> Params:
    """Those networks' own, as `potential` moves them."""
    moving = potential.start[0]
    whole = eqx.combine(moving, potential.network)
    arrays, rest = eqx.partition(network, _is_array)
    _, own_rest = eqx.partition(as_network(whole), _is_array)
    own_arrays = eqx.filter(whole, _is_array)
    is_same = eqx.tree_equal(rest, own_rest) is True
    shapes = [(a.shape[1:], a.dtype) for a in jax.tree.leaves(arrays)]
    own_shapes = [(a.shape, a.dtype) for a in jax.tree.leaves(own_arrays)]
    if not is_same or shapes != own_shapes:
        raise OptionError(
            "Chains would start at another network than the one that is sampled: its "
            "arrays are {}, for {}{}; {}.",
            _said(shapes),
            _said(own_shapes),
            "" if is_same else ", and they compute something else",
            Choice(
                "give the network that was trained",
                "give that run's {network}, if it is one of those that can be sampled, "
                "{width}, {activation} and other options of the network",
            ),
        )
    stacked = jax.tree.unflatten(
        jax.tree.structure(own_arrays), jax.tree.leaves(arrays)
    )

    def is_still(own: Any, at: Any, member: Any) -> bool:
        is_moving = at is not None or own is None
        return is_moving or bool(np.all(np.asarray(member) == np.asarray(own)[None]))

    same = jax.tree.map(is_still, own_arrays, moving, stacked, is_leaf=_is_none)
    if not all(jax.tree.leaves(same)):
        raise ValueError(
            "The networks at which chains would start differ from the one that is "
            "sampled in parameters that are not: give the network that was trained, or "
            "a `where` that chooses all that was."
        )
    keep = lambda at, member: None if at is None else member
    return jax.tree.map(keep, moving, stacked, is_leaf=_is_none)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _scale(likelihood: AbstractLikelihood, potential: Potential) -> Params:
    is_learned = jax.tree.map(lambda name: name != "frozen", likelihood.labels())
    scale, fixed = eqx.partition(likelihood, is_learned)
    own = potential.start[1]
    shapes = lambda tree: [jnp.shape(a) for a in jax.tree.leaves(tree)]
    if eqx.tree_equal(fixed, potential.likelihood) is not True or (
        shapes(scale) != shapes(own)
    ):
        raise OptionError(
            "What chains would start at was fitted with the likelihood `{}`{}, and "
            "they are to sample the scale of {}`{}`; {}.",
            type(likelihood).__name__,
            "" if jax.tree.leaves(scale) else ", its scale fixed",
            "another " if type(likelihood) is type(potential.likelihood) else "",
            type(potential.likelihood).__name__,
            Choice(
                "give the one that it was fitted with, or the function by itself, "
                "`Fit.model`",
                "leave {likelihood}, {scale} and {learn_scale} out",
            ),
        )
    return scale


def _with_chains(tree: Params, num_chains: int) -> Params:
    spread = lambda a: jnp.broadcast_to(a, (num_chains, *jnp.shape(a)))
    return jax.tree.map(spread, tree)


def _said(shapes: list[tuple[Any, Any]]) -> str:
    said = [f"{dtype}{list(shape)}" for shape, dtype in shapes[:_MOST_SAID]]
    more = len(shapes) - len(said)
    return ", ".join(said) + (f" and {more} more" if more else "")
