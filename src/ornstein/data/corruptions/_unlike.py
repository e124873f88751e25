"""Inputs unlike the training data, to see whether a model knows them for that."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy
from jaxtyping import Float

from ..._types import Array, PRNGKeyArray
from .._base import Split


def gaussian_noise_like(split: Split, *, key: PRNGKeyArray) -> Float[Array, "rows ..."]:
    """Inputs of pure Gaussian noise, with the mean and deviation of `split.x`.

    Args:
        split: gives the shape, and one mean and one deviation over all its numbers.
        key: randomness.
    """
    mean = np.mean(split.x, dtype=np.float64).astype(np.float32)
    scale = np.std(split.x, dtype=np.float64).astype(np.float32)
    return mean + scale * jr.normal(key, split.x.shape, jnp.float32)


def rotate_images(
    x: Float[np.ndarray, "rows height width channels"], degrees: float
) -> Float[np.ndarray, "rows height width channels"]:
    """Turn images counter-clockwise about their middle, bilinearly.

    Corners that come from outside repeat the nearest edge.

    Args:
        x: the images.
        degrees: the angle.
    """
    return scipy.ndimage.rotate(
        x, degrees, axes=(1, 2), reshape=False, order=1, mode="nearest"
    )


def mix_with_noise(
    x: Float[Array, "rows ..."] | Float[np.ndarray, "rows ..."],
    gamma: float,
    *,
    key: PRNGKeyArray,
) -> Float[Array, "rows ..."]:
    r"""Blend inputs with Gaussian noise.

    $\hat x = (1 - \gamma) x + \gamma \varepsilon$ with $\varepsilon \sim N(0, I)$.

    Args:
        x: standardised inputs.
        gamma: $\gamma$, from 0 (the inputs) to 1 (noise alone).
        key: randomness.
    """
    _check_share("gamma", gamma)
    x = jnp.asarray(x)
    return (1 - gamma) * x + gamma * jr.normal(key, x.shape, x.dtype)


def salt_and_pepper(
    x: Float[Array, "rows height width channels"]
    | Float[np.ndarray, "rows height width channels"],
    fraction: float,
    *,
    key: PRNGKeyArray,
    whole_pixels: bool = True,
) -> Float[Array, "rows height width channels"]:
    """Set some pixels to the lowest or highest value that their channels have in `x`.

    In standardised images black and white are other numbers in each channel. With one
    key a smaller fraction sets some of the pixels that a larger one sets, alike.

    Args:
        x: the images.
        fraction: of the pixels, half of it dark and half of it bright.
        key: randomness.
        whole_pixels: set all channels of a pixel, alike; or each for itself.
    """
    _check_share("fraction", fraction)
    x = jnp.asarray(x)
    u = jr.uniform(key, (*x.shape[:-1], 1) if whole_pixels else x.shape)
    # Dark ones grow from 0 and bright ones from 1, so that none changes its side.
    dark, bright = u < fraction / 2, u >= 1 - fraction / 2
    lowest = x.min(axis=(0, 1, 2), keepdims=True)
    highest = x.max(axis=(0, 1, 2), keepdims=True)
    return jnp.where(dark, lowest, jnp.where(bright, highest, x))


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"`{name}` must lie between 0 and 1, got {value}.")
