"""The latent path of one series, of samples and fits over a whitened latent SDE."""

from typing import Any

import jax
import jax.numpy as jnp

from .._types import Array, ArrayLike, Float, PRNGKeyArray
from ._base import AbstractRandomFunction
from .latent import WhitenedLatentSDE


def latent_paths(
    model: AbstractRandomFunction,
    ts: Float[ArrayLike, " times"] | None = None,
    *,
    key: PRNGKeyArray,
    num_draws: int = 100,
) -> Float[Array, "draws times latent"]:
    """Draws of z(t), whose quantiles over draws are a band.

    The draws are those of `predict` with this key: draw i decodes to prediction i.

    Args:
        model: `PosteriorSamples`, `MeanField`, `SWAG`, `Ensemble` or `Deterministic`
            of what `whiten` makes of a `LatentSDE`.
        ts: times of the solve's grid; `None` for those that `whiten` was given.
        key: which functions.
        num_draws: how many.

    Raises:
        TypeError: for a function of anything else.
        ValueError: for a time that is not on the grid, or no draws.

    Example:
        >>> import jax, jax.numpy as jnp, ornstein as orn
        >>> model = orn.LatentSDE.make(
        ...     orn.functions.NoRecognition(2), 1, key=jax.random.key(0)
        ... )
        >>> network = orn.whiten(model, ts=jnp.linspace(0.0, 1.0, 6))
        >>> fit = orn.MeanField(network, orn.GaussianPrior(1.0))
        >>> z = orn.latent_paths(fit, key=jax.random.key(1), num_draws=20)
        >>> z.shape
        (20, 6, 2)
        >>> low, high = jnp.quantile(z, jnp.array([0.05, 0.95]), axis=0)
    """
    if num_draws < 1:
        raise ValueError(f"`num_draws` must be at least 1, got {num_draws}.")
    network_at = getattr(model, "network_at", None)
    first: Any = model if network_at is None else network_at(0, key=key)
    if network_at is None or not isinstance(first, WhitenedLatentSDE):
        raise TypeError(
            f"`latent_paths` needs samples of, or a fit over, `whiten(model, ts=...)` "
            f"of a `LatentSDE`, got `{type(first).__name__}`: a `LatentSDE` has a "
            "method `trajectory`, and such a network a method `latent_path`."
        )
    path = lambda index: network_at(index, key=key).latent_path(ts)
    return jax.lax.map(path, jnp.arange(num_draws))
