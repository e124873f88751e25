"""Heavy-tailed noise."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist

from .._types import Array, ArrayLike, Float
from ._location_scale import (
    AbstractLocationScaleLikelihood,
    location_scale,
    log_of_scale,
)


class StudentT(AbstractLocationScaleLikelihood):
    r"""Heavy-tailed noise: $(y - f) / \sigma$ is Student-t with $\nu$ degrees.

    Args:
        df: $\nu$, positive. The variance exists above 2, the mean above 1.
        scale: $\sigma$, in the units of the targets; one, or one for each output.
            It is not the standard deviation.
        learn_scale: train $\log \sigma$ with the network; `df` stays fixed.
    """

    log_scale: Float[Array, "..."]
    learn_scale: bool = eqx.field(static=True)
    tail_index: float = eqx.field(static=True)

    def __init__(
        self,
        df: float | int,
        scale: ArrayLike,
        *,
        learn_scale: bool = False,
    ):
        if not (math.isfinite(df) and df > 0):
            raise ValueError(
                f"`df` must be positive and finite, got {df}: use `Gaussian` for the "
                "limit of many degrees of freedom."
            )
        self.log_scale = log_of_scale(scale)
        self.learn_scale = learn_scale
        self.tail_index = float(df)

    def marginals(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Student-t variables."""
        loc, scale = location_scale(output, self.scale)
        return dist.StudentT(jnp.full_like(loc, self.tail_index), loc, scale)
