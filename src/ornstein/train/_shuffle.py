"""Which examples a step sees, as a function of the key and the step number alone.

Each epoch is a fresh permutation cut into batches of one size; the rows left over at
its end (fewer than a batch) are dropped. As every epoch leaves out a fresh random
few, all examples count equally in expectation, and no shape ever changes. (A padded
last batch would give its rows more weight than others; a smaller one would compile a
second program.)
"""

from collections.abc import Generator

import jax
import numpy as np

from .._types import PRNGKeyArray


def batch_indices(
    num_data: int,
    batch_size: int,
    *,
    key: PRNGKeyArray,
    start: int,
) -> Generator[np.ndarray, None, None]:
    """Row numbers of every batch from step `start` on, without end.

    Args:
        num_data: how many rows there are.
        batch_size: at most `num_data`.
        key: of all shuffles.
        start: the first step's number.
    """
    seed = np.asarray(jax.random.key_data(key)).tolist()
    steps_per_epoch = num_data // batch_size
    epoch, position = divmod(start, steps_per_epoch)
    while True:
        # numpy's shuffle on the host: the same for data in memory and out of it.
        order = np.random.default_rng([*seed, epoch]).permutation(num_data)
        while position < steps_per_epoch:
            begin = position * batch_size
            yield order[begin : begin + batch_size].astype(np.int32)
            position += 1
        epoch, position = epoch + 1, 0
