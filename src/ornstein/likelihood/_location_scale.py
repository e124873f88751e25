"""Real targets around the network's output."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from .._types import Array, ArrayLike, Float, PyTree
from ._base import AbstractLikelihood
from ._targets import Targets, check_columns, check_rows, fit_columns, working_dtype


class AbstractLocationScaleLikelihood(AbstractLikelihood):
    """A likelihood of real targets around the network's output.

    Attributes:
        log_scale: log of the scale, in the units of the targets; one number, or one
            for each output.
        learn_scale: whether training moves the scale.
        tail_index: moments of orders below it exist, and no others.
    """

    log_scale: eqx.AbstractVar[Float[Array, "..."]]
    learn_scale: eqx.AbstractVar[bool]
    tail_index: eqx.AbstractVar[float]

    @abc.abstractmethod
    def marginals(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Each target column's own distribution: batch shape (*lead, outputs)."""

    @property
    def scale(self) -> Float[Array, "..."]:
        """The scale, in the units of the targets."""
        return jnp.exp(self.log_scale)

    def distribution(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Independent columns around `output`."""
        return self.marginals(output).to_event(1)

    def log_prob(
        self, output: Float[Array, "*lead outputs"], y: Targets
    ) -> Float[Array, "*lead"]:
        """Log density of the row's targets: see `AbstractLikelihood.log_prob`."""
        log_prob = self.distribution(output).log_prob(fit_columns(y, output))
        return jnp.asarray(log_prob)

    def value_log_prob(
        self, output: Float[Array, "*lead outputs"], y: Targets
    ) -> Float[Array, "*lead outputs"]:
        """Log density in nats of every target column by itself.

        Args:
            output: locations; draws or other axes may come before rows.
            y: as `log_prob` takes them.
        """
        return jnp.asarray(self.marginals(output).log_prob(fit_columns(y, output)))

    def labels(self) -> PyTree[str]:
        """The scale is a weight if it is learned."""
        label = "weights" if self.learn_scale else "frozen"
        return jax.tree.map(lambda leaf: label, self)

    def check_targets(self, y: Targets, num_outputs: int):
        """Finite floating-point numbers, a column for each output."""
        y, name = np.asarray(y), type(self).__name__
        if not jnp.issubdtype(y.dtype, jnp.floating):
            raise ValueError(
                f"`{name}` got targets of type {y.dtype}, but needs floating-point "
                "numbers: write y.astype('float32'), or use `Categorical` for classes."
            )
        check_rows(y)
        check_columns(y, num_outputs, name)
        shape = self.log_scale.shape
        if len(shape) > 1:  # of sampled scales, beside the draws' outputs
            shape = () if shape[-1] == 1 else shape[-1:]
        if shape not in ((), (num_outputs,)):
            raise ValueError(
                f"`{name}` has a scale of shape {self.log_scale.shape}, but the "
                f"network has {num_outputs} outputs: give one scale, or one for each."
            )


def location_scale(
    output: Float[Array, "..."], scale: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Both with one shape and one type, as strict promotion asks."""
    dtype = working_dtype(output)
    return output.astype(dtype), jnp.broadcast_to(scale.astype(dtype), output.shape)


def log_of_scale(scale: ArrayLike) -> Float[Array, "..."]:
    values = np.asarray(scale)
    if values.ndim > 1 or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(
            f"`scale` must be one positive number, or one for each output, but is "
            f"{scale}: give it in the units of the targets."
        )
    return jnp.log(jnp.asarray(scale, dtype=jnp.result_type(float)))
