"""How many numbers an output has for a row."""

import jax

from .._types import PyTree
from ._base import AbstractLikelihood
from ._custom import CustomLikelihood
from ._weighted import of_unweighted


def num_outputs_of(likelihood: AbstractLikelihood, output: PyTree) -> int:
    """The length of the last axis of a network's output.

    Args:
        likelihood: that the output is for.
        output: of a batch, or its shapes.

    Raises:
        ValueError: for a scalar of each row, which `CustomLikelihood` alone may take.
    """
    first = jax.tree.leaves(output)[0]
    if len(first.shape) > 1:
        return first.shape[-1]
    if not isinstance(of_unweighted(likelihood), CustomLikelihood):
        raise ValueError(
            "The network gives a scalar for each row, where "
            f"`{type(of_unweighted(likelihood)).__name__}` needs a vector: let it give "
            "shape (1,)."
        )
    return 1
