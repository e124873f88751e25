"""The reference's chains against quadrature."""

import jax
import numpy as np
from agreement.tiny_problems import line

from ornstein.agreement._hmc import Budget, begin, go_on

BUDGET = Budget(2, 2, 400, 300, 200, 50)


def exact_mean_and_spread(problem, scale: float):
    """Of the test rows, by the Gaussian posterior at each noise scale of a grid."""
    bias = lambda x: np.column_stack([x, np.ones(len(x))]).astype(np.float64)
    x, test = bias(problem.train.x), bias(problem.test.x)
    y = np.asarray(problem.train.y, np.float64)[:, 0]
    log_scales = np.linspace(np.log(0.05), np.log(3), 400)
    means, variances, log_weights = [], [], []
    for log_scale in log_scales:
        noise = np.exp(2 * log_scale)
        covariance = noise * np.eye(len(y)) + scale**2 * x @ x.T
        solved = np.linalg.solve(covariance, np.column_stack([y, x @ test.T]))
        means.append(scale**2 * test @ x.T @ solved[:, 0])
        own = scale**2 * np.sum(test**2, axis=1)
        own -= scale**4 * np.sum((test @ x.T) * solved[:, 1:].T, axis=1)
        variances.append(own + noise)
        log_det = np.linalg.slogdet(covariance)[1]
        prior = -0.5 * (log_scale - np.log(0.3)) ** 2
        log_weights.append(prior - 0.5 * (y @ solved[:, 0] + log_det))
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    square = weights @ (np.array(variances) + np.array(means) ** 2)
    return mean, np.sqrt(square - mean**2)


def test_pieces_sample_the_posterior():
    """Two pieces, the second from where the first ended, against quadrature.

    Catches a noise scale with another prior (seen). The mass is no part of the law, and
    is not seen here. 800 trajectories of a quarter of a period are worth more than 200
    draws.
    """
    problem, scale = line(), 1.5
    start = begin(problem, scale, BUDGET, key=jax.random.key(0))
    first, facts, end = go_on(
        problem, scale, start, num_draws=400, key=jax.random.key(1)
    )
    second, *_ = go_on(problem, scale, end, num_draws=400, key=jax.random.key(2))
    assert facts["num_divergent"] == 0
    assert facts["num_gradients"] == 400 * facts["num_steps"]
    mean, spread = exact_mean_and_spread(problem, scale)
    for part in (first, second):
        error = part.sd[:, 0] / np.sqrt(100)
        assert np.all(abs(part.mean[:, 0] - mean) < 4.5 * error)
        np.testing.assert_allclose(part.spread[:, 0], spread, rtol=0.1)
    assert not np.array_equal(first.mean, second.mean)
