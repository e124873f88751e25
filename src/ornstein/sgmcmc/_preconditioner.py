r"""Step sizes with which constant SGD's own noise makes it a sampler.

Mandt et al. write them for the mean loss L = U / N, with $B B^\top$ the covariance of
the gradients of single examples; on U they are N times smaller. In terms of
$V = \frac{N^2}{n} B B^\top$, the covariance of a batch's gradient of U, N and n drop
out:

| | on L | on U |
|---|---|---|
| scalar (36) | $2 \frac{n}{N} D / \mathrm{Tr}(B B^\top)$ | $2 D / \mathrm{Tr}(V)$ |
| full (37) | $2 \frac{n}{N} (B B^\top)^{-1}$ | $2 V^{-1}$ |
| diagonal (38) | $2 n / (N (B B^\top)_{kk})$ | $2 / V_{kk}$ |

(equations of Jospin et al. 2022).
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .._types import Array, Float, Params, PRNGKeyArray, PyTree
from ..potential import AbstractPotential, Potential
from ._base import like, num_entries
from ._noise import gradient_noise_covariance, gradient_noise_variance

_NO_NOISE = (
    "`ConstantSGD` samples by the noise of its gradients, and here there is none: give "
    "a smaller batch, or start from another position."
)


class AbstractPreconditioner(eqx.Module):
    """How constant SGD turns gradients of U into steps."""

    @abc.abstractmethod
    def estimate(
        self,
        potential: AbstractPotential,
        position: Params,
        *,
        key: PRNGKeyArray,
        num_rows: int,
    ) -> PyTree[Array]:
        """H, from the gradient noise at a position.

        Args:
            potential: of which gradients are taken.
            position: where.
            key: of the rows.
            num_rows: rows to look at.
        """

    @abc.abstractmethod
    def apply(self, matrix: PyTree[Array], gradient: Params) -> Params:
        """H times a gradient of U."""

    @abc.abstractmethod
    def mean_step_size(self, matrix: PyTree[Array]) -> Float[Array, ""]:
        """The mean of H's diagonal."""


class Scalar(AbstractPreconditioner):
    r"""$2 D / \mathrm{Tr}(V)$: one step size, eq. (36)."""

    def estimate(
        self,
        potential: AbstractPotential,
        position: Params,
        *,
        key: PRNGKeyArray,
        num_rows: int,
    ) -> PyTree[Array]:
        """See `AbstractPreconditioner`."""
        mean = _mean(
            gradient_noise_variance(potential, position, key=key, num_rows=num_rows)
        )
        return 2 / eqx.error_if(mean, mean <= 0, _NO_NOISE)

    def apply(self, matrix: PyTree[Array], gradient: Params) -> Params:
        """See `AbstractPreconditioner`."""
        return jax.tree.map(lambda g: like(matrix, g) * g, gradient)

    def mean_step_size(self, matrix: PyTree[Array]) -> Float[Array, ""]:
        """See `AbstractPreconditioner`."""
        return matrix


class Diagonal(AbstractPreconditioner):
    r"""$2 / V_{kk}$: a step size an entry, eq. (38).

    Args:
        floor: entries with less than this times the mean variance are given that much:
            a weight that no example moves (of a pixel that is always black) would be
            given infinite steps.

    Raises:
        ValueError: if the floor is negative.
    """

    floor: float = 1e-3

    def __check_init__(self) -> None:
        if self.floor < 0:
            raise ValueError(f"`Diagonal.floor` must not be negative: {self.floor}.")

    def estimate(
        self,
        potential: AbstractPotential,
        position: Params,
        *,
        key: PRNGKeyArray,
        num_rows: int,
    ) -> PyTree[Array]:
        """See `AbstractPreconditioner`."""
        variance = gradient_noise_variance(
            potential, position, key=key, num_rows=num_rows
        )
        mean = _mean(variance)
        least = self.floor * eqx.error_if(mean, mean <= 0, _NO_NOISE)
        return jax.tree.map(lambda v: 2 / jnp.maximum(v, like(least, v)), variance)

    def apply(self, matrix: PyTree[Array], gradient: Params) -> Params:
        """See `AbstractPreconditioner`."""
        return jax.tree.map(jnp.multiply, matrix, gradient)

    def mean_step_size(self, matrix: PyTree[Array]) -> Float[Array, ""]:
        """See `AbstractPreconditioner`."""
        return _mean(matrix)


class Full(AbstractPreconditioner):
    r"""$2 V^{-1}$: a matrix of D × D, eq. (37); for some thousand entries at most.

    Args:
        max_dim: the most entries that it takes on.
    """

    max_dim: int = 5000

    def estimate(
        self,
        potential: AbstractPotential,
        position: Params,
        *,
        key: PRNGKeyArray,
        num_rows: int,
    ) -> PyTree[Array]:
        """See `AbstractPreconditioner`.

        Raises:
            ValueError: for more than `max_dim` entries, or not more rows than entries.
        """
        dim = num_entries(position)
        if dim > self.max_dim:
            raise ValueError(
                f"`Full` would keep and invert a matrix of {dim} × {dim}, and its "
                f"`max_dim` is {self.max_dim}: use Diagonal() or Scalar()."
            )
        if isinstance(potential, Potential):
            num_rows = min(num_rows, potential.num_rows)
        if num_rows <= dim:
            raise ValueError(
                f"`Full` estimates a matrix of {dim} × {dim} from {num_rows} rows, "
                "which would be singular: give `num_rows` well above the number of "
                "parameters, or use Diagonal() or Scalar()."
            )
        covariance = gradient_noise_covariance(
            potential, position, key=key, num_rows=num_rows
        )
        factor = jnp.linalg.cholesky(covariance)
        pivots = jnp.diagonal(factor)
        accuracy = jnp.finfo(pivots.dtype).eps * dim
        is_positive = jnp.min(pivots) ** 2 > accuracy * jnp.max(pivots) ** 2
        factor = eqx.error_if(
            factor,
            ~is_positive,
            "`Full` cannot invert the covariance of these gradients: some direction "
            "has no noise (a redundant or dead parameter); use Diagonal() or Scalar().",
        )
        half = jax.scipy.linalg.solve_triangular(
            factor, jnp.eye(dim, dtype=factor.dtype), lower=True
        )
        return 2 * half.T @ half

    def apply(self, matrix: PyTree[Array], gradient: Params) -> Params:
        """See `AbstractPreconditioner`."""
        flat, unravel = ravel_pytree(gradient)
        return unravel(matrix @ flat)

    def mean_step_size(self, matrix: PyTree[Array]) -> Float[Array, ""]:
        """See `AbstractPreconditioner`."""
        return jnp.mean(jnp.diagonal(matrix))


def _mean(tree: Params) -> Float[Array, ""]:
    """Over all entries of all leaves."""
    parts = [jnp.sum(leaf).astype(float) for leaf in jax.tree.leaves(tree)]
    return sum(parts, start=jnp.zeros(())) / num_entries(tree)
