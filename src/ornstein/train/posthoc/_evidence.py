r"""Laplace's evidence, as a function of the prior's scale and the noise's.

Notation: $s$ multiplies the prior's standard deviations and $c$ those of the noise;
$\lambda_j$ are the eigenvalues of the data's curvature in units of the prior's
precision at $s = c = 1$, $q = (w^* - m)^T D (w^* - m)$ for the prior's mean m and
precision D, and $r$ is the sum of the $n$ squared residuals in units of the noise. Then

    log p(D) = log p(D | w*) - [q / s^2 + sum_j log(1 + s^2 lambda_j / c^2)] / 2,
    log p(D | w*) = its value at c = 1, - n log c - (r / c^2 - r) / 2:

MacKay (1992), equation (22), whose $\gamma = \sum_j t_j / (1 + t_j)$ for $t_j = s^2
\lambda_j / c^2$ are the weights that data determine. At the largest evidence $s^2 = q /
\gamma$ and $c^2 = r / (n - \gamma)$.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.optimize

from ..._types import Float

_LARGEST_FACTOR = 1e4
"""Of the prior's scale and of the noise's, up or down, in the search."""


class Residuals(NamedTuple):
    """What a noise scale is fitted to.

    Attributes:
        count: n, of all columns of targets.
        sum_of_squares: r, in units of the noise.
    """

    count: int
    sum_of_squares: float


class Evidence(NamedTuple):
    r"""What the evidence says of the scales.

    Attributes:
        prior_factor: s.
        noise_factor: c.
        log_evidence: at these, nats.
        num_determined: $\gamma$, between 0 and the number of weights.
    """

    prior_factor: float
    noise_factor: float
    log_evidence: float
    num_determined: float


def evidence_at(
    log_likelihood: float,
    eigenvalues: Float[np.ndarray, " dim"],
    square: float,
    residuals: Residuals | None = None,
    *,
    prior_factor: float = 1.0,
    noise_factor: float = 1.0,
) -> Evidence:
    """The evidence at given scales.

    Args:
        log_likelihood: of the trained weights, nats.
        eigenvalues: of the curvature in units of the prior's precision.
        square: q.
        residuals: of normal noise; `None` of other likelihoods, where c stays 1.
        prior_factor: s.
        noise_factor: c.
    """
    t = eigenvalues * (prior_factor / noise_factor) ** 2
    value = log_likelihood - 0.5 * (square / prior_factor**2 + np.sum(np.log1p(t)))
    if residuals is not None:
        count, sum_of_squares = residuals
        value -= count * math.log(noise_factor)
        value -= 0.5 * sum_of_squares * (1 / noise_factor**2 - 1)
    determined = float(np.sum(t / (1 + t)))
    return Evidence(prior_factor, noise_factor, float(value), determined)


def largest_evidence(
    log_likelihood: float,
    eigenvalues: Float[np.ndarray, " dim"],
    square: float,
    residuals: Residuals | None = None,
) -> Evidence:
    """The scales at which the evidence is largest, between 1e-4 and 1e4 times theirs.

    Args:
        log_likelihood: of the trained weights, nats.
        eigenvalues: of the curvature in units of the prior's precision.
        square: q.
        residuals: of normal noise whose scale is sought, too; `None` leaves it.
    """

    def at(logs) -> Evidence:
        prior_factor, noise_factor = np.exp(np.append(logs, [0.0])[:2])
        return evidence_at(
            log_likelihood,
            eigenvalues,
            square,
            residuals,
            prior_factor=float(prior_factor),
            noise_factor=float(noise_factor),
        )

    def loss(logs) -> tuple[float, np.ndarray]:
        found = at(logs)
        slope = [found.num_determined - square / found.prior_factor**2]
        if residuals is not None:
            left = residuals.sum_of_squares / found.noise_factor**2
            slope.append(residuals.count - found.num_determined - left)
        return -found.log_evidence, np.asarray(slope)

    bound = math.log(_LARGEST_FACTOR)
    rest = [] if residuals is None else [0.0]
    starts = [[log, *rest] for log in np.linspace(-bound, bound, 41)]
    start = max(starts, key=lambda logs: at(logs).log_evidence)
    bounds = [(-bound, bound)] * len(start)
    found = scipy.optimize.minimize(
        loss, start, jac=True, bounds=bounds, method="L-BFGS-B", tol=1e-12
    )
    return at(found.x)
