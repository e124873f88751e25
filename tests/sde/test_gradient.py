"""Each way to differentiate a solve, against backpropagation and finite differences."""

from typing import Any

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein import sde

PATH_KLS = {
    "none": None,
    "kl": sde.KL(),
    "full": sde.FullMonteCarlo(),
    "stl": sde.StickTheLanding(),
}


def parameters(key):
    """What the vector fields close over (`net`) and have in `args`."""
    net_key, args_key = jr.split(key)
    net = eqx.nn.MLP(4, 3, 6, 1, activation=jnp.tanh, key=net_key)
    return {
        "net": net,
        "args": {"bias": 0.1 * jr.normal(args_key, (3,)), "sigma": jnp.asarray(0.4)},
        "y0": {"h": jnp.array([0.5, -0.3]), "w": jnp.array([1.0, -0.5, 0.2])},
    }


def solve(params, key, ts, dt, path_kl, gradient, solver):
    """A state with a noise-free leaf, multiplicative noise, closures and args.

    Rate × T is at most about 1.
    """
    net = params["net"]

    def drift(t, y, args):
        x = jnp.concatenate([y["w"], t[None]])
        return {"h": jnp.tanh(y["w"][:2]) - 0.5 * y["h"], "w": net(x) + args["bias"]}

    def diffusion(t, y, args):
        return {"h": None, "w": args["sigma"] * jnp.sqrt(1 + y["w"] ** 2)}

    def prior_drift(t, y, args):
        return {"h": None, "w": -args["sigma"] * y["w"]}

    return sde.sdeint(
        drift,
        diffusion,
        params["y0"],
        ts,
        key=key,
        args=params["args"],
        solver=solver,
        stepsize=sde.Fixed(dt),
        gradient=gradient,
        path_kl=path_kl,
        prior_drift=prior_drift if path_kl is not None else None,
    )


def loss(params, *args):
    sol = solve(params, *args)
    weights = 1 + jnp.arange(len(sol.ts), dtype=sol.ts.dtype)
    total = sum(
        jnp.sum(weights * jnp.sum(jnp.sin(leaf + 0.3), axis=1))
        for leaf in jax.tree.leaves(sol.ys)
    )
    return total if sol.path_kl is None else total + jnp.sum(weights * sol.path_kl)


def worst(found: Any, wanted: Any) -> float:
    """The largest difference, relative to the largest entry."""
    a, b = jax.tree.leaves(found), jax.tree.leaves(wanted)
    assert len(a) == len(b)
    scale = max(float(jnp.max(jnp.abs(x))) for x in b)
    assert scale > 0.1
    return (
        max(float(jnp.max(jnp.abs(x - y))) for x, y in zip(a, b, strict=True)) / scale
    )


def row_sums(gradient_of):
    """Of the Hessian: the gradient of the sum of the gradient's entries."""
    total = lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(gradient_of(x)))
    return jax.grad(total)


def differences(ts, num_steps, estimator, gradients, solver=None, also=lambda g: g):
    """From the gradient by backpropagation, of each of the others."""
    params = parameters(jr.key(0))
    solver = sde.ReversibleHeun() if solver is None else solver
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    dt = float(ts[-1]) / num_steps

    @jax.jit
    def run(dynamic):
        def of(gradient):
            def f(dynamic):
                args = jr.key(1), ts, dt, PATH_KLS[estimator], gradient, solver
                return loss(eqx.combine(dynamic, static), *args)

            return also(jax.grad(f))(dynamic)

        return of(sde.Backprop()), [of(gradient) for gradient in gradients]

    backprop, others = run(dynamic)
    return [worst(other, backprop) for other in others]


ONE = np.array([0.0, 1.0])
TWO = np.array([0.0, 0.5, 1.0])
EVERY = np.linspace(0.0, 1.0, 21)
IRREGULAR = np.array([0.0, 0.15, 0.6, 1.0])


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("ts", "num_steps", "estimator"),
    [
        (TWO, 20, "kl"),
        (IRREGULAR, 20, "full"),
        (ONE, 1000, "stl"),
        pytest.param(EVERY, 20, "stl", marks=slow),
        pytest.param(ONE, 20, "none", marks=slow),
        pytest.param(IRREGULAR, 20, "stl", marks=slow),
        pytest.param(IRREGULAR, 1000, "full", marks=slow),
    ],
)
def test_reversible_is_backprop_in_double(x64, ts, num_steps, estimator):
    """To 1e-10 of the largest entry. Catches (seen) a cotangent
    that belongs to the next step, an output's cotangent dropped, an increment of
    another step on the way back."""
    assert differences(ts, num_steps, estimator, [sde.Reversible()])[0] < 1e-10


@pytest.mark.parametrize(
    ("ts", "estimator"),
    [
        (TWO, "full"),
        pytest.param(ONE, "none", marks=slow),
        pytest.param(IRREGULAR, "stl", marks=slow),
        pytest.param(EVERY, "kl", marks=slow),
    ],
)
def test_reversible_s_second_derivatives_are_backprop_s(x64, ts, estimator):
    """Caught (seen): the reverse pass starts from the last state, its shadow and rates,
    and what depended on these was dropped."""
    found = differences(ts, 20, estimator, [sde.Reversible()], also=row_sums)
    assert found[0] < 1e-10


@pytest.mark.parametrize(
    ("ts", "num_steps", "estimator"),
    [
        pytest.param(ONE, 20, "stl", marks=slow),
        pytest.param(TWO, 200, "full", marks=slow),
        (IRREGULAR, 1000, "kl"),
    ],
)
def test_reversible_is_backprop_in_single(ts, num_steps, estimator):
    """To 1e-5 of the largest entry: rounding does not grow on the way back."""
    assert differences(ts, num_steps, estimator, [sde.Reversible()])[0] < 1e-5


@pytest.mark.parametrize(
    ("solver", "every"),
    [
        (sde.Midpoint(), 7),
        pytest.param(sde.ReversibleHeun(), None, marks=slow),
        pytest.param(sde.Milstein(), 1, marks=slow),
        pytest.param(sde.Milstein(), 100, marks=slow),
    ],
)
def test_checkpointed_is_backprop_with_any_solver(x64, solver, every):
    """Steps that `every` does not divide come first. Catches steps lost or twice."""
    assert differences(TWO, 20, "stl", [sde.Checkpointed(every)], solver)[0] < 1e-13


def test_backprop_is_finite_differences(x64):
    """Of the very loss that the others are compared in."""
    dynamic, static = eqx.partition(parameters(jr.key(0)), eqx.is_inexact_array)
    flat, unflatten = jax.flatten_util.ravel_pytree(dynamic)
    direction = jr.normal(jr.key(5), flat.shape)
    how = jr.key(1), TWO, 0.05, sde.FullMonteCarlo(), sde.Backprop()
    how += (sde.ReversibleHeun(),)

    def along(eps):
        return loss(eqx.combine(unflatten(flat + eps * direction), static), *how)

    slope = jax.jit(jax.grad(along))(0.0)
    value = jax.jit(along)
    eps = 1e-5
    np.testing.assert_allclose(slope, (value(eps) - value(-eps)) / (2 * eps), rtol=1e-8)


# Backsolve: many independent problems at once, so that the error's size is smooth.
NUM = 200


def backsolve_errors(drift, diffusion, prior_drift, solver, dts):
    """RMS difference from backpropagation, in y0 and in args, at each dt."""
    y0 = jnp.linspace(-1.0, 1.0, NUM)
    args = jnp.linspace(0.3, 0.8, NUM)

    @jax.jit
    def run(y0, args):
        def of(gradient, dt):
            def f(y0, args):
                sol = sde.sdeint(
                    drift,
                    diffusion,
                    y0,
                    np.array([0.0, 0.5, 1.0]),
                    key=jr.key(3),
                    args=args,
                    solver=solver,
                    stepsize=sde.Fixed(dt, noise_dt=dts[-1] / 2),
                    gradient=gradient,
                    path_kl=None if prior_drift is None else sde.KL(),
                    prior_drift=prior_drift,
                )
                total = jnp.sum(jnp.sin(sol.ys[1:]))
                return total if sol.path_kl is None else total + sol.path_kl[-1]

            return jax.grad(f, argnums=(0, 1))(y0, args)

        return [
            jax.tree.map(
                lambda a, b: jnp.sqrt(jnp.mean((a - b) ** 2)),
                of(sde.Backsolve(), dt),
                of(sde.Backprop(), dt),
            )
            for dt in dts
        ]

    return np.array(run(y0, args))


BACKSOLVE_DTS = (1 / 8, 1 / 64)


@pytest.mark.parametrize(
    ("solver", "is_multiplicative", "order"),
    [
        (sde.Heun(), False, 1.0),
        (sde.Milstein(), True, 1.0),
        pytest.param(sde.ReversibleHeun(), False, 1.0, marks=slow),
        pytest.param(sde.Midpoint(), True, 1.0, marks=slow),
        pytest.param(sde.EulerMaruyama(), True, 0.5, marks=slow),
    ],
)
def test_backsolve_converges_to_backprop(x64, solver, is_multiplicative, order):
    """With dt, at the forward solver's strong order, the path KL included: its u is
    the same in the Itô and in the Stratonovich form. Catches (seen) an Itô prior drift
    against a Stratonovich posterior's, a path that is not the forward one."""

    def drift(t, y, args):
        return jnp.sin(2 * y) * args - y * jnp.cos(t)

    def diffusion(t, y, args):
        return args * jnp.sqrt(1 + y**2) if is_multiplicative else args

    errors = backsolve_errors(
        drift, diffusion, lambda t, y, a: -y, solver, BACKSOLVE_DTS
    )
    slopes = np.polyfit(np.log(BACKSOLVE_DTS), np.log(errors), 1)[0]
    assert np.all(slopes > order - 0.25), (slopes, errors)
    assert np.all(errors[-1] < 0.1), errors


def test_ode_adjoint(x64):
    """With RK4, against backpropagation and finite differences; order 4 in dt.
    Catches a stage at the wrong time, a lost sign."""

    def drift(t, y, args):
        return jnp.sin(2 * y) * args - y * jnp.cos(t)

    dts = (1 / 4, 1 / 8, 1 / 16)
    errors = backsolve_errors(drift, None, None, sde.RK4(), dts)
    slopes = np.polyfit(np.log(dts), np.log(errors), 1)[0]
    assert np.all(slopes > 3.5), (slopes, errors)

    def value(args):
        sol = sde.sdeint(
            lambda t, y, a: drift(t, y, args),
            None,
            jnp.asarray(0.7),
            np.array([0.0, 1.0]),
            solver=sde.RK4(),
            stepsize=sde.Fixed(1 / 100),
            gradient=sde.Backsolve(),
        )
        return sol.ys[-1]

    run = jax.jit(value)
    difference = (run(0.4 + 1e-5) - run(0.4 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(value))(0.4), difference, rtol=1e-7)


@slow
def test_adaptive_backsolve_converges_to_backprop(x64):
    """As the tolerance falls: gradients in the state, args and what drift and diffusion
    close over, with the path KL. Catches parameters that are not reached."""

    def value(params, gradient, rtol):
        drift = lambda t, y, args: params["a"] * jnp.sin(y) + args
        sol = sde.sdeint(
            drift,
            lambda t, y, args: params["sigma"],
            params["y0"],
            np.array([0.0, 0.5, 1.0]),
            key=jr.key(4),
            args=params["args"],
            solver=sde.Heun(),
            stepsize=sde.Adaptive(rtol=rtol, atol=rtol, tree_tol=2.0**-10),
            gradient=gradient,
            path_kl=sde.KL(),
            prior_drift=lambda t, y, args: -y,
        )
        return jnp.sum(sol.ys[1:]) + sol.path_kl[-1]

    params = {
        "a": jnp.asarray(0.8),
        "args": jnp.asarray(0.2),
        "sigma": jnp.asarray(0.6),
        "y0": jnp.array([0.4, -0.2]),
    }
    of = lambda gradient: jax.jit(
        jax.grad(lambda p, rtol: value(p, gradient, rtol), argnums=0)
    )
    backprop = of(sde.Backprop())(params, 1e-4)
    backsolve = of(sde.Backsolve())
    errors = [worst(backsolve(params, rtol), backprop) for rtol in (1e-1, 1e-2, 1e-4)]
    assert errors[0] > 2 * errors[2], errors
    assert errors[2] < 0.03, errors


@pytest.mark.parametrize("gradient", [sde.Reversible(), sde.Backsolve()])
def test_a_python_number_is_differentiated_like_an_array(gradient):
    """Outside `jit` too, in closures and in args. Caught (seen): 0 for the closure, and
    an error for args, because Equinox takes the float behind a tracer for a constant.
    """

    def value(rate, scale):
        sol = sde.sdeint(
            lambda t, y, args: -rate * y,
            lambda t, y, args: args * jnp.ones_like(y),
            jnp.ones(2),
            ONE,
            key=jr.key(0),
            args=scale,
            solver=sde.ReversibleHeun(),
            stepsize=sde.Fixed(0.5),
            gradient=gradient,
        )
        return jnp.sum(sol.ys[-1])

    found = jax.grad(value, argnums=(0, 1))(0.7, 0.3)
    wanted = jax.grad(value, argnums=(0, 1))(jnp.asarray(0.7), jnp.asarray(0.3))
    assert min(abs(float(number)) for number in wanted) > 0.01
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
