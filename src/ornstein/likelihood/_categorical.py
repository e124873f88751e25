"""One class for each row."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from .._types import Array, Float
from ..metrics import entropy
from ._base import AbstractClassLikelihood
from ._targets import Targets, check_rows, fit, working_dtype


class Categorical(AbstractClassLikelihood):
    r"""One of several classes.

    $p(y = k) = \mathrm{softmax}(f)_k$ for logits $f$.
    """

    def distribution(self, output: Float[Array, "*lead classes"]) -> dist.Distribution:
        """A categorical distribution with these logits."""
        return dist.CategoricalLogits(output.astype(working_dtype(output)))

    def log_prob(
        self, output: Float[Array, "*lead classes"], y: Targets
    ) -> Float[Array, "*lead"]:
        """Log softmax at the class: see `AbstractLikelihood.log_prob`."""
        log_prob = self.distribution(output).log_prob(fit(y, output.shape[:-1]))
        return jnp.asarray(log_prob)

    def probs(
        self, output: Float[Array, "*lead classes"]
    ) -> Float[Array, "*lead classes"]:
        """The softmax of the logits."""
        return _softmax(output.astype(working_dtype(output)))

    def logits(
        self, probs: Float[Array, "*lead classes"]
    ) -> Float[Array, "*lead classes"]:
        """Log probabilities."""
        return jnp.log(probs)

    def entropy(self, probs: Float[Array, "*lead classes"]) -> Float[Array, "*lead"]:
        r"""$-\sum_k p_k \log p_k$, nats."""
        return entropy(probs)

    def check_targets(self, y: Targets, num_outputs: int):
        """Class numbers from 0 to `num_outputs - 1`, one for each row."""
        y = np.asarray(y)
        check_rows(y)
        if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
            raise ValueError(
                f"`Categorical` got targets of shape {y.shape} and type {y.dtype}, but "
                "needs one integer class number for each row: write y.astype('int32'), "
                "or argmax(y, axis=1) for one-hot rows."
            )
        if y.min() < 0 or y.max() >= num_outputs:
            raise ValueError(
                f"Class numbers run from {y.min()} to {y.max()}, but a network with "
                f"{num_outputs} outputs knows only 0 to {num_outputs - 1}: number the "
                "classes from 0, or give the network more outputs."
            )


# One program where it is not part of one: each of its operations would be one.
_softmax = jax.jit(jax.nn.softmax)
