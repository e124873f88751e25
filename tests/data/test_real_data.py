"""The real files, where `ORNSTEIN_DATA` names them."""

import numpy as np
import pytest

import ornstein.data as od


def moments(data):
    return data.x_scaling.mean, data.x_scaling.scale


def raw(data, split):
    return np.c_[data.x_scaling.undo(split.x), data.y_scaling.undo(split.y)]


def test_mnist(data_dir):
    """Published counts and moments. Catches lost or shuffled rows."""
    data = od.load("mnist", data_dir=data_dir)
    assert data.train.x.shape == (60_000, 28, 28, 1)
    assert data.test.x.shape == (10_000, 28, 28, 1)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    np.testing.assert_array_equal(np.bincount(data.train.y), counts)
    # The sum of the 47,040,000 original bytes: any pixel that changed shows.
    mean, scale = moments(data)
    assert round(mean.item() * data.train.x.size) == 1_567_298_545
    assert scale.item() / 255 == pytest.approx(0.3081, abs=5e-5)
    assert data.notes == ()


@pytest.mark.slow
def test_cifar10(data_dir):
    data = od.load("cifar10", data_dir=data_dir)
    assert data.train.x.shape == (50_000, 32, 32, 3)
    np.testing.assert_array_equal(np.bincount(data.train.y), [5000] * 10)
    np.testing.assert_array_equal(np.bincount(data.test.y), [1000] * 10)
    assert data.class_names[0] == "airplane"
    means = np.array([0.4914, 0.4822, 0.4465])  # published; JPEG moves them a little
    np.testing.assert_allclose(moments(data)[0].ravel() / 255, means, atol=1e-3)
    assert "quality 75" in data.notes[0]


@pytest.mark.parametrize(
    ("name", "num_rows", "features"),
    [
        ("concrete", 1030, 8),
        ("kin8nm", 8192, 8),
        ("wine-quality-red", 1599, 11),
        ("yacht", 308, 6),
    ],
)
def test_uci_splits_partition_the_rows(data_dir, name, num_rows, features):
    """Catches mixed-up index files, and scaling by more than the training rows."""
    folder = data_dir / "uci" / name
    table = np.loadtxt(folder / "data.txt")
    for split in (0, 19):
        data = od.load(f"uci/{name}", data_dir=data_dir, split=split)
        assert data.example_shape == (features,)
        seen = np.zeros(num_rows)
        assert len(data.test) == pytest.approx(num_rows / 10, abs=1)
        for part, its in (("train", data.train), ("test", data.test)):
            rows = np.loadtxt(folder / f"index_{part}_{split}.txt", int)
            np.testing.assert_allclose(raw(data, its), table[rows], 1e-4, 1e-4)
            seen[rows] += 1
        np.testing.assert_array_equal(seen, 1)
        np.testing.assert_allclose(data.train.x.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(data.train.x.std(0), 1, rtol=1e-4)
        np.testing.assert_allclose(data.train.y.std(0), 1, rtol=1e-4)
    first = od.load(f"uci/{name}", data_dir=data_dir)
    assert not np.array_equal(first.test.y, data.test.y)
