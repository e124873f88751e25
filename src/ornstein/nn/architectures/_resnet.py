"""Residual networks, for small images and for ImageNet's."""

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
    scaled,
)
from .._initialise import Initialise, he_normal
from .._layers import Linear
from .._norm import BatchNorm
from .._shapes import MaxPool
from ._residual import (
    AbstractBlock,
    AbstractResidualNetwork,
    basic_block,
    bottleneck_block,
    pre_activation_block,
    stages,
)

_BOTTLENECK_FACTOR = 4

# Blocks a stage, and how many times a stage's channels come out of it.
_IMAGENET = {
    18: (basic_block, (2, 2, 2, 2), 1),
    34: (basic_block, (3, 4, 6, 3), 1),
    50: (bottleneck_block, (3, 4, 6, 3), _BOTTLENECK_FACTOR),
    101: (bottleneck_block, (3, 4, 23, 3), _BOTTLENECK_FACTOR),
    152: (bottleneck_block, (3, 8, 36, 3), _BOTTLENECK_FACTOR),
}


class ResNet(AbstractResidualNetwork):
    """A residual network of the usual depths.

    - Depth 18, 34, 50, 101, 152: ImageNet's, exactly as torchvision has them. A 7×7
      convolution and maxima of 3×3 pixels, both with stride 2, then four stages of 64,
      128, 256 and 512 channels (four times as many from 50 on); 224×224 pixels.
    - Any other depth 6n + 2, such as 20, 32, 44, 56, 110: CIFAR's. A 3×3 convolution,
      then three stages of 16, 32 and 64 channels; 32×32 pixels.

    Where a block changes the shape, its shortcut is a 1×1 convolution (option B).

    Args:
        depth: of the network: one of the two kinds above.
        num_classes: numbers that come out.
        in_channels: of the images.
        width: multiplies hidden channels.
        pre_activation: whether activations stand before the convolutions ("v2"), in
            the forms for CIFAR.
        norm: `BatchNorm`, another class of channels, or `None`.
        activation: a function, or a class of channels.
        initialise: `he_normal`, or with `norm=None` also `fixup`.
        key: randomness of the weights.

    References:
        He et al. (2016). Deep residual learning for image recognition. CVPR, table 1
        and section 4.2; He et al. (2016). Identity mappings in deep residual networks.
        ECCV.
    """

    stem: Chain
    blocks: tuple[AbstractBlock, ...]
    end: Chain
    classifier: Callable[..., Any]

    def __init__(
        self,
        depth: int,
        num_classes: int,
        *,
        in_channels: int = 3,
        width: float | int = 1.0,
        pre_activation: bool = False,
        norm: MakeNorm | None = BatchNorm,
        activation: Activation = jax.nn.relu,
        initialise: Initialise = he_normal,
        key: PRNGKeyArray,
    ):
        stem_key, blocks_key, classifier_key, init_key = jr.split(key, 4)
        if depth in _IMAGENET:
            if pre_activation:
                raise ValueError(
                    f"`pre_activation` is for the depths 6n + 2 of CIFAR (20, 32, 44, "
                    f"…), got depth {depth}, one of ImageNet's."
                )
            make_block, num_blocks, factor = _IMAGENET[depth]
            planes = [scaled(c, width) for c in (64, 128, 256, 512)]
            channels = [c * factor for c in planes]
            size = planes[0]
            stem = convolution(
                in_channels,
                size,
                7,
                stride=2,
                norm=norm,
                activation=activation,
                key=stem_key,
            )
            stem = (*stem, MaxPool(3, stride=2, padding=1))
        else:
            num_blocks = (_cifar_blocks(depth),) * 3
            make_block = pre_activation_block if pre_activation else basic_block
            channels = [scaled(c, width) for c in (16, 32, 64)]
            size = channels[0]
            stem = convolution(
                in_channels,
                size,
                3,
                use_bias=norm is None,
                norm=None if pre_activation else norm,
                activation=None if pre_activation else activation,
                key=stem_key,
            )
        blocks = stages(
            make_block,
            size,
            channels,
            num_blocks,
            norm=norm,
            activation=activation,
            key=blocks_key,
        )
        size, end = channels[-1], ()
        if pre_activation:
            end = make_norm(norm, size) + make_activation(activation, size)
        classifier = Linear(size, num_classes, key=classifier_key)
        self.stem, self.blocks, self.end, self.classifier = initialise(
            (stem, blocks, end, classifier), key=init_key
        )


def _cifar_blocks(depth: int) -> int:
    num_blocks, rest = divmod(depth - 2, 6)
    if num_blocks < 1 or rest:
        raise ValueError(
            "The depth of a `ResNet` must be 18, 34, 50, 101 or 152 (ImageNet) or "
            f"6n + 2 (CIFAR: 8, 14, 20, 32, 44, 56, 110, …), got {depth}."
        )
    return num_blocks
