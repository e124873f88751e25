"""Problems small enough for tests."""

from functools import partial

import numpy as np

from ornstein.agreement._problems import Problem
from ornstein.data import Split
from ornstein.nn import MLP, Linear, tanh


def line(*, num_rows: int = 20, shift: float = 0.0, seed: int = 0) -> Problem:
    """A line with noise: the posterior is a quadrature over the noise's scale."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_rows + 5, 1)).astype(np.float32)
    noise = 0.3 * rng.normal(size=x.shape)
    y = (0.8 * x + 0.5 + shift + noise).astype(np.float32)
    train, test = Split(x[:num_rows], y[:num_rows]), Split(x[num_rows:], y[num_rows:])
    half = num_rows // 2
    return Problem(
        name="line",
        train=train,
        validation=train.rows(np.arange(half)),
        remainder=train.rows(np.arange(half, num_rows)),
        test=test,
        network=partial(Linear, 1, 1),
        edges=np.linspace(-4, 5, 200),
        y_scale=2.0,
    )


def blobs(*, seed: int = 0) -> Problem:
    """Three classes in the plane."""
    rng = np.random.default_rng(seed)
    y = np.arange(48) % 3
    centres = np.array([[2.0, 0.0], [-1.0, 1.5], [-1.0, -1.5]])
    x = centres[y] + rng.normal(size=(48, 2))
    rows = Split(x.astype(np.float32), y.astype(np.int32))
    return Problem(
        name="blobs",
        train=rows.rows(np.arange(24)),
        validation=rows.rows(np.arange(24, 36)),
        remainder=rows.rows(np.arange(24)),
        test=rows.rows(np.arange(36, 48)),
        network=partial(MLP, 2, 3, [4], activation=tanh),
        edges=None,
    )
