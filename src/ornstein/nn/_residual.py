"""Blocks with a shortcut around them, and the networks made of such blocks."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from .._types import Array, Float, PRNGKeyArray
from ._chain import (
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


class PreActivationBlock(AbstractBlock):
    """x + branch(opening(x)), or a projection of opening(x) in place of x.

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
        opened, state = run(self.opening, x, state)
        y, state = run(self.branch, opened, state)
        if self.shortcut:
            x, state = run(self.shortcut, opened, state)
        return x + y, state


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
    opening = make_norm(norm, in_channels) + make_activation(activation, in_channels)
    # The last convolution and the projection meet the next block's normalisation only
    # in their sum; its offset is bias enough for both.
    branch = convolution(
        in_channels,
        out_channels,
        3,
        stride=stride,
        padding=1,
        norm=norm,
        activation=activation,
        key=key1,
    ) + convolution(
        out_channels, out_channels, 3, padding=1, use_bias=norm is None, key=key2
    )
    shortcut = ()
    if stride != 1 or in_channels != out_channels:
        shortcut = convolution(
            in_channels,
            out_channels,
            1,
            stride=stride,
            padding=0,
            use_bias=norm is None,
            key=shortcut_key,
        )
    return PreActivationBlock(opening, branch, shortcut)


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
