"""Tensors as JAX's arrays and back, in the same memory wherever both can read it.

A tensor is changed in place and an array never is. So what reads a tensor has ended
before its owner may write to it, and what becomes a tensor is the result of a program:
memory of its own, unlike its arguments', another result's, and what leads back.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import jax

from .._types import Array, PyTree
from ._extra import torch

FLOATS = (torch.float32, torch.float64)


def to_jax(tensor: torch.Tensor) -> Array:
    """A tensor's numbers as an array, until the tensor changes."""
    tensor = tensor.detach()
    # JAX reads whole blocks of memory alone.
    tensor = tensor if tensor.is_contiguous() else tensor.contiguous()
    return jax.dlpack.from_dlpack(tensor)


class Views:
    """A module's tensors as arrays, which look at them anew in every program.

    Making an array of a tensor takes longer than all else that a call does with it, and
    an optimiser changes a parameter where it stands.
    """

    def __init__(self):
        self._arrays: list[Array] = []

    def of(self, tensors: Sequence[torch.Tensor]) -> tuple[Array, ...]:
        """The tensors' numbers of now, in the same order at each call."""
        if len(self._arrays) != len(tensors):
            self._arrays = [to_jax(tensor) for tensor in tensors]
        for i, (array, tensor) in enumerate(zip(self._arrays, tensors, strict=True)):
            # A view keeps its memory, so that no other tensor can come to stand there;
            # what was copied instead is not where the tensor is.
            is_there = array.unsafe_buffer_pointer() == tensor.data_ptr()
            if not (is_there and array.shape == tensor.shape):
                self._arrays[i] = to_jax(tensor)
        return tuple(self._arrays)

    def __deepcopy__(self, memo: dict) -> "Views":
        del memo
        return Views()


def to_torch(array: Array) -> torch.Tensor:
    """An array, that nobody else will read, as a tensor."""
    return torch.from_dlpack(array)


def precision_of(dtype: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    """In which JAX computes in a type: it has 64 bits where it is told so."""
    if dtype == torch.float64:
        return jax.enable_x64(True)
    return contextlib.nullcontext()


def check_inputs(
    x: PyTree, *, like: torch.Tensor | None, example_shape: tuple[int, ...] | None
) -> None:
    """Refuse a batch that a module cannot take, before any work.

    Args:
        x: the batch: a tensor, or a tree of them.
        like: one of the module's own floating-point tensors.
        example_shape: of a row, where the module knows it.

    Raises:
        TypeError: for what is no tensor, or a sparse or complex one, or of another
            floating-point type.
        ValueError: for tensors elsewhere, or of another shape.
    """
    leaves = jax.tree.leaves(x)
    if not leaves:
        raise TypeError(f"`x` must be a tensor, rows first, got {type(x).__name__}.")
    for leaf in leaves:
        _check_leaf(leaf, like)
    rows = sorted({len(leaf) if leaf.ndim else 0 for leaf in leaves})
    if len(rows) > 1 or rows == [0]:
        raise ValueError(
            f"`x` has {' and '.join(map(str, rows))} rows, but all of its tensors need "
            "the same number, at least 1: write x[None] for a single example."
        )
    shape = tuple(leaves[0].shape)
    if example_shape is not None and shape[1:] != example_shape:
        raise ValueError(
            f"`x` has shape {shape}, but this function takes rows of shape "
            f"{example_shape}: give {('rows', *example_shape)}."
        )


def check_owned(like: torch.Tensor | None) -> None:
    """Refuse a module that was moved to where, or to what, JAX cannot follow.

    Args:
        like: one of its floating-point tensors.

    Raises:
        TypeError: for another floating-point type than single and double precision.
        ValueError: for a device that JAX does not have.
    """
    if like is None:
        return
    if like.dtype not in FLOATS:
        raise TypeError(
            f"The module's parameters are {_name(like.dtype)}, and it computes in "
            "float32 or float64: write module.float()."
        )
    kind = like.device.type
    try:
        is_known = kind != "meta" and bool(jax.devices(kind))
    except RuntimeError:
        is_known = False
    if not is_known:
        raise ValueError(
            f"The module's parameters are on {like.device}, where this JAX has no "
            "device: write module.to('cpu')."
        )


def _check_leaf(leaf: Any, like: torch.Tensor | None) -> None:
    if not isinstance(leaf, torch.Tensor):
        raise TypeError(
            f"`x` must be a tensor, rows first, got {_full_name(type(leaf))}: write "
            "torch.as_tensor(x)."
        )
    if leaf.layout != torch.strided:
        raise TypeError("`x` is sparse, and JAX reads it whole: write x.to_dense().")
    if leaf.is_complex():
        raise TypeError(
            f"`x` is {_name(leaf.dtype)}, and a function takes real numbers: write "
            "torch.view_as_real(x), an axis more, or x.abs()."
        )
    if like is None:
        return
    if leaf.device != like.device:
        raise ValueError(
            f"`x` is on {leaf.device} and the module's parameters are on "
            f"{like.device}: write x.to('{like.device}'), or module.to('{leaf.device}')"
            " where JAX has that device."
        )
    if leaf.is_floating_point() and leaf.dtype != like.dtype:
        ways = {torch.float32: "float", torch.float64: "double"}
        way = ways[like.dtype]
        other = f", or module.{ways[leaf.dtype]}()" if leaf.dtype in ways else ""
        raise TypeError(
            f"`x` is {_name(leaf.dtype)} and the module's parameters are "
            f"{_name(like.dtype)}: write x.{way}(){other}."
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _full_name(kind: type) -> str:
    is_builtin = kind.__module__ == "builtins"
    return kind.__name__ if is_builtin else f"{kind.__module__}.{kind.__name__}"
