"""Normals by a keyed hash."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import kstest

from ornstein import _normals, nn
from ornstein._normals import (
    computed_once,
    normal_of_bits,
    random_bits,
    scaled_normal,
    standard_normal,
)
from ornstein.functions import ImplicitBNN, MeanField
from ornstein.prior import GaussianPrior

NUM_KEYS, NUM_PLACES = 400, 1_000
WORST_OF_PAIRS = 5.5  # standard errors, of 80,000 pairs: once in 300 such tests


def test_the_quantile_is_the_normals():
    """Catches a wrong coefficient: every size that a word gives, one in 31."""
    count = np.unique(np.r_[np.arange(2**12), np.arange(0, 2**24, 31), 2**24 - 1])
    ours = normal_of_bits(jnp.asarray(count << 8, jnp.uint32))
    exact = -ndtri((count + 0.5) * 2.0**-25)
    np.testing.assert_allclose(ours, exact, rtol=3e-6, atol=6e-8)


def test_signs_are_independent_of_sizes():
    """Catches a sign that is part of the size: a law with one-sided tails."""
    bits = jnp.asarray([0, 1, 2**8, 2**8 + 1, 2**32 - 2, 2**32 - 1], jnp.uint32)
    z = np.asarray(normal_of_bits(bits))
    np.testing.assert_array_equal(z[::2], -z[1::2])
    assert z[0] > 5.4


def keys_of(how: str) -> jax.Array:
    """Keys as users make them."""
    numbers = jnp.arange(NUM_KEYS)
    if how == "split":
        return jax.random.split(jax.random.key(1), NUM_KEYS)
    if how == "seeds":
        return jax.vmap(jax.random.key)(numbers)
    return jax.vmap(lambda n: jax.random.fold_in(jax.random.key(2), n))(numbers)


@pytest.mark.parametrize("how", ["split", "seeds", "folded in"])
def test_streams_are_normal_and_independent(how):
    """Catches keys that shift one stream, and places that share a word."""
    draw = lambda key: standard_normal(key, (NUM_PLACES,))
    z = np.asarray(jax.vmap(draw)(keys_of(how)), float)
    assert kstest(z.ravel(), "norm").pvalue > 1e-4
    for rows in (z, z.T[:NUM_KEYS]):  # of keys at each place, of places at each key
        for values in (rows, rows**2, np.sign(rows)):
            together = np.corrcoef(values) * rows.shape[1] ** 0.5
            off = together[np.triu_indices(len(rows), 1)]
            assert abs(off).max() < WORST_OF_PAIRS
            # Squares of correlations, times their number, are chi-square of one degree.
            assert abs(np.mean(off**2) - 1) < 5 * (2 / off.size) ** 0.5
    lag = np.mean(z[:, 1:] * z[:, :-1]) * (z.size - NUM_KEYS) ** 0.5
    assert abs(lag) < 4


def test_each_bit_is_fair_and_flips_half_of_the_others():
    """Catches a round of the hash that is missing."""
    bits = np.asarray(random_bits(jax.random.key(0), (2**18,)))
    planes = np.unpackbits(bits.view(np.uint8).reshape(-1, 4), axis=1)
    for values in (planes, planes[1:] ^ planes[:-1], planes[4096:] ^ planes[:-4096]):
        error = (values.mean(axis=0) - 0.5) * 2 * len(values) ** 0.5
        assert abs(error).max() < 5


def test_types_shapes_and_generators():
    key = jax.random.key(3)
    assert standard_normal(key).shape == ()
    assert standard_normal(key, (0, 4)).shape == (0, 4)
    assert standard_normal(key, (5,), jnp.bfloat16).dtype == jnp.bfloat16
    with jax.enable_x64(True):
        z = standard_normal(key, (3,), jnp.float64)
        np.testing.assert_array_equal(z, jax.random.normal(key, (3,), jnp.float64))
    complex_like = standard_normal(key, (4,), jnp.complex64)
    assert np.abs(np.imag(complex_like)).min() > 0
    for other in (jax.random.PRNGKey(3), jax.random.key(3, impl="rbg")):
        assert np.isfinite(standard_normal(other, (7,))).all()
    flat = standard_normal(key, (6,))
    np.testing.assert_array_equal(standard_normal(key, (2, 3)).ravel(), flat)


def test_more_numbers_than_a_counter_has_are_jax_own(monkeypatch):
    """Catches a counter that comes round: the same numbers twice."""
    monkeypatch.setattr("ornstein._normals._MAX_COUNT", 4)
    key = jax.random.key(4)
    np.testing.assert_array_equal(
        standard_normal(key, (5,)), jax.random.normal(key, (5,))
    )


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 700), (0, 4)])
def test_scaled_normals_are_jax_own(shape: tuple[int, ...], impl: str):
    """In programs and outside. Catches (seen) a draw that its length decides."""
    key = jax.random.key(3, impl=impl)
    expected = 0.5 * jax.random.normal(key, shape)
    traced = jax.jit(lambda key: scaled_normal(key, shape, 0.5))(key)
    constant = jax.jit(lambda: scaled_normal(key, shape, 0.5))()
    for found in (scaled_normal(key, shape, 0.5), traced, constant):
        assert found.shape == shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_scaled_normals_of_many_shapes_are_one_program():
    """Catches (seen) a second of compiling for each shape of a network's weights."""
    scaled_normal(jax.random.key(0), (2,), 1.0)
    before = _normals._normal._cache_size()
    for rows in range(3, 30):
        scaled_normal(jax.random.key(0), (rows, 4), 1.0)
    assert _normals._normal._cache_size() == before


IMAGES = jnp.ones((64, 16, 16, 8))


def mean_field() -> MeanField:
    return MeanField(nn.FilterResponseNorm(8), GaussianPrior(1.0))


def implicit() -> ImplicitBNN:
    network = nn.Conv2d(8, 8, 3, key=jax.random.key(0))
    return ImplicitBNN(network, num_components=2, key=jax.random.key(1))


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of CPUs' compiler alone")
@pytest.mark.parametrize("make", [mean_field, implicit])
@pytest.mark.parametrize("num_draws", [None, 2])
def test_noise_is_not_drawn_anew_for_each_pixel(make, num_draws):
    """Catches normals in the loop over an image's pixels: twice a step's time."""
    model = make()

    def draw(key):
        return model(IMAGES, key=key, index=0).output

    key = jax.random.key(2)
    if num_draws is not None:
        draw, key = jax.vmap(draw), jax.random.split(key, num_draws)
    program = jax.jit(draw).lower(key).compile().as_text()
    drawing = [part for part in program.split("\n}\n") if FACTOR in part]
    assert drawing  # the hash is in the program, under this number
    assert not any("16,16,8]" in part for part in drawing)


FACTOR = str(_normals._FACTORS[0])


def test_what_is_computed_once_is_what_it_was():
    """Catches (seen) the other branch, and keys whose words are taken for numbers."""
    words = jnp.asarray([[2**32 - 1, 0], [0, 0]], jnp.uint32)
    keys = jax.random.wrap_key_data(words)
    own = lambda key: standard_normal(key, (2, 3), is_broadcast=True)
    plain = [standard_normal(key, (2, 3)) for key in keys]
    for both in (keys, words):
        for draw in (own, jax.jit(own)):
            drawn = [draw(key) for key in both]
            np.testing.assert_allclose(drawn, plain, rtol=1e-5)
    x = jnp.arange(6.0).reshape(2, 3)
    for axes in ((0, 0), (0, None), (None, 0)):
        batch = jax.jit(jax.vmap(computed_once, in_axes=axes))
        found = batch(
            *(
                a if axis == 0 else a[0]
                for a, axis in zip((x, words), axes, strict=True)
            )
        )
        expected = x if axes[0] == 0 else jnp.stack([x[0]] * 2)
        np.testing.assert_array_equal(found, expected)
    none = jax.jit(lambda key: standard_normal(key, (0, 3), is_broadcast=True))(keys[0])
    assert none.shape == (0, 3)
    assert jax.jit(jax.vmap(own))(keys[:0]).shape == (0, 2, 3)


def test_draws_outside_of_a_program_compile_once():
    """Catches (seen) a second of compiling in each call of `vmap` without `jit`."""
    compiled = []

    def listen(event: str, duration: float, **_) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(duration)

    prior = GaussianPrior(1.0)
    like = jnp.zeros((5, 7))
    keys = jax.random.split(jax.random.key(0), 3)
    draws = lambda: jax.vmap(lambda key: prior.leaf_sample(like, key=key))(keys)
    draws()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        draws()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not compiled
