"""Names for the types that every layer shares."""

from collections.abc import Callable
from typing import Any, TypeAlias

from jaxtyping import (
    Array,
    ArrayLike,
    Bool,
    Float,
    Int,
    PRNGKeyArray,
    PyTree,
    Shaped,
    UInt32,
)

RealScalar: TypeAlias = float | int | Float[Array, ""] | Int[Array, ""]
"""A time, a rate, a weight: a Python number or an array without axes."""

Params: TypeAlias = PyTree[Float[Array, "..."] | None]
"""The numbers of a network, in the network's own structure."""

VectorField: TypeAlias = Callable[[Any, Any, Any], Any]
"""`(t, y, args)` to a tree like `y`: a drift, or (with `None`s) a diffusion."""

__all__ = [
    "Array",
    "ArrayLike",
    "Bool",
    "Float",
    "Int",
    "PRNGKeyArray",
    "Params",
    "PyTree",
    "RealScalar",
    "Shaped",
    "UInt32",
    "VectorField",
]
