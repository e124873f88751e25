"""Parts of a network over standard normals: numbers times scales, and constants."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, PyTree
from ..nn import fan_ins


class Standardised(eqx.Module):
    """A module whose parameters are numbers times scales.

    Attributes:
        numbers: the module with standardised parameters.
        scales: of each parameter, their standard deviations a priori.
    """

    numbers: PyTree
    scales: PyTree[float]

    @staticmethod
    def of(module: PyTree, scale: float, *, whole: PyTree = None) -> "Standardised":
        """The same module; each scale is `scale` / √fan-in, in the `whole` module."""
        scales = jax.tree.map(
            lambda n: scale / n**0.5, fan_ins(module if whole is None else whole)
        )
        return Standardised(_each(jnp.divide, module, scales), scales)

    def module(self) -> Any:
        """The module itself."""
        return _each(jnp.multiply, self.numbers, self.scales)

    def __call__(self, h: Array) -> Array:
        """Apply it."""
        return self.module()(h)


def _each(operation: Callable, module: PyTree, scales: PyTree) -> PyTree:
    """A module's parameters with their scales; all else as it is."""
    return jax.tree.map(
        lambda a, s: operation(a, s) if eqx.is_inexact_array(a) else a,
        module,
        scales,
        is_leaf=lambda a: a is None,
    )


class Constant:
    """An array that is part of the program: equal, and hashed, by what it holds.

    Args:
        array: a copy of it is kept.
    """

    def __init__(self, array: Array | np.ndarray):
        self._array = np.array(array)
        self._content = (
            self._array.shape,
            str(self._array.dtype),
            self._array.tobytes(),
        )

    def array(self) -> Array:
        """It."""
        return jnp.asarray(self._array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        return f"Constant({self._array.dtype}{list(self._array.shape)})"


class Held(eqx.Module):
    """A module that is kept as it is: nothing samples, trains or perturbs its arrays.

    Attributes:
        constants: the module, with a `Constant` for each of its arrays.
    """

    constants: PyTree

    @staticmethod
    def of(module: PyTree) -> "Held":
        """The same module."""
        is_array = eqx.is_inexact_array
        hold = lambda leaf: Constant(leaf) if is_array(leaf) else leaf
        return Held(jax.tree.map(hold, module))

    def module(self) -> Any:
        """The module itself."""
        is_held = lambda leaf: isinstance(leaf, Constant)
        array = lambda leaf: leaf.array() if is_held(leaf) else leaf
        return jax.tree.map(array, self.constants)
