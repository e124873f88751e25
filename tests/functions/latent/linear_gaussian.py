r"""A latent SDE that can be solved by hand: the oracle of `test_latent_sde.py`.

$dz = -\theta z\,dt + \sigma\,dB$ from $z_0 \sim N(m, s^2)$, seen as $y_i = c\,z(t_i) +
N(0, r^2)$. On an Euler grid it is a linear-Gaussian chain, whose evidence and posterior
the Kalman filter and the Rauch-Tung-Striebel smoother know.
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

import ornstein as orn
from ornstein.functions import (
    AbstractRecognition,
    LatentStart,
    NextContext,
    ProcessDiffusion,
    ProcessDrift,
    Recognised,
)

RATE, SIGMA, MEAN, SPREAD, SLOPE, NOISE = 0.8, 0.7, 0.5, 0.9, 1.2, 0.6


class Smoothed(NamedTuple):
    """The chain's answer: log evidence, posterior moments at the grid's times."""

    evidence: float
    mean: np.ndarray
    variance: np.ndarray


def grid_of(ts: np.ndarray, num_substeps: int) -> np.ndarray:
    """The Euler grid: each interval cut into equal steps."""
    pieces = [
        np.linspace(a, b, num_substeps, endpoint=False)
        for a, b in itertools.pairwise(ts)
    ]
    return np.concatenate([*pieces, ts[-1:]])


def kalman(
    ts: np.ndarray, values: np.ndarray, mask: np.ndarray, num_substeps: int
) -> Smoothed:
    """Filter forwards, smooth backwards; moments at `ts`."""
    grid = grid_of(ts, num_substeps)
    decay = 1 - RATE * np.diff(grid)
    added = SIGMA**2 * np.diff(grid)
    mean, variance, evidence = MEAN, SPREAD**2, 0.0
    filtered, predicted = [], []
    for k in range(len(grid)):
        if k:
            mean, variance = decay[k - 1] * mean, decay[k - 1] ** 2 * variance
            variance += added[k - 1]
        predicted.append((mean, variance))
        at, is_time = divmod(k, num_substeps)
        if is_time == 0 and mask[at]:
            spread = SLOPE**2 * variance + NOISE**2
            error = values[at] - SLOPE * mean
            evidence -= 0.5 * (np.log(2 * np.pi * spread) + error**2 / spread)
            gain = SLOPE * variance / spread
            mean, variance = mean + gain * error, variance * (1 - gain * SLOPE)
        filtered.append((mean, variance))
    means, variances = [mean], [variance]
    for k in range(len(grid) - 2, -1, -1):
        gain = filtered[k][1] * decay[k] / predicted[k + 1][1]
        mean = filtered[k][0] + gain * (means[-1] - predicted[k + 1][0])
        variance = filtered[k][1] + gain**2 * (variances[-1] - predicted[k + 1][1])
        means.append(mean)
        variances.append(variance)
    pick = slice(None, None, num_substeps)
    return Smoothed(
        evidence, np.array(means[::-1])[pick], np.array(variances[::-1])[pick]
    )


def _backwards(precision: Array, shift: Array, wait: Array) -> tuple[Array, Array]:
    r"""$\log p(y | z)$ = $-\tfrac12 \lambda z^2 + \nu z$, as of `wait` earlier."""
    decay = jnp.exp(-RATE * wait)
    added = SIGMA**2 * (1 - decay**2) / (2 * RATE)
    shrink = 1 / (1 + added * precision)
    return decay**2 * precision * shrink, decay * shift * shrink


class ExactRecognition(AbstractRecognition):
    """The backward information filter of the continuous equation."""

    latent_size: int = eqx.field(static=True, default=1)
    context_size: int = eqx.field(static=True, default=3)

    def __call__(
        self,
        ts: Float[Array, " times"],
        values: Float[Array, "times features"],
        mask: Bool[Array, "times features"],
    ) -> Recognised:
        weight = SLOPE / NOISE**2 * mask[:, 0].astype(values.dtype)

        def read(later, at):
            y, w, gap = at
            precision, shift = _backwards(*later, gap)
            now = (precision + SLOPE * w, shift + w * y)
            return now, now

        gaps = jnp.append(jnp.diff(ts), jnp.zeros(1, ts.dtype))
        none = (jnp.zeros((), ts.dtype), jnp.zeros((), ts.dtype))
        inputs = (values[:, 0], weight, gaps)
        (precision, shift), known = jax.lax.scan(read, none, inputs, reverse=True)
        variance = 1 / (1 / SPREAD**2 + precision)
        mean = variance * (MEAN / SPREAD**2 + shift)
        context = NextContext(ts, jnp.stack(known, axis=-1), ts)
        return Recognised(mean[None], jnp.sqrt(variance)[None], context)


class ExactDrift(eqx.Module):
    r"""$\sigma^2 \partial_z \log p(y_{> t} | z_t = z)$, on top of the prior's drift."""

    def __call__(self, t, z, context):
        precision, shift = _backwards(*context)
        return SIGMA**2 * (shift - precision * z)


class Slope(eqx.Module):
    """The decoder: c z."""

    def __call__(self, z):
        return SLOPE * z


def exact_model(num_substeps: int, estimator) -> orn.LatentSDE:
    process = orn.sde.OrnsteinUhlenbeck(rate=RATE, scale=SIGMA)
    return orn.LatentSDE(
        ExactRecognition(),
        LatentStart(1, mean=MEAN, scale=SPREAD),
        ProcessDrift(process),
        ExactDrift(),
        ProcessDiffusion(process),
        Slope(),
        orn.Integrator(
            orn.sde.EulerMaruyama(),
            orn.sde.Grid(num_substeps=num_substeps),
            orn.sde.Checkpointed(),
        ),
        estimator,
    )


LIKELIHOOD = orn.OverTime(orn.Gaussian(NOISE))

TS = np.array([0.0, 0.15, 0.4, 0.5, 0.9, 1.4, 1.5, 2.0])
MASK = np.array([False, True, True, False, True, True, True, False])
VALUES = np.array([9.0, 0.9, 1.8, 9.0, -0.7, 0.3, 0.8, 9.0])


def copies(num_rows: int) -> orn.Series:
    """The series above, as often as its path is to be drawn."""
    values = np.broadcast_to(VALUES[:, None], (num_rows, len(TS), 1))
    return orn.Series.of(TS, values, MASK)
