"""Bayesian linear regression: gradients and their covariance in closed form."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ornstein.likelihood import Gaussian
from ornstein.potential import Potential
from ornstein.prior import GaussianPrior

NUM_DATA, DIM, BATCH_SIZE = 60, 3, 12
SIGMA, PRIOR_SCALE = 0.7, 1.5


class Plane(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return x @ self.weight


class Regression:
    """`potential`, and in float64 what its gradients are made of."""

    def __init__(self, batch_size=BATCH_SIZE):
        rng = np.random.default_rng(5)
        mix = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 0.7]])
        self.x = rng.normal(size=(NUM_DATA, DIM)) @ mix
        noise = SIGMA * rng.normal(size=NUM_DATA)
        self.y = self.x @ np.array([1.0, -2.0, 0.5]) + noise
        self.batch_size = batch_size
        dtype = jnp.zeros(()).dtype
        split = SimpleNamespace(
            x=jnp.asarray(self.x, dtype), y=jnp.asarray(self.y[:, None], dtype)
        )
        self.potential = Potential(
            Plane(jnp.zeros((DIM, 1))),
            split,
            Gaussian(SIGMA),
            prior=GaussianPrior(PRIOR_SCALE),
            batch_size=batch_size,
        )
        # The Hessian of each row, of their sum, and of U; and U's minimum.
        self.hessians = self.x[:, :, None] * self.x[:, None, :] / SIGMA**2
        self.of_rows = self.hessians.sum(0)
        self.precision = self.of_rows + np.eye(DIM) / PRIOR_SCALE**2
        self.mode = np.linalg.solve(self.precision, self.x.T @ self.y / SIGMA**2)

    def position(self, weight):
        """A flat weight as the potential takes it."""
        params, scale = self.potential.start
        like = params.weight
        leaf = jnp.asarray(weight, like.dtype).reshape(like.shape)
        return eqx.tree_at(lambda p: p.weight, params, leaf), scale

    def row_covariance(self, weight):
        """BBᵀ: the covariance of the rows' gradients, every row as likely."""
        rows = self.x * (self.x @ weight - self.y)[:, None] / SIGMA**2
        return np.cov(rows.T, bias=True)

    def noise(self, weight):
        """V, of a batch's gradient of U."""
        return NUM_DATA**2 / self.batch_size * self.row_covariance(weight)

    def covariance_of_sgd(self, step):
        """At rest, of θ' = θ − step ∇Ũ(θ): S = E[(I − HA) S (I − HA)ᵀ] + H V Hᵀ."""
        kron = lambda a: np.kron(a, a)
        identity = np.eye(DIM)
        spread = NUM_DATA * self.hessians - self.of_rows
        of_hessians = sum(map(kron, spread)) / NUM_DATA / self.batch_size
        transition = kron(identity - step @ self.precision) + kron(step) @ of_hessians
        noise = step @ self.noise(self.mode) @ step.T
        solution = np.linalg.solve(np.eye(DIM**2) - transition, noise.ravel())
        return solution.reshape(DIM, DIM)
