r"""Posteriors whose moments are known: what the exactness table holds samplers to.

$U(\theta) = -\sum_i \log p(y_i | x_i, \theta) - \log N(\theta; 0, s^2 I)$, one linear
layer without bias; H is U's Hessian, $\hat\theta$ the posterior mean.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import special

from .._types import Float, Params
from ..data import Split
from ..likelihood import AbstractLikelihood, Bernoulli, Gaussian
from ..nn import Linear
from ..potential import Potential
from ..prior import GaussianPrior

BATCH_SIZE = 12
"""Rows behind a minibatch kernel's step, unless a case says otherwise."""


class Moments(NamedTuple):
    """Mean and covariance of a position's numbers.

    Attributes:
        mean: of each.
        covariance: of each pair.
    """

    mean: Float[np.ndarray, " dim"]
    covariance: Float[np.ndarray, "dim dim"]


class RowGradients(NamedTuple):
    r"""$\nabla \tilde U = H_b \theta - r_b$: a batch's are the means of its rows'.

    Attributes:
        hessians: $H_i$.
        forces: $r_i$.
    """

    hessians: Float[np.ndarray, "data dim dim"]
    forces: Float[np.ndarray, "data dim"]

    def around(self, center: Float[np.ndarray, " dim"]) -> "RowGradients":
        """The same with a control variate: without noise at the centre."""
        at_center = self.hessians @ center
        gradient = (at_center - self.forces).mean(axis=0)
        return RowGradients(self.hessians, at_center - gradient)


class LinearRegression(NamedTuple):
    r"""$y_i \sim N(x_i \cdot \theta, \sigma^2)$: the posterior is a Gaussian.

    Attributes:
        x: inputs, correlated features.
        y: targets.
        scale: σ of the targets.
        prior_scale: s of the weights.
    """

    x: Float[np.ndarray, "data dim"]
    y: Float[np.ndarray, " data"]
    scale: float
    prior_scale: float

    def potential(self, batch_size: int) -> Potential:
        """U, for samplers."""
        likelihood = Gaussian(self.scale)
        return _potential(self.x, self.y, likelihood, self.prior_scale, batch_size)

    def posterior(self) -> Moments:
        r"""Covariance $\Lambda^{-1}$ with $\Lambda = X^\top X / \sigma^2 + I / s^2$."""
        rows = self.row_gradients()
        covariance = np.linalg.inv(rows.hessians.mean(axis=0))
        return Moments(covariance @ rows.forces.mean(axis=0), covariance)

    def row_gradients(self) -> RowGradients:
        r"""$H_i = N x_i x_i^\top / \sigma^2 + I / s^2$, $r_i = N x_i y_i/\sigma^2$."""
        num_data, dim = self.x.shape
        weight = num_data / self.scale**2
        outer = self.x[:, :, None] * self.x[:, None, :]
        return RowGradients(
            weight * outer + np.eye(dim) / self.prior_scale**2,
            weight * self.x * self.y[:, None],
        )

    def batch_noise(self, batch_size: int) -> Float[np.ndarray, "dim dim"]:
        r"""$V = \frac{N^2}{n} BB^\top$: a batch's gradient's covariance, at the mean.

        Args:
            batch_size: n.
        """
        rows = self.row_gradients()
        gradients = rows.hessians @ self.posterior().mean - rows.forces
        return np.cov(gradients.T, ddof=0) / batch_size


class LogisticRegression(NamedTuple):
    r"""$P(y_i = 1) = 1 / (1 + e^{-x_i \cdot \theta})$: skewed where data are few.

    Attributes:
        x: inputs.
        y: zeros and ones.
        prior_scale: s of the weights.
    """

    x: Float[np.ndarray, "data dim"]
    y: Float[np.ndarray, " data"]
    prior_scale: float

    def potential(self, batch_size: int) -> Potential:
        """U, for samplers."""
        return _potential(self.x, self.y, Bernoulli(), self.prior_scale, batch_size)

    def quadrature(self, num_points: int = 61, half_width: float = 9.0) -> Moments:
        """The posterior's moments by a sum over a grid, for few dimensions.

        The trapezoidal rule converges exponentially for a smooth density.

        Args:
            num_points: along each axis.
            half_width: of the grid, in standard deviations of a wide Gaussian fit.
        """
        dim = self.x.shape[1]
        curvature = self.x.T @ self.x / 8 + np.eye(dim) / self.prior_scale**2
        root = np.linalg.cholesky(np.linalg.inv(curvature))
        axis = np.linspace(-half_width, half_width, num_points)
        grid = np.stack(np.meshgrid(*dim * [axis]), axis=-1).reshape(-1, dim) @ root.T
        signs = 2 * self.y - 1
        log_density = special.log_expit(grid @ (signs[:, None] * self.x).T).sum(axis=1)
        log_density -= (grid**2).sum(axis=1) / (2 * self.prior_scale**2)
        weights = np.exp(log_density - log_density.max())
        weights /= weights.sum()
        mean = weights @ grid
        centred = grid - mean
        return Moments(mean, (weights[:, None] * centred).T @ centred)


def linear_regression(num_data: int = 60) -> LinearRegression:
    """5 features whose neighbours have correlation ½, and as noisy as data are many.

    Args:
        num_data: N; the posterior's covariance hardly depends on it.
    """
    x = _correlated(num_data, 5, seed=0)
    scale = 3.0 * (num_data / 60) ** 0.5
    rng = np.random.default_rng(1)
    y = x @ rng.normal(size=5) + scale * rng.normal(size=num_data)
    return LinearRegression(x, _float32(y), scale=scale, prior_scale=1.0)


def two_features() -> LinearRegression:
    """1,000 rows of 2 features of correlation ½ and different size."""
    x = _float32(_correlated(1000, 2, seed=4) * np.array([1.0, 0.6]))
    y = x @ np.array([1.0, -1.0]) + 3.0 * np.random.default_rng(5).normal(size=1000)
    return LinearRegression(x, _float32(y), scale=3.0, prior_scale=1.0)


def logistic_regression() -> LogisticRegression:
    """40 rows of 3 features, most of them of one class: a skewed posterior."""
    x = _correlated(40, 3, seed=2)
    chance = special.expit(x @ np.array([1.0, -1.0, 0.5]) - 1.5)
    y = np.random.default_rng(3).uniform(size=40) < chance
    return LogisticRegression(x, y.astype(float), prior_scale=1.5)


def _correlated(num_rows: int, dim: int, *, seed: int) -> np.ndarray:
    distance = abs(np.subtract.outer(np.arange(dim), np.arange(dim)))
    root = np.linalg.cholesky(0.5**distance)
    return _float32(np.random.default_rng(seed).normal(size=(num_rows, dim)) @ root.T)


def _float32(values: np.ndarray) -> np.ndarray:
    """Double precision of single-precision numbers: oracle and sampler see the same."""
    return values.astype(np.float32).astype(np.float64)


def _potential(
    x: np.ndarray,
    y: np.ndarray,
    likelihood: AbstractLikelihood,
    prior_scale: float,
    batch_size: int,
) -> Potential:
    network = Linear(x.shape[1], 1, use_bias=False, key=jax.random.key(0))
    split = Split(x.astype(np.float32), y.astype(np.float32)[:, None])
    return Potential(
        network,
        split,
        likelihood,
        prior=GaussianPrior(prior_scale),
        batch_size=batch_size,
    )


def flat(position: Params) -> Float[jax.Array, " dim"]:
    """A position's numbers, one after the other."""
    return ravel_pytree(position)[0]


def position_at(
    target: LinearRegression | LogisticRegression,
    numbers: float | Float[np.ndarray, " dim"],
) -> Params:
    """The position with these numbers, or with one number everywhere."""
    start = target.potential(1).start
    fill = lambda leaf: jnp.broadcast_to(jnp.asarray(numbers, leaf.dtype), leaf.size)
    return jax.tree.map(lambda leaf: fill(leaf).reshape(leaf.shape), start)
