"""A likelihood of series: another one at every observed value."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from .._types import Array, Float, PyTree
from ..data import Series
from ._base import AbstractLikelihood
from ._location_scale import AbstractLocationScaleLikelihood
from ._targets import Targets, working_dtype


class OverTime(AbstractLikelihood):
    r"""Independent real targets over time, given a latent path; some are missing.

    $\log p(y | f) = \sum_{t, j} m_{tj} \log p(y_{tj} | f_{tj})$, where the mask $m$ is
    1 at what was observed. Nothing that a `Series` holds at other places counts.

    Attributes:
        likelihood: of one value: `Gaussian`, `Laplace`, `Cauchy`, `StudentT`. Its scale
            is one number, or one for each feature; it is learned where it is there.
    """

    likelihood: AbstractLocationScaleLikelihood

    def __check_init__(self):
        if not isinstance(self.likelihood, AbstractLocationScaleLikelihood):
            raise TypeError(
                f"`OverTime` needs a likelihood of real targets, got "
                f"{type(self.likelihood).__name__}: give `Gaussian`, `Laplace`, "
                "`Cauchy` or `StudentT`."
            )

    def distribution(
        self, output: Float[Array, "*lead times outputs"]
    ) -> dist.Distribution:
        """Independent values: event shape (times, outputs)."""
        return self.likelihood.marginals(output).to_event(2)

    def log_prob(
        self,
        output: Float[Array, "*lead times outputs"],
        y: PyTree[Targets],
    ) -> Float[Array, "*lead"]:
        """Log density in nats of the observed values of each row, summed.

        It is of the whole series. An average of its exponential over draws is that of
        the best draw: average `value_log_prob` instead.

        Args:
            output: locations; draws may come before rows.
            y: a `Series` at the same times.
        """
        return jnp.sum(self.value_log_prob(output, y), axis=(-2, -1))

    def value_log_prob(
        self,
        output: Float[Array, "*lead times outputs"],
        y: PyTree[Targets],
    ) -> Float[Array, "*lead times outputs"]:
        """Log density in nats of every value by itself; 0 where none was observed.

        Args:
            output: locations; draws may come before rows.
            y: a `Series` at the same times.
        """
        dtype = working_dtype(output)
        if not isinstance(y, Series) or y.shape != output.shape[-y.values.ndim :]:
            raise ValueError(
                f"`OverTime` got targets of shape {y.shape} for an output of shape "
                f"{output.shape}: give a `Series` with a value, or its mask, for each."
            )
        values = jnp.broadcast_to(y.values, output.shape).astype(dtype)
        # Inside the density too: what is missing may be NaN, and so its gradient.
        values = jnp.where(y.mask, values, output.astype(dtype))
        log_prob = jnp.asarray(self.likelihood.marginals(output).log_prob(values))
        return jnp.where(y.mask, log_prob, 0)

    def check_targets(self, y: PyTree[Targets], num_outputs: int):
        """A `Series` with a feature for each output."""
        if not isinstance(y, Series):
            raise ValueError(
                f"`OverTime` got targets of type {type(y).__name__}, but needs a "
                "`Series`: write `orn.Series.of(ts, values)`."
            )
        observed = np.where(np.asarray(y.mask), np.asarray(y.values), 0)
        self.likelihood.check_targets(observed.reshape(-1, y.num_features), num_outputs)

    def labels(self) -> PyTree[str]:
        """Those of the likelihood inside."""
        return OverTime(self.likelihood.labels())


def of_one_value(likelihood: AbstractLikelihood) -> AbstractLikelihood:
    """What a likelihood says of a single value: the one inside `OverTime`, or itself.

    Its marginals take an axis of times as they take any other.
    """
    return likelihood.likelihood if isinstance(likelihood, OverTime) else likelihood
