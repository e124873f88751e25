"""The first layers of a network of photographs: whitened patches of 2 by 2 pixels."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..._types import Array, ArrayLike, Float, PRNGKeyArray
from .._layers import Conv2d

_SIDE = 2
_MOST_IMAGES = 5_000
# Of the variance of a standardised patch: what is below it is a camera's noise.
_LEAST_VARIANCE = 1e-2


class PatchStem(eqx.Module):
    """Patches of 2×2 pixels, an activation, and a 3×3 convolution: half the size.

    What follows works at half the height and width, where its convolutions cost a
    quarter. Neighbouring pixels are nearly equal; in the patches' principal components,
    each scaled to variance 1, training sees their differences from its first step on
    (`whitened`). Both signs of a component are there, for the activation.

    Args:
        in_channels: of the images.
        out_channels: of what comes out.
        activation: between the two convolutions.
        key: randomness of the weights.

    References:
        Page (2019). How to train your ResNet, part 8; Jordan (2024). 94% on CIFAR-10 in
        3.29 seconds on a single GPU, section 3.2. There the patches' weights are frozen
        and of stride 1; these are trained on.
    """

    patches: Conv2d
    mix: Conv2d
    activation: Callable[[Array], Array]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        activation: Callable[[Array], Array] = jax.nn.silu,
        key: PRNGKeyArray,
    ):
        patch_key, mix_key = jr.split(key)
        num_patches = 2 * _SIDE**2 * in_channels
        self.patches = Conv2d(
            in_channels, num_patches, _SIDE, stride=_SIDE, key=patch_key
        )
        self.mix = Conv2d(num_patches, out_channels, 3, key=mix_key)
        self.activation = activation

    def whitened(
        self, images: Float[ArrayLike, "images height width channels"]
    ) -> "PatchStem":
        """The same with weights that whiten the patches of these images.

        Args:
            images: standardised training images; the first 5,000 are read. Of none the
                weights stay as they are.

        Raises:
            ValueError: for images that are smaller than a patch, of other channels, or
                not finite.
        """
        images = np.asarray(images)[:_MOST_IMAGES]
        channels = self.patches.weight.shape[2]
        if images.shape[3:] != (channels,):
            raise ValueError(
                f"`images` must be (images, height, width, {channels}), got shape "
                f"{images.shape}."
            )
        if len(images) == 0:
            return self
        if min(images.shape[1:3]) < _SIDE:
            raise ValueError(
                f"`images` must have {_SIDE} by {_SIDE} pixels or more, got "
                f"{images.shape[1]} by {images.shape[2]}."
            )
        if not np.isfinite(images).all():
            raise ValueError(
                "`images` has numbers that are not finite: leave such images out."
            )
        weight = self.patches.weight
        kernel = jnp.asarray(_whitening(images).reshape(weight.shape), weight.dtype)
        return eqx.tree_at(lambda stem: stem.patches.weight, self, kernel)

    def __call__(
        self, x: Float[Array, "batch height width channels"]
    ) -> Float[Array, "batch half_height half_width out_channels"]:
        """Apply to a batch; odd sides are rounded up."""
        return self.mix(self.activation(self.patches(x)))


def _whitening(images: Float[np.ndarray, "images height width channels"]) -> np.ndarray:
    """(patch's numbers, twice as many): components scaled to variance 1, and minus."""
    count, height, width, channels = images.shape
    rows, columns = height // _SIDE, width // _SIDE
    even = images[:, : rows * _SIDE, : columns * _SIDE]
    shape = (count, rows, _SIDE, columns, _SIDE, channels)
    patches = even.reshape(shape).transpose(0, 1, 3, 2, 4, 5)
    patches = patches.reshape(-1, _SIDE**2 * channels).astype(np.float64)
    covariance = np.atleast_2d(np.cov(patches, rowvar=False, bias=True))
    variances, components = np.linalg.eigh(covariance)
    whitening = components / np.sqrt(np.maximum(variances, 0.0) + _LEAST_VARIANCE)
    return np.concatenate([whitening, -whitening], axis=1)
