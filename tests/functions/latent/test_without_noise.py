"""A latent SDE without its noise, where its solver is for equations with noise."""

from typing import Any

import jax.random as jr
import numpy as np
import pytest
from functions.latent import linear_gaussian as exact

import ornstein as orn
from ornstein.functions import with_solver
from ornstein.sde import (
    KL,
    SRA1,
    Backprop,
    EulerHeun,
    EulerMaruyama,
    Heun,
    Milstein,
    ShARK,
    StratonovichMilstein,
)

COUNTERPARTS = [
    (Milstein(), EulerMaruyama()),
    (EulerHeun(), EulerMaruyama()),
    (StratonovichMilstein(), EulerMaruyama()),
    (SRA1(), Heun()),
    (ShARK(), Heun()),
]


@pytest.mark.parametrize(
    ("solver", "counterpart"), COUNTERPARTS, ids=lambda s: type(s).__name__
)
def test_relatives_without_noise_have_a_solver_that_needs_none(
    solver: Any, counterpart: Any
):
    """The fit at the mean of its noise, and the twin that is trained without. Catches
    (seen) a solver that is kept, and refuses."""
    model = with_solver(exact.exact_model(2, KL()), gradient=Backprop())
    x = exact.copies(2)
    found = {}
    for name, each in (("found", solver), ("expected", counterpart)):
        parts = with_solver(model, solver=each).posterior_parts()
        assert parts.without_noise is not None
        assert parts.noise_free_twin is not None
        relatives = parts.without_noise(), parts.noise_free_twin()
        assert isinstance(relatives[1], orn.LatentODE)
        paths = [one.trajectory(x, key=jr.key(0)) for one in relatives]
        found[name] = np.asarray(paths)
    np.testing.assert_array_equal(found["found"], found["expected"])
