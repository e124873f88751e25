"""The numbers of the implicit BNN's step, stated once for all libraries."""

from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np

from ornstein.data import Split

BATCH_SIZE = 128
NUM_COMPONENTS = 8
NUM_DRAWS = 2
NUM_CLASSES = 10
PRIOR_SCALE = 0.3
LEARNING_RATE, NOISE_LEARNING_RATE, MOMENTUM = 0.01, 0.1, 0.9


class Images(NamedTuple):
    """What a network of the benchmark takes.

    Attributes:
        shape: of one image.
        steps_per_epoch: batches in the data set.
    """

    shape: tuple[int, int, int]
    steps_per_epoch: int

    @property
    def num_data(self) -> int:
        """Rows of the data set."""
        return BATCH_SIZE * self.steps_per_epoch


DIGITS = Images((28, 28, 1), 100)
PICTURES = Images((32, 32, 3), 4)


def make_data(images: Images, *, key: jax.Array) -> Split:
    """Noise with random classes."""
    x_key, y_key = jr.split(key)
    x = jr.normal(x_key, (images.num_data, *images.shape))
    y = jr.randint(y_key, (images.num_data,), 0, NUM_CLASSES)
    return Split(np.asarray(x), np.asarray(y))
