"""What every minibatch kernel keeps to; one line in KERNELS is a new kernel's part."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.mcmc import Stage
from ornstein.potential import AbstractPotential, DensityPotential
from ornstein.sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    AdaptiveDriftSGLD,
    ConstantSGD,
    Cyclical,
    Full,
    NaiveSGHMC,
    Polynomial,
    PreconditionedSGLD,
    SamplingOnly,
    SGState,
)

PRECISION = jnp.array([1.0, 4.0, 2.0])


def log_density(position):
    w, b = position["w"], position["b"]
    return -0.5 * jnp.sum(PRECISION.astype(w.dtype) * w**2) - 0.5 * jnp.sum(b**2)


POTENTIAL = DensityPotential(log_density, gradient_noise=0.5)
START = {"w": jnp.array([1.0, -0.5, 0.3]), "b": jnp.array([[2.0]]), "frozen": None}

KERNELS = {
    "sgld": SGLD(0.1),
    "sgld at 0": SGLD(Polynomial(0.1, 10.0, 0.6), 0.0),
    "sghmc": SGHMC(0.1, 1.0, 0.5),
    "sghmc, 3 steps": SGHMC(0.1, 1.0, num_integration_steps=3, resample_every=2),
    "naive, adjusted": NaiveSGHMC(0.1, 3, adjusted=True),
    "preconditioned": PreconditionedSGLD(0.1, decay=0.9),
    "sgnht": SGNHT(0.1, 1.0),
    "adaptive drift": AdaptiveDriftSGLD(0.1, 1.0),
    "in cycles": SGLD(Cyclical(0.1, 10), SamplingOnly(Cyclical(0.1, 10))),
    "constant, scalar": ConstantSGD(num_rows=50),
    "constant, full": ConstantSGD(Full(), num_rows=50),
}
STAGE = Stage(*3 * [jnp.array(True)], part=jnp.array(0.9))
ALL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def assert_close(a, b, rtol=1e-5):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)
        assert x.dtype == y.dtype


@ALL
def test_a_step_keeps_the_contract(kernel, getkey):
    """Compiled or not, mapped or one by one: the same; compiled once; keys used once.

    The state that comes out goes in again, and infos are scalars.
    """
    keys = jr.split(getkey(), 2)
    num_traces = 0

    def step(state, key):
        nonlocal num_traces
        num_traces += 1
        return kernel.step(POTENTIAL, state, key=key)

    state = jax.jit(lambda key: kernel.init(POTENTIAL, START, key=key))(getkey())
    states = jax.tree.map(lambda a: jnp.stack([a, 2 * a]), state)
    mapped = jax.jit(jax.vmap(step))(states, keys)
    jitted, num_traces = jax.jit(step), 0
    for i, key in enumerate(keys):
        with jax.debug_key_reuse(True):
            one = jitted(jax.tree.map(lambda a, i=i: a[i], states), key)
        assert_close(one, jax.tree.map(lambda a, i=i: a[i], mapped))
    with jax.debug_key_reuse(True):  # which is part of what is compiled for
        again, info = jitted(one[0], keys[0])
    assert num_traces == 1
    assert again.num_steps == 2
    assert type(again) is SGState
    assert again.position["frozen"] is None
    assert all(leaf.shape == () for leaf in jax.tree.leaves(one[1]))
    assert not one[1].is_divergent
    assert_close(one, step(jax.tree.map(lambda a: a[1], states), keys[1]))
    # Another key moves every entry elsewhere, unless a Metropolis test refused.
    stays = again.position["w"] == one[0].position["w"]
    is_tested = info.acceptance_rate is not None
    assert not jnp.any(stays) or (is_tested and jnp.all(stays))


@ALL
def test_a_warm_up_step_keeps_the_state(kernel, getkey):
    state = jax.jit(lambda key: kernel.init(POTENTIAL, START, key=key))(getkey())
    warm_up = jax.jit(
        lambda state, stage, key: kernel.warm_up(POTENTIAL, state, stage, key=key)
    )
    with jax.debug_key_reuse(True):
        warm, _ = warm_up(state, STAGE, getkey())
    signature = lambda s: jax.tree.map(lambda a: (a.shape, a.dtype), s)
    assert signature(warm) == signature(state)
    assert warm.num_steps == 1


def test_a_reused_key_is_found():
    class Careless(eqx.Module):
        def step(self, potential, state, *, key):
            gradient = jax.grad(lambda q: potential.estimate(q, key=key))(state)
            noise = jr.normal(key, state["b"].shape)
            return jax.tree.map(lambda q, g: q - g, state, gradient)["b"] + noise

    with (
        jax.debug_key_reuse(True),
        pytest.raises(jax.errors.KeyReuseError, match="already consumed"),
    ):
        jax.jit(lambda q, key: Careless().step(POTENTIAL, q, key=key))(START, jr.key(0))


class Broken(AbstractPotential):
    """Fine at first, then not a number."""

    def __call__(self, position):
        return jnp.sqrt(1.0 - jnp.sum(position**2))

    def estimate(self, position, *, key):
        del key
        return self(position)


@pytest.mark.parametrize(
    "kernel", [SGLD(0.1), SGHMC(0.1, 1.0), NaiveSGHMC(0.1, 3, adjusted=True)]
)
def test_a_run_that_diverges_says_so(kernel, getkey):
    state = kernel.init(Broken(), jnp.array([1.5]), key=getkey())
    _, info = kernel.step(Broken(), state, key=getkey())
    assert info.is_divergent


def test_overflow_is_divergence(getkey):
    kernel = SGLD(1e30, 0.0)
    potential = DensityPotential(lambda q: -jnp.sum(q**4))
    state = kernel.init(potential, jnp.array([10.0]), key=getkey())
    seen = []
    for _ in range(3):
        state, info = kernel.step(potential, state, key=getkey())
        seen.append(bool(info.is_divergent))
    assert seen == [False, True, True]


def test_optimisation_goes_over_into_sampling_without_a_change_of_state(x64, getkey):
    """J15: the same state, in structure, shapes and types, whoever moves it."""
    start = jax.tree.map(lambda a: a.astype(float), START)
    state = SGHMC(0.1, 1.0, temperature=0.0).init(POTENTIAL, start, key=getkey())
    kernels = [
        SGHMC(0.1, 1.0, temperature=0.0),
        SGHMC(0.1, 1.0),
        SGLD(0.1),
        SGLD(0.1, 0.0),
        NaiveSGHMC(0.1, 3),
        SGHMC(0.05, 2.0),
    ]
    signature = lambda s: jax.tree.map(lambda a: (a.shape, a.dtype), s)
    for i, kernel in enumerate(kernels):
        before = state
        state, _ = kernel.step(POTENTIAL, state, key=getkey())
        assert jax.tree.structure(state) == jax.tree.structure(before)
        assert signature(state) == signature(before)
        assert state.num_steps == i + 1
    # SGLD has no momentum: it hands on the one that it got.
    after_sgld, _ = SGLD(0.1).step(POTENTIAL, state, key=getkey())
    assert_close(after_sgld.momentum, state.momentum)


@pytest.mark.parametrize(
    "kernel", [SGNHT(0.1, 1.0), PreconditionedSGLD(0.1), ConstantSGD()]
)
def test_kernels_that_adapt_refuse_states_without(kernel, getkey):
    state = SGLD(0.1).init(POTENTIAL, START, key=getkey())
    with pytest.raises(ValueError, match="adapts something.*start from its own `init"):
        kernel.step(POTENTIAL, state, key=getkey())


def test_momenta_are_drawn_anew_when_due_only(getkey):
    kernel = SGHMC(0.1, 1.0, temperature=4.0, resample_every=2)
    potential = DensityPotential(lambda q: 0.0 * jnp.sum(q))
    state = kernel.init(potential, jnp.full(20_000, 0.0), key=getkey())
    still = eqx.tree_at(lambda s: s.momentum, state, jnp.full(20_000, 7.0))
    fresh, _ = kernel.step(potential, still, key=getkey())
    odd = eqx.tree_at(lambda s: s.num_steps, still, jnp.array(1, jnp.int32))
    kept, _ = kernel.step(potential, odd, key=getkey())
    # v = (1 - a) v0 + noise, v0 from the law at rest or still 7; a = 0.1, eta = 0.01.
    assert abs(jnp.mean(kept.momentum) - 0.9 * 7) < 0.01
    variance = 4.0 * 0.01
    expected = variance / (1 - 0.1 / 2)
    error = jnp.var(fresh.momentum) / expected - 1
    assert abs(error) < 4.5 * jnp.sqrt(2 / 20_000)


def test_cycles_say_in_which_steps_samples_are_taken(getkey):
    kernel = SGLD(Cyclical(0.1, 10, exploration=0.7))
    state = kernel.init(POTENTIAL, START, key=getkey())
    keys = jr.split(getkey(), 20)
    step = lambda state, key: kernel.step(POTENTIAL, state, key=key)
    _, infos = jax.lax.scan(step, state, keys)
    assert infos.is_sampling.tolist() == ([False] * 7 + [True] * 3) * 2
    expected = 0.05 * (1 + np.cos(np.pi * (np.arange(20) % 10) / 10))
    np.testing.assert_allclose(infos.step_size, expected, rtol=1e-5)


CYCLE = Cyclical(0.1, 10)


@pytest.mark.parametrize(
    "kernel",
    [
        SGHMC(CYCLE, 1e-6, temperature=0.0),
        SGHMC(CYCLE, 1e-6, temperature=0.0, resample_every=100),
        SGNHT(CYCLE, 1e-6, temperature=0.0),
    ],
    ids=["sghmc", "sghmc, fresh momenta", "sgnht"],
)
def test_momentum_goes_on_where_the_step_changes(kernel, getkey):
    """Without forces p = v / step is what friction leaves of it, through a cycle."""
    flat = DensityPotential(lambda position: 0.0 * jnp.sum(position))
    steps = CYCLE(jnp.arange(15))
    state = kernel.init(flat, jnp.zeros(3), key=getkey())
    # One step is done, so that none of these draws its momentum.
    state = eqx.tree_at(lambda s: s.num_steps, state, jnp.array(1, jnp.int32))
    p = jnp.array([0.01, -0.02, 0.005])
    state = eqx.tree_at(lambda s: s.momentum, state, steps[0] * p)
    for step in range(1, 15):
        state, _ = kernel.step(flat, state, key=getkey())
        np.testing.assert_allclose(state.momentum / steps[step], p, rtol=1e-3)
