"""Wide residual networks."""

from collections.abc import Callable
from typing import Any

import jax
import jax.random as jr

from ..._types import PRNGKeyArray
from .._chain import (
    Activation,
    Chain,
    MakeNorm,
    convolution,
    make_activation,
    make_norm,
)
from .._initialise import Initialise, he_normal
from .._layers import Linear
from .._norm import BatchNorm
from ._residual import (
    AbstractBlock,
    AbstractResidualNetwork,
    pre_activation_block,
    stages,
)

_STEM_CHANNELS = 16


class WideResNet(AbstractResidualNetwork):
    """WRN-d-k: pre-activation blocks in three stages of 16k, 32k and 64k channels.

    Args:
        depth: d = 6n + 4, for n blocks a stage.
        widen: k.
        num_classes: numbers that come out.
        in_channels: of the images.
        norm: `BatchNorm`, another class of channels, or `None`.
        activation: a function, or a class of channels.
        initialise: `he_normal`, or with `norm=None` also `fixup`.
        key: randomness of the weights.

    References:
        Zagoruyko & Komodakis (2016). Wide residual networks. BMVC, table 1; without
        dropout.
    """

    stem: Chain
    blocks: tuple[AbstractBlock, ...]
    end: Chain
    classifier: Callable[..., Any]

    def __init__(
        self,
        depth: int,
        widen: int,
        num_classes: int,
        *,
        in_channels: int = 3,
        norm: MakeNorm | None = BatchNorm,
        activation: Activation = jax.nn.relu,
        initialise: Initialise = he_normal,
        key: PRNGKeyArray,
    ):
        num_blocks, rest = divmod(depth - 4, 6)
        if num_blocks < 1 or rest:
            raise ValueError(
                f"The depth of a `WideResNet` must be 6n + 4 (10, 16, 22, 28, 40, …), "
                f"got {depth}."
            )
        if widen < 1:
            raise ValueError(f"`widen` must be at least 1, got {widen}.")
        stem_key, blocks_key, classifier_key, init_key = jr.split(key, 4)

        channels = [_STEM_CHANNELS * widen * factor for factor in (1, 2, 4)]
        stem = convolution(
            in_channels, _STEM_CHANNELS, 3, use_bias=norm is None, key=stem_key
        )
        blocks = stages(
            pre_activation_block,
            _STEM_CHANNELS,
            channels,
            (num_blocks,) * 3,
            norm=norm,
            activation=activation,
            key=blocks_key,
        )
        size = channels[-1]
        end = make_norm(norm, size) + make_activation(activation, size)
        classifier = Linear(size, num_classes, key=classifier_key)
        self.stem, self.blocks, self.end, self.classifier = initialise(
            (stem, blocks, end, classifier), key=init_key
        )
