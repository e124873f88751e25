"""A program's way back as a node of PyTorch's graph."""

from collections.abc import Callable
from typing import Any

import jax
from torch.autograd.function import once_differentiable

from ._dlpack import Views, precision_of, to_jax, to_torch
from ._extra import torch
from ._program import Arrays, Outputs, Program


class Call:
    """One call of a program on tensors.

    Args:
        program: the random function's.
        num_owned: how many tensors are the module's; the others are the batch's leaves.
        views: of the module's.
        dtype: in which it computes.
        given: words of the key, and the index.
        how: `is_training` and the `treedef` of the batch.

    Attributes:
        statistics: batch statistics for the next call, after this one.
    """

    def __init__(
        self,
        program: Program,
        num_owned: int,
        views: Views,
        dtype: torch.dtype,
        given: tuple[Any, Any],
        how: dict[str, Any],
    ):
        self.program, self.num_owned = program, num_owned
        self.views, self.dtype = views, dtype
        self.given, self.how = given, how
        self.statistics: Arrays = ()
        self._treedef: Any = None
        self._moves: tuple[bool, ...] = ()
        self._packed: Callable | None = None
        self._opened: Callable | None = None

    def without_gradient(self, tensors: tuple[torch.Tensor, ...]) -> Outputs:
        """What it gives; no backward program is compiled or run."""
        with precision_of(self.dtype):
            outputs, self.statistics = self.program.forward(
                *self._arrays(tensors), *self.given, **self.how
            )
        return self._joined(self._tensors(outputs))

    def with_gradient(
        self, tensors: tuple[torch.Tensor, ...], moves: tuple[bool, ...]
    ) -> Outputs:
        """What it gives, as the outputs of a node of the graph.

        Args:
            tensors: the module's, then the batch's leaves.
            moves: which of them have a gradient.
        """
        # The way back is kept as if it were a saved tensor, so that PyTorch drops it
        # when it drops those: after one backward pass, unless told to retain the graph.
        with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
            return self._joined(_Node.apply(self, moves, *tensors))

    def _arrays(self, tensors: tuple[torch.Tensor, ...]) -> tuple[Arrays, Arrays]:
        owned, leaves = tensors[: self.num_owned], tensors[self.num_owned :]
        return self.views.of(owned), tuple(map(to_jax, leaves))

    def _tensors(self, outputs: Outputs) -> tuple[torch.Tensor, ...]:
        leaves, self._treedef = jax.tree.flatten(outputs)
        # Once they are there, the program has ended, and what it read may change.
        jax.block_until_ready((leaves, self.statistics))
        return tuple(map(to_torch, leaves))

    def _joined(self, tensors: tuple[torch.Tensor, ...]) -> Outputs:
        return jax.tree.unflatten(self._treedef, tensors)

    def _pack(self, tensor: torch.Tensor) -> Callable | None:
        del tensor
        packed, self._packed = self._packed, None
        return packed

    def _unpack(self, packed: Callable) -> torch.Tensor:
        self._opened = packed
        return torch.empty(0)

    def forward(
        self, tensors: tuple[torch.Tensor, ...], moves: tuple[bool, ...]
    ) -> tuple[torch.Tensor, ...]:
        """Run the program; what leads back is for `_pack` to find."""
        with precision_of(self.dtype):
            outputs, self.statistics, self._packed = self.program.linearised(
                *self._arrays(tensors), *self.given, **self.how, moves=moves
            )
        self._moves = moves
        return self._tensors(outputs)

    def backward(
        self, cotangents: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor | None, ...]:
        """Gradients, of which `None` stand for tensors without one."""
        opened, self._opened = self._opened, None
        assert opened is not None
        with precision_of(self.dtype):
            arrays = [to_jax(cotangent) for cotangent in cotangents]
            gradients = self.program.backward(
                opened, jax.tree.unflatten(self._treedef, arrays)
            )
        jax.block_until_ready(gradients)
        found = map(to_torch, gradients)
        return tuple(next(found) if is_moving else None for is_moving in self._moves)


class _Node(torch.autograd.Function):
    """A call and its way back, as `torch.autograd` has them."""

    @staticmethod
    def forward(ctx: Any, call: Call, moves: tuple[bool, ...], *tensors: torch.Tensor):
        made = call.forward(tensors, moves)
        ctx.call = call
        ctx.save_for_backward(torch.empty(0))  # whose place `Call._pack` takes
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: torch.Tensor):
        _ = ctx.saved_tensors  # by way of `Call._unpack`; refused the second time
        return (None, None, *ctx.call.backward(cotangents))
