"""Normal noise."""

import math

import equinox as eqx
import numpyro.distributions as dist

from .._types import Array, ArrayLike, Float
from ._location_scale import (
    AbstractLocationScaleLikelihood,
    location_scale,
    log_of_scale,
)


class Gaussian(AbstractLocationScaleLikelihood):
    r"""Normal noise: $y \sim N(f, \sigma^2)$ for output $f$.

    Args:
        scale: $\sigma$, in the units of the targets; one, or one for each output.
        learn_scale: train $\log \sigma$ with the network.
    """

    log_scale: Float[Array, "..."]
    learn_scale: bool = eqx.field(static=True)
    tail_index: float = eqx.field(static=True, default=math.inf)

    def __init__(self, scale: ArrayLike, *, learn_scale: bool = False):
        self.log_scale = log_of_scale(scale)
        self.learn_scale = learn_scale

    def marginals(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Normal variables."""
        return dist.Normal(*location_scale(output, self.scale))
