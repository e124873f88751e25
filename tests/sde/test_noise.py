"""The Brownian path: a function of key and step, with the moments that it must have."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein import sde
from ornstein.sde._noise import Increments

pytestmark = pytest.mark.usefixtures("double")

SHAPES = (((3,), "float64"), ((2, 2), "float64"))
TREE = jax.tree.structure((0, 0))


def increments(num_fine=1, use_levy=False, key=0, shapes=SHAPES, treedef=TREE):
    return Increments(jr.key(key), shapes, treedef, num_fine, use_levy)


def scalar(num_fine, use_levy, key=0):
    """Increments of one number."""
    shapes, treedef = (((), "float64"),), jax.tree.structure(0)
    return Increments(key, shapes, treedef, num_fine, use_levy)


def draw(path, steps, dt):
    """W and H of the steps, whose lengths are dt."""
    zero = jnp.zeros(())
    return jax.jit(jax.vmap(lambda n: path(n, zero, zero + dt)))(steps)


def test_increments_are_a_function_of_key_and_step():
    """In any order, backwards too, and other for another key or step. Catches state
    that is carried from step to step."""
    steps = jnp.arange(6, dtype=jnp.uint32)
    path = increments()
    forward, _ = draw(path, steps, 0.1)
    backward, _ = draw(path, steps[::-1], 0.1)
    other, _ = draw(increments(key=1), steps, 0.1)
    flat = np.concatenate([np.asarray(x).reshape(6, -1) for x in forward], axis=1)
    for a, b, c in zip(forward, backward, other, strict=True):
        np.testing.assert_array_equal(a, b[::-1])
        assert not np.any(a == c)
    assert len(np.unique(flat)) == flat.size


def test_the_path_is_the_same_forward_and_backward():
    """Reversible Heun walked back by hand, its increments those of the forward solve
    in reverse: the start comes back."""
    path = scalar(1, False, jr.key(7))
    num_steps, dt = 50, 0.02
    f, g = lambda t, y: jnp.sin(y) - t, lambda y: 0.5 * jnp.cos(y)
    sol = sde.sdeint(
        lambda t, y, args: f(t, y),
        lambda t, y, args: g(y),
        jnp.asarray(0.3),
        np.array([0.0, 1.0]),
        key=jr.key(7),
        solver=sde.ReversibleHeun(),
        stepsize=sde.Fixed(dt),
    )
    w, _ = draw(path, jnp.arange(num_steps, dtype=jnp.uint32), dt)
    y = z = 0.3
    forward = []
    for k in range(num_steps):
        forward.append((y, z))
        move = f(k * dt, z) * dt + g(z) * w[k]
        z1 = 2 * y - z + move
        y, z = y + (move + f((k + 1) * dt, z1) * dt + g(z1) * w[k]) / 2, z1
    np.testing.assert_allclose(sol.ys[-1], y, atol=1e-13)
    for k in reversed(range(num_steps)):
        move = f((k + 1) * dt, z) * dt + g(z) * w[k]
        z1 = 2 * y - z - move
        y, z = y - (move + f(k * dt, z1) * dt + g(z1) * w[k]) / 2, z1
    np.testing.assert_allclose((y, z), forward[0], atol=1e-12)


def test_moments_of_an_increment():
    """W ~ N(0, h), H ~ N(0, h / 12), independent, steps and entries independent.
    Catches a scale of h for √h, one key for both."""
    num, dt = 20_000, 0.3
    path = increments(use_levy=True)
    w, h = draw(path, jnp.arange(num, dtype=jnp.uint32), dt)
    both = np.concatenate([np.asarray(x).reshape(num, -1) for x in (*w, *h)], axis=1)
    both = both / np.sqrt(np.repeat([dt, dt / 12], 7))
    assert np.all(np.abs(both.mean(axis=0)) < 4.5 / np.sqrt(num))
    covariance = both.T @ both / num
    assert np.all(np.abs(np.diag(covariance) - 1) < 4.5 * np.sqrt(2 / num))
    off = covariance - np.diag(np.diag(covariance))
    assert np.all(np.abs(off) < 4.5 / np.sqrt(num))
    assert np.all(np.abs(np.mean(both[1:] * both[:-1], axis=0)) < 4.5 / np.sqrt(num))


def test_combined_steps_are_sums_and_integrals_of_the_finer_path():
    """H of 1,000 finer steps is the path's integral, by the trapezoidal rule on that
    path: no formula for combining areas enters. Catches a lost W / 2, a wrong order."""
    num_fine, dt = 1000, 0.3
    key = jr.key(8)
    w, h = draw(scalar(num_fine, True, key), jnp.arange(20, dtype=jnp.uint32), dt)
    fine = jnp.arange(20 * num_fine, dtype=jnp.uint32)
    fine_w, _ = draw(scalar(1, True, key), fine, dt / num_fine)
    fine_w = np.asarray(fine_w).reshape(20, num_fine)
    path = np.concatenate([np.zeros((20, 1)), np.cumsum(fine_w, axis=1)], axis=1)
    np.testing.assert_allclose(w, path[:, -1], atol=1e-12)
    line = np.linspace(0, 1, num_fine + 1) * path[:, -1:]
    area = np.trapezoid(path - line, dx=1 / num_fine, axis=1)
    np.testing.assert_allclose(h, area, atol=5 * np.sqrt(dt / 12) / num_fine)


def test_moments_of_two_combined_steps():
    """As those of one step. Catches a combination with the right mean only."""
    num, dt = 20_000, 0.3
    path = scalar(2, True, jr.key(9))
    w, h = map(np.asarray, draw(path, jnp.arange(num, dtype=jnp.uint32), dt))
    for x, variance in ((w, dt), (h, dt / 12)):
        assert abs(np.mean(x**2) / variance - 1) < 4.5 * np.sqrt(2 / num)
    assert abs(np.mean(w * h)) < 4.5 * dt / np.sqrt(12 * num)


def test_noise_dt_shares_one_path():
    """Brownian motion at several dt is one path at their common times. Catches steps
    numbered from one."""
    bm = sde.BrownianMotion(scale=2.0)

    def ys(dt, noise_dt, ts):
        return sde.sdeint(
            bm.drift,
            bm.diffusion,
            jnp.zeros(3),
            ts,
            key=jr.key(0),
            solver=sde.EulerMaruyama(),
            stepsize=sde.Fixed(dt, noise_dt),
        ).ys

    ts = np.array([1.0, 1.5, 3.0])
    fine = ys(0.0625, None, ts)
    for dt in (0.0625, 0.25, 0.5):
        np.testing.assert_allclose(ys(dt, 0.0625, ts), fine, atol=1e-13)
    assert not np.allclose(ys(0.25, None, ts), fine)


def test_dtypes_and_none():
    """Each dtype its own normals, none for noise-free leaves."""
    leaves = {"a": jnp.zeros(2), "b": jnp.zeros(2, jnp.float32)}
    treedef = jax.tree.structure({**leaves, "c": None})
    shapes = (((2,), "float64"), ((2,), "float32"))
    w, _ = increments(shapes=shapes, treedef=treedef)(
        jnp.uint32(0), jnp.zeros(()), jnp.ones(())
    )
    assert w["c"] is None
    assert (w["a"].dtype, w["b"].dtype) == (jnp.float64, jnp.float32)
    assert not np.any(np.isclose(w["a"], w["b"].astype(jnp.float64)))
