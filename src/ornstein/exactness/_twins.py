r"""Laws at rest of samplers that are not linear, by slow twins of them.

On a Gaussian target $U = \tfrac12 (\theta - m)^\top \Lambda (\theta - m)$, in double
precision and NumPy, step by step as their equations say: what the moment equation is
for linear samplers, with a Monte Carlo error that the rows count in. A twin shares no
code with its sampler, and where it can it takes another form of its equation.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._types import Float
from ._chains import Estimate, estimate
from ._targets import LinearRegression

_SEED = 7


class Rest(NamedTuple):
    """How long a twin runs.

    Attributes:
        num_dropped: looks before the first that counts.
        num_kept: looks that count.
        thin: steps from one to the next.
        num_chains: side by side.
    """

    num_dropped: int = 30
    num_kept: int = 8
    thin: int = 10
    num_chains: int = 4096


_REST = Rest()


def microcanonical_law(
    target: LinearRegression,
    step_size: float,
    length: float,
    rest: Rest = _REST,
) -> Estimate:
    r"""Microcanonical Langevin: McLachlan's stages between two refreshments.

    A fixed gradient turns the direction by $u' = (u + e (\sinh \delta + c (\cosh \delta
    - 1))) / (\cosh \delta + c \sinh \delta)$.

    Args:
        target: whose posterior.
        step_size: ε.
        length: L.
        rest: how long.
    """
    mean, covariance = target.posterior()
    precision, dim = np.linalg.inv(covariance), len(mean)
    rng = np.random.default_rng(_SEED)
    b = 0.1931833275037836
    scale = np.sqrt((np.exp(step_size / length) - 1) / dim)

    def unit(u):
        return u / np.linalg.norm(u, axis=1, keepdims=True)

    def turn(q, u, part):
        gradient = (mean - q) @ precision
        size = np.linalg.norm(gradient, axis=1, keepdims=True)
        e = gradient / size
        delta = part * step_size * size / (dim - 1)
        c = np.sum(e * u, axis=1, keepdims=True)
        return unit(u + e * (np.sinh(delta) + c * (np.cosh(delta) - 1)))

    def step(state):
        q, u = state
        u = unit(u + scale * rng.normal(size=u.shape))
        u = turn(q, u, b)
        q = q + step_size / 2 * u
        u = turn(q, u, 1 - 2 * b)
        q = q + step_size / 2 * u
        u = turn(q, u, b)
        return q, unit(u + scale * rng.normal(size=u.shape))

    q = rng.multivariate_normal(mean, covariance, size=rest.num_chains)
    return _at_rest(step, (q, unit(rng.normal(size=q.shape))), rest)


def adaptive_drift_law(
    target: LinearRegression,
    step_size: float,
    drift_weight: float,
    decays: tuple[float, float],
    batch_size: int,
    rest: Rest = _REST,
) -> Estimate:
    r"""Adaptive-drift SGLD: each batch's rows are counted, and their gradients added.

    Args:
        target: whose posterior.
        step_size: ε.
        drift_weight: a.
        decays: $\beta_1, \beta_2$.
        batch_size: n.
        rest: how long.
    """
    rows, rng = target.row_gradients(), np.random.default_rng(_SEED)
    num_data, dim = rows.forces.shape
    hessians = rows.hessians.reshape(num_data, -1)
    odds = np.full(num_data, 1 / num_data)

    def step(state):
        theta, mu, nu = state
        counts = rng.multinomial(batch_size, odds, size=len(theta)) / batch_size
        hessian = (counts @ hessians).reshape(-1, dim, dim)
        gradient = np.einsum("cij,cj->ci", hessian, theta) - counts @ rows.forces
        mu = decays[0] * mu + (1 - decays[0]) * gradient
        nu = decays[1] * nu + (1 - decays[1]) * gradient**2
        push = gradient + drift_weight * mu / (np.sqrt(nu) + 1e-8)
        noise = np.sqrt(step_size) * rng.normal(size=theta.shape)
        return theta - step_size / 2 * push + noise, mu, nu

    mean, covariance = target.posterior()
    theta = rng.multivariate_normal(mean, covariance, size=rest.num_chains)
    return _at_rest(step, (theta, 0 * theta, 0 * theta), rest)


def _at_rest(step: Callable, state: tuple, rest: Rest) -> Estimate:
    kept: list[Float[np.ndarray, "chains dim"]] = []
    for look in range(rest.num_dropped + rest.num_kept):
        for _ in range(rest.thin):
            state = step(state)
        if look >= rest.num_dropped:
            kept.append(state[0])
    return estimate(np.stack(kept, axis=1))
