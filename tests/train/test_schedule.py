"""Schedules at their corners, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from ornstein.train import (
    Constant,
    Cosine,
    Exponential,
    Inverse,
    KLWeight,
    Linear,
    Step,
)

CASES = [
    (Constant(), [0, 50, 100], [2.0, 2.0, 2.0]),
    (Cosine(), [0, 50, 100], [2.0, 1.0, 0.0]),
    (Cosine(warmup=0.2, final=0.1), [0, 10, 20, 60, 100], [0.0, 1.0, 2.0, 1.1, 0.2]),
    (Exponential(0.01), [0, 50, 100], [2.0, 0.2, 0.02]),
    (Step((0.5, 0.75), 0.1), [49, 51, 76], [2.0, 0.2, 0.02]),
    (Step((0.5, 0.502), 0.1), [49, 51], [2.0, 0.02]),
    (Linear(0.5, 0.9, 0.01), [50, 70, 90, 100], [2.0, 1.01, 0.02, 0.02]),
    (Inverse(9.0), [0, 100], [2.0, 0.2]),
]


@pytest.mark.parametrize(("schedule", "steps", "rates"), CASES)
def test_rates_over_a_hundred_steps(schedule, steps, rates):
    rate = schedule.build(2.0, 100)
    got = [float(rate(jnp.asarray(step, jnp.int32))) for step in steps]
    np.testing.assert_allclose(got, rates, rtol=1e-5, atol=1e-6)


def test_kl_warmup():
    weight = KLWeight(0.5, warmup=0.4)
    got = [float(weight.at(jnp.asarray(step), 100)) for step in (0, 20, 40, 99)]
    np.testing.assert_allclose(got, [0.0, 0.25, 0.5, 0.5], rtol=1e-6)
    assert float(KLWeight().at(jnp.asarray(0), 100)) == 1.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Cosine(warmup=2.0), r"`Cosine.warmup` must be a fraction"),
        (lambda: Exponential(0.0), r"must be in \(0, 1\], got 0.0"),
        (lambda: Step((1.5,)), r"`Step.times` must be a fraction"),
        (lambda: Linear(0.5, 0.4), r"`Linear.stop` must be in"),
        (lambda: Inverse(-1.0), "must not be negative"),
    ],
)
def test_bad_schedules(build, message):
    with pytest.raises(ValueError, match=message):
        build()
