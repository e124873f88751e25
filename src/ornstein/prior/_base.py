"""Priors over the parameters of a network."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._tree import pack, unpack
from .._types import Array, Float, Params, PRNGKeyArray

_EXACT = jax.lax.Precision.HIGHEST  # of products on GPUs, which round else


class AbstractPrior(eqx.Module):
    """A distribution over all parameters of a network, whose entries are independent.

    A tree of parameters is the network's own, with `None` for what is not random.
    """

    @abc.abstractmethod
    def log_prob(self, params: Params) -> Float[Array, ""]:
        """Log density of all entries together, nats."""

    @abc.abstractmethod
    def sample(self, like: Params, *, key: PRNGKeyArray) -> Params:
        """A draw with the structure, shapes and types of `like`."""

    @abc.abstractmethod
    def cross_entropy(self, mean: Params, scale: Params) -> Float[Array, ""] | None:
        r"""$-E_q \log p(w)$ for $q = N(\mathrm{mean}, \mathrm{scale}^2)$, each entry.

        Returns:
            nats, or `None` where there is no closed form.
        """

    @abc.abstractmethod
    def check(self, params: Params) -> None:
        """Refuse parameters that this prior has no density for.

        Raises:
            ValueError: naming the leaf whose shape does not fit.
        """


class AbstractLeafPrior(AbstractPrior):
    """A prior that treats every leaf alike: its methods are about one leaf.

    Attributes:
        is_one_law: whether all entries of leaves of any shape have the same law where
            the prior's own arrays are single numbers. Then small leaves are drawn
            together, in fewer and smaller programs.
    """

    is_one_law: ClassVar[bool] = False

    @abc.abstractmethod
    def leaf_log_prob(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log density of each entry, nats."""

    @abc.abstractmethod
    def leaf_sample(
        self, like: Float[Array, "*shape"], *, key: PRNGKeyArray
    ) -> Float[Array, "*shape"]:
        """A draw of a leaf with this shape and type."""

    @abc.abstractmethod
    def leaf_cross_entropy(
        self, mean: Float[Array, "*shape"], scale: Float[Array, "*shape"]
    ) -> Float[Array, "*shape"] | None:
        r"""$-E_q \log p(w)$ of each entry for $q = N(\mathrm{mean}, \mathrm{scale}^2)$.

        Returns:
            nats, or `None` where there is no closed form.
        """

    @abc.abstractmethod
    def leaf_check(self, shape: tuple[int, ...], name: str) -> None:
        """Refuse a leaf that this prior has no density for.

        Args:
            shape: of the leaf.
            name: of the leaf, for the message.

        Raises:
            ValueError: if the shapes do not fit.
        """

    def log_prob(self, params: Params) -> Float[Array, ""]:
        """See `AbstractPrior`."""
        parts = jax.tree.leaves(jax.tree.map(self.leaf_log_prob, params))
        # Products with ones: several chains' sums XLA makes by a call of 20 µs, a sixth
        # of what a leapfrog step of four small networks takes.
        one_by_one = lambda a: jnp.vdot(a, jnp.ones_like(a), precision=_EXACT)
        return sum(map(one_by_one, parts), start=jnp.zeros(()))

    def sample(self, like: Params, *, key: PRNGKeyArray) -> Params:
        """See `AbstractPrior`."""
        # Packed, as `normal_like` is, where that changes nothing.
        numbers = jax.tree.leaves(self)
        is_one = self.is_one_law and all(jnp.ndim(number) == 0 for number in numbers)
        leaves = pack(like) if is_one else jax.tree.leaves(like)
        keys = jax.random.split(key, len(leaves))
        drawn = [self.leaf_sample(a, key=k) for a, k in zip(leaves, keys, strict=True)]
        if is_one:
            return unpack(drawn, like)
        return jax.tree.unflatten(jax.tree.structure(like), drawn)

    def cross_entropy(self, mean: Params, scale: Params) -> Float[Array, ""] | None:
        """See `AbstractPrior`."""
        parts = jax.tree.map(self.leaf_cross_entropy, mean, scale)
        if len(jax.tree.leaves(parts)) < len(jax.tree.leaves(mean)):
            return None
        return total(parts)

    def check(self, params: Params) -> None:
        """See `AbstractPrior`."""
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            self.leaf_check(leaf.shape, jax.tree_util.keystr(path))


def total(parts: Params) -> Float[Array, ""]:
    """The sum over all entries of all leaves."""
    return sum((jnp.sum(part) for part in jax.tree.leaves(parts)), start=jnp.zeros(()))


def check_scale(name: str, value) -> None:
    """Refuse a scale with an entry that is not positive and finite."""
    values = np.asarray(value)
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(
            f"`{name}` of a prior must be positive, got {value}: it is a standard "
            "deviation (or width), in the units of the weights."
        )


def check_shape(
    prior_shape: tuple[int, ...], shape: tuple[int, ...], name: str
) -> None:
    """Refuse a prior's array that is neither one number nor of the leaf's shape."""
    if prior_shape not in ((), shape):
        raise ValueError(
            f"The prior has shape {prior_shape}, but {name or 'the parameter'} has "
            f"{shape}: give one number, an array of that shape, or `ByLeaf` for a "
            "prior of each leaf's own."
        )
