"""Refuse a start from which no chain can move."""

from collections.abc import Callable

import jax
import numpy as np

from .._types import Array, Float, Params
from ..potential import AbstractPotential, Potential, Tempered


def check_start(potential: AbstractPotential, position: Params) -> None:
    """Refuse a start whose density or gradient is not finite.

    To be called on values, outside `jax.jit`, before a chain is started.

    Args:
        potential: of the chain.
        position: its start.

    Raises:
        ValueError: naming the term, prior or likelihood.
    """
    for name, energy_fn in _terms(potential).items():
        energy, gradient = jax.value_and_grad(energy_fn)(position)
        if not np.isfinite(energy):
            raise ValueError(
                f"The {name} is {-float(energy)} at the start, where a chain cannot "
                "begin: start from other parameters, or look for values that are not "
                "finite in the data."
            )
        for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
            if not np.all(np.isfinite(leaf)):
                raise ValueError(
                    f"The gradient of the {name} by {jax.tree_util.keystr(path)} is "
                    "not finite at the start, so that a chain cannot move: start from "
                    "other parameters."
                )


def _terms(
    potential: AbstractPotential,
) -> dict[str, Callable[[Params], Float[Array, ""]]]:
    """Energies that add up to the potential (but for its temperature), by name."""
    if isinstance(potential, Tempered):
        return _terms(potential.potential)
    if isinstance(potential, Potential):
        return {
            "log prior": potential.prior_energy,
            "log likelihood": potential.likelihood_energy,
        }
    return {"log density": potential}
