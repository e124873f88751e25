"""Schedules against their formulas, and what kernels and schedules refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein.sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    Cyclical,
    NaiveSGHMC,
    Polynomial,
    PreconditionedSGLD,
    SamplingOnly,
)

STEPS = jnp.arange(25)
CYCLE = Cyclical(0.1, 19_550)


def test_polynomial():
    found = Polynomial(0.3, 10.0, 0.7)(STEPS)
    np.testing.assert_allclose(found, 0.3 * (10.0 + np.arange(25)) ** -0.7, rtol=1e-6)


def test_cyclical():
    cycle = Cyclical(0.2, 10, exploration=0.35)
    part = np.arange(25) % 10 / 10
    np.testing.assert_allclose(
        cycle(STEPS), 0.1 * (np.cos(np.pi * part) + 1), rtol=1e-5
    )
    np.testing.assert_array_equal(cycle.is_sampling(STEPS), part >= 0.35)
    only = SamplingOnly(cycle, 1.5)(STEPS)
    np.testing.assert_array_equal(only, np.where(part >= 0.35, 1.5, 0.0))


@pytest.mark.parametrize(("length", "exploration"), [(25, 0.8), (50, 0.98), (41, 0.0)])
def test_compiled_cycles_sample_as_long(length, exploration):
    """Catches (seen) a quotient of single precision that missed the first step."""
    cycle = Cyclical(0.1, length, exploration)
    found = jax.jit(jax.vmap(cycle.is_sampling))(jnp.arange(length))
    assert int(found.sum()) == length - round(exploration * length)


def test_a_long_cycle_has_no_step_of_nothing():
    """Catches (seen) 1 + cos that rounds to 0: kinetic temperatures that are no
    numbers, and momenta that are lost."""
    length = 20_000
    steps = np.asarray(Cyclical(0.1, length)(jnp.arange(length - 5, length)))
    expected = 0.1 * (np.pi / 2 * np.arange(5, 0, -1) / length) ** 2
    np.testing.assert_allclose(steps, expected, rtol=1e-2)


@pytest.mark.parametrize("gamma", [0.5, 0.3, 1.01])
def test_polynomial_outside_eq_40_is_refused(gamma):
    with pytest.raises(ValueError, match=r"gamma` must be in \(1/2, 1\], got"):
        Polynomial(0.1, 1.0, gamma)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Polynomial(0.0), "`Polynomial.a` must be positive, got 0.0"),
        (lambda: Polynomial(0.1, 0.0), "`Polynomial.b` must be positive, got 0.0"),
        (lambda: Cyclical(-1.0, 10), "`Cyclical.peak` must be positive"),
        (lambda: Cyclical(0.1, 4), "no sample would ever be taken"),
        (lambda: Cyclical(0.1, 0), "`Cyclical.cycle_length` must be at least 1"),
        (
            lambda: Cyclical(0.1, 10, exploration=1.0),
            r"`Cyclical.exploration` must be in \[0, 1\)",
        ),
        (lambda: SGLD(0.0), "`step_size` must be positive, got 0.0"),
        (lambda: SGLD(float("nan")), "`step_size` must be positive, got nan"),
        (lambda: SGLD(0.1, -1.0), "`temperature` must not be negative, got -1.0"),
        (lambda: SGHMC(-0.1, 1.0), "`step_size` must be positive"),
        (lambda: SGHMC(0.1, -1.0), "`friction` must not be negative"),
        (lambda: SGHMC(0.1, 11.0), "a = .* must be at most 1, got 1.1"),
        (lambda: SGHMC(0.1, 1.0, 21.0), "`noise_estimate` 21.0 is more than friction"),
        (
            lambda: SGHMC(Polynomial(0.1), 1.0, 21.0),
            "`noise_estimate` 21.0 is more than friction",
        ),
        (
            lambda: SGHMC(
                CYCLE, 1.0, noise_estimate=1e3, temperature=SamplingOnly(CYCLE)
            ),
            "`noise_estimate` 1000.0 is more than friction",
        ),
        (
            lambda: SGHMC(CYCLE, 11.0, temperature=SamplingOnly(CYCLE)),
            "a = .* must be at most 1, got 1.1",
        ),
        (
            lambda: SGHMC(0.1, 1.0, num_integration_steps=0),
            "`num_integration_steps` must be at least 1, got 0",
        ),
        (lambda: SGHMC(0.1, 1.0, resample_every=0), "`resample_every` must be at"),
        (lambda: NaiveSGHMC(0.1, 0), "`num_integration_steps` must be at least 1"),
        (
            lambda: NaiveSGHMC(0.1, 1, temperature=0.0),
            "`temperature` must be positive, got 0.0",
        ),
        (lambda: PreconditionedSGLD(0.1, decay=1.0), r"`decay` must be in \[0, 1\)"),
        (lambda: PreconditionedSGLD(0.1, damping=0.0), "`damping` must be positive"),
        (lambda: SGNHT(0.1, -1.0), "`friction` must not be negative"),
    ],
)
def test_numbers_out_of_range_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("value", [np.float32(-0.5), np.float64(-0.5), np.int64(-1)])
def test_numpys_numbers_out_of_range_are_refused(value):
    """Catches (seen) a check of Python's numbers alone, which passes these over."""
    positive = f"must be positive, got {value}"
    not_negative = f"must not be negative, got {value}"
    for build in (SGLD, PreconditionedSGLD, lambda value: SGHMC(value, 1.0)):
        with pytest.raises(ValueError, match=f"`step_size` {positive}"):
            build(value)
    with pytest.raises(ValueError, match=f"`friction` {not_negative}"):
        SGHMC(0.1, value)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("value", [None, "1e-4"])
@pytest.mark.parametrize(
    ("build", "name"),
    [
        (SGLD, "step_size"),
        (lambda value: SGLD(0.1, value), "temperature"),
        (lambda value: SGHMC(value, 1.0), "step_size"),
        (lambda value: SGHMC(0.1, value), "friction"),
        (lambda value: SGNHT(value, 1.0), "step_size"),
        (PreconditionedSGLD, "step_size"),
        (Polynomial, "Polynomial.a"),
    ],
)
def test_what_is_no_number_is_refused(build, name, value):
    """At the door. Catches (seen) a `None` that a compiled step met."""
    said = f"`{name}` must be a number, or a schedule of the step, got {value!r}: write"
    with pytest.raises(TypeError, match=said):
        build(value)


def test_numbers_at_the_edge_are_taken():
    SGHMC(0.1, 1.0, 20.0)  # a = b, eq. (46): nothing is injected
    SGHMC(0.1, 10.0)  # a = 1: no memory
    SGHMC(0.1, 1.0, 5.0, temperature=0.0)
    cycle = Cyclical(0.1, 10)
    SGHMC(cycle, 1.0, 5.0, temperature=SamplingOnly(cycle))
    Polynomial(0.1, 1.0, 1.0)
