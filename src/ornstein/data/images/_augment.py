"""Random changes to a batch of images that keep their class.

Pure functions of (images, key), for use inside a compiled training step.
"""

import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..._types import Array, Float, Int, PRNGKeyArray
from .._standardise import Standardisation


class AbstractAugmentation(eqx.Module):
    """A random change of each image of a batch, independently."""

    @abc.abstractmethod
    def __call__(
        self, x: Float[Array, "batch height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "batch height width channels"]:
        """Change each image.

        Args:
            x: the images.
            key: randomness.
        """


class RandomShift(AbstractAugmentation):
    """Move each image by whole pixels and repeat its edge in what opens up.

    For images whose border is background: the edge then is background, whatever the
    units. Both directions are uniform over -max_pixels … max_pixels.

    Attributes:
        max_pixels: the furthest, positive.
    """

    max_pixels: int = eqx.field(static=True)

    def __check_init__(self):
        _check_positive("max_pixels", self.max_pixels)

    def __call__(
        self, x: Float[Array, "batch height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "batch height width channels"]:
        margin = (self.max_pixels, self.max_pixels)
        padded = jnp.pad(x, ((0, 0), margin, margin, (0, 0)), mode="edge")
        return _crop_each(padded, x.shape, key=key)


class RandomCrop(AbstractAugmentation):
    """Pad each image by one colour, and cut a window of the first size from it.

    Attributes:
        pad: pixels on each side, positive.
        fill: the colour of the padding, one number or one a channel, in the units of
            the images.
    """

    pad: int = eqx.field(static=True)
    fill: float | Float[np.ndarray, "..."] | Float[Array, "..."] = 0.0

    def __check_init__(self):
        _check_positive("pad", self.pad)

    def __call__(
        self, x: Float[Array, "batch height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "batch height width channels"]:
        batch, height, width, channels = x.shape
        padded_shape = (batch, height + 2 * self.pad, width + 2 * self.pad, channels)
        colour = jnp.broadcast_to(jnp.asarray(self.fill, x.dtype), padded_shape)
        inside = slice(self.pad, -self.pad)
        padded = colour.at[:, inside, inside].set(x)
        return _crop_each(padded, x.shape, key=key)


class RandomFlip(AbstractAugmentation):
    """Exchange left and right with probability a half."""

    def __call__(
        self, x: Float[Array, "batch height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "batch height width channels"]:
        flip = jr.bernoulli(key, shape=(x.shape[0], 1, 1, 1))
        return jnp.where(flip, x[:, :, ::-1], x)


class Compose(AbstractAugmentation):
    """One after another, each with its own key; none at all leaves images alone.

    Attributes:
        steps: the augmentations in their order.
    """

    steps: Sequence[AbstractAugmentation]

    def __call__(
        self, x: Float[Array, "batch height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "batch height width channels"]:
        for number, step in enumerate(self.steps):
            x = step(x, key=jr.fold_in(key, number))
        return x


def default_augmentation(
    name: str, x_scaling: Standardisation | None = None
) -> AbstractAugmentation:
    """What keeps the class of an image of the data set `name`.

    A digit may move but not be mirrored; a garment or a photograph may do both. Of
    other data nothing is known, and nothing is done.

    Args:
        name: as `load` takes it.
        x_scaling: the data's, so that photographs are padded by black as Xu et al. do;
            without it by the mean colour.
    """
    fill = 0.0 if x_scaling is None else x_scaling.apply(np.zeros_like(x_scaling.mean))
    table = {
        "digits": Compose((RandomShift(1),)),
        "mnist": Compose((RandomShift(2),)),
        "fashion_mnist": Compose((RandomShift(2), RandomFlip())),
        "cifar10": Compose((RandomCrop(4, fill), RandomFlip())),
        "cifar100": Compose((RandomCrop(4, fill), RandomFlip())),
    }
    return table.get(name, Compose(()))


def _crop_each(
    padded: Float[Array, "batch tall wide channels"],
    shape: tuple[int, ...],
    *,
    key: PRNGKeyArray,
) -> Float[Array, "batch height width channels"]:
    """From each image a window of `shape`, anywhere with the same probability."""
    batch, *window = shape
    room = jnp.array(padded.shape[1:3]) - jnp.array(shape[1:3])
    corners = jr.randint(key, (batch, 2), 0, room[None] + 1)

    def crop(
        image: Float[Array, "tall wide channels"], corner: Int[Array, " 2"]
    ) -> Float[Array, "height width channels"]:
        start = (corner[0], corner[1], jnp.zeros_like(corner[0]))
        return jax.lax.dynamic_slice(image, start, window)

    return jax.vmap(crop)(padded, corners)


def _check_positive(name: str, value: int) -> None:
    if value <= 0:
        raise ValueError(
            f"`{name}` must be a positive number of pixels, got {value}; leave the "
            "augmentation out to do nothing."
        )
