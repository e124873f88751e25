"""Noise without moments."""

import equinox as eqx
import numpyro.distributions as dist

from .._types import Array, ArrayLike, Float
from ._location_scale import (
    AbstractLocationScaleLikelihood,
    location_scale,
    log_of_scale,
)


class Cauchy(AbstractLocationScaleLikelihood):
    r"""Noise without mean or variance: $p(y) \propto 1 / (1 + ((y - f) / \gamma)^2)$.

    Predictions have quantiles and intervals, but no mean and no variance.

    Args:
        scale: $\gamma$, in the units of the targets; one, or one for each output.
        learn_scale: train $\log \gamma$ with the network.
    """

    log_scale: Float[Array, "..."]
    learn_scale: bool = eqx.field(static=True)
    tail_index: float = eqx.field(static=True, default=1.0)

    def __init__(self, scale: ArrayLike, *, learn_scale: bool = False):
        self.log_scale = log_of_scale(scale)
        self.learn_scale = learn_scale

    def marginals(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Cauchy variables."""
        return dist.Cauchy(*location_scale(output, self.scale))
