"""VGG-16, for small images and for ImageNet's."""

import dataclasses

import equinox as eqx
import jax
import jax.random as jr

from ..._types import Array, Float, PRNGKeyArray
from .._chain import (
    Activation,
    Chain,
    MakeNorm,
    State,
    convolution,
    finish,
    make_activation,
    run,
    scaled,
)
from .._initialise import he_normal
from .._layers import Linear
from .._norm import BatchNorm
from .._shapes import adaptive_average_pool, max_pool

_STAGES = ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3)
_FACTOR = 2 ** len(_STAGES)


@dataclasses.dataclass(frozen=True)
class VGGHead:
    """What follows the convolutions.

    Attributes:
        num_pixels: a side of the images that the convolutions' output is averaged to.
        width_sizes: of the hidden linear layers.
    """

    num_pixels: int
    width_sizes: tuple[int, ...]


CIFAR_HEAD = VGGHead(1, (512, 512))
"""512-512-512-C, the form for images of 32×32."""

IMAGENET_HEAD = VGGHead(7, (4096, 4096))
"""25,088-4,096-4,096-C, the original one."""


class VGG16(eqx.Module):
    """Thirteen 3×3 convolutions in five stages, and three linear layers.

    Maxima of 2×2 pixels end each stage, so height and width must be multiples of 32.
    The original's dropout between the linear layers is left to `MCDropout`.

    Args:
        num_classes: numbers that come out.
        in_channels: of the images.
        width: multiplies hidden channels and features.
        head: `CIFAR_HEAD`, `IMAGENET_HEAD` or one's own.
        norm: `BatchNorm` or another class of channels, after each convolution; `None`
            gives the original.
        activation: a function, or a class of channels.
        key: randomness of the weights, drawn by `he_normal`.

    References:
        Simonyan & Zisserman (2015). Very deep convolutional networks for large-scale
        image recognition. ICLR, table 1, column D.
    """

    features: Chain
    head: Chain
    num_pixels: int = eqx.field(static=True)

    def __init__(
        self,
        num_classes: int,
        *,
        in_channels: int = 3,
        width: float | int = 1.0,
        head: VGGHead = CIFAR_HEAD,
        norm: MakeNorm | None = BatchNorm,
        activation: Activation = jax.nn.relu,
        key: PRNGKeyArray,
    ):
        num_convs, num_linears = sum(map(len, _STAGES)), len(head.width_sizes) + 1
        *keys, init_key = jr.split(key, num_convs + num_linears + 1)
        conv_keys, linear_keys = iter(keys[:num_convs]), iter(keys[num_convs:])

        features, size = (), in_channels
        for stage in _STAGES:
            for channels in stage:
                channels = scaled(channels, width)
                features += convolution(
                    size,
                    channels,
                    3,
                    norm=norm,
                    activation=activation,
                    key=next(conv_keys),
                )
                size = channels
            features += (max_pool,)

        layers, size = (), size * head.num_pixels**2
        for features_out in head.width_sizes:
            features_out = scaled(features_out, width)
            linear = Linear(size, features_out, key=next(linear_keys))
            layers += (linear, *make_activation(activation, features_out))
            size = features_out
        layers += (Linear(size, num_classes, key=next(linear_keys)),)

        self.features, self.head = he_normal((features, layers), key=init_key)
        self.num_pixels = head.num_pixels

    def __call__(
        self, x: Float[Array, "*lead height width channels"], state: State = None
    ) -> Float[Array, "*lead num_classes"] | tuple[Float[Array, "..."], eqx.nn.State]:
        """Logits of images of any leading axes; with the state if one is given.

        Raises:
            ValueError: for pixels that cannot be halved five times.
        """
        height, width = x.shape[-3:-1]
        if height % _FACTOR or width % _FACTOR or not height * width:
            raise ValueError(
                f"`VGG16` halves its images five times, so height and width must be "
                f"multiples of {_FACTOR}, got {height} by {width}: pad or resize them."
            )
        x, state = run(self.features, x, state)
        x = adaptive_average_pool(x, self.num_pixels)
        y, state = run(self.head, x.reshape(*x.shape[:-3], -1), state)
        return finish(y, state)
