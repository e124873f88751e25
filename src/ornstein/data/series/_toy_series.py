"""Sequences of known law: curves with gaps, two modes, and two SDEs to learn."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._base import Data
from ._assemble_series import Sequences, assemble_series

_NUM_BETWEEN = 101  # times at which a curve is asked for
_NUM_PATHS = 500
_NUM_SEEN = 31  # of the times of a geometric Brownian motion
_NUM_LORENZ = (256, 64, 64)
_LORENZ_NOISE = 0.01  # of the measurement, in standard units

_TWO_POINTS_NOTE = (
    "toy/two-points has no test rows of its own: its test split is what it learns from."
)
_GBM_NOTE = (
    "toy/gbm is tested past its data: the test rows are the training paths, seen until "
    "0.6 and asked for from there to 1."
)


class SeriesToy(NamedTuple):
    """A toy set of sequences.

    Attributes:
        description: one line for lists.
        build: from the set's name to its data, always the same.
    """

    description: str
    build: Callable[[str], Data]


def geometric_brownian_motion(
    ts: Float[np.ndarray, " times"], num_paths: int, *, rng: np.random.Generator
) -> Float[np.ndarray, "num_paths times 1"]:
    """Exact paths of dX = X dt + X/2 dB (Itô) from X(0) ~ N(1, 0.3²).

    Given its start, log X(t) is Gaussian with mean log X(0) + 7t/8 and variance t/4.
    The law is that of Li et al. (2020), in units of its mean start, 0.1. A start, and
    with it its path, is negative once in 2,300.

    Args:
        ts: increasing, from 0.
        num_paths: how many.
        rng: where the randomness comes from.
    """
    rate, volatility = 1.0, 0.5
    start = 1.0 + 0.3 * rng.standard_normal((num_paths, 1))
    steps = np.sqrt(np.diff(ts, prepend=0.0))
    brownian = np.cumsum(steps * rng.standard_normal((num_paths, len(ts))), axis=1)
    growth = (rate - volatility**2 / 2) * ts + volatility * brownian
    return (start * np.exp(growth))[..., None]


def stochastic_lorenz(
    ts: Float[np.ndarray, " times"],
    num_paths: int,
    *,
    rng: np.random.Generator,
    num_substeps: int = 20,
) -> Float[np.ndarray, "num_paths times 3"]:
    """Euler–Maruyama paths of the Lorenz attractor with diagonal Itô noise.

    dx = 10 (y - x) dt + 0.1 x dB₁, dy = (28 x - y - x z) dt + 0.28 y dB₂,
    dz = (x y - 8/3 z) dt + 0.3 z dB₃ from N(0, I): the constants of torchsde's
    `latent_sde_lorenz.py`.

    Args:
        ts: increasing; the first is the start.
        num_paths: how many.
        rng: where the randomness comes from.
        num_substeps: equal steps from one time to the next.
    """
    state = rng.standard_normal((num_paths, 3))
    diffusion = np.array([0.1, 0.28, 0.3])
    paths = [state]
    for gap in np.diff(ts):
        dt = gap / num_substeps
        for _ in range(num_substeps):
            x, y, z = state.T
            drift = np.stack([10 * (y - x), 28 * x - y - x * z, x * y - 8 / 3 * z], 1)
            noise = np.sqrt(dt) * rng.standard_normal(state.shape)
            state = state + drift * dt + diffusion * state * noise
        paths.append(state)
    return np.stack(paths, axis=1)


def _curve(
    name: str,
    function: Callable,
    observed: Float[np.ndarray, " observed"],
    span: tuple[float, float],
) -> Data:
    """One series of `function`, observed at some times and asked for at others.

    The ends of the span belong to the series' times, observed or not.
    """
    between = np.linspace(*span, _NUM_BETWEEN)
    distance = np.abs(between[:, None] - observed).min(axis=1)
    between = between[distance > 1e-9]  # what is observed is not asked
    edges = np.setdiff1d(span, observed)
    train_ts = np.sort(np.concatenate([edges, observed]))
    test_ts = np.sort(np.concatenate([between, observed]))

    def values(ts: np.ndarray, where: np.ndarray) -> np.ndarray:
        return np.where(np.isin(ts, where), function(ts), np.nan)[None, :, None]

    train = Sequences(train_ts[None], values(train_ts, observed))
    test = Sequences(test_ts[None], values(test_ts, observed), values(test_ts, between))
    return assemble_series(name, train, test)


def _cosine(t: np.ndarray) -> np.ndarray:
    return np.cos(2 * np.pi * t)


def _sine(t: np.ndarray) -> np.ndarray:
    return 0.8 * np.sin(2 * np.pi * t)


def _segments(*spans: Sequence) -> Float[np.ndarray, " times"]:
    return np.concatenate([np.linspace(*span) for span in spans])


def _segmented_cosine(name: str) -> Data:
    observed = _segments((0.3, 0.8, 10), (1.2, 1.5, 10))
    return _curve(name, _cosine, observed, (0.0, 2.0))


def _segmented_cosine_10(name: str) -> Data:
    observed = _segments((0.4, 0.6, 5), (0.8, 1.0, 5))
    return _curve(name, _cosine, observed, (0.4, 1.0))


def _irregular_sine(name: str) -> Data:
    rng = np.random.RandomState(42)  # the source's generator and seed
    return _curve(name, _sine, np.sort(rng.uniform(0.4, 1.6, 16)), (0.0, 2.0))


def _two_points(name: str) -> Data:
    nothing = [np.nan, np.nan]
    ts, values = np.array([[0.0, 3.0]]), np.array([[nothing, [5.0, -5.0]]])
    data = Sequences(ts, values)
    return assemble_series(name, data, data, notes=[_TWO_POINTS_NOTE])


def _gbm(name: str) -> Data:
    rng = np.random.default_rng(1)  # all 500 paths are positive; 0 has a negative one
    ts = np.linspace(0.0, 1.0, 51)
    values = geometric_brownian_motion(ts, _NUM_PATHS, rng=rng)
    values = values + 0.1 * rng.standard_normal(values.shape)
    times = np.tile(ts, (_NUM_PATHS, 1))
    is_past = (np.arange(len(ts)) >= _NUM_SEEN)[:, None]
    return assemble_series(
        name,
        Sequences(times[:, :_NUM_SEEN], values[:, :_NUM_SEEN]),
        Sequences(
            times, np.where(is_past, np.nan, values), np.where(is_past, values, np.nan)
        ),
        notes=[_GBM_NOTE],
    )


def _lorenz(name: str) -> Data:
    rng = np.random.default_rng(0)
    ts = np.linspace(0.0, 2.0, 100)
    paths = stochastic_lorenz(ts, sum(_NUM_LORENZ), rng=rng)
    scale = paths[: _NUM_LORENZ[0]].std(axis=(0, 1))
    values = paths + _LORENZ_NOISE * scale * rng.standard_normal(paths.shape)
    parts = [
        Sequences(np.tile(ts, (len(part), 1)), part)
        for part in np.split(values, np.cumsum(_NUM_LORENZ)[:-1])
    ]
    train, validation, test = parts
    return assemble_series(
        name,
        train,
        test,
        validation=validation,
        standardise=True,
        feature_names=("x", "y", "z"),
    )


SERIES_TOYS = {
    "toy/segmented-cosine": SeriesToy(
        "one series: cos(2 pi t) at 20 times of [0, 2] in two segments",
        _segmented_cosine,
    ),
    "toy/segmented-cosine-10": SeriesToy(
        "one series: cos(2 pi t) at 10 times of [0.4, 1] in two segments",
        _segmented_cosine_10,
    ),
    "toy/irregular-sine": SeriesToy(
        "one series: 0.8 sin(2 pi t) at 16 times drawn over [0.4, 1.6]",
        _irregular_sine,
    ),
    "toy/two-points": SeriesToy(
        "one series: 5 and -5, both observed at time 3, of one latent number",
        _two_points,
    ),
    "toy/gbm": SeriesToy(
        "500 series: geometric Brownian motion until 0.6, to be continued to 1",
        _gbm,
    ),
    "toy/lorenz": SeriesToy(
        "256 series: the stochastic Lorenz attractor at 100 times of [0, 2]",
        _lorenz,
    ),
}
"""The toy sets of sequences by name.

The curves are noise-free, as their sources have them: `segmented-cosine` and
`irregular-sine` those of torchsde's `latent_sde.py` (whose series begin at time 0 and
end at 2, where nothing is observed), `segmented-cosine-10` that of the gradient check
of Xu et al. (2022), whose process starts at its first observation. A test row asks
for the curve at times between.

References:
    Li, Wong, Chen & Duvenaud, *Scalable Gradients for Stochastic Differential
    Equations* (2020); Xu, Chen, Li & Duvenaud, *Infinitely Deep Bayesian Neural
    Networks with Stochastic Differential Equations* (2022), figures 3 and 4.
"""
