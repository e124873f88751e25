"""Blocks with a shortcut around them, and the networks made of such blocks."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..._types import Array, Float, PRNGKeyArray
from .._chain import (
    AbstractStateful,
    Activation,
    Chain,
    MakeNorm,
    State,
    convolution,
    finish,
    make_activation,
    make_norm,
    run,
)


class AbstractBlock(AbstractStateful):
    """A residual block.

    Attributes:
        branch: the convolutions that the shortcut passes by, and what is between them.
        shortcut: a projection where the shape changes; empty for the identity.
    """

    branch: eqx.AbstractVar[Chain]
    shortcut: eqx.AbstractVar[Chain]


class ResidualBlock(AbstractBlock):
    """activation(shortcut(x) + branch(x)): the form of He et al. (2016).

    Attributes:
        branch: convolutions, each with its normalisation, and activations between them.
        shortcut: a 1×1 convolution and its normalisation, or empty.
        activation: what the sum meets.
    """

    branch: Chain
    shortcut: Chain
    activation: Chain

    def __call__(
        self, x: Float[Array, "..."], state: State
    ) -> tuple[Float[Array, "..."], State]:
        """Apply to images of any leading axes."""
        y, state = run(self.branch, x, state)
        x, state = run(self.shortcut, x, state)
        return run(self.activation, x + y, state)


class PreActivationBlock(AbstractBlock):
    """x + branch(h) with h = opening(x), or shortcut(h) + branch(h).

    The second form of He et al. (2016, "Identity mappings in deep residual networks").

    Attributes:
        opening: normalisation and activation in front of the branch.
        branch: convolutions, with normalisation and activation between them.
        shortcut: a 1×1 convolution, or empty.
    """

    opening: Chain
    branch: Chain
    shortcut: Chain

    def __call__(
        self, x: Float[Array, "..."], state: State
    ) -> tuple[Float[Array, "..."], State]:
        """Apply to images of any leading axes."""
        h, state = run(self.opening, x, state)
        y, state = run(self.branch, h, state)
        if self.shortcut:
            x, state = run(self.shortcut, h, state)
        return x + y, state


MakeBlock: TypeAlias = Callable[..., AbstractBlock]
"""`basic_block` and its like: channels in, channels out, and what is by keyword."""


def basic_block(
    in_channels: int,
    out_channels: int,
    *,
    stride: int,
    norm: MakeNorm | None,
    activation: Activation,
    key: PRNGKeyArray,
) -> ResidualBlock:
    """Two 3×3 convolutions, the first of which strides."""
    key1, key2, shortcut_key = jr.split(key, 3)
    size = out_channels
    branch = (
        *convolution(in_channels, size, 3, stride=stride, norm=norm, key=key1),
        *make_activation(activation, size),
        *convolution(size, size, 3, norm=norm, key=key2),
    )
    shortcut = _projection(in_channels, size, stride, norm=norm, key=shortcut_key)
    return ResidualBlock(branch, shortcut, make_activation(activation, size))


def bottleneck_block(
    in_channels: int,
    out_channels: int,
    *,
    stride: int,
    norm: MakeNorm | None,
    activation: Activation,
    key: PRNGKeyArray,
) -> ResidualBlock:
    """1×1 to a quarter of the channels, 3×3 with the stride, 1×1 to all of them.

    The stride is where PyTorch has it; He et al. have it in the first convolution.
    """
    key1, key2, key3, shortcut_key = jr.split(key, 4)
    size = max(1, out_channels // 4)
    branch = (
        *convolution(in_channels, size, 1, norm=norm, key=key1),
        *make_activation(activation, size),
        *convolution(size, size, 3, stride=stride, norm=norm, key=key2),
        *make_activation(activation, size),
        *convolution(size, out_channels, 1, norm=norm, key=key3),
    )
    shortcut = _projection(
        in_channels, out_channels, stride, norm=norm, key=shortcut_key
    )
    return ResidualBlock(branch, shortcut, make_activation(activation, out_channels))


def pre_activation_block(
    in_channels: int,
    out_channels: int,
    *,
    stride: int,
    norm: MakeNorm | None,
    activation: Activation,
    key: PRNGKeyArray,
) -> PreActivationBlock:
    """Two 3×3 convolutions, the first of which strides."""
    key1, key2, shortcut_key = jr.split(key, 3)
    size = out_channels
    # The next block's normalisation follows the last convolution and the projection,
    # by way of their sum.
    use_bias = norm is None
    branch = (
        *convolution(in_channels, size, 3, stride=stride, norm=norm, key=key1),
        *make_activation(activation, size),
        *convolution(size, size, 3, use_bias=use_bias, key=key2),
    )
    return PreActivationBlock(
        make_norm(norm, in_channels) + make_activation(activation, in_channels),
        branch,
        _projection(in_channels, size, stride, use_bias=use_bias, key=shortcut_key),
    )


def _projection(
    in_channels: int, out_channels: int, stride: int, **kwargs: Any
) -> Chain:
    """A 1×1 convolution where the shape changes: option B of He et al. (2016)."""
    if stride == 1 and in_channels == out_channels:
        return ()
    return convolution(in_channels, out_channels, 1, stride=stride, **kwargs)


def stages(
    make_block: MakeBlock,
    in_channels: int,
    channels: Sequence[int],
    num_blocks: Sequence[int],
    *,
    norm: MakeNorm | None,
    activation: Activation,
    key: PRNGKeyArray,
) -> tuple[AbstractBlock, ...]:
    """The blocks of all stages; each stage but the first halves the sides.

    Args:
        make_block: the kind of block.
        in_channels: channels that come in.
        channels: channels that come out of each stage.
        num_blocks: of each stage.
        norm: see the networks.
        activation: see the networks.
        key: randomness of the weights.
    """
    blocks = []
    keys = iter(jr.split(key, sum(num_blocks)))
    for stage, (size, count) in enumerate(zip(channels, num_blocks, strict=True)):
        for i in range(count):
            block = make_block(
                in_channels,
                size,
                stride=2 if stage > 0 and i == 0 else 1,
                norm=norm,
                activation=activation,
                key=next(keys),
            )
            blocks.append(block)
            in_channels = size
    return tuple(blocks)


class AbstractResidualNetwork(eqx.Module):
    """A stem, residual blocks, the mean over the pixels, and a linear layer.

    Attributes:
        stem: from the images to the first block.
        blocks: residual ones.
        end: after the last block, before the mean.
        classifier: from the channels to the logits.
    """

    stem: eqx.AbstractVar[Chain]
    blocks: eqx.AbstractVar[tuple[AbstractBlock, ...]]
    end: eqx.AbstractVar[Chain]
    classifier: eqx.AbstractVar[Callable[..., Any]]

    def __call__(
        self, x: Float[Array, "*lead height width channels"], state: State = None
    ) -> Float[Array, "*lead num_classes"] | tuple[Float[Array, "..."], eqx.nn.State]:
        """Logits of images of any leading axes; with the state if one is given."""
        x, state = run((*self.stem, *self.blocks, *self.end), x, state)
        return finish(self.classifier(jnp.mean(x, (-3, -2))), state)
