"""What is wrong with chains: whether they moved, of samples that fill a disk."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ornstein.functions import PosteriorSamples
from ornstein.likelihood import Gaussian
from ornstein.sampling import is_stuck

SHAPE = (2, 40_000, 50)


def samples_on_disk(path: Path, *, moved: int | None) -> PosteriorSamples:
    """Two chains that stand still, but for one sample of the second."""
    array = np.lib.format.open_memmap(path, "w+", np.float32, SHAPE)
    array[:] = 0.5
    if moved is not None:
        array[1, moved, 7] = 0.25
    return PosteriorSamples(None, Gaussian(1.0), ({"w": array}, None), info={})


@pytest.mark.parametrize("moved", [None, 1, SHAPE[1] - 1])
def test_samples_are_looked_at_in_parts(moved: int | None, tmp_path: Path):
    """Catches (seen) a comparison of all samples at once, a quarter of their bytes in
    memory, and parts that leave out the last."""
    samples = samples_on_disk(tmp_path / "w.npy", moved=moved)
    tracemalloc.start()
    found = is_stuck(samples)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == (moved is None)
    assert peak < 2**20 < np.prod(SHAPE)


def test_a_number_that_is_none_is_no_rest(tmp_path: Path):
    samples = samples_on_disk(tmp_path / "w.npy", moved=None)
    samples.positions[0]["w"][0, 3] = np.nan
    assert not is_stuck(samples)


@pytest.mark.parametrize(("moved", "num_samples"), [(3, 20), (None, 20), (None, 1)])
def test_a_divergence_in_each_hundred_steps_is_not_one_in_every_step(
    moved: int | None, num_samples: int
):
    """Of thinned chains each sample says whether any step since the one before
    diverged. Catches (seen) "every step diverged" of chains that moved."""
    array = np.zeros((2, num_samples, 3), np.float32)
    if moved is not None:
        array[:, moved:] = 1.0
    info = {"is_divergent": np.ones((2, num_samples), bool)}
    samples = PosteriorSamples(None, Gaussian(1.0), ({"w": array}, None), info=info)
    assert is_stuck(samples) == (moved is None)
