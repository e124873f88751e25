"""Solves over depth for images, with fixed maps between them and a readout."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer

from ..._types import Array, ArrayLike, Float, PRNGKeyArray
from ...nn import (
    MLP,
    Augment,
    Conv2d,
    ConvBlock,
    FilterResponseNorm,
    MakeTimeLayer,
    NormedConvBlock,
    adaptive_average_pool,
    space_to_depth,
)


class SpaceToDepth(eqx.Module):
    """Invertible downsampling between scales (Dinh et al., 2016)."""

    def __call__(self, x: Array) -> Array:
        """Squares of 2 by 2 pixels into channels."""
        return space_to_depth(x)


class Readout(eqx.Module):
    """A small network on the flattened hidden units: logits, means.

    Attributes:
        network: on vectors; a point estimate.
    """

    network: MLP

    def __call__(self, h: Float[Array, "batch ..."]) -> Float[Array, "batch out"]:
        """Apply to a batch."""
        return self.network(h.reshape(h.shape[0], -1))


class PooledReadout(eqx.Module):
    """The same on normalised hidden units, averaged over windows of 2 by 2 or so.

    Attributes:
        norm: of each channel of each image.
        network: on vectors.
    """

    norm: FilterResponseNorm
    network: MLP

    def __call__(self, h: Float[Array, "batch ..."]) -> Float[Array, "batch out"]:
        """Apply to a batch."""
        h = adaptive_average_pool(self.norm(h), _pooled_side(h.shape[1:3]))
        return self.network(h.reshape(h.shape[0], -1))


def _pooled_side(shape: Sequence[int]) -> int:
    return max(1, min(shape) // 2)


def image_keys(blocks: Sequence[int], *, key: PRNGKeyArray) -> list[PRNGKeyArray]:
    """The readout's key, one to spare, and two for each block."""
    return list(jr.split(key, 2 * sum(blocks) + 2))


def image_stack(
    make_block: Callable[..., eqx.Module],
    example_shape: Sequence[int],
    num_outputs: int,
    *,
    blocks: Sequence[int],
    width: int,
    activation: Callable[[Array], Array],
    time: MakeTimeLayer,
    augment: int,
    space_to_depth_first: bool,
    stem: Callable[[Array], Array] | None,
    is_normalised: bool,
    readout_widths: Sequence[int],
    read_key: PRNGKeyArray,
    block_keys: Sequence[PRNGKeyArray],
) -> tuple[tuple[Any, ...], Readout | PooledReadout]:
    """The paper's multi-scale network: blocks, and maps and readout around them.

    Where it is normalised, each scale after the first has twice the channels, from a
    convolution of stride 2.

    Args:
        make_block: `(f_h, shape of its images with a leading 1, key)` to a block.
        example_shape: of one image.
        num_outputs: classes.
        blocks: at each scale.
        width: channels inside f_h.
        activation: of f_h.
        time: how f_h's layers depend on depth.
        augment: zero channels appended to the input.
        space_to_depth_first: downsample once before the first block too.
        stem: a first layer in its place.
        is_normalised: blocks are `NormedConvBlock`s, in place of `ConvBlock`s.
        readout_widths: hidden widths of the readout.
        read_key: of the readout.
        block_keys: two for each block.

    Raises:
        ValueError: sizes that cannot be halved as often as `blocks` asks.
    """
    check_sizes(num_outputs=num_outputs)
    block_keys = list(block_keys)
    layers = _first_layers(example_shape, stem, space_to_depth_first)
    first = example_shape if stem is None else _after_stem(stem, example_shape)
    _check_image(first, blocks, space_to_depth_first, is_normalised)
    layers.append(Augment(augment))
    shape = _shape_after(layers, (1, *example_shape))
    kind = NormedConvBlock if is_normalised else ConvBlock
    for scale, num_blocks in enumerate(blocks):
        if scale and is_normalised:
            channels, down_key = shape[-1], jr.fold_in(read_key, scale)
            layers.append(Conv2d(channels, 2 * channels, 3, stride=2, key=down_key))
            width *= 2
        elif scale:
            layers.append(SpaceToDepth())
        if scale:
            shape = _shape_after(layers[-1:], shape)
        for _ in range(num_blocks):
            dyn_key, block_key = block_keys.pop(), block_keys.pop()
            dynamics = kind(
                shape[-1], width, activation=activation, time=time, key=dyn_key
            )
            layers.append(make_block(dynamics, shape, block_key))

    def readout(size: int) -> MLP:
        return MLP(
            size, num_outputs, readout_widths, activation=jax.nn.relu, key=read_key
        )

    if is_normalised:
        pooled = _pooled_side(shape[1:3]) ** 2 * shape[3]
        return tuple(layers), PooledReadout(
            FilterResponseNorm(shape[3]), readout(pooled)
        )
    return tuple(layers), Readout(readout(math.prod(shape)))


def _first_layers(
    example_shape: Sequence[int],
    stem: Callable[[Array], Array] | None,
    space_to_depth_first: bool,
) -> list[Any]:
    if len(example_shape) != 3:
        raise ValueError(
            f"`example_shape` must be (height, width, channels), got "
            f"{tuple(example_shape)}; for rows of numbers use `for_vectors`."
        )
    if stem is not None and space_to_depth_first:
        raise ValueError(
            "`stem` stands in the place of `space_to_depth_first`: give one of them."
        )
    return [SpaceToDepth()] if space_to_depth_first else [stem] if stem else []


def _after_stem(
    stem: Callable[[Array], Array], example_shape: Sequence[int]
) -> tuple[int, ...]:
    shape = _shape_after([stem], (1, *example_shape))
    if len(shape) != 4:
        raise ValueError(
            f"`stem` must make images of images, (batch, height, width, channels), but "
            f"makes shape {shape} of {(1, *example_shape)}."
        )
    return shape[1:]


def _shape_after(layers: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
    def through(x: Array) -> Array:
        for layer in layers:
            x = layer(x)
        return x

    return jax.eval_shape(through, jnp.zeros(shape)).shape


def check_sizes(**sizes: int) -> None:
    """Refuse sizes below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}.")


def _check_image(
    shape: Sequence[int],
    blocks: Sequence[int],
    space_to_depth_first: bool,
    is_normalised: bool,
) -> None:
    if not blocks or min(blocks) < 1:
        raise ValueError(f"`blocks` must be positive counts, got {tuple(blocks)}.")
    if is_normalised:
        _check_normalised(shape, len(blocks), space_to_depth_first)
        return
    # Each block halves its images once inside, each later scale once more.
    halvings = len(blocks) + int(space_to_depth_first)
    if any(side % 2**halvings for side in shape[:2]):
        raise ValueError(
            f"Images of {shape[0]} by {shape[1]} cannot be halved {halvings} times, as "
            f"{len(blocks)} scale(s) of convolution blocks need; pad them, or use "
            "fewer scales."
        )


def _check_normalised(
    shape: Sequence[int], num_scales: int, space_to_depth_first: bool
) -> None:
    """A convolution of stride 2 rounds up; the readout pools squares of 2 by 2."""
    height, width = shape[:2]
    if space_to_depth_first and (height % 2 or width % 2):
        raise ValueError(
            f"Images of {height} by {width} cannot be halved by "
            "`space_to_depth_first`: pad them by a row or column."
        )
    least = 2**num_scales * 2**space_to_depth_first
    if min(height, width) < least:
        raise ValueError(
            f"Images of {height} by {width} are too small for {num_scales} scale(s), "
            f"which need {least} by {least}: use fewer scales."
        )


def check_depths(ts: Float[ArrayLike, " times"]) -> None:
    """Refuse depths that do not begin at 0 and end at 1."""
    if isinstance(ts, Tracer):
        return
    first, *_, last = np.asarray(ts)
    # The next block goes on from the last depth, and weights start at the first.
    if first != 0 or last != 1:
        raise ValueError(
            f"`ts` must begin at depth 0 and end at depth 1, got {first:g} and "
            f"{last:g}; leave out afterwards what you do not want to see."
        )
