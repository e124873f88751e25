"""Bayesian linear regression by mean field: every number has a closed form."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ornstein.data._base import Split
from ornstein.functions import PosteriorParts
from ornstein.functions._base import (
    AbstractRandomFunction,
    Draw,
    draw_key,
    label_tree,
    no_local_kl,
)

NOISE = 0.5
PRIOR = 2.0


class LinearMeanField(AbstractRandomFunction):
    """y = <w, x>, q(w) = N(mean, exp(log_scale)^2), p(w) = N(0, prior_scale^2).

    With `scale_label="noise"` its scales have their own optimiser.
    """

    mean: Float[Array, " features"]
    log_scale: Float[Array, " features"]
    prior_scale: Float[Array, ""]
    scale_label: str = eqx.field(static=True, default="weights")
    num_strata: int = 1
    num_members: int = 1

    def __call__(
        self,
        x: Float[Array, "rows features"],
        *,
        key: PRNGKeyArray,
        index: Any = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        xi = jax.random.normal(draw_key(key, index), self.mean.shape)
        w = self.mean + jnp.exp(self.log_scale) * xi
        return Draw(
            output=(x @ w)[:, None], kl=self.kl(), local_kl=no_local_kl(x), state=state
        )

    def kl(self) -> Float[Array, ""]:
        ratio = jnp.exp(2 * self.log_scale) / self.prior_scale**2
        return 0.5 * jnp.sum(
            ratio + (self.mean / self.prior_scale) ** 2 - 1 - jnp.log(ratio)
        )

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self) -> PyTree[str]:
        labels = label_tree(self, "weights", frozen=lambda m: m.prior_scale)
        if self.scale_label == "weights":
            return labels
        return eqx.tree_at(lambda m: m.log_scale, labels, self.scale_label)


def linear_model(num_features: int = 3, **options: Any) -> LinearMeanField:
    mean = jnp.zeros(num_features)
    log_scale = jnp.full(num_features, -2.0)
    return LinearMeanField(mean, log_scale, jnp.asarray(PRIOR), **options)


def linear_data(num_rows: int = 64, num_features: int = 3, seed: int = 0) -> Split:
    rng = np.random.default_rng(seed)
    mixing = np.eye(num_features) + 0.4
    x = rng.standard_normal((num_rows, num_features)) @ mixing
    w = np.linspace(-1.0, 1.5, num_features)
    y = x @ w + NOISE * rng.standard_normal(num_rows)
    return Split(x.astype(np.float32), y.astype(np.float32)[:, None])


def mean_field_optimum(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviations: precision = the diagonal of the true precision."""
    x, y = split.x.astype(np.float64), split.y[:, 0].astype(np.float64)
    precision = x.T @ x / NOISE**2 + np.eye(x.shape[1]) / PRIOR**2
    mean = np.linalg.solve(precision, x.T @ y / NOISE**2)
    return mean, 1 / np.sqrt(np.diag(precision))


def exact_elbo(model: LinearMeanField, split: Split) -> float:
    """E_q log p(y | w) - KL, nats per data set."""
    x, y = split.x.astype(np.float64), split.y[:, 0].astype(np.float64)
    mean = np.asarray(model.mean, np.float64)
    variance = np.exp(2 * np.asarray(model.log_scale, np.float64))
    squares = np.sum((y - x @ mean) ** 2) + np.sum(x**2 @ variance)
    log_likelihood = -squares / (2 * NOISE**2) - len(y) / 2 * math.log(
        2 * math.pi * NOISE**2
    )
    return float(log_likelihood - model.kl())
