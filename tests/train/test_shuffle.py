"""Which rows a step sees."""

import itertools

import jax.random as jr
import numpy as np
import pytest

from ornstein.train._shuffle import batch_indices

NUM_DATA, BATCH = 23, 5
PER_EPOCH = 4  # whole batches; 3 rows are left out


def epochs(key, num_epochs: int) -> list[np.ndarray]:
    """The rows of each epoch, in order."""
    batches = batch_indices(NUM_DATA, BATCH, key=key, start=0)
    rows = list(itertools.islice(batches, num_epochs * PER_EPOCH))
    assert {len(batch) for batch in rows} == {BATCH}
    parts = (rows[i : i + PER_EPOCH] for i in range(0, len(rows), PER_EPOCH))
    return [np.concatenate(part) for part in parts]


def test_each_epoch_is_a_shuffle_of_its_own():
    """Seen failing with the epoch left out of the seed: every epoch the same."""
    found = epochs(jr.key(0), 200)
    for rows in found:
        assert len(set(rows.tolist())) == PER_EPOCH * BATCH, "a row twice"
    assert len({tuple(rows) for rows in found}) == 200
    first = np.array([rows[0] for rows in found])
    # Uniform over 23 rows: χ² with 22 degrees of freedom, 1e-5 above 66.
    counts = np.bincount(first, minlength=NUM_DATA)
    assert np.sum((counts - 200 / NUM_DATA) ** 2) * NUM_DATA / 200 < 66


def test_rows_left_out_change_and_all_count_equally():
    """Seen failing with the same rows left out each epoch (batches shuffled alone)."""
    num_epochs = 1000
    left_out = np.zeros(NUM_DATA)
    for rows in epochs(jr.key(1), num_epochs):
        left_out[np.setdiff1d(np.arange(NUM_DATA), rows)] += 1
    share = (NUM_DATA - PER_EPOCH * BATCH) / NUM_DATA
    sd = np.sqrt(num_epochs * share * (1 - share))
    assert np.all(np.abs(left_out - num_epochs * share) < 5.5 * sd), left_out


def test_keys_have_shuffles_of_their_own():
    """Seen failing with a seed that leaves the key out."""
    orders = {tuple(np.concatenate(epochs(jr.key(seed), 2))) for seed in range(20)}
    assert len(orders) == 20


@pytest.mark.parametrize("start", [1, PER_EPOCH, 2 * PER_EPOCH + 3])
def test_a_later_start_meets_the_same_batches(start):
    """Catches a resumed run whose epoch begins anew."""
    whole = batch_indices(NUM_DATA, BATCH, key=jr.key(2), start=0)
    later = batch_indices(NUM_DATA, BATCH, key=jr.key(2), start=start)
    for a, b in itertools.islice(
        zip(itertools.islice(whole, start, None), later, strict=False), 9
    ):
        np.testing.assert_array_equal(a, b)
