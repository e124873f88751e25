"""A likelihood of the user's own."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from .._types import Array, Float, PyTree
from ._base import AbstractLikelihood
from ._targets import Targets, check_rows


class CustomLikelihood(AbstractLikelihood):
    """A user's own log likelihood.

    Its predictions have draws and log probabilities, but no mean, variance or
    quantile, for want of a distribution.

    Args:
        log_prob_fn: `(output, y)` to the log likelihood of each row, in nats. It
            must accept an axis of draws before the rows of `output`, which may be any
            tree. Arrays inside it are frozen.
    """

    log_prob_fn: Callable[[PyTree[Array], Array], Array]

    def distribution(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Refused: a log likelihood alone cannot be sampled."""
        raise NotImplementedError(
            "`CustomLikelihood` knows a log likelihood and no distribution: read the "
            "draws from `prediction.outputs`, or use a named likelihood."
        )

    def log_prob(
        self, output: PyTree[Float[Array, "..."]], y: Targets
    ) -> Float[Array, "..."]:
        """What the user's function gives."""
        return self.log_prob_fn(output, jnp.asarray(y))

    def check_targets(self, y: Targets, num_outputs: int):
        """Finite numbers; the rest is the user's own affair."""
        del num_outputs
        check_rows(np.asarray(y))

    def labels(self) -> PyTree[str]:
        """Nothing is learned here."""
        return jax.tree.map(lambda leaf: "frozen", self)
