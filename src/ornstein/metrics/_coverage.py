"""Whether intervals and quantiles hold what they promise."""

import jax.numpy as jnp

from .._tree import in_single
from .._types import Array, Float
from ._arrays import AnyArray, check_like


def interval_coverage(
    lower: Float[AnyArray, "*rows"],
    upper: Float[AnyArray, "*rows"],
    y: Float[AnyArray, "*rows"],
) -> Float[Array, ""]:
    """The share of targets inside their interval, ends included.

    Args:
        lower: lower ends.
        upper: upper ends.
        y: targets, of the same shape.

    Raises:
        ValueError: for ends of another shape.
    """
    check_like(y, lower=lower, upper=upper)
    y = jnp.asarray(y)
    return jnp.mean((jnp.asarray(lower) <= y) & (y <= jnp.asarray(upper)))


def regression_calibration_error(
    cdf: Float[AnyArray, "*rows"], *, num_levels: int = 19
) -> Float[Array, ""]:
    r"""Mean gap between the levels of quantiles and the shares of targets below them.

    $\tfrac{1}{m} \sum_j |p_j - \tfrac{1}{N} \sum_n 1[F_n(y_n) \le p_j]|$ at $p_j = j /
    (m + 1)$, after Kuleshov et al., "Accurate uncertainties for deep learning using
    calibrated regression" (ICML 2018), eq. (9), with absolute differences. NaN if a
    value is.

    Args:
        cdf: each target's predictive distribution function at its value, $F_n(y_n)$.
        num_levels: $m$.
    """
    values = in_single(cdf).ravel()
    levels = jnp.linspace(0, 1, num_levels + 2, dtype=values.dtype)[1:-1]
    shares = jnp.mean(values[:, None] <= levels[None], axis=0)
    gap = jnp.mean(jnp.abs(shares - levels))
    return jnp.where(jnp.isnan(values).any(), jnp.nan, gap)
