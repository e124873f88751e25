"""Solves over depth for images, with fixed maps between them and a readout."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer

from ..._types import Array, ArrayLike, Float, PRNGKeyArray
from ...nn import MLP, Augment, ConvBlock, MakeTimeLayer, space_to_depth


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
    readout_widths: Sequence[int],
    read_key: PRNGKeyArray,
    block_keys: Sequence[PRNGKeyArray],
) -> tuple[tuple[Any, ...], Readout]:
    """The paper's multi-scale network: blocks, and maps and readout around them.

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
        readout_widths: hidden widths of the readout.
        read_key: of the readout.
        block_keys: two for each block.

    Raises:
        ValueError: sizes that cannot be halved as often as `blocks` asks.
    """
    _check_image(example_shape, blocks, space_to_depth_first)
    check_sizes(num_outputs=num_outputs)
    block_keys = list(block_keys)
    layers: list[Any] = [SpaceToDepth()] if space_to_depth_first else []
    layers.append(Augment(augment))
    shape = jax.eval_shape(
        lambda x: _through(tuple(layers), x), jnp.zeros((1, *example_shape))
    ).shape
    for scale, num_blocks in enumerate(blocks):
        if scale:
            layers.append(SpaceToDepth())
            shape = (1, shape[1] // 2, shape[2] // 2, 4 * shape[3])
        for _ in range(num_blocks):
            dyn_key, block_key = block_keys.pop(), block_keys.pop()
            dynamics = ConvBlock(
                shape[-1], width, activation=activation, time=time, key=dyn_key
            )
            layers.append(make_block(dynamics, shape, block_key))
    size = shape[1] * shape[2] * shape[3]
    network = MLP(
        size, num_outputs, readout_widths, activation=jax.nn.relu, key=read_key
    )
    return tuple(layers), Readout(network)


def _through(layers: tuple, x: Array) -> Array:
    for layer in layers:
        x = layer(x)
    return x


def check_sizes(**sizes: int) -> None:
    """Refuse sizes below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}.")


def _check_image(
    shape: Sequence[int], blocks: Sequence[int], space_to_depth_first: bool
) -> None:
    if len(shape) != 3:
        raise ValueError(
            f"`example_shape` must be (height, width, channels), got {tuple(shape)}; "
            "for rows of numbers use `for_vectors`."
        )
    if not blocks or min(blocks) < 1:
        raise ValueError(f"`blocks` must be positive counts, got {tuple(blocks)}.")
    # Each block halves its images once inside, each later scale once more.
    halvings = len(blocks) + int(space_to_depth_first)
    if any(side % 2**halvings for side in shape[:2]):
        raise ValueError(
            f"Images of {shape[0]} by {shape[1]} cannot be halved {halvings} times, as "
            f"{len(blocks)} scale(s) of convolution blocks need; pad them, or use "
            "fewer scales."
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
