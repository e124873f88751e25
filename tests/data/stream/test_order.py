"""Which rows are met when: a function of the seed and the epoch alone."""

import numpy as np
import pytest

from ornstein.data.stream._order import (
    Part,
    own_blocks,
    steps_per_epoch,
    windows,
)

BLOCK_ROWS = np.array([5, 30, 12, 0, 7, 40, 3])


def met(epoch: int, seed: int = 0, part: Part | None = None, most: int = 20):
    """(block, row) pairs in the order in which an epoch meets them."""
    part = Part() if part is None else part
    how = {"most_rows": most, "seed": [seed], "part": part}
    pairs = []
    for window in windows(BLOCK_ROWS, epoch=epoch, **how):
        rows = [(b, r) for b in window.blocks for r in range(BLOCK_ROWS[b])]
        pairs += [rows[i] for i in window.order()]
    return pairs


ALL = sorted((b, r) for b in range(len(BLOCK_ROWS)) for r in range(BLOCK_ROWS[b]))


@pytest.mark.parametrize("most", [1, 20, 50, 1000])
def test_every_row_is_met_once_an_epoch(most: int):
    """Catches a window that is lost at the end, or a row that comes twice."""
    assert sorted(met(3, most=most)) == ALL


def test_order_is_of_the_seed_and_the_epoch_alone():
    assert met(2) == met(2)
    assert met(2) != met(3)
    assert met(2) != met(2, seed=1)


def test_one_window_shuffles_all_rows_alike():
    """Catches rows that stay near their block where there is room for all.

    The mean place of each block's rows, over epochs, is then that of all; with the
    shuffle of rows left out (seen) a block's rows are neighbours, and the spread of
    their places is a tenth.
    """
    spread = []
    for epoch in range(50):
        places = [i for i, (b, _) in enumerate(met(epoch, most=1000)) if b == 1]
        spread.append(np.std(places))
    uniform = np.sqrt((len(ALL) ** 2 - 1) / 12)
    assert abs(np.mean(spread) / uniform - 1) < 0.1


def test_windows_hold_no_more_rows_than_asked_for():
    how = {"most_rows": 20, "seed": [0], "part": Part()}
    for window in windows(BLOCK_ROWS, epoch=0, **how):
        assert window.num_rows <= 20 or len(window.blocks) == 1


def test_processes_share_the_blocks():
    """Catches a block that two processes read, or none."""
    parts = [Part(n, 3) for n in range(3)]
    owned = np.concatenate([own_blocks(BLOCK_ROWS, part) for part in parts])
    assert sorted(owned) == list(range(len(BLOCK_ROWS)))
    pairs = [pair for part in parts for pair in met(1, part=part)]
    assert sorted(pairs) == ALL


def test_blocks_of_one_size_are_shared_as_others_are():
    """Catches a way for many images that deals them otherwise than one by one does."""
    alike, almost = np.full(11, 4), np.full(11, 4)
    almost[10] = 3  # the last to be dealt, which changes no other's owner
    for number in range(3):
        part = Part(number, 3)
        expected = own_blocks(almost, part)
        np.testing.assert_array_equal(own_blocks(alike, part), expected)


def test_steps_are_as_many_as_the_poorest_process_has():
    """40, 30 and 27 rows, of which a batch of 12 takes four each."""
    totals = [BLOCK_ROWS[own_blocks(BLOCK_ROWS, Part(n, 3))].sum() for n in range(3)]
    assert sorted(totals) == [27, 30, 40]
    assert steps_per_epoch(BLOCK_ROWS, 12, 3) == 27 // 4
    assert steps_per_epoch(BLOCK_ROWS, 12, 1) == 97 // 12
