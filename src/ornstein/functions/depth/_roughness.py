r"""Dynamics that are easy to solve, by a penalty on how rough they are.

Kelly, Bettencourt, Johnson & Duvenaud (2020), "Learning Differential Equations that are
Easy to Solve": $R_K = \int_0^1 \|d^K h / dt^K\|^2 dt$.
"""

from typing import TypeVar

import equinox as eqx
import jax

from ._hidden_units import check_roughness
from ._integrator import has_integrator, replace_integrators
from ._sde_block import SDEBlock
from ._whitened import WhitenedBlock

_Model = TypeVar("_Model")


class Roughness(eqx.Module):
    """What `fit(regularise_dynamics=...)` adds to the loss: weight times $R_K$.

    Attributes:
        weight: nats per example for each unit of $R_K$ (see `SolveReport`).
        order: K. 1 is the mean square of f_h; 2 that of the acceleration of the hidden
            units, for networks of ordinary differential equations alone.
    """

    weight: float = eqx.field(static=True)
    order: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if not self.weight > 0:
            raise ValueError(
                f"`weight` must be positive, got {self.weight}: to leave dynamics as "
                "they are give `regularise_dynamics=None`."
            )
        if self.order not in (1, 2):
            raise ValueError(f"`order` must be 1 or 2, got {self.order}.")


def with_roughness(model: _Model, order: int) -> _Model:
    """The model, whose solves report their roughness of this order (0: none).

    Args:
        model: a random function, or a network, that solves differential equations.
        order: K of $R_K$.

    Raises:
        TypeError: a model without a differential equation.
        ValueError: order 2 for one whose weights have noise.
    """
    if not has_integrator(model):
        raise TypeError(
            f"Dynamics are regularised in a model that solves a differential equation, "
            f"such as `SDEBNN` or `ODENet`, got {type(model).__name__}: leave "
            "`regularise_dynamics` out."
        )
    is_block = lambda node: isinstance(node, SDEBlock | WhitenedBlock)
    for node in filter(is_block, jax.tree.leaves(model, is_leaf=is_block)):
        check_roughness(order, is_noisy=node.is_noisy)
    return replace_integrators(model, roughness_order=order)
