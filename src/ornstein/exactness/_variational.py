r"""Variational rows of the exactness table: their optima are known.

Mean-field VI on a Gaussian posterior $N(m, \Lambda^{-1})$ has the mean m and the
variances $1 / \Lambda_{kk}$, whatever draws estimate its gradient. Laplace's
approximation of it, with the whole Gauss-Newton matrix, is that posterior. SWAG is the
moments of the iterates that it is given.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._types import Float, PRNGKeyArray
from ..data import Split
from ..functions import MAP, SWAG, AbstractWeightNoise, MeanField
from ..likelihood import Gaussian
from ..nn import Linear
from ..prior import AbstractPrior, GaussianPrior
from ..train import FullGGN, fit, fit_laplace
from ._chains import Estimate, estimate
from ._targets import LinearRegression, Moments, flat

NUM_FITS = 64
_NUM_STEPS = 3000
_LEARNING_RATE = 0.05
_NUM_SWAG_DRAWS = 16_384
_NUM_LAPLACE_DRAWS = 16_384


def mean_field_optimum(target: LinearRegression) -> Moments:
    r"""$N(m, \mathrm{diag}(\Lambda)^{-1})$."""
    mean, covariance = target.posterior()
    return Moments(mean, np.diag(1 / np.diag(np.linalg.inv(covariance))))


def fit_mean_field(
    target: LinearRegression,
    noise: AbstractWeightNoise,
    prior: AbstractPrior,
    *,
    key: PRNGKeyArray,
) -> Estimate:
    """Moments of q, averaged over fits that differ in their draws alone.

    The learning rate falls to 0, and with it what one fit's last draws leave.

    Args:
        target: the data and the likelihood.
        noise: of the gradient.
        prior: of the weights.
        key: of the draws.
    """
    potential = target.potential(len(target.x))
    network = Linear(target.x.shape[1], 1, use_bias=False, key=jax.random.key(0))
    start = MeanField(network, prior, init_scale=0.2, noise=noise)
    is_moving = jax.tree.map(lambda label: label == "weights", start.labels())
    params, rest = eqx.partition(start, is_moving)
    schedule = optax.cosine_decay_schedule(_LEARNING_RATE, _NUM_STEPS, exponent=2.0)
    optimiser = optax.adam(schedule)

    def loss(params, key):
        draw = eqx.combine(params, rest)(potential.x, key=key)
        log_prob = potential.likelihood.log_prob(draw.output, potential.y)
        return draw.kl - jnp.sum(log_prob)

    def step(carry, key):
        params, state = carry
        updates, state = optimiser.update(jax.grad(loss)(params, key), state)
        return (optax.apply_updates(params, updates), state), None

    def fit_one(key):
        keys = jax.random.split(key, _NUM_STEPS)
        (fitted, _), _ = jax.lax.scan(step, (params, optimiser.init(params)), keys)
        function: Any = eqx.combine(fitted, rest)
        return flat(function.family.mean), flat(function.family.scale)

    means, scales = jax.jit(jax.vmap(fit_one))(jax.random.split(key, NUM_FITS))
    means, variances = (
        np.asarray(means, np.float64),
        np.asarray(scales, np.float64) ** 2,
    )
    error = lambda values: values.std(axis=0, ddof=1) / math.sqrt(NUM_FITS)
    return Estimate(
        Moments(means.mean(axis=0), np.diag(variances.mean(axis=0))),
        Moments(error(means), np.diag(error(variances))),
    )


def draw_laplace(
    target: LinearRegression, *, linearised: bool, key: PRNGKeyArray
) -> Estimate:
    """Moments of the weights that Laplace's approximation of a trained mode draws.

    Where outputs are linear in the weights it is the posterior, whichever is drawn: the
    linearised network or the network with drawn weights.

    Args:
        target: the data and the likelihood.
        linearised: which.
        key: of the draws.
    """
    dim = target.x.shape[1]
    network = Linear(dim, 1, use_bias=False, key=jax.random.key(0))
    rows = target.x.astype(np.float32), target.y.astype(np.float32)[:, None]
    trained = fit(
        MAP.of(network, GaussianPrior(target.prior_scale)),
        Split(*rows),
        Gaussian(target.scale),
        key=jax.random.key(1),
        num_epochs=_NUM_STEPS,
        batch_size=len(target.x),
        learning_rate=_LEARNING_RATE,
    )
    model = fit_laplace(
        trained, Split(*rows), structure=FullGGN(), linearised=linearised
    ).model
    # On the unit vectors a linear layer shows its weights.
    weights = lambda index: model(jnp.eye(dim), key=key, index=index).output[:, 0]
    draws = jax.jit(jax.vmap(weights))(jnp.arange(_NUM_LAPLACE_DRAWS))
    return estimate(draws[:, None])


def swag_moments(iterates: Float[np.ndarray, "iterates dim"], rank: int) -> Moments:
    r"""The mean, and $\tfrac12 \mathrm{diag} + \tfrac12 \hat D \hat D^\top / (K - 1)$.

    Args:
        iterates: oldest first.
        rank: K.
    """
    count = np.arange(1, len(iterates) + 1)[:, None]
    deviations = (iterates - np.cumsum(iterates, axis=0) / count)[-rank:]
    low_rank = deviations.T @ deviations / (rank - 1)
    diagonal = np.diag(iterates.var(axis=0))
    return Moments(iterates.mean(axis=0), diagonal / 2 + low_rank / 2)


def draw_swag(
    iterates: Float[np.ndarray, "iterates dim"], rank: int, *, key: PRNGKeyArray
) -> Estimate:
    """Moments of the weights that SWAG draws.

    Args:
        iterates: oldest first.
        rank: K.
        key: of the draws.
    """
    dim = iterates.shape[1]
    network = Linear(dim, 1, use_bias=False, key=jax.random.key(0))
    path = jnp.asarray(iterates, jnp.float32)[:, :, None]
    swag = SWAG.from_iterates(
        network, eqx.tree_at(lambda net: net.weight, network, path), rank=rank
    )
    # On the unit vectors a linear layer shows its weights.
    weights = lambda index: swag(jnp.eye(dim), key=key, index=index).output[:, 0]
    draws = jax.jit(jax.vmap(weights))(jnp.arange(_NUM_SWAG_DRAWS))
    return estimate(draws[:, None])
