"""Modules one after another, some of which keep batch statistics.

A chain is a tuple. Most of its modules map x to y; an `AbstractStateful` one also takes
the state of the batch statistics and returns the new one. Without any of these the
state may be, and stays, `None`.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import equinox as eqx

from .._types import Array, Float, PRNGKeyArray
from ._layers import Conv2d

Chain: TypeAlias = tuple[Callable[..., Any], ...]
"""Modules in the order in which they are applied."""

MakeNorm: TypeAlias = Callable[[int], Callable[..., Any]]
"""A number of channels to a normalisation: `BatchNorm`, `FilterResponseNorm`."""

Activation: TypeAlias = Callable[..., Any]
"""A function of an array, or a class of channels such as `ThresholdedLinear`."""

State: TypeAlias = eqx.nn.State | None
"""Batch statistics, where there are any."""


class AbstractStateful(eqx.Module):
    """A module that hands on the state, and may read and renew its part of it."""

    @abc.abstractmethod
    def __call__(
        self, x: Float[Array, "..."], state: State
    ) -> tuple[Float[Array, "..."], State]:
        """Apply to an array of any leading axes."""


def run(
    chain: Sequence[Callable[..., Any]], x: Float[Array, "..."], state: State
) -> tuple[Float[Array, "..."], State]:
    """Apply a chain's modules in turn."""
    for module in chain:
        if isinstance(module, AbstractStateful):
            x, state = module(x, state)
        else:
            x = module(x)
    return x, state


def make_norm(norm: MakeNorm | None, num_channels: int) -> Chain:
    """One normalisation, or none."""
    return () if norm is None else (norm(num_channels),)


def make_activation(activation: Activation, num_channels: int) -> Chain:
    """A function as it is; of a class, a new module of so many channels."""
    return (activation(num_channels) if isinstance(activation, type) else activation,)


def convolution(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    *,
    stride: int = 1,
    padding: int | None = None,
    use_bias: bool | None = None,
    norm: MakeNorm | None = None,
    activation: Activation | None = None,
    key: PRNGKeyArray,
) -> Chain:
    """A convolution, with its normalisation and its activation where there are any.

    Zeros at each side are half a kernel, or `padding`: PyTorch's way, which differs
    from `"SAME"` where the stride is above 1. A normalisation has an offset of its
    own, so that `use_bias=None` adds a bias only without one.
    """
    conv = Conv2d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=kernel_size // 2 if padding is None else padding,
        use_bias=norm is None if use_bias is None else use_bias,
        key=key,
    )
    chain = (conv, *make_norm(norm, out_channels))
    if activation is None:
        return chain
    return (*chain, *make_activation(activation, out_channels))


def scaled(size: int, width: float | int) -> int:
    """Channels or features of a layer in a network `width` times as wide."""
    if width <= 0:
        raise ValueError(f"`width` must be positive, got {width}: 1 is the usual size.")
    return max(1, round(size * width))


def finish(
    y: Float[Array, "..."], state: State
) -> Float[Array, "..."] | tuple[Float[Array, "..."], eqx.nn.State]:
    """What a network returns: the state too where it was given one."""
    return y if state is None else (y, state)
