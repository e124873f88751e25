"""Microcanonical Langevin: its integrator against blackjax's, its law, its warm-up."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc.integrators import (
    IntegratorState,
    isokinetic_mclachlan,
    partially_refresh_momentum,
)
from jax.flatten_util import ravel_pytree
from mcmc.chains import run_chain, run_chains

from ornstein._tree import normal_like
from ornstein.mcmc import MicrocanonicalLangevin, warm_up_stages
from ornstein.mcmc._isokinetic import Place, integrate, random_direction, refresh, turn
from ornstein.mcmc._microcanonical_tuning import start_tuning, tune_length
from ornstein.potential import DensityPotential

NARROW = jnp.asarray([0.3, 1.0, 2.0, 0.7, 1.5])


def log_density(q):
    """Not Gaussian, not symmetric, and of two leaves."""
    x = jnp.concatenate([q["a"], q["b"].ravel()])
    return (
        -0.5 * jnp.sum((x / NARROW.astype(x.dtype)) ** 2)
        - jnp.sum(jnp.exp(0.5 * x))
        - x[0] * x[1]
    )


def place(key) -> Place:
    position = {"a": jnp.array([0.3, -0.5]), "b": jnp.array([[1.0], [0.2], [-1.1]])}
    value, gradient = jax.value_and_grad(log_density)(position)
    return Place(position, random_direction(position, key=key), value, gradient)


@pytest.mark.parametrize("step_size", [0.01, 0.3, 2.0])
def test_a_step_is_blackjax(step_size, getkey):
    """Position, direction and error in energy. Catches d for d - 1 (seen), ΔK without
    its half (seen), and a stage of the integrator left out."""
    start = place(getkey())
    end, error = integrate(log_density, start, jnp.asarray(step_size))
    state = IntegratorState(start.position, start.direction, *start[2:])
    theirs, kinetic = isokinetic_mclachlan(log_density)(state, step_size)
    flat = lambda tree: ravel_pytree(tree)[0]
    close = lambda a, b: np.testing.assert_allclose(flat(a), flat(b), 1e-5, 2e-6)
    close(end.position, theirs.position)
    close(end.direction, theirs.momentum)  # a unit vector: its small entries cancel
    their_error = np.asarray(kinetic) - theirs.logdensity + start.log_density
    np.testing.assert_allclose(error, their_error, rtol=1e-4, atol=2e-5)


def test_directions_forget_themselves_over_the_length(getkey):
    """E[u · u'] after a distance t, as blackjax's own. Catches t / L for
    2 t / L (seen), and noise that is not shared out to the dimensions."""
    start = random_direction({"a": jnp.zeros(40)}, key=getkey())
    keys = jax.random.split(getkey(), 20_000)
    turned = lambda k: refresh(start, jnp.asarray(0.3), normal_like(start, key=k))
    ours = jax.vmap(turned)(keys)["a"]
    np.testing.assert_allclose(jnp.linalg.norm(ours, axis=1), 1.0, rtol=1e-5)
    theirs = jax.vmap(lambda k: partially_refresh_momentum(start, k, 0.3, 1.0))(keys)
    kept, their_kept = np.asarray(ours @ start["a"]), theirs["a"] @ start["a"]
    error = np.hypot(kept.std(), their_kept.std()) / np.sqrt(len(keys))
    assert abs(kept.mean() - their_kept.mean()) < 4.5 * error
    assert kept.mean() == pytest.approx(np.exp(-0.3), abs=0.02)


def test_the_error_in_energy_falls_with_the_cube_of_the_step(getkey):
    """Its square is the sixth power that the tuning goes by. Of many directions: along
    some the term of the cube vanishes."""
    start = place(getkey())
    with jax.enable_x64(True):
        position = jax.tree.map(lambda a: jnp.asarray(a, float), start.position)
        value, gradient = jax.value_and_grad(log_density)(position)

        def error(key, step_size):
            direction = random_direction(position, key=key)
            double = Place(position, direction, value, gradient)
            return integrate(log_density, double, step_size)[1]

        keys = jax.random.split(getkey(), 64)
        errors = jax.vmap(error, (0, None))
        size = lambda step_size: float(
            jnp.sqrt(jnp.mean(errors(keys, jnp.asarray(step_size)) ** 2))
        )
        slope = np.log2(size(0.02) / size(0.01))
    assert slope == pytest.approx(3.0, abs=0.2)


def test_steep_gradients_do_not_overflow():
    """Catches the square of a gradient of 1e30, and e^δ in place of e^-δ."""
    for sign in (1.0, -1.0):
        direction = {"a": jnp.array([0.6, 0.8, 0.0])}
        gradient = {"a": sign * jnp.array([1e30, 0.0, 0.0])}
        turned, kinetic = turn(direction, gradient, jnp.asarray(0.1))
        np.testing.assert_allclose(turned["a"], [sign, 0.0, 0.0], atol=1e-6)
        assert float(kinetic) == pytest.approx(1e29, rel=1e-5)
    still, kinetic = turn(direction, {"a": jnp.zeros(3)}, jnp.asarray(0.1))
    np.testing.assert_allclose(still["a"], direction["a"])
    assert float(kinetic) == 0.0


SCALES = np.logspace(-0.7, 0.7, 50).astype(np.float32)
MILE = {"start_energy_variance": 0.5, "end_energy_variance": 0.1, "max_phase": None}


def tuned(kernel, num_warm_up=4000, num_steps=8000, scales=SCALES):
    widths = jnp.asarray(scales)
    return run_chains(
        kernel,
        DensityPotential(lambda x: -0.5 * jnp.sum((x / widths) ** 2)),
        widths,
        key=jax.random.key(0),
        num_chains=4,
        num_warm_up=num_warm_up,
        num_steps=num_steps,
    )


def test_the_warm_up_finds_the_energy_variance_and_a_length():
    """Catches (seen) a sixth root of the wrong sign."""
    chains = tuned(MicrocanonicalLangevin(1e-3, **MILE))
    info = chains.info
    variance = np.mean(np.square(info.energy_change), axis=1) / len(SCALES)
    # A sixth power: the step sizes of these chains are within a third of one another.
    assert np.all((0.02 < variance) & (variance < 0.6)), variance
    assert np.ptp(np.log(info.step_size[:, -1])) < 0.5
    spread = np.sqrt(np.sum(SCALES.astype(float) ** 2))
    length = np.asarray(info.decoherence_length[:, -1])
    assert np.all((0.1 * spread < length) & (length < 2 * spread)), length
    fixed = MicrocanonicalLangevin(0.2, 5.0, adapt_decoherence_length=False)
    kept = tuned(fixed, 100, 2).info
    np.testing.assert_allclose(kept.decoherence_length, 5.0)
    still = MicrocanonicalLangevin(
        0.2, adapt_step_size=False, adapt_decoherence_length=False
    )
    kept = tuned(still, 100, 2).info
    np.testing.assert_allclose(kept.step_size, 0.2)
    np.testing.assert_allclose(kept.decoherence_length, 50**0.5, rtol=1e-6)


def test_lengths_of_known_paths():
    """√Σ Var of the second phase, and 0.4 ε τ of the third, of paths that are drawn.

    Catches (seen) a length that is never set, and moments that go on from one phase to
    the next.
    """
    num_steps, dim, step_size, keep = 6000, 300, jnp.asarray(0.25), 0.8
    rng = np.random.default_rng(0)
    scales = np.linspace(0.5, 2.0, dim)
    noise = rng.normal(size=(num_steps, dim))
    path = 100 + 50 * noise  # of the first phase, which is not to count
    path[3600:] = scales * noise[3600:]
    for t in range(4800, num_steps):
        old, new = path[t - 1] / scales, noise[t]
        path[t] = scales * (keep * old + np.sqrt(1 - keep**2) * new)
    positions = jnp.asarray(path, jnp.float32)

    def step(carry, inputs):
        tuning, length = tune_length(
            carry[0], inputs[0], step_size, carry[1], jnp.array(False), inputs[1]
        )
        return (tuning, length), length

    start = (start_tuning(step_size, positions[0]), jnp.asarray(1.0))
    stages = warm_up_stages(num_steps)
    lengths = np.asarray(jax.lax.scan(step, start, (positions, stages))[1])
    assert np.all(lengths[:4800] == 1.0)
    spread = np.sqrt(np.sum(scales**2))
    np.testing.assert_allclose(lengths[4800:-1], spread, rtol=0.01)
    tau = (1 + keep) / (1 - keep)
    # The ends of batches of 120 cost τ / 240; the mean over 300 dimensions has 3 %.
    assert lengths[-1] == pytest.approx(0.4 * 0.25 * tau * (1 - tau / 240), rel=0.09)


def test_less_energy_variance_is_less_biased():
    """The bias goes with the step."""

    def bias(end_variance):
        options = MILE | {"end_energy_variance": end_variance}
        kernel = MicrocanonicalLangevin(0.1, **options)
        x = np.asarray(tuned(kernel, num_steps=12_000).positions, float)
        return abs(np.mean((x / SCALES) ** 2) - 1)

    coarse, usual, fine = bias(0.1), bias(0.01), bias(5e-4)
    assert 0.04 < coarse < 0.2
    assert usual < 0.08
    assert fine < 0.04


@pytest.mark.parametrize("step_size", [1e-4, 30.0])
def test_one_narrow_direction_has_its_variance(step_size):
    """Of fifty, which the mean error in energy does not see: by it alone a third.

    Catches (seen) no limit, one by the mean curvature, and short steps that count.
    """
    scales = np.ones(50, np.float32)
    scales[7] = 0.1
    kernel = MicrocanonicalLangevin(step_size)
    chains = tuned(kernel, num_warm_up=800, num_steps=4000, scales=scales)
    squares = np.mean((np.asarray(chains.positions, float) / scales) ** 2, axis=(0, 1))
    assert squares[7] > 0.9
    assert np.mean(squares) == pytest.approx(1.0, abs=0.05)
    # Near the limit: a step a tenth as long would be right as well, and slow.
    phases = np.asarray(chains.info.step_size[:, -1]) / 0.1 / 7.0
    assert np.all((1.2 < phases) & (phases < 1.8)), phases


def test_a_temperature_is_one():
    """At T the variances are T times the target's. Catches (seen) a T that is not in
    the density."""
    kernel = MicrocanonicalLangevin(
        0.1,
        temperature=0.25,
        **(MILE | {"end_energy_variance": 5e-4}),
    )
    x = np.asarray(tuned(kernel, num_steps=12_000).positions, float)
    assert np.mean((x / SCALES) ** 2) == pytest.approx(0.25, rel=0.1)


def test_a_step_off_the_finite_numbers_is_taken_back():
    """Catches NaN in the position (seen), and a step size that never learns of it."""
    walled = DensityPotential(
        lambda x: jnp.where(jnp.all(abs(x) < 1), -0.5 * jnp.sum(x**2), jnp.nan)
    )
    kernel = MicrocanonicalLangevin(0.5, 1.0)
    chain = run_chain(
        kernel,
        walled,
        jnp.zeros(3),
        key=jax.random.key(0),
        num_warm_up=200,
        num_steps=500,
    )
    assert np.all(np.isfinite(chain.positions))
    assert np.all(np.max(abs(chain.positions), axis=1) < 1)
    assert float(chain.state.step_size) < 0.5
    assert eqx.tree_equal(jnp.isfinite(chain.state.log_density), jnp.array(True))
    wide = run_chain(
        MicrocanonicalLangevin(1e3, 1.0),
        walled,
        jnp.zeros(3),
        key=jax.random.key(0),
        num_steps=3,
    )
    assert np.all(wide.info.is_divergent)
    np.testing.assert_array_equal(wide.positions, 0.0)


def test_bad_input():
    with pytest.raises(ValueError, match="`decoherence_length` must be positive"):
        MicrocanonicalLangevin(0.1, -1.0)
    with pytest.raises(ValueError, match="`max_phase` must be positive"):
        MicrocanonicalLangevin(max_phase=0.0)
    with pytest.raises(ValueError, match="`end_energy_variance` must be positive"):
        MicrocanonicalLangevin(end_energy_variance=0.0)
    one = DensityPotential(lambda x: -0.5 * jnp.sum(x**2))
    with pytest.raises(ValueError, match="at least 2 parameters, got 1"):
        MicrocanonicalLangevin().init(one, jnp.zeros(1), key=jax.random.key(0))
