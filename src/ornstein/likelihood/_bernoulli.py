"""Yes-or-no targets."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from .._types import Array, Float
from ._base import AbstractClassLikelihood
from ._targets import Targets, check_columns, check_rows, fit_columns, working_dtype


class Bernoulli(AbstractClassLikelihood):
    r"""Independent yes-or-no targets, one for each output.

    $p(y_j = 1) = 1 / (1 + e^{-f_j})$ for logits $f$; columns are summed over.
    """

    def distribution(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """A vector of Bernoulli variables with these logits."""
        logits = output.astype(working_dtype(output))
        return dist.BernoulliLogits(logits).to_event(1)

    def log_prob(
        self, output: Float[Array, "*lead outputs"], y: Targets
    ) -> Float[Array, "*lead"]:
        """Log probability of the row's targets: see `AbstractLikelihood.log_prob`."""
        # NumPyro's own mixes booleans and floats: an error under strict promotion.
        logits = output.astype(working_dtype(output))
        signs = 2 * fit_columns(y, logits) - 1
        return jnp.sum(jax.nn.log_sigmoid(signs * logits), axis=-1)

    def probs(
        self, output: Float[Array, "*lead outputs"]
    ) -> Float[Array, "*lead outputs"]:
        """Each output's probability of 1."""
        return jax.nn.sigmoid(output.astype(working_dtype(output)))

    def logits(
        self, probs: Float[Array, "*lead outputs"]
    ) -> Float[Array, "*lead outputs"]:
        """Log odds."""
        return jax.scipy.special.logit(probs)

    def entropy(self, probs: Float[Array, "*lead outputs"]) -> Float[Array, "*lead"]:
        r"""$-\sum_j p_j \log p_j + (1 - p_j) \log (1 - p_j)$, nats."""
        xlogy = jax.scipy.special.xlogy
        return -jnp.sum(xlogy(probs, probs) + xlogy(1 - probs, 1 - probs), axis=-1)

    def check_targets(self, y: Targets, num_outputs: int):
        """Zeros and ones, a column for each output."""
        y = np.asarray(y)
        check_rows(y)
        check_columns(y, num_outputs, "Bernoulli")
        if not np.all((y == 0) | (y == 1)):
            raise ValueError(
                "`Bernoulli` got targets other than 0 and 1: write (y > threshold), "
                "or use `Categorical` for class numbers."
            )
