"""What the engine refuses: one sentence, with the remedy, before any work."""

import re

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein import sde

OU = sde.OrnsteinUhlenbeck()
TS = np.array([0.0, 1.0])
MATRIX = lambda t, y, args: jnp.ones((2, 3))


def solve(**changes):
    """A good solve of two numbers, but for `changes`."""
    options = {
        "drift": OU.drift,
        "diffusion": OU.diffusion,
        "y0": jnp.ones(2),
        "ts": TS,
        "key": jr.key(0),
        "solver": sde.EulerMaruyama(),
        "stepsize": sde.Fixed(0.1),
    }
    return sde.sdeint(**(options | changes))


KL = {"path_kl": sde.KL(), "prior_drift": OU.drift}
FULL = {"path_kl": sde.FullMonteCarlo(), "prior_drift": OU.drift}
STL = {"path_kl": sde.StickTheLanding(), "prior_drift": OU.drift}
HEUN = {"solver": sde.Heun()}
REVERSIBLE = {"gradient": sde.Reversible()}
BACKSOLVE = {"gradient": sde.Backsolve()}
ADAPTIVE = {"stepsize": sde.Adaptive()}
REFUSED = {
    "empty state": ({"y0": {}}, ValueError, "no arrays; give the state"),
    "two types of leaves": (
        {
            "solver": sde.StratonovichMilstein(),
            "y0": {"a": jnp.ones(2), "b": jnp.ones(2, jnp.bfloat16)},
        },
        TypeError,
        "`StratonovichMilstein` steps states of one type.* bfloat16 and float32: give",
    ),
    "one time": ({"ts": np.array([0.0])}, ValueError, "at least two times"),
    "equal times": (
        {"ts": np.array([0.0, 1.0, 1.0])},
        ValueError,
        "increase strictly, got",
    ),
    "decreasing times": ({"ts": np.array([1.0, 0.0])}, ValueError, "increase strictly"),
    "NaN time": ({"ts": np.array([0.0, np.nan])}, ValueError, "must be finite"),
    "infinite time": ({"ts": np.array([0.0, np.inf])}, ValueError, "must be finite"),
    "Reversible with Euler": (
        REVERSIBLE,
        ValueError,
        "`EulerMaruyama` does not allow; use `solver=ReversibleHeun",
    ),
    "no key": ({"key": None}, ValueError, "needs `key`; pass one from `jax.random.key"),
    "dt that does not divide": (
        {"stepsize": sde.Fixed(0.3)},
        ValueError,
        r"`dt` 0.3 does not divide .* length 1 .*; try `dt` 0.25",
    ),
    "dt longer than an interval": (
        {"ts": np.array([0.0, 0.05, 1.0])},
        ValueError,
        r"length 0.05 .*; try `dt` 0.05",
    ),
    "output off the grid": (
        {"stepsize": sde.Grid(np.linspace(0.0, 1.0, 4)), "ts": np.array([0, 0.5, 1.0])},
        ValueError,
        "must be among `Grid.ts`.*add the missing times",
    ),
    "other ends than the grid's": (
        {"stepsize": sde.Grid(np.linspace(0.0, 2.0, 5))},
        ValueError,
        "share its ends",
    ),
    "Reversible with Heun": (
        {**HEUN, **REVERSIBLE},
        ValueError,
        "`Heun` does not allow; use `solver=ReversibleHeun",
    ),
    "Reversible with Adaptive": (
        {"solver": sde.ReversibleHeun(), **REVERSIBLE, **ADAPTIVE},
        ValueError,
        "needs a fixed grid, got `Adaptive`; use `stepsize=Fixed",
    ),
    "Adaptive with Euler": (
        ADAPTIVE,
        ValueError,
        "needs a solver with an error estimate, which `EulerMaruyama`.*use `Heun",
    ),
    "Adaptive with RK4": (
        {"solver": sde.RK4(), "diffusion": None, **ADAPTIVE},
        ValueError,
        "error estimate, which `RK4`.*`Tsit5",
    ),
    "Adaptive with Milstein": (
        {"solver": sde.Milstein(), **ADAPTIVE},
        ValueError,
        "which `Milstein` does not have",
    ),
    "StickTheLanding with Adaptive": (
        {**HEUN, **STL, **ADAPTIVE},
        ValueError,
        "`StickTheLanding` sums u dB over .* `Adaptive`.*use `path_kl=KL",
    ),
    "FullMonteCarlo with Backsolve": (
        {**HEUN, **FULL, **BACKSOLVE},
        ValueError,
        "`FullMonteCarlo` sums u dB .* `Backsolve`",
    ),
    "path KL without a prior": (
        {"path_kl": sde.KL()},
        ValueError,
        "give `diffusion` and `prior_drift`",
    ),
    "path KL without noise": (
        {**KL, "diffusion": None},
        ValueError,
        "compares a stochastic equation with a prior",
    ),
    "matrix noise": (
        {"diffusion": MATRIX},
        NotImplementedError,
        "Lévy areas, .*write the noise as diagonal",
    ),
    "noise that does not broadcast": (
        {"diffusion": lambda t, y, args: jnp.ones(3)},
        ValueError,
        "does not broadcast to its state leaf",
    ),
    "noise of another structure": (
        {"diffusion": lambda t, y, args: {"a": 1.0}},
        ValueError,
        "`diffusion` returned .*not a prefix of the state's",
    ),
    "prior of another structure": (
        {**KL, "prior_drift": lambda t, y, args: {"a": y}},
        ValueError,
        "`prior_drift` returned .*not a prefix",
    ),
    "SRA1 with multiplicative noise": (
        {"solver": sde.SRA1(), "diffusion": lambda t, y, args: y},
        ValueError,
        "constant, independent of y",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_sdeint_refuses(case):
    """Catches a check that is dropped or comes after a wrong result."""
    changes, error, match = REFUSED[case]
    with pytest.raises(error, match=re.compile(match, re.DOTALL)):
        solve(**changes)


SECONDS = 1.7e9 + np.array([0.0, 20.0, 40.0])  # since 1970
LOST = {
    "outputs": (SECONDS, sde.Grid()),
    "steps of outputs that are not": (SECONDS[0] + 512 * TS, sde.Fixed(16.0)),
    "substeps": (SECONDS[0] + 512 * TS, sde.Grid(num_substeps=32)),
    "steps of a grid": (SECONDS[[0, 2]] * 1.0, sde.Grid(SECONDS)),
    "adaptive": (SECONDS, sde.Adaptive()),
}


@pytest.mark.parametrize("case", LOST)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_times_that_single_precision_has_not(case, is_compiled):
    """Catches (seen) Unix seconds, of which float32 knows every 128th: steps of no
    length, and the first state for every answer."""
    ts, stepsize = LOST[case]
    solver = {"diffusion": None, "solver": sde.Heun(), "stepsize": stepsize}
    run = lambda y0: solve(ts=ts, y0=y0, **solver).ys
    run = jax.jit(run) if is_compiled else run
    with pytest.raises(ValueError, match=r"float32.* 128 apart.*subtract the first"):
        run(jnp.ones(2))


def test_times_that_single_precision_has():
    solve(ts=SECONDS - SECONDS[0], stepsize=sde.Grid())
    solve(ts=SECONDS[0] + 512 * TS, stepsize=sde.Fixed(128.0))
    with jax.enable_x64(True):
        solve(y0=jnp.ones(2), ts=SECONDS, stepsize=sde.Grid())


@pytest.mark.parametrize("dt", [0.0, -0.1, np.nan, np.inf])
def test_steps_are_positive(dt):
    with pytest.raises(ValueError, match="`dt` must be positive and finite, got"):
        sde.Fixed(dt)
    with pytest.raises(ValueError, match="`noise_dt` must be positive and finite"):
        sde.Fixed(0.1, noise_dt=dt)
    for name in ("rtol", "atol", "first_dt"):
        with pytest.raises(ValueError, match=f"`{name}` must be positive and finite"):
            sde.Adaptive(**{name: dt})


CONSTRUCTIONS = {
    "noise_dt that does not divide": (
        lambda: sde.Fixed(0.1, noise_dt=0.03),
        "`noise_dt` = 0.03 does not divide `dt` = 0.1; choose `dt` as a multiple",
    ),
    "noise_dt above dt": (lambda: sde.Fixed(0.1, noise_dt=0.2), "does not divide"),
    "no substeps": (lambda: sde.Grid(num_substeps=0), "at least 1, got 0"),
    "unsorted grid": (
        lambda: sde.Grid(np.array([0.0, 0.7, 0.5, 1.0])),
        "`Grid.ts` must increase strictly, got",
    ),
    "no checkpoint": (lambda: sde.Checkpointed(every=0), "at least 1, got 0"),
    "negative rate": (
        lambda: sde.OrnsteinUhlenbeck(rate=-1.0),
        "`rate` must be at least 0",
    ),
    "no scale": (
        lambda: sde.OrnsteinUhlenbeck(scale=0.0),
        "`scale` must be positive, got 0.0",
    ),
    "negative scale": (
        lambda: sde.BrownianMotion(scale={"w": -1.0}),
        "`scale` must be positive, got -1.0",
    ),
}


@pytest.mark.parametrize("case", CONSTRUCTIONS)
def test_constructors_refuse(case):
    build, match = CONSTRUCTIONS[case]
    with pytest.raises(ValueError, match=match):
        build()


def test_traced_times_want_a_grid():
    """`Fixed` needs to know them, `Grid(ts=...)` both."""
    run = lambda stepsize: jax.jit(lambda ts: solve(ts=ts, stepsize=stepsize).ys)
    with pytest.raises(TypeError, match="known before tracing.*or use `Grid`"):
        run(sde.Fixed(0.1))(jnp.asarray(TS))
    with pytest.raises(TypeError, match="leave `ts` out"):
        run(sde.Grid(TS))(jnp.asarray(TS))


@pytest.mark.parametrize(
    ("name", "value"),
    [("solver", sde.Heun), ("stepsize", 0.1), ("gradient", "backprop")],
)
def test_choices_are_objects(name, value):
    """Not a class, a number, a string. The type checks refuse them first, if on."""
    with pytest.raises(TypeError, match=f"`{name}` must be|parameter '{name}'"):
        solve(**{name: value})


def test_integer_states_are_refused():
    """Their times would be integers too. The type checks refuse them first, if on."""
    with pytest.raises(TypeError, match="y0"):
        solve(y0=jnp.ones(2, int))
