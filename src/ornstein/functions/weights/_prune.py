"""Removing the weights whose signal is smallest beside their noise."""

import math
from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._types import Array, Params, PRNGKeyArray, PyTree
from ...network import as_network, call_network
from ...nn import num_parameters
from .._base import FROZEN, AbstractRandomFunction, Draw, draw_key, no_local_kl
from .._posterior_parts import PosteriorParts
from ._mean_field import MeanField
from ._variational import NormalFamily


class Pruned(AbstractRandomFunction):
    r"""A mean-field network some of whose random weights are the constant 0.

    What `prune` and `ornstein.train.load_sparse` return. It predicts, and is not
    trained further: its labels are all frozen. Its KL reads 0, because a constant has
    none to a prior with a density.

    Attributes:
        family: of the random weights; a removed one has mean 0 and rho $-\infty$, which
            is a standard deviation of 0.
        rest: the network with `None` in place of the random weights.
    """

    family: NormalFamily
    rest: PyTree
    num_strata: int = 1
    num_members: int = eqx.field(static=True, default=1)

    @property
    def num_weights(self) -> int:
        """Random weights that are left."""
        kept = jax.tree.map(lambda keep: int(np.sum(keep)), self.kept)
        return sum(jax.tree.leaves(kept))

    @property
    def num_removed(self) -> int:
        """Random weights that were removed."""
        return num_parameters(self.family.mean) - self.num_weights

    @property
    def num_parameters(self) -> int:
        """Numbers that are left: two for each random weight, one for each point."""
        return 2 * self.num_weights + num_parameters(self.rest)

    @property
    def kept(self) -> PyTree[np.ndarray]:
        """For each random weight, whether it is left."""
        return jax.tree.map(lambda rho: np.asarray(rho) > -np.inf, self.family.rho)

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""
        params = self.family.sample(key=draw_key(key, index))
        network = as_network(eqx.combine(params, self.rest))
        output, state, report = call_network(network, x, state)
        return Draw(
            output=output,
            kl=jnp.zeros(()),
            local_kl=no_local_kl(x),
            state=state,
            report=report,
        )

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """What is left of its numbers, none of them trained."""
        return PosteriorParts(has_bound=False, num_parameters=self.num_parameters)

    def labels(self) -> PyTree[str]:
        """All frozen."""
        return jax.tree.map(lambda leaf: FROZEN, self)


def prune(function: AbstractRandomFunction, fraction: float) -> Pruned:
    r"""Remove the fraction of the random weights with the smallest $|\mu| / \sigma$.

    All random parameters are ranked together, biases too. Those removed become the
    constant 0, the others stay random as they were.

    Args:
        function: a `MeanField`, trained, with normal weights.
        fraction: of the weights, in [0, 1); their number is rounded down.

    Raises:
        TypeError: for another function, or another family of weights.
        ValueError: for a fraction outside [0, 1).

    References:
        Blundell et al. (2015), "Weight Uncertainty in Neural Networks", section 5.1;
        Graves (2011).
    """
    if not isinstance(function, MeanField):
        raise TypeError(
            f"Only weights with means and scales can be ranked, got "
            f"`{type(function).__name__}`: give a `MeanField`."
        )
    if not isinstance(function.family, NormalFamily):
        raise TypeError(
            f"Weights are ranked by their mean over their scale, which "
            f"`{type(function.family).__name__}` does not name: give a `MeanField` "
            "with `NormalFamily`."
        )
    if not 0 <= fraction < 1:
        raise ValueError(
            f"`fraction` must be in [0, 1), got {fraction}: 0.75 removes three of four "
            "weights."
        )
    keep = _largest(function.family, fraction)
    mean = _where(keep, function.family.mean, 0.0)
    rho = _where(keep, function.family.rho, -math.inf)
    return Pruned(NormalFamily(mean, rho), function.rest)


def _largest(family: NormalFamily, fraction: float) -> PyTree[np.ndarray]:
    """Which weights stay."""
    means, treedef = jax.tree.flatten(family.mean)
    scales = jax.tree.leaves(family.scale)
    ratios = np.concatenate(
        [
            # In logarithms: a scale may be 0 in single precision.
            np.ravel(_log(abs(np.asarray(m, float))) - _log(np.asarray(s, float)))
            for m, s in zip(means, scales, strict=True)
        ]
    )
    # As it is written: 0.29 of 100 weights are 29, the float's product is below.
    num_removed = math.floor(Fraction(str(fraction)) * ratios.size)
    keep = np.ones(ratios.size, bool)
    keep[np.argsort(ratios, kind="stable")[:num_removed]] = False
    ends = np.cumsum([m.size for m in means])[:-1]
    parts = np.split(keep, ends)
    return jax.tree.unflatten(
        treedef, [part.reshape(m.shape) for part, m in zip(parts, means, strict=True)]
    )


def _log(value: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(value, np.finfo(float).tiny))


def _where(keep: PyTree[np.ndarray], tree: Params, otherwise: float) -> Params:
    return jax.tree.map(
        lambda k, leaf: jnp.where(k, leaf, jnp.asarray(otherwise, leaf.dtype)),
        keep,
        tree,
    )
