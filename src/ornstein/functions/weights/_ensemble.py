"""Deep ensembles: Lakshminarayanan, Pritzel & Blundell (2017)."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..._types import Array, Float, PRNGKeyArray, PyTree
from ...network import Network, has_batch_state
from .._base import FROZEN, AbstractRandomFunction, Draw
from .._posterior_parts import KLEstimate, PosteriorParts
from ._deterministic import Deterministic


class Ensemble(AbstractRandomFunction):
    r"""Several networks, or random functions, of one structure.

    Draw i is member $i \bmod n$: predict with `num_draws` a multiple of $n$. Members
    that are random themselves make $\lfloor i / n \rfloor$ their own draw. Members that
    are ensembles count as their members: $n$ is of those that train alone.

    `fit` trains all members together, each batch seen by every one of them as by a
    member alone: a mixture's components share it, rows have noise of their own. Its
    loss is their mean, so that a member's gradient is $1/n$ of what it would be alone.
    Adam doesn't feel that; plain SGD needs $n$ times the learning rate; `clip_norm`
    bounds the norm of all members' gradients together, each divided by $n$. Members
    that were trained one by one (on other batches, on other rows) are put together
    with `Ensemble([fit.model for fit in fits])`.

    The KL is the member's own: 0 for networks, whose weight decay is
    `optimiser=partial(optax.adamw, weight_decay=...)`.

    Args:
        members: two or more networks, or random functions, that differ in nothing but
            the values of their arrays.

    Raises:
        TypeError: for no list, or a member that cannot be called.
        ValueError: for fewer than two members, members of different structure, or
            networks with batch statistics.

    Attributes:
        members: one random function, with an axis of members in front of every array.
        num_members: $n$.

    References:
        Lakshminarayanan, Pritzel & Blundell (2017), "Simple and Scalable Predictive
        Uncertainty Estimation using Deep Ensembles".
    """

    members: AbstractRandomFunction
    num_members: int = eqx.field(static=True)
    num_strata: int = eqx.field(static=True)

    def __init__(self, members: Sequence[Network | AbstractRandomFunction]):
        if not isinstance(members, Sequence):
            raise TypeError(
                f"`members` must be a list, got {type(members).__name__}: write "
                "orn.Ensemble([network, other])."
            )
        if len(members) < 2:
            raise ValueError(
                f"An ensemble has at least 2 members, got {len(members)}: use "
                "`Deterministic` for a single network."
            )
        if any(map(has_batch_state, members)):
            raise ValueError(
                "The members keep batch statistics (batch normalisation), and an "
                "ensemble has one state for all of them: use a network without, such "
                "as `nn.WideResNet(..., norm=nn.FilterResponseNorm)`, or fit members "
                "by themselves."
            )
        functions = [
            m if isinstance(m, AbstractRandomFunction) else Deterministic(m)
            for m in members
        ]
        first = functions[0]
        self.members = _stack(functions)
        self.num_members = len(functions) * first.num_members
        self.num_strata = len(functions) * first.num_strata

    @staticmethod
    def of(
        make_member: Callable[..., Network | AbstractRandomFunction],
        num_members: int,
        *,
        key: PRNGKeyArray,
    ) -> "Ensemble":
        """Members that differ in their initial weights.

        Args:
            make_member: called as `make_member(key=key)`, for example
                `functools.partial(ornstein.nn.MLP, 784, 10, (400, 400))`.
            num_members: how many; at least 2.
            key: of their weights.
        """
        keys = jax.random.split(key, max(num_members, 0))
        return Ensemble([make_member(key=member_key) for member_key in keys])

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """A draw of one member; of any member, for the whole batch, with no index."""
        if index is None:
            which_key, key = jax.random.split(key)
            which = jax.random.randint(which_key, (), 0, self.num_members)
            return self.member(which)(x, key=key, index=None, state=state)
        which, draw = index % self.num_members, index // self.num_members
        key = jax.random.fold_in(key, which)
        return self.member(which)(x, key=key, index=draw, state=state)

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """One member by its number: that of draw `number`.

        Args:
            number: below `num_members`; that of a traced one cannot be checked.

        Raises:
            IndexError: if there is none of that number.
        """
        is_known = not isinstance(number, Tracer)
        if is_known and not 0 <= int(number) < self.num_members:
            raise IndexError(
                f"There is no member {int(number)} of {self.num_members}: give a "
                f"number from 0 to {self.num_members - 1}. (Draws go round: "
                "`ensemble(x, key=key, index=i)` is of member i % num_members.)"
            )
        num_stacked = self._num_stacked()
        which, inner = number % num_stacked, number // num_stacked
        arrays, rest = eqx.partition(self.members, eqx.is_array)
        one = eqx.combine(jax.tree.map(lambda a: a[which], arrays), rest)
        return one.member(inner)

    def network_at(self, index: int | Array, *, key: PRNGKeyArray) -> Network:
        """The network of draw `index`: that of `__call__` with the same key.

        Args:
            index: which draw.
            key: which functions.

        Raises:
            AttributeError: for members that are no networks with weights.
        """
        which, draw = index % self.num_members, index // self.num_members
        member: Any = self.member(which)
        return member.network_at(draw, key=jax.random.fold_in(key, which))

    def posterior_parts(self) -> PosteriorParts:
        """Of its members: where they start, their parts, and the mean of their bounds.

        That is a bound, too: the KL of a mixture is at most the mean of its members'.
        What else they have is not the ensemble's.
        """
        own = self.member(0).posterior_parts()
        return PosteriorParts(
            has_bound=own.has_bound,
            notes=own.notes,
            kl_estimate=self._mean_of_kls(own.kl_estimate),
            start_size=own.start_size,
            parts=own.parts,
            at_prior=self._at_prior,
            held=lambda ensemble: own.held(ensemble.members),
            without_noise=self._of_members(lambda parts: parts.without_noise),
            noise_free_twin=self._of_members(lambda parts: parts.noise_free_twin),
        )

    def _mean_of_kls(self, own: KLEstimate | None) -> KLEstimate | None:
        """The mean of what its members estimate; of one of them, what that has."""
        if own is None:
            return None

        def mean(of: Callable[[KLEstimate], Callable]) -> Callable:
            def one(member: AbstractRandomFunction, key: PRNGKeyArray) -> Array:
                estimate = member.posterior_parts().kl_estimate
                assert estimate is not None
                return of(estimate)(key)

            def of_all(key: PRNGKeyArray) -> Float[Array, ""]:
                keys = jax.random.split(key, self._num_stacked())
                return jnp.mean(eqx.filter_vmap(one)(self.members, keys))

            return of_all

        stand_ins = {
            name: mean(lambda estimate, name=name: estimate.stand_ins[name])
            for name in own.stand_ins
        }
        return KLEstimate(own.name, mean(lambda own: own.estimate), stand_ins)

    def _num_stacked(self) -> int:
        """The length of the axis in front of every array."""
        return self.num_members // self.members.num_members

    def _at_prior(self, parts: Collection[str], key: PRNGKeyArray) -> "Ensemble":
        def put_back(member: AbstractRandomFunction, key: PRNGKeyArray) -> Any:
            return member.posterior_parts().at_prior(parts, key)

        keys = jax.random.split(key, self._num_stacked())
        return self._with_members(eqx.filter_vmap(put_back)(self.members, keys))

    def _of_members(
        self, relative_of: Callable[[PosteriorParts], Callable[[], Any] | None]
    ) -> Callable[[], "Ensemble"] | None:
        """How to make the ensemble of its members' relatives, if they have any."""
        if relative_of(self.member(0).posterior_parts()) is None:
            return None

        def relative(member: AbstractRandomFunction) -> Any:
            make = relative_of(member.posterior_parts())
            assert make is not None
            return make()

        return lambda: self._with_members(eqx.filter_vmap(relative)(self.members))

    def _with_members(self, members: AbstractRandomFunction) -> "Ensemble":
        """With an axis of members in front of every array, as they are kept."""
        return eqx.tree_at(lambda ensemble: ensemble.members, self, members)

    def labels(self) -> PyTree[str]:
        """What a member says of its leaves."""
        frozen = jax.tree.map(lambda leaf: FROZEN, self)
        return eqx.tree_at(lambda e: e.members, frozen, self.members.labels())


def _stack(members: Sequence[Any]) -> Any:
    """One tree with an axis of members in front of every array."""
    flat = [jax.tree_util.tree_flatten_with_path(member) for member in members]
    leaves = [dict(_named(pairs)) for pairs, _ in flat]
    first = leaves[0]
    for number, ((_, treedef), other) in enumerate(zip(flat, leaves, strict=True)):
        if treedef != flat[0][1]:
            raise ValueError(
                f"Member {number} is a {type(members[number]).__name__} of another "
                f"structure than member 0, a {type(members[0]).__name__}: members of "
                "an ensemble differ in the values of their arrays alone."
            )
        for name in first:
            if not _are_alike(first[name], other[name]):
                raise ValueError(
                    f"Member {number} has {_describe(other[name])} at {name} and "
                    f"member 0 {_describe(first[name])}: members of an ensemble "
                    "differ in the values of their arrays alone."
                )
    stacked = [
        jnp.stack([jnp.asarray(other[name]) for other in leaves])
        if _is_array(leaf)
        else leaf
        for name, leaf in first.items()
    ]
    return jax.tree.unflatten(flat[0][1], stacked)


def _named(pairs):
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in pairs]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _are_alike(one: Any, other: Any) -> bool:
    if _is_array(one) and _is_array(other):
        return (one.shape, one.dtype) == (other.shape, other.dtype)
    return not (_is_array(one) or _is_array(other)) and one == other


def _describe(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}" if _is_array(leaf) else repr(leaf)
