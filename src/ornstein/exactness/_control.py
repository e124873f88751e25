r"""Linear-Gaussian chains on their own Euler grid: optima of the bound, and posteriors.

A chain is $s' = A s + \Delta B u + \sigma \sqrt\Delta B \xi$ from
$s_0 \sim N(m_0, S_0)$ with drift $u$ on top of the prior's, seen as $y \sim N(C s_k,
r^2 I)$ at some steps. The path KL is $\sum_k E|u_k|^2 \Delta / 2 \sigma^2$. For a drift
that is affine in the whole state, the best is that of a linear-quadratic regulator.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize

from .._types import Float
from ._targets import Moments


class Seen(NamedTuple):
    """What is observed of a step.

    Attributes:
        reads: C.
        values: y.
        scale: r.
    """

    reads: Float[np.ndarray, "values dim"]
    values: Float[np.ndarray, " values"]
    scale: float


class Chain(NamedTuple):
    """A prior and what was seen of it.

    Attributes:
        step: A.
        moves: B, a column for each number that has noise.
        sigma: σ.
        dt: Δ.
        num_steps: of the grid.
        start: $m_0$ and the standard deviations in $S_0$; 0 for numbers that are known.
        seen: at some steps.
    """

    step: Float[np.ndarray, "dim dim"]
    moves: Float[np.ndarray, "dim noises"]
    sigma: float
    dt: float
    num_steps: int
    start: tuple[Float[np.ndarray, " dim"], Float[np.ndarray, " dim"]]
    seen: dict[int, Seen]


class Drift(NamedTuple):
    """$u_k = K_k s + c_k$, and where the posterior starts.

    Attributes:
        gains: K of each step.
        constants: c of each step.
        mean: of $s_0$.
        scale: standard deviations of $s_0$.
    """

    gains: Float[np.ndarray, "steps noises dim"]
    constants: Float[np.ndarray, "steps noises"]
    mean: Float[np.ndarray, " dim"]
    scale: Float[np.ndarray, " dim"]


def regulate(chain: Chain) -> Drift:
    """The drift and the factorised start that maximise the bound: Riccati's recursion.

    The cost to go is $s^T P s / 2 - p^T s$.
    """
    a, b, dt = chain.step, chain.moves, chain.dt
    big_p, p = _cost(chain, chain.num_steps)
    gains, constants = [], []
    for k in reversed(range(chain.num_steps)):
        inner = np.eye(b.shape[1]) / chain.sigma**2 + dt * b.T @ big_p @ b
        reply = np.linalg.solve(inner, b.T)
        gains.append(-reply @ big_p @ a)
        constants.append(reply @ p)
        kept = a.T - dt * a.T @ big_p @ b @ reply
        seen_p, seen_vector = _cost(chain, k)
        big_p, p = kept @ big_p @ a + seen_p, kept @ p + seen_vector
    mean, scale = (part.copy() for part in chain.start)
    free = scale > 0
    precision = np.diag(1 / scale[free] ** 2)
    pull = p[free] + precision @ mean[free] - big_p[np.ix_(free, ~free)] @ mean[~free]
    precision = precision + big_p[np.ix_(free, free)]
    mean[free] = np.linalg.solve(precision, pull)
    scale[free] = np.diag(precision) ** -0.5
    return Drift(np.stack(gains[::-1]), np.stack(constants[::-1]), mean, scale)


def best_constant_gain(chain: Chain, num_seen: int) -> Drift:
    """The best drift $u = K s + c + d t$ of the state's first numbers alone.

    Args:
        chain: the prior and what was seen.
        num_seen: numbers of the state that the drift sees.
    """
    dim, num_noises = chain.moves.shape
    free = chain.start[1] > 0
    t = np.arange(chain.num_steps)[:, None] * chain.dt
    sizes = np.cumsum([num_noises * num_seen, num_noises, num_noises, free.sum()])

    def unpack(numbers: np.ndarray) -> Drift:
        gain, at_0, slope, mean, log_scale = np.split(numbers, sizes)
        gains = np.zeros((chain.num_steps, num_noises, dim))
        gains[:, :, :num_seen] = gain.reshape(num_noises, num_seen)
        full_mean, scale = (part.copy() for part in chain.start)
        full_mean[free], scale[free] = mean, np.exp(log_scale)
        return Drift(gains, at_0 + t * slope, full_mean, scale)

    begin = np.zeros(sizes[-1] + free.sum())
    begin[sizes[-1] :] = np.log(chain.start[1][free])
    found = optimize.minimize(lambda v: -bound(chain, unpack(v)), begin, method="BFGS")
    return unpack(found.x)


def bound(chain: Chain, drift: Drift) -> float:
    """The ELBO, nats, up to a constant of the chain."""
    value = 0.0
    for k, moments in enumerate(path(chain, drift)):
        mean, covariance = moments
        if k in chain.seen:
            reads, values, scale = chain.seen[k]
            error = values - reads @ mean
            spread = np.trace(reads @ covariance @ reads.T)
            value -= (error @ error + spread) / (2 * scale**2)
        if k < chain.num_steps:
            gain = drift.gains[k]
            u = gain @ mean + drift.constants[k]
            square = u @ u + np.trace(gain @ covariance @ gain.T)
            value -= square * chain.dt / (2 * chain.sigma**2)
    free = chain.start[1] > 0
    ratio = drift.scale[free] / chain.start[1][free]
    away = (drift.mean - chain.start[0])[free] / chain.start[1][free]
    return float(value - np.sum(ratio**2 + away**2 - 1 - 2 * np.log(ratio)) / 2)


def path(chain: Chain, drift: Drift) -> list[Moments]:
    """Mean and covariance of the state at every step."""
    mean, covariance = drift.mean, np.diag(drift.scale**2)
    noise = chain.sigma**2 * chain.dt * chain.moves @ chain.moves.T
    found = [Moments(mean, covariance)]
    for gain, constant in zip(drift.gains, drift.constants, strict=True):
        step = chain.step + chain.dt * chain.moves @ gain
        mean = step @ mean + chain.dt * chain.moves @ constant
        covariance = step @ covariance @ step.T + noise
        found.append(Moments(mean, covariance))
    return found


def read(
    chain: Chain, drift: Drift, at: dict[int, Float[np.ndarray, "values dim"]]
) -> Moments:
    """Joint moments of some readings of the path under a drift.

    Args:
        chain: the prior.
        drift: on top of it.
        at: steps to what is read of them, in order.
    """
    moments = path(chain, drift)
    means, rows = [], []
    steps = [chain.step + chain.dt * chain.moves @ gain for gain in drift.gains]
    for k, reads in at.items():
        means.append(reads @ moments[k].mean)
        row = []
        for other, others in at.items():
            early, late = min(k, other), max(k, other)
            across = moments[early].covariance
            for step in steps[early:late]:
                across = step @ across
            # `across` is Cov(late, early).
            row.append(reads @ (across if k >= other else across.T) @ others.T)
        rows.append(row)
    return Moments(np.concatenate(means), np.block(rows))


def posterior(chain: Chain, at: dict[int, Float[np.ndarray, "values dim"]]) -> Moments:
    """Moments of some readings given all that was seen, by conditioning a Gaussian."""
    num_noises, dim = chain.moves.shape[1], len(chain.step)
    nothing = Drift(
        np.zeros((chain.num_steps, num_noises, dim)),
        np.zeros((chain.num_steps, num_noises)),
        *chain.start,
    )
    both: dict[int, np.ndarray] = {}
    for k in sorted({*at, *chain.seen}):
        parts = [at[k]] if k in at else []
        parts += [chain.seen[k].reads] if k in chain.seen else []
        both[k] = np.concatenate(parts)
    mean, covariance = read(chain, nothing, both)
    asked, values, noise, where = [], [], [], []
    place = 0
    for k in both:
        num = len(at[k]) if k in at else 0
        asked += range(place, place + num)
        place += num
        if k in chain.seen:
            num = len(chain.seen[k].values)
            where += range(place, place + num)
            values += list(chain.seen[k].values)
            noise += num * [chain.seen[k].scale ** 2]
            place += num
    seen = covariance[np.ix_(where, where)] + np.diag(noise)
    gain = np.linalg.solve(seen, covariance[np.ix_(where, asked)]).T
    return Moments(
        mean[asked] + gain @ (np.array(values) - mean[where]),
        covariance[np.ix_(asked, asked)] - gain @ covariance[np.ix_(where, asked)],
    )


def _cost(chain: Chain, k: int) -> tuple[np.ndarray, np.ndarray]:
    """P and p of what is seen at a step."""
    dim = len(chain.step)
    if k not in chain.seen:
        return np.zeros((dim, dim)), np.zeros(dim)
    reads, values, scale = chain.seen[k]
    return reads.T @ reads / scale**2, reads.T @ values / scale**2


def evidence(chain: Chain) -> float:
    """Log p(y), up to the constant that `bound` leaves out."""
    at = {k: seen.reads for k, seen in chain.seen.items()}
    num_noises, dim = chain.moves.shape[1], len(chain.step)
    nothing = Drift(
        np.zeros((chain.num_steps, num_noises, dim)),
        np.zeros((chain.num_steps, num_noises)),
        *chain.start,
    )
    mean, covariance = read(chain, nothing, at)
    values = np.concatenate([seen.values for seen in chain.seen.values()])
    noise = np.concatenate(
        [np.full(len(seen.values), seen.scale**2) for seen in chain.seen.values()]
    )
    error = values - mean
    covariance = covariance + np.diag(noise)
    _, log_det = np.linalg.slogdet(covariance)
    square = error @ np.linalg.solve(covariance, error)
    return float(-(log_det - math.fsum(np.log(noise)) + square) / 2)
