"""The engine as a function: counts, compilation, transformations, keys."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from equinox.debug import assert_max_traces

from ornstein import sde

TS = np.array([0.0, 0.5, 1.0])
NUM_STEPS = 10
SOLVERS = {
    "EulerMaruyama": sde.EulerMaruyama(),
    "Milstein": sde.Milstein(),
    "StratonovichMilstein": sde.StratonovichMilstein(),
    "EulerHeun": sde.EulerHeun(),
    "Heun": sde.Heun(),
    "Midpoint": sde.Midpoint(),
    "ReversibleHeun": sde.ReversibleHeun(),
    "SRA1": sde.SRA1(),
    "ShARK": sde.ShARK(),
}
ODE_SOLVERS = {"RK4": sde.RK4(), "Tsit5": sde.Tsit5(), "Euler": sde.EulerMaruyama()}


class Counter:
    """How often the drift ran, counted on the host."""

    def __init__(self):
        self.count = 0

    def drift(self, t, y, args):
        jax.debug.callback(self._add)
        return jnp.sin(y) if args is None else jnp.sin(y) * args

    def _add(self):
        self.count += 1

    def counted(self, run):
        """The count of one call of a compiled function, and its value."""
        self.count = 0
        value = jax.block_until_ready(run())
        jax.effects_barrier()
        return self.count, value


def solve(drift, y0, key, solver, *, noisy=True, **kwargs):
    return sde.sdeint(
        drift,
        (lambda t, y, args: 0.3) if noisy else None,
        y0,
        TS,
        key=key if noisy else None,
        solver=solver,
        stepsize=sde.Fixed(1 / NUM_STEPS),
        **kwargs,
    )


@pytest.mark.parametrize("name", [*SOLVERS, *ODE_SOLVERS])
def test_drift_evaluations_are_those_counted(name):
    """At run time, forward. Catches a count that the code does not do."""
    counter = Counter()
    noisy = name in SOLVERS
    solver = SOLVERS[name] if noisy else ODE_SOLVERS[name]
    stats = {}

    @jax.jit
    def run(y0, key):
        sol = solve(counter.drift, y0, key, solver, noisy=noisy)
        stats.update(sol.stats)
        return sol.ys

    count, _ = counter.counted(lambda: run(jnp.asarray(0.3), jr.key(0)))
    assert stats["num_steps"] == NUM_STEPS
    assert count == stats["num_drift_evaluations"]


@pytest.mark.parametrize(
    ("solver", "gradient"),
    [
        (sde.ReversibleHeun(), sde.Reversible()),
        (sde.Heun(), sde.Backsolve()),
        (sde.EulerMaruyama(), sde.Backsolve()),
    ],
    ids=["Reversible", "Backsolve", "Backsolve of Itô"],
)
def test_backward_evaluations_are_those_counted(solver, gradient):
    """`Reversible` linearises the drift once at each grid time. Catches a second
    evaluation to reconstruct the state; Euler's stages counted for Heun's (seen)."""
    counter = Counter()
    stats = {}

    @jax.jit
    @jax.grad
    def run(args, key):
        sol = solve(
            counter.drift, jnp.asarray(0.3), key, solver, args=args, gradient=gradient
        )
        stats.update(sol.stats)
        return jnp.sum(sol.ys)

    count, _ = counter.counted(lambda: run(jnp.asarray(0.9), jr.key(0)))
    backward = stats["num_drift_evaluations_backward"]
    assert count == stats["num_drift_evaluations"] + backward
    if isinstance(gradient, sde.Reversible):
        assert backward == NUM_STEPS + 1


def pytree_solve(key, y0):
    return sde.sdeint(
        lambda t, y, args: {"h": y["w"], "w": -y["w"]},
        lambda t, y, args: {"h": None, "w": 0.5 * jnp.cos(y["w"])},
        y0,
        TS,
        key=key,
        solver=sde.Milstein(),
        stepsize=sde.Fixed(1 / NUM_STEPS),
        path_kl=sde.FullMonteCarlo(),
        prior_drift=lambda t, y, args: {"h": None, "w": jnp.zeros_like(y["w"])},
    )


def test_jit_and_vmap_and_no_recompilation():
    """jit is no jit; vmap over keys is a loop; a second call compiles nothing."""
    y0 = {"h": jnp.zeros(2), "w": jnp.ones(2)}
    keys = jr.split(jr.key(0), 3)
    run = assert_max_traces(pytree_solve, max_traces=1)
    jitted = jax.jit(lambda key, y0: (lambda s: (s.ys, s.path_kl))(run(key, y0)))
    loop = [jitted(key, y0) for key in keys]
    batch = jax.jit(
        jax.vmap(lambda key: (lambda s: (s.ys, s.path_kl))(pytree_solve(key, y0)))
    )(keys)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *loop)
    with jax.disable_jit(False):
        plain = pytree_solve(keys[0], y0)
    for a, b in zip(jax.tree.leaves(batch), jax.tree.leaves(stacked), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    for a, b in zip(
        jax.tree.leaves((plain.ys, plain.path_kl)),
        jax.tree.leaves(loop[0]),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert not np.allclose(loop[0][0]["w"], loop[1][0]["w"])


def test_every_step_by_hand():
    """With jit off, the scan is a Python loop. Catches a dependence on tracing."""
    y0 = {"h": jnp.zeros(2), "w": jnp.ones(2)}
    compiled = jax.jit(lambda key: pytree_solve(key, y0).ys)(jr.key(0))
    with jax.disable_jit():
        by_hand = pytree_solve(jr.key(0), y0).ys
    for a, b in zip(jax.tree.leaves(by_hand), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", [sde.EulerMaruyama(), sde.ShARK()])
def test_keys_are_used_once(solver):
    """Under JAX's checker of key reuse, with Lévy areas too."""
    with jax.debug_key_reuse(True):
        run = jax.jit(
            lambda key: solve(lambda t, y, a: -y, jnp.ones(2), key, solver).ys
        )
        assert np.all(np.isfinite(run(jr.key(0))))


def test_noise_free_leaves_draw_nothing():
    """The noisy leaf's path is that of the leaf alone. Catches normals drawn for h."""
    f = lambda t, y, args: jax.tree.map(lambda v: -v, y)
    options = {"key": jr.key(3), "solver": sde.Heun(), "stepsize": sde.Fixed(0.1)}
    alone = sde.sdeint(f, lambda t, y, a: 0.5, jnp.ones(3), TS, **options).ys
    together = sde.sdeint(
        f,
        lambda t, y, a: {"h": None, "w": 0.5},
        {"h": {"a": jnp.ones(1000), "b": jnp.ones(())}, "w": jnp.ones(3)},
        TS,
        **options,
    ).ys
    np.testing.assert_allclose(alone, together["w"], rtol=1e-6)
    flow = sde.sdeint(
        f, None, jnp.ones(()), TS, solver=sde.Heun(), stepsize=sde.Fixed(0.1)
    )
    np.testing.assert_array_equal(flow.ys, together["h"]["b"])


def test_no_control_no_kl():
    """q = p: the path KL and its gradient are exactly zero."""
    ou = sde.OrnsteinUhlenbeck(scale=0.3)

    def value(shift, key):
        return solve(
            lambda t, y, args: ou.drift(t, y) + shift,
            jnp.ones(3),
            key,
            sde.ReversibleHeun(),
            path_kl=sde.KL(),
            prior_drift=ou.drift,
        ).path_kl[-1]

    kl, grad = jax.jit(jax.value_and_grad(value))(jnp.zeros(3), jr.key(0))
    np.testing.assert_array_equal(kl, 0.0)
    np.testing.assert_array_equal(grad, 0.0)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_states_keep_their_dtype(dtype):
    """Path KL included: no promotion to the default dtype."""
    ou = sde.OrnsteinUhlenbeck()
    sol = solve(
        ou.drift,
        jnp.ones(3, dtype),
        jr.key(0),
        sde.EulerMaruyama(),
        path_kl=sde.FullMonteCarlo(),
        prior_drift=lambda t, y, args: jnp.zeros_like(y),
    )
    assert sol.ys.dtype == sol.path_kl.dtype == dtype


def test_reversible_gap_tells_instability():
    """max |y - ŷ| is small at rate × T = 1 and enormous at 30."""

    def gap(rate):
        ou = sde.OrnsteinUhlenbeck(rate=rate)
        sol = sde.sdeint(
            ou.drift,
            ou.diffusion,
            jnp.ones(8),
            np.array([0.0, 1.0]),
            key=jr.key(0),
            solver=sde.ReversibleHeun(),
            stepsize=sde.Fixed(0.01),
        )
        return sol.stats["max_reversible_gap"]

    small, large = jax.jit(lambda: (gap(1.0), gap(30.0)))()
    assert small < 0.5
    assert large > 1e4


@pytest.mark.parametrize("gradient", [sde.Backprop(), sde.Backsolve()])
@pytest.mark.parametrize("name", SOLVERS)
def test_a_none_in_the_state_changes_nothing(name, gradient):
    """As a model's state has where it has no inducing inputs.

    Seen failing: a TypeError from `Milstein`, and from `Backsolve` with Itô's solvers.
    """

    def loss(y0, none):
        sol = sde.sdeint(
            lambda t, y, args: jax.tree.map(jnp.sin, y),
            lambda t, y, args: {"w": 0.3, "h": None} | none,
            {"w": y0, "h": 2 * y0} | none,
            TS,
            key=jr.key(0),
            solver=SOLVERS[name],
            stepsize=sde.Fixed(0.25),
            gradient=gradient,
        )
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(sol.ys))

    # One program, which need not run.
    trace = jax.make_jaxpr(jax.value_and_grad(loss))
    y0 = jnp.array([1.0, -0.5])
    assert str(trace(y0, {})) == str(trace(y0, {"none": None}))
