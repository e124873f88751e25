"""Augmentation against slow twins and counts."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein.data as od


def numbered(batch=3000):
    """Images whose every pixel tells its place."""
    image = jnp.arange(1.0, 5 * 6 * 2 + 1).reshape(1, 5, 6, 2)
    return jnp.broadcast_to(image, (batch, 5, 6, 2))


@pytest.mark.parametrize(
    ("augment", "padding"),
    [
        (od.RandomShift(2), {"mode": "edge"}),
        (od.RandomCrop(2, 7.0), {"mode": "constant", "constant_values": 7.0}),
    ],
    ids=["shift", "crop"],
)
def test_windows_are_all_and_equally_likely(augment, padding):
    """Each image is one of the 25 windows of NumPy's padding, each equally often.

    Catches an offset range one too small, one shift for the whole batch, wrong axes.
    """
    x = numbered()
    out = np.asarray(jax.jit(augment)(x, key=jr.key(0)))
    padded = np.pad(np.asarray(x[0]), ((2, 2), (2, 2), (0, 0)), **padding)
    windows = [padded[i : i + 5, j : j + 6] for i in range(5) for j in range(5)]
    counts = [np.all(out == window, axis=(1, 2, 3)).sum() for window in windows]
    assert sum(counts) == len(x)
    chi2 = np.sum((np.array(counts) - 120) ** 2 / 120)
    assert abs(chi2 - 24) < 4.5 * np.sqrt(48)


def test_fill_is_a_colour():
    out = od.RandomCrop(1, np.array([3.0, 4.0], np.float32))(
        numbered(50), key=jr.key(0)
    )
    place = np.asarray(numbered(1))
    new = np.asarray(out)[~np.isin(np.asarray(out), place[place > 4])]
    assert set(np.unique(new)) <= {1.0, 2.0, 3.0, 4.0}
    assert {3.0, 4.0} <= set(np.unique(np.asarray(out)))


def test_half_are_mirrored():
    x = numbered()
    out = np.asarray(od.RandomFlip()(x, key=jr.key(1)))
    same = np.all(out == np.asarray(x), axis=(1, 2, 3))
    mirrored = np.all(out == np.asarray(x)[:, :, ::-1], axis=(1, 2, 3))
    assert np.all(same ^ mirrored)
    assert abs(mirrored.sum() - 1500) < 4.5 * np.sqrt(3000 / 4)


def test_composition_draws_each_step_alone():
    """Two equal shifts move by their sum, whose variance is twice one's."""
    x = jnp.zeros((4000, 21, 21, 1)).at[:, 10, 10].set(1.0)
    out = od.Compose((od.RandomShift(2), od.RandomShift(2)))(x, key=jr.key(2))
    row = np.argmax(np.asarray(out)[..., 0].max(2), axis=1)
    variance = 2 * 2.0  # of uniform steps -2 … 2: 2
    z = (row.var() - variance) / (variance * np.sqrt(2 / 4000))
    assert abs(z) < 4.5


@pytest.mark.parametrize(
    ("name", "moves", "flips"),
    [
        ("digits", 1, False),
        ("mnist", 2, False),
        ("fashion_mnist", 2, True),
        ("cifar10", 4, True),
        ("cifar100", 4, True),
        ("own.npz", 0, False),
    ],
)
def test_defaults_keep_the_class(name, moves, flips):
    """A digit is never mirrored; what is not known is left alone."""
    # One bright pixel in the middle, its right neighbour less bright.
    x = jnp.zeros((500, 15, 15, 1)).at[:, 7, 7].set(2.0).at[:, 7, 8].set(1.0)
    out = np.asarray(od.default_augmentation(name)(x, key=jr.key(3)))[..., 0]
    bright = np.argwhere(out == 2)
    dim = np.argwhere(out == 1)
    assert np.abs(bright[:, 1:] - 7).max() == moves
    assert (np.any(dim[:, 2] < bright[:, 2])) == flips


def test_padding_is_black_where_the_scale_is_known():
    scaling = od.Standardisation(np.full((1, 1, 1), 100.0), np.full((1, 1, 1), 50.0))
    augment = od.default_augmentation("cifar10", scaling)
    out = augment(jnp.ones((100, 8, 8, 1)), key=jr.key(4))
    assert set(np.unique(np.asarray(out))) == {1.0, -2.0}


@pytest.mark.parametrize("augment", [od.RandomShift, od.RandomCrop])
def test_pixels_are_positive(augment):
    with pytest.raises(ValueError, match="must be a positive number of pixels, got 0"):
        augment(0)
