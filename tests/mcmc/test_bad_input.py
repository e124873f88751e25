"""Settings and starts that are refused, each in a sentence that says what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein.data._base import Split
from ornstein.likelihood import Gaussian
from ornstein.mcmc import (
    HMC,
    NUTS,
    Langevin,
    PartialHMC,
    RandomWalkMetropolis,
    check_start,
)
from ornstein.mcmc._adaptive import check_positive
from ornstein.nn import MLP
from ornstein.potential import DensityPotential, Potential, Tempered
from ornstein.prior import GaussianPrior


@pytest.mark.parametrize("step_size", [0.0, -0.1, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "make",
    [
        RandomWalkMetropolis,
        Langevin,
        NUTS,
        lambda size: HMC(3, size),
        lambda size: PartialHMC(0.5, 3, size),
    ],
    ids=["walk", "langevin", "nuts", "hmc", "partial"],
)
def test_step_sizes(make, step_size):
    with pytest.raises(ValueError, match=r"`step_size` must be positive and finite"):
        make(step_size)


def test_settings():
    with pytest.raises(ValueError, match=r"`alpha` must lie in \[0, 1\), got 1"):
        PartialHMC(1.0)
    with pytest.raises(ValueError, match=r"`alpha` must lie in \[0, 1\), got -0.1"):
        PartialHMC(-0.1)
    with pytest.raises(ValueError, match="`num_integration_steps` must be at least 1"):
        HMC(0)
    with pytest.raises(ValueError, match="`num_integration_steps` must be at least 1"):
        PartialHMC(0.5, 0)
    with pytest.raises(ValueError, match="`max_num_doublings` must be at least 1"):
        NUTS(max_num_doublings=0)
    with pytest.raises(ValueError, match="`temperature` must be positive"):
        HMC(1, temperature=0.0)
    for jitter in (-0.1, 1.0):
        with pytest.raises(ValueError, match="`jitter` must be from 0 to below 1"):
            HMC(1, jitter=jitter)
    with pytest.raises(ValueError, match="`inverse_mass` must be positive"):
        HMC(1, inverse_mass={"a": 1.0, "b": -1.0})
    with pytest.raises(ValueError, match="`target_acceptance` must lie between"):
        Langevin(0.1, target_acceptance=1.0)


@pytest.fixture
def potential(getkey):
    x = np.ones((4, 2), np.float32)
    network = MLP(2, 1, (), key=getkey())
    data = Split(x, x[:, :1])
    return Potential(network, data, Gaussian(1.0), prior=GaussianPrior(1.0))


def fill(tree, value):
    return jax.tree.map(lambda a: jnp.full_like(a, value), tree)


@pytest.mark.parametrize("value", [None, "0.1"])
def test_a_step_size_that_is_no_number(value):
    """Catches (seen) a bare `TypeError` of NumPy's. (Of a kernel itself the types that
    tests run with are sooner.)"""
    with pytest.raises(TypeError, match="`step_size` must be a positive number, got"):
        check_positive("step_size", value)


def test_start_names_the_term(potential):
    check_start(potential, potential.start)
    huge = fill(potential.start, 1e30)
    with pytest.raises(ValueError, match="The log prior is -inf at the start"):
        check_start(potential, huge)
    with pytest.raises(ValueError, match="The log prior is nan at the start"):
        check_start(Tempered(potential, 2.0), fill(potential.start, np.nan))
    wide = Potential(
        potential.combine(potential.start)[0],
        Split(np.asarray(potential.x), np.asarray(potential.y)),
        Gaussian(1e-3),
        prior=GaussianPrior(1e25),
    )
    with pytest.raises(ValueError, match="The log likelihood is -inf at the start"):
        check_start(wide, fill(wide.start, 1e20))


def test_start_of_a_bare_density():
    density = DensityPotential(lambda x: jnp.log(x))
    with pytest.raises(ValueError, match="The log density is -inf at the start"):
        check_start(density, jnp.asarray(0.0))
    with pytest.raises(ValueError, match="The log density is nan at the start"):
        check_start(density, jnp.asarray(-1.0))


def test_start_without_a_gradient():
    """sqrt at 0: a finite density whose gradient is not."""
    density = DensityPotential(lambda q: -jnp.sqrt(q["a"]))
    with pytest.raises(ValueError, match=r"gradient of the log density by \['a'\]"):
        check_start(density, {"a": jnp.asarray(0.0)})
