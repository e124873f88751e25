"""The problems of the samplers' benchmark: networks, data, settings.

An MLP 784-400-400-10 with ReLU on batches of 100 out of 10,000 rows of 10 classes, and
an MLP 1-50-50-1 with tanh on all of 64 points with normal noise; standard normal
priors. Data are noise, since no time depends on them.
"""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import Array

from ornstein.data import Split

NUM_DATA = 10_000
BATCH_SIZE = 100
SIZES = (784, 400, 400, 10)

NUM_POINTS = 64
NOISE_SCALE = 0.1
SMALL_SIZES = (1, 50, 50, 1)

# An ε of ours; so small that no chain leaves the finite numbers while it is timed.
LANGEVIN_STEP = 1e-6
HAMILTONIAN_STEP = 1e-4
FRICTION = 1.0
NUM_INNER_STEPS = 10

LEAPFROG_STEP = 1e-3
NUM_LEAPFROG_STEPS = 10

INIT_SCALE = 0.05
LEARNING_RATE = 1e-3


def make_classes(*, key: Array) -> Split:
    """Rows of 784 numbers, and classes."""
    x_key, y_key = jr.split(key)
    x = jr.normal(x_key, (NUM_DATA, SIZES[0]))
    y = jr.randint(y_key, (NUM_DATA,), 0, SIZES[-1])
    return Split(np.asarray(x), np.asarray(y))


def make_points(*, key: Array) -> Split:
    """A noisy cubic."""
    x = jnp.linspace(-1.0, 1.0, NUM_POINTS)[:, None]
    noise = NOISE_SCALE * jr.normal(key, x.shape)
    return Split(np.asarray(x), np.asarray(x**3 + noise))
