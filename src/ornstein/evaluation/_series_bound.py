"""The bound on the evidence of series, a path of its own for each."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PRNGKeyArray, PyTree
from ..data import Series, Split
from ..train import Fit


def bound_of_series(
    fitted: Fit, split: Split, *, key: PRNGKeyArray, num_draws: int = 16
) -> dict[str, float]:
    """`elbo` and `kl` of a fit with latents of single series, in nats a series.

    Every series has paths of its own, so that the mean over many of them is sharp.

    Args:
        fitted: a fit of series.
        split: any series, and what is observed of them.
        key: of the paths.
        num_draws: paths of each series.
    """
    elbo, kl = _bound(fitted, split.x, split.y, jax.random.split(key, num_draws))
    return {"elbo": float(elbo), "kl": float(kl)}


@eqx.filter_jit
def _bound(
    fitted: Fit, x: Series, y: PyTree, keys: Array
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        draw = fitted.model(x, key=key)
        fits = fitted.likelihood.log_prob(draw.output, y)
        return jnp.mean(fits - draw.local_kl), jnp.mean(draw.local_kl)

    elbos, kls = jax.lax.map(one, keys)
    return jnp.mean(elbos), jnp.mean(kls)
