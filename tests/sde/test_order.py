"""Orders of convergence and limits: against exact solutions, along one path."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein import sde

pytestmark = pytest.mark.usefixtures("double")

# Geometric Brownian motion dy = A y dt + B y dB from 1, and one Brownian path an entry.
A, B = 0.4, 0.8
NUM_PATHS = 4000
NOISE_DT = 2.0**-8
ITO = {
    "EulerMaruyama": (sde.EulerMaruyama(), 0.5),
    "Milstein": (sde.Milstein(), 1.0),
}
STRATONOVICH = {
    "StratonovichMilstein": (sde.StratonovichMilstein(), 1.0),
    "EulerHeun": (sde.EulerHeun(), 1.0),
    "Heun": (sde.Heun(), 1.0),
    "Midpoint": (sde.Midpoint(), 1.0),
    "ReversibleHeun": (sde.ReversibleHeun(), 1.0),
}
LEVY = {"SRA1": (sde.SRA1(), 1.5), "ShARK": (sde.ShARK(), 1.5)}
MULTIPLICATIVE = ITO | STRATONOVICH
ADDITIVE = {name: (solver, 1.0) for name, (solver, _) in MULTIPLICATIVE.items()} | LEVY


def solve(drift, diffusion, y0, solver, dt, *, key, noise_dt: float | None = NOISE_DT):
    """The state at time 1."""
    sol = sde.sdeint(
        drift,
        diffusion,
        y0,
        np.array([0.0, 1.0]),
        key=key,
        solver=solver,
        stepsize=sde.Fixed(dt, noise_dt),
    )
    return sol.ys[-1]


def slope(dts, errors) -> float:
    """Of the errors' logarithms against the steps'."""
    return float(np.polyfit(np.log(dts), np.log(errors), 1)[0])


def rms(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


GBM_DTS = (2.0**-4, 2.0**-5, 2.0**-6, 2.0**-7)


@pytest.fixture(scope="module")
def gbm(double):
    """Each solver's ends at each dt, and W(1), which Brownian motion itself gives."""

    @jax.jit
    def run(key):
        drift, diffusion = lambda t, y, args: A * y, lambda t, y, args: B * y
        bm = sde.BrownianMotion()
        zeros = jnp.zeros(NUM_PATHS)
        euler = sde.EulerMaruyama()
        w = solve(bm.drift, bm.diffusion, zeros, euler, NOISE_DT, key=key)
        ends = {
            name: [
                solve(drift, diffusion, jnp.ones(NUM_PATHS), solver, dt, key=key)
                for dt in GBM_DTS
            ]
            for name, (solver, _) in MULTIPLICATIVE.items()
        }
        return w, ends

    return jax.device_get(run(jr.key(0)))


@pytest.mark.parametrize("name", MULTIPLICATIVE)
def test_strong_order_and_limit_of_multiplicative_noise(gbm, name):
    """Catches a lost Milstein term, an increment that is not the path's, Itô taken
    for Stratonovich (errors then stop falling)."""
    w, ends = gbm
    order = MULTIPLICATIVE[name][1]
    rate = A - B**2 / 2 if name in ITO else A
    exact = np.exp(rate + B * w)
    errors = [rms(y - exact) for y in ends[name]]
    assert abs(slope(GBM_DTS, errors) - order) < 0.25, errors
    other = np.exp((A if name in ITO else A - B**2 / 2) + B * w)
    assert errors[-1] < rms(ends[name][-1] - other) / 4


def reversible_heun_mean(dt: float, num_steps: int) -> float:
    """E y by the recursion of (E y, E ŷ); each step multiplies by x = A h + B W."""
    y = z = 1.0
    second = (A * dt) ** 2 + B**2 * dt
    for _ in range(num_steps):
        y, z = (1 + A * dt) * y + second / 2 * z, 2 * y + (A * dt - 1) * z
    return y


def exact_mean(name: str, dt: float) -> float:
    """E y(1) of the scheme itself."""
    num_steps = round(1 / dt)
    if name == "ReversibleHeun":
        return reversible_heun_mean(dt, num_steps)
    factor = 1 + A * dt
    if name in STRATONOVICH:
        factor += B**2 * dt / 2
    if name in ("Heun", "Midpoint"):
        factor += (A * dt) ** 2 / 2
    return factor**num_steps


@pytest.mark.parametrize("name", MULTIPLICATIVE)
def test_mean_is_the_schemes_own(gbm, name):
    """E y is that of the scheme on the same grid, which goes to e^A (Itô) or
    e^(A + B²/2). Catches a drift with a wrong correction, a wrong noise scale."""
    _, ends = gbm
    for y, dt in zip(ends[name], GBM_DTS, strict=True):
        error = np.std(y) / np.sqrt(NUM_PATHS)
        assert abs(np.mean(y) - exact_mean(name, dt)) < 4.5 * error
    limit = np.exp(A if name in ITO else A + B**2 / 2)
    assert abs(exact_mean(name, 1e-5) - limit) < 1e-4


def nonlinear_drift(t, y, args):
    return jnp.sin(3 * y) - y * jnp.cos(t)


def additive_noise(t, y, args):
    return 0.5


ADDITIVE_DTS = (2.0**-3, 2.0**-4, 2.0**-5)


# Those whose steps are diffrax's own take long to compile.
SLOW = ("ShARK", "StratonovichMilstein", "EulerHeun")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in ADDITIVE],
)
def test_strong_order_of_additive_noise(name):
    """Catches a wrong combination of the finer grid's Lévy areas (1.5 becomes 1),
    a drift evaluated at the wrong time (seen)."""
    solver, order = ADDITIVE[name]
    reference_solver = solver if name in LEVY else sde.Heun()

    @jax.jit
    def run(key):
        y0 = jnp.linspace(-1, 1, 1000)
        problem = nonlinear_drift, additive_noise, y0
        fine = solve(*problem, reference_solver, NOISE_DT, key=key)
        return fine, [solve(*problem, solver, dt, key=key) for dt in ADDITIVE_DTS]

    fine, ends = run(jr.key(1))
    errors = [rms(y - fine) for y in ends]
    assert abs(slope(ADDITIVE_DTS, errors) - order) < 0.25, errors


def test_convert_between_ito_and_stratonovich():
    """Both forms of one problem follow one path, on a state with noise-free leaves
    whose diffusion depends on time, state and them. Catches a lost half or sign."""

    def drift(t, y, args):
        return {"h": -y["h"] + y["w"][:10], "w": args * jnp.cos(y["w"])}

    def diffusion(t, y, args):
        return {"h": None, "w": 0.5 * y["w"] * (1 + t) + 0.1 * y["h"][0]}

    converted = sde.ito_to_stratonovich(drift, diffusion)
    back = sde.stratonovich_to_ito(converted, diffusion)
    y0 = {"h": jnp.linspace(0, 1, 10), "w": jnp.linspace(-1, 1, 500)}

    @jax.jit
    def run(key):
        def ends(f, solver, dt):
            return sde.sdeint(
                f,
                diffusion,
                y0,
                np.array([0.0, 1.0]),
                key=key,
                args=jnp.asarray(0.7),
                solver=solver,
                stepsize=sde.Fixed(dt, 2.0**-8),
            ).ys["w"][-1]

        ito = ends(drift, sde.Milstein(), 2.0**-8)
        strat = ends(converted, sde.StratonovichMilstein(), 2.0**-8)
        heun = ends(converted, sde.Heun(), 2.0**-8)
        plain = ends(drift, sde.Heun(), 2.0**-8)
        return ito, strat, heun, plain

    ito, strat, heun, plain = run(jr.key(2))
    # Milstein's two forms are one formula: only the half of g ∂g dt changes place.
    np.testing.assert_allclose(ito, strat, rtol=0, atol=1e-12)
    assert rms(ito - heun) < 0.02 * rms(plain - heun)
    t, args = jnp.asarray(0.3), jnp.asarray(0.7)
    once, twice = drift(t, y0, args), back(t, y0, args)
    np.testing.assert_allclose(twice["w"], once["w"], atol=1e-15)
    np.testing.assert_allclose(twice["h"], once["h"], atol=1e-15)
    correction = 0.25 * 1.3 * (0.5 * 1.3 * y0["w"] + 0.1 * y0["h"][0])
    np.testing.assert_allclose(
        converted(t, y0, args)["w"], once["w"] - correction, atol=1e-15
    )


ODE_SOLVERS = {
    "EulerMaruyama": (sde.EulerMaruyama(), 1),
    "Heun": (sde.Heun(), 2),
    "Midpoint": (sde.Midpoint(), 2),
    "ReversibleHeun": (sde.ReversibleHeun(), 2),
    "RK4": (sde.RK4(), 4),
    "Tsit5": (sde.Tsit5(), 5),
}


@pytest.mark.parametrize("name", ODE_SOLVERS)
def test_order_of_ode_solvers(name):
    """y' = y cos t, y = exp(sin t). Catches a wrong tableau or stage time (seen)."""
    solver, order = ODE_SOLVERS[name]
    dts = (1 / 8, 1 / 16, 1 / 32)

    @jax.jit
    def run(y0):
        f = lambda t, y, args: y * jnp.cos(t)
        return [solve(f, None, y0, solver, dt, key=None, noise_dt=None) for dt in dts]

    errors = [abs(float(y) - np.exp(np.sin(1.0))) for y in run(jnp.ones(()))]
    assert abs(slope(dts, errors) - order) < 0.3, errors


def test_adaptive_error_falls_and_work_rises_with_the_tolerance():
    """Geometric Brownian motion along the virtual tree, whose W(1) Brownian motion
    itself gives. Catches tolerances that are dropped, an Itô limit."""

    @jax.jit
    def run(rtol, key):
        def end(drift, diffusion, y0):
            sol = sde.sdeint(
                drift,
                diffusion,
                y0,
                np.array([0.0, 1.0]),
                key=key,
                solver=sde.Heun(),
                stepsize=sde.Adaptive(rtol=rtol, atol=rtol, tree_tol=2.0**-12),
            )
            return sol.ys[-1], sol.stats["num_drift_evaluations"]

        bm = sde.BrownianMotion()
        w, _ = end(bm.drift, bm.diffusion, jnp.zeros(50))
        y, num = end(lambda t, y, args: A * y, lambda t, y, args: B * y, jnp.ones(50))
        return rms_of(y - jnp.exp(A + B * w)), num

    rms_of = lambda x: jnp.sqrt(jnp.mean(x**2))
    errors, evaluations = zip(
        *(run(jnp.asarray(rtol), jr.key(3)) for rtol in (1e-1, 1e-2, 1e-3)), strict=True
    )
    assert errors[0] > 2 * errors[1] > 4 * errors[2], errors
    assert evaluations[0] < evaluations[1] < evaluations[2], evaluations
    assert errors[2] < 0.01


@pytest.mark.parametrize("t1", [1.0, 4.0])
def test_adaptive_paths_are_rough_on_short_times(t1: float):
    """Itô's isometry for noise that oscillates 40 times an interval, faster than a
    coarse tree resolves: Var = ∫ 2 sin² dt. Solves of one smooth interpolation agree
    with each other and with its own exact solution, whatever the tolerance of the tree;
    its integral against what is faster than it is nearly nothing.

    Catches the tolerance at 0.05 (seen: 0.001 of the variance), or not relative to the
    interval.
    """
    num = 500

    def noise(t, y, args):
        return jnp.full(num, jnp.sqrt(2.0) * jnp.sin(2 * jnp.pi * 40 * t / t1))

    sol = jax.jit(
        lambda key: sde.sdeint(
            lambda t, y, args: jnp.zeros(num),
            noise,
            jnp.zeros(num),
            np.array([0.0, t1]),
            key=key,
            solver=sde.Heun(),
            stepsize=sde.Adaptive(rtol=1e-2, atol=1e-2, first_dt=1e-3 * t1),
        )
    )(jr.key(5))
    variance = float(jnp.mean(sol.ys[-1] ** 2)) / t1
    assert abs(variance - 1) < 4.5 * np.sqrt(2 / num) < 0.3
