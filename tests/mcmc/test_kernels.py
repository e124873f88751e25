"""One battery for the full-data kernels: exact moments and the family's contract."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import KeyReuseError
from jax.scipy.special import digamma, polygamma
from mcmc.chains import run_chain, run_chains, z_score

from ornstein.mcmc import (
    HMC,
    NUTS,
    AbstractProposal,
    Langevin,
    MicrocanonicalLangevin,
    PartialHMC,
    RandomWalkMetropolis,
    Stage,
)
from ornstein.potential import DensityPotential

COVARIANCE = np.array([[1.0, 4.0], [4.0, 25.0]])  # correlation 0.8
PRECISION = np.linalg.inv(COVARIANCE)
SHAPE = 1.5


def log_density(position):
    """A correlated Gaussian, and the log of a Gamma variable, skewed to the left."""
    flat, skewed = position["flat"], position["skewed"]
    precision = jnp.asarray(PRECISION, flat.dtype)
    return -0.5 * flat @ precision @ flat + SHAPE * skewed - jnp.exp(skewed)


POTENTIAL = DensityPotential(log_density)
FAR = {"flat": jnp.array([6.0, -20.0]), "skewed": jnp.asarray(-5.0), "frozen": None}
NEAR = {"flat": jnp.array([0.5, 1.0]), "skewed": jnp.asarray(0.1), "frozen": None}


class Shift(AbstractProposal):
    """A symmetric proposal, written as a user's."""

    def sample(self, position, *, key):
        keys = {"flat": key, "skewed": jax.random.fold_in(key, 1), "frozen": None}
        move = lambda x, key: x + jax.random.normal(key, x.shape, x.dtype)
        return jax.tree.map(move, position, keys)

    def log_prob(self, new, given):
        square = lambda a, b: jnp.sum((a - b) ** 2)
        return -0.5 * sum(jax.tree.leaves(jax.tree.map(square, new, given)))


KERNELS = {
    "walk": RandomWalkMetropolis(0.3),
    "proposal": RandomWalkMetropolis(proposal=Shift()),
    "hmc": HMC(8),
    "langevin": Langevin(0.3),
    "unadjusted": Langevin(0.1, adjusted=False),
    "partial": PartialHMC(0.8, 2),
    "nuts": NUTS(max_num_doublings=6),
    "microcanonical": MicrocanonicalLangevin(0.1),
}
EXACT = ("walk", "hmc", "langevin", "partial", "nuts")


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


@pytest.mark.parametrize("name", EXACT)
def test_moments_after_a_far_start(name):
    """Mean and covariance of the Gaussian, three moments of the skewed variable.

    Seen to fail: K without its 1/2 (z = 29 for HMC, 26 for NUTS), an acceptance step
    left out (NaN). A momentum not flipped costs too little here to show:
    `test_hamiltonian.py` looks at it directly.
    """
    # Of eight keys with 2,000 steps, one left Langevin's 316 effective draws, and one
    # machine's rounding leads elsewhere than another's: it has four times as many.
    num_steps = 8_000 if name in ("walk", "langevin") else 2_000
    chains = run_chains(
        KERNELS[name],
        POTENTIAL,
        FAR,
        key=jax.random.key(1),
        num_chains=8,
        num_warm_up=300,
        num_steps=num_steps,
    )
    (x, y), skewed = (
        np.moveaxis(chains.positions["flat"], -1, 0),
        np.asarray(chains.positions["skewed"]),
    )
    mean, variance, third = (float(polygamma(n, SHAPE)) for n in (0, 1, 2))
    assert mean == pytest.approx(float(digamma(SHAPE)))
    z = {
        "x": z_score(x, 0.0),
        "y": z_score(y, 0.0),
        "xx": z_score(x * x, COVARIANCE[0, 0]),
        "xy": z_score(x * y, COVARIANCE[0, 1]),
        "yy": z_score(y * y, COVARIANCE[1, 1]),
        "skewed": z_score(skewed, mean),
        "its variance": z_score((skewed - mean) ** 2, variance),
        "its third moment": z_score((skewed - mean) ** 3, third),
    }
    assert max(map(abs, z.values())) < 4.5, z


def test_compiled_and_side_by_side_changes_nothing(kernel, getkey):
    """One program for any number of steps and chains, with each chain's own results."""
    traced = eqx.debug.assert_max_traces(
        lambda state, key: kernel.step(POTENTIAL, state, key=key), max_traces=1
    )
    init = lambda key: kernel.init(POTENTIAL, NEAR, key=key)
    step = jax.jit(jax.vmap(traced))
    before = jax.vmap(init)(jax.random.split(getkey(), 3))
    before, _ = step(before, jax.random.split(getkey(), 3))
    keys = jax.random.split(getkey(), 3)
    together = step(before, keys)
    last = lambda tree: jax.tree.map(lambda a: a[2], tree)
    alone = kernel.step(POTENTIAL, last(before), key=keys[2])
    assert eqx.tree_equal(last(together), alone, rtol=1e-4, atol=1e-4)
    assert all(leaf.shape == () for leaf in jax.tree.leaves(alone[1]))
    assert alone[0].position["frozen"] is None


def test_no_key_is_used_twice(kernel):
    with jax.debug_key_reuse(True):
        state = kernel.init(POTENTIAL, NEAR, key=jax.random.key(0))
        step = jax.jit(lambda s, k: kernel.step(POTENTIAL, s, key=k))
        jax.block_until_ready(step(state, jax.random.key(1)))


def state_types(kernel, potential, position):
    """Of every array of a state at the start, after a step, and in the warm-up."""
    key = jax.random.key(0)
    stage = Stage(*(jnp.asarray(a) for a in (True, False, False, 0.0)))
    start = jax.eval_shape(lambda q: kernel.init(potential, q, key=key), position)
    step = lambda s: kernel.step(potential, s, key=key)[0]
    warm_up = lambda s: kernel.warm_up(potential, s, stage, key=key)[0]
    states = start, jax.eval_shape(step, start), jax.eval_shape(warm_up, start)
    return [[leaf.dtype for leaf in jax.tree.leaves(state)] for state in states]


@pytest.mark.parametrize(("dtype", "x64"), [("float32", True), ("bfloat16", False)])
def test_positions_of_fewer_digits_than_jax_s_default(kernel, dtype, x64):
    """Caught (seen): NUTS summed up energies from numbers of the default type."""
    with jax.enable_x64(x64):
        position = jax.tree.map(lambda a: a.astype(dtype), NEAR)
        start, step, warm_up = state_types(kernel, POTENTIAL, position)
    assert start == step == warm_up


@pytest.mark.parametrize("first", ["float32", "bfloat16"])
def test_leaves_of_two_types_keep_theirs(kernel, first):
    """Caught (seen): the step size, which is of the first leaf's, widened the other."""
    last = "float32" if first == "bfloat16" else "bfloat16"
    position = {
        "flat": NEAR["flat"].astype(first),
        "skewed": NEAR["skewed"].astype(last),
        "frozen": None,
    }
    with jax.numpy_dtype_promotion("standard"):
        start, step, warm_up = state_types(kernel, POTENTIAL, position)
    assert start == step == warm_up


def test_a_reused_key_is_found():
    kernel = HMC(2)

    def twice(state, key):
        state, _ = kernel.step(POTENTIAL, state, key=key)
        return kernel.step(POTENTIAL, state, key=key)

    with jax.debug_key_reuse(True):
        state = kernel.init(POTENTIAL, NEAR, key=jax.random.key(0))
        with pytest.raises(KeyReuseError):
            jax.jit(twice)(state, jax.random.key(1))


def test_info_counts_gradients(getkey):
    def num_gradients(kernel):
        state = kernel.init(POTENTIAL, NEAR, key=getkey())
        _, info = kernel.step(POTENTIAL, state, key=getkey())
        return int(info.num_gradients)

    assert num_gradients(HMC(7)) == 7
    assert num_gradients(PartialHMC(0.5, 3)) == 3
    assert num_gradients(Langevin(0.1)) == 1
    assert num_gradients(RandomWalkMetropolis()) == 0
    # Steps so short that no trajectory turns back: all doublings are made.
    assert num_gradients(NUTS(1e-4, max_num_doublings=4)) == 15


@pytest.mark.parametrize("name", EXACT)
def test_a_step_size_that_rejects_everything_shows(name):
    """What the runner reports: acceptance 0, and a divergence where one integrates."""
    kernel = KERNELS[name]
    kernel = eqx.tree_at(lambda k: k.step_size, kernel, 1e6)
    chain = run_chain(kernel, POTENTIAL, NEAR, key=jax.random.key(0), num_steps=5)
    assert not np.any(chain.info.is_accepted)
    assert np.all(chain.info.acceptance_rate < 1e-6)
    assert np.all(chain.info.is_divergent) == (name != "walk")
    assert eqx.tree_equal(chain.state.position, NEAR)
