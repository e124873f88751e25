"""A function whose posterior is its prior, and stays so in training."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from .._tree import is_at
from .._types import Array, PRNGKeyArray, PyTree
from ._base import FROZEN, AbstractRandomFunction, Draw
from ._posterior_parts import PosteriorParts


class HeldAtPrior(AbstractRandomFunction):
    """A random function of which some arrays are not trained, whatever it says itself.

    With q put back to p, and the arrays of q held: what is left to train are the points
    (a readout, the weights that are not random), as they are best under the prior's
    noise.

    Attributes:
        function: any.
        held: the function to the arrays that training leaves alone.
    """

    function: AbstractRandomFunction
    held: Callable[[Any], PyTree] = eqx.field(static=True)
    num_strata: int = eqx.field(static=True)
    num_members: int = eqx.field(static=True)

    def __init__(self, function: AbstractRandomFunction, held: Callable[[Any], PyTree]):
        self.function, self.held = function, held
        self.num_strata, self.num_members = function.num_strata, function.num_members

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""
        return self.function(x, key=key, index=index, state=state)

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """The function's own."""
        return self.function.member(number)

    def posterior_parts(self) -> PosteriorParts:
        """It claims no posterior."""
        own = self.function.posterior_parts()
        return PosteriorParts(is_random=own.is_random, has_bound=own.has_bound)

    def labels(self) -> PyTree[str]:
        """What the function says, and frozen for what is held."""
        labels = jax.tree.map(
            lambda label, is_held: FROZEN if is_held else label,
            self.function.labels(),
            is_at(self.function, self.held),
        )
        frozen = jax.tree.map(lambda leaf: FROZEN, self)
        return eqx.tree_at(lambda twin: twin.function, frozen, labels)
