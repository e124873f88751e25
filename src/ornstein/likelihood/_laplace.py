"""Double-exponential noise."""

import math

import equinox as eqx
import numpyro.distributions as dist

from .._types import Array, ArrayLike, Float
from ._location_scale import (
    AbstractLocationScaleLikelihood,
    location_scale,
    log_of_scale,
)


class Laplace(AbstractLocationScaleLikelihood):
    r"""Double-exponential noise: $p(y) = e^{-|y - f| / b} / (2 b)$ for output $f$.

    Args:
        scale: $b$, in the units of the targets; one, or one for each output.
        learn_scale: train $\log b$ with the network.
    """

    log_scale: Float[Array, "..."]
    learn_scale: bool = eqx.field(static=True)
    tail_index: float = eqx.field(static=True, default=math.inf)

    def __init__(self, scale: ArrayLike, *, learn_scale: bool = False):
        self.log_scale = log_of_scale(scale)
        self.learn_scale = learn_scale

    def marginals(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Laplace variables."""
        return dist.Laplace(*location_scale(output, self.scale))
