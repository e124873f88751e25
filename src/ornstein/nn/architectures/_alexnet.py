"""AlexNet, in the layout of torchvision."""

import equinox as eqx
import jax
import jax.random as jr

from ..._types import Array, Float, PRNGKeyArray
from .._chain import Activation, Chain, convolution, make_activation, run, scaled
from .._initialise import he_normal
from .._layers import Linear
from .._shapes import MaxPool, adaptive_average_pool

_SIDE = 6
_SMALLEST = 63  # below, the last maxima have no whole window


class AlexNet(eqx.Module):
    """Five convolutions and three linear layers, 61 M parameters for ImageNet.

    The one-column form (Krizhevsky, 2014), as torchvision has it: without local
    response normalisation, and its dropout is left to `MCDropout`. Inputs are usually
    224×224.

    Args:
        num_classes: numbers that come out.
        in_channels: of the images.
        width: multiplies hidden channels and features.
        activation: a function, or a class of channels.
        key: randomness of the weights, drawn by `he_normal`.

    References:
        Krizhevsky (2014). One weird trick for parallelizing convolutional neural
        networks. arXiv:1404.5997.
    """

    features: Chain
    head: Chain

    def __init__(
        self,
        num_classes: int = 1000,
        *,
        in_channels: int = 3,
        width: float | int = 1.0,
        activation: Activation = jax.nn.relu,
        key: PRNGKeyArray,
    ):
        *keys, init_key = jr.split(key, 9)
        c1, c2, c3, c4, c5 = (scaled(c, width) for c in (64, 192, 384, 256, 256))
        hidden = scaled(4096, width)

        def conv(i: int, *sizes: int, stride: int = 1, padding: int | None = None):
            return convolution(
                *sizes,
                stride=stride,
                padding=padding,
                activation=activation,
                key=keys[i],
            )

        pool = MaxPool(3, stride=2)
        features = (
            *conv(0, in_channels, c1, 11, stride=4, padding=2),
            pool,
            *conv(1, c1, c2, 5),
            pool,
            *conv(2, c2, c3, 3),
            *conv(3, c3, c4, 3),
            *conv(4, c4, c5, 3),
            pool,
        )
        head = (
            Linear(c5 * _SIDE**2, hidden, key=keys[5]),
            *make_activation(activation, hidden),
            Linear(hidden, hidden, key=keys[6]),
            *make_activation(activation, hidden),
            Linear(hidden, num_classes, key=keys[7]),
        )
        self.features, self.head = he_normal((features, head), key=init_key)

    def __call__(
        self, x: Float[Array, "*lead height width channels"]
    ) -> Float[Array, "*lead num_classes"]:
        """Logits of images of any leading axes.

        Raises:
            ValueError: for images smaller than 63×63.
        """
        if min(x.shape[-3:-1]) < _SMALLEST:
            raise ValueError(
                f"`AlexNet` takes images of at least {_SMALLEST} by {_SMALLEST} "
                "pixels, channels last, got an array of shape "
                f"{x.shape}: resize them to 224."
            )
        x, _ = run(self.features, x, None)
        x = adaptive_average_pool(x, _SIDE)
        y, _ = run(self.head, x.reshape(*x.shape[:-3], -1), None)
        return y
