"""LeNet, as the implicit BNN's experiments have it."""

import equinox as eqx
import jax
import jax.random as jr

from ..._types import Array, Float, PRNGKeyArray
from .._chain import Activation, Chain, make_activation, run, scaled
from .._initialise import he_normal
from .._layers import Conv2d, Linear
from .._shapes import max_pool

_SIDE = 28


class LeNet(eqx.Module):
    """Three convolutions and two linear layers for images of 28×28.

    Convolutions of 6, 16 and 120 channels with kernels of 5, 5 and 4 and no padding,
    maxima of 2×2 pixels after the first two, then 64 and `num_classes` features:
    28 → 24 → 12 → 8 → 4 → 1 pixels a side; 41,806 parameters for ten classes.

    Args:
        num_classes: numbers that come out.
        in_channels: of the images.
        width: multiplies hidden channels and features, so that 2, 4, 8 have about 4,
            16, 64 times the parameters (Trinh et al., 2020, fig. 4).
        activation: a function, or a class of channels.
        key: randomness of the weights, drawn by `he_normal`.

    References:
        LeCun et al. (1998). Gradient-based learning applied to document recognition.
    """

    features: Chain
    head: Chain

    def __init__(
        self,
        num_classes: int = 10,
        *,
        in_channels: int = 1,
        width: float | int = 1.0,
        activation: Activation = jax.nn.relu,
        key: PRNGKeyArray,
    ):
        *keys, init_key = jr.split(key, 6)
        c1, c2, c3, hidden = (scaled(size, width) for size in (6, 16, 120, 64))
        act = lambda size: make_activation(activation, size)
        features = (
            *(Conv2d(in_channels, c1, 5, padding="VALID", key=keys[0]), *act(c1)),
            max_pool,
            *(Conv2d(c1, c2, 5, padding="VALID", key=keys[1]), *act(c2)),
            max_pool,
            *(Conv2d(c2, c3, 4, padding="VALID", key=keys[2]), *act(c3)),
        )
        head = (
            *(Linear(c3, hidden, key=keys[3]), *act(hidden)),
            Linear(hidden, num_classes, key=keys[4]),
        )
        self.features, self.head = he_normal((features, head), key=init_key)

    def __call__(
        self, x: Float[Array, "*lead height width channels"]
    ) -> Float[Array, "*lead num_classes"]:
        """Logits of images of any leading axes.

        Raises:
            ValueError: for images that are not 28×28.
        """
        if x.shape[-3:-1] != (_SIDE, _SIDE):
            raise ValueError(
                f"`LeNet` takes images of {_SIDE} by {_SIDE} pixels, channels last, "
                f"got an array of shape {x.shape}: pad, crop or resize them."
            )
        x, _ = run(self.features, x, None)
        y, _ = run(self.head, x[..., 0, 0, :], None)
        return y
