"""Which weights of a trained network become random, and what is kept of them."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax

from ..._types import PyTree
from ...network import split_where, unwrapped
from ...nn import layers_of

MAX_JOINT_WEIGHTS = 6_500
"""With a full covariance: 340 MB in double precision. The last layers of ResNet-18 and
of WideResNet-28-10 have as many for ten classes."""

_Where = Callable[[Any], PyTree]


class AbstractStructure(eqx.Module):
    """Which weights Laplace's approximation is of, and their covariance.

    Attributes:
        is_diagonal: whether weights are independent of each other.
    """

    is_diagonal: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def chosen(self, network: Any) -> PyTree:
        """The subtree (or a tuple of them) whose weights are random.

        Args:
            network: the trained one.

        Raises:
            ValueError: if it has none of them.
        """

    def num_weights(self, network: Any) -> int:
        """How many weights are random.

        Args:
            network: trained or not.

        Raises:
            ValueError: if it has none of those that are to be.
        """
        chosen, _ = split_where(unwrapped(network), self.chosen)
        return sum(leaf.size for leaf in jax.tree.leaves(chosen))


class LastLayer(AbstractStructure):
    """All weights of the last layer together, on features that are given.

    The last linear or convolutional layer in the order of the network's fields. For a
    network whose fields have another order, say `FullGGN(lambda net: net.head)`.
    """

    is_diagonal: ClassVar[bool] = False

    def chosen(self, network: Any) -> PyTree:
        """See `AbstractStructure`."""
        layers = layers_of(network)
        if not layers:
            raise ValueError(
                f"`{type(network).__name__}` has no linear or convolutional layer to "
                "be the last: say which weights are random, as in "
                "`structure=FullGGN(lambda net: net.head)`."
            )
        return layers[-1]


class FullGGN(AbstractStructure):
    """All weights together: exact for the linearised network, and for few weights.

    It costs the square of their number in memory and its cube in time; more than 6,500
    are refused.

    Attributes:
        where: the network to its subtree (or a tuple of them) that is random; all of it
            by default.
    """

    where: _Where = eqx.field(static=True, default=lambda whole: whole)
    is_diagonal: ClassVar[bool] = False

    def chosen(self, network: Any) -> PyTree:
        """See `AbstractStructure`."""
        return self.where(network)


class DiagonalGGN(AbstractStructure):
    """Each weight by itself: for networks of any size.

    It leaves out how weights make up for each other, which in a network is much:
    beside `LastLayer` its predictions are usually the worse.

    Attributes:
        where: the network to its subtree (or a tuple of them) that is random; all of it
            by default.
    """

    where: _Where = eqx.field(static=True, default=lambda whole: whole)
    is_diagonal: ClassVar[bool] = True

    def chosen(self, network: Any) -> PyTree:
        """See `AbstractStructure`."""
        return self.where(network)
