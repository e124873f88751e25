"""Where a solve steps: end times, irregular and traced grids."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein import sde

OU = sde.OrnsteinUhlenbeck(rate=0.7, mean=0.3, scale=0.5)


def solve(ts, stepsize, solver=None, key=None):
    return sde.sdeint(
        OU.drift,
        OU.diffusion,
        jnp.array([1.0, -1.0]),
        ts,
        key=jr.key(0) if key is None else key,
        solver=sde.EulerMaruyama() if solver is None else solver,
        stepsize=stepsize,
    )


@pytest.mark.parametrize("num_steps", [3, 7, 20, 49, 1000])
def test_fixed_ends_exactly_at_the_last_time(num_steps):
    """Catches times added up step by step (erratum R1)."""
    ts = np.array([0.1, 0.8])
    mesh = sde.Fixed(0.7 / num_steps).mesh(ts)
    assert mesh.num_steps == num_steps
    assert mesh.times[0] == np.float32(0.1)
    assert mesh.times[-1] == np.float32(0.8)
    np.testing.assert_allclose(np.diff(mesh.times), 0.7 / num_steps, rtol=2e-2)


def test_fixed_outputs_at_irregular_times():
    """The same path at whatever times it is asked for. Catches an output that is one
    step off."""
    every = solve(np.linspace(0.0, 1.0, 21), sde.Fixed(0.05))
    for picks in ([0, 20], [0, 10, 20], [0, 3, 4, 20], [0, 4, 12, 20]):
        some = solve(np.linspace(0.0, 1.0, 21)[picks], sde.Fixed(0.05))
        np.testing.assert_allclose(some.ys, every.ys[np.array(picks)], rtol=1e-6)
        assert some.stats["num_steps"] == 20


def test_fixed_takes_times_rounded_to_single_precision():
    """dt divides 10.1 only up to float32's rounding of 10.1 (refused before)."""
    mesh = sde.Fixed(0.001).mesh(jnp.array([0.0, 10.1]))
    assert mesh.num_steps == 10_100


def test_grid_is_fixed_on_regular_times():
    """With and without substeps, and with outputs among the grid's times."""
    ts = np.linspace(0.0, 1.0, 6)
    fixed = solve(ts, sde.Fixed(0.05))
    substeps = solve(ts, sde.Grid(num_substeps=4))
    np.testing.assert_allclose(substeps.ys, fixed.ys, rtol=1e-5)
    among = solve(ts[[0, 2, 5]], sde.Grid(ts, num_substeps=4))
    np.testing.assert_allclose(among.ys, fixed.ys[np.array([0, 2, 5])], rtol=1e-5)


def test_grid_finds_times_rounded_to_single_precision():
    """0.1 in float32 lies above 0.1 in float64 (not found before)."""
    ts = jnp.array([0.0, 0.1, 1.0])
    among = solve(ts, sde.Grid(np.linspace(0.0, 1.0, 11)))
    every = solve(np.linspace(0.0, 1.0, 11), sde.Grid())
    np.testing.assert_array_equal(among.ys, every.ys[np.array([0, 1, 10])])


def test_grid_of_traced_irregular_times_under_vmap():
    """Against a loop over Euler steps by hand, one sequence of times at a time."""
    ts = np.array([[0.0, 0.1, 0.4, 1.0], [0.5, 0.6, 0.61, 3.0]], np.float32)
    keys = jr.split(jr.key(1), 2)
    zeros = sde.BrownianMotion()

    @jax.jit
    @jax.vmap
    def run(ts, key):
        sol = solve(ts, sde.Grid(), key=key)
        w = sde.sdeint(
            zeros.drift,
            zeros.diffusion,
            jnp.zeros(2),
            ts,
            key=key,
            solver=sde.EulerMaruyama(),
            stepsize=sde.Grid(),
        ).ys
        return sol.ts, sol.ys, w

    out_ts, ys, w = run(ts, keys)
    np.testing.assert_array_equal(out_ts, ts)
    for i in range(2):
        y = np.array([1.0, -1.0])
        for k, dt in enumerate(np.diff(ts[i])):
            y = y + 0.7 * (0.3 - y) * dt + 0.5 * (w[i, k + 1] - w[i, k])
            np.testing.assert_allclose(ys[i, k + 1], y, rtol=2e-5, atol=1e-6)


def test_gradient_in_the_times_of_a_grid():
    """d y(T) / dT of an equation without noise is the drift at the end."""

    def end(t1):
        return sde.sdeint(
            lambda t, y, args: y * jnp.cos(t),
            None,
            jnp.ones(()),
            jnp.stack([jnp.zeros_like(t1), t1]),
            solver=sde.RK4(),
            stepsize=sde.Grid(num_substeps=20),
        ).ys[-1]

    slope = jax.jit(jax.grad(end))(jnp.asarray(0.9))
    np.testing.assert_allclose(slope, np.exp(np.sin(0.9)) * np.cos(0.9), rtol=1e-4)


@pytest.mark.parametrize("solver", [sde.Heun(), sde.SRA1(), sde.ShARK()])
def test_adaptive_paths_have_their_law_at_every_output(solver):
    """Catches (seen) outputs on the line between two steps, without the path's bridge:
    a variance of 0.13 for 0.25; and a tree without the area that a solver needs."""
    motion = sde.BrownianMotion(scale=1.0)

    def path(key, stepsize):
        ts = np.array([0.0, 0.25, 0.6, 1.0])
        start = jnp.zeros(1)
        how = {"key": key, "solver": solver, "stepsize": stepsize}
        return sde.sdeint(motion.drift, motion.diffusion, start, ts, **how).ys[:, 0]

    keys = jr.split(jr.key(0), 2000)
    found = jax.jit(jax.vmap(lambda key: path(key, sde.Adaptive(1e-3, 1e-3))))(keys)
    # Four standard errors of a variance.
    expected = np.array([0.25, 0.35, 0.4])
    np.testing.assert_allclose(
        np.diff(found).var(0), expected, rtol=4 * (2 / 2000) ** 0.5
    )
    other = path(keys[0], sde.Adaptive(1e-3, 1e-3, first_dt=0.001))
    np.testing.assert_allclose(other, found[0], atol=1e-4)


def test_adaptive_steps_are_enough_for_every_output():
    """Catches a limit that the outputs themselves use up."""
    ts = np.linspace(0.0, 1.0, 101)
    solve(ts, sde.Adaptive(0.1, 0.1, max_steps=20), sde.Heun())


def test_adaptive_steps_of_noise_need_a_solver_of_noise():
    with pytest.raises(
        ValueError, match="estimate of noisy steps, which `Tsit5` does no"
    ):
        solve(np.array([0.0, 1.0]), sde.Adaptive(), sde.Tsit5())
