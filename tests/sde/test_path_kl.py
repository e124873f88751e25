"""The path KL: closed forms of the Euler grid, martingales, an observed end."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from ornstein import sde

pytestmark = pytest.mark.usefixtures("double")

ESTIMATORS = {
    "kl": sde.KL(),
    "full": sde.FullMonteCarlo(),
    "stl": sde.StickTheLanding(),
}
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
POSTERIOR = sde.OrnsteinUhlenbeck(rate=0.8, mean=0.6, scale=0.5)
PRIOR = sde.OrnsteinUhlenbeck(rate=0.3, mean=-0.2, scale=0.5)
START, DT, NUM_STEPS = 1.0, 0.1, 10


def drift_of(params):
    return lambda t, y, args: params["rate"] * (params["mean"] - y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_drift_of_one_number_is_every_entrys(estimator):
    """Catches (seen) a KL of one entry of ten."""

    def kl_of(drift: Any) -> Any:
        return sde.sdeint(
            drift,
            lambda t, y, args: 1.0,
            jnp.zeros(10),
            np.array([0.0, 1.0]),
            key=jr.key(0),
            solver=sde.EulerMaruyama(),
            stepsize=sde.Fixed(0.1),
            path_kl=ESTIMATORS[estimator],
            prior_drift=lambda t, y, args: 0.0,
        ).path_kl

    one = kl_of(lambda t, y, args: jnp.ones((), y.dtype))
    each = kl_of(lambda t, y, args: jnp.ones_like(y))
    np.testing.assert_allclose(one, each, rtol=1e-12)
    assert abs(one[-1]) > 1


def solve(params, key, solver, path_kl, dt=DT, **kwargs):
    return sde.sdeint(
        drift_of(params),
        POSTERIOR.diffusion,
        jnp.asarray(START),
        np.array([0.0, 1.0]),
        key=key,
        solver=solver,
        stepsize=sde.Fixed(dt),
        path_kl=path_kl,
        prior_drift=PRIOR.drift,
        **kwargs,
    )


class Moments(NamedTuple):
    """Of the Euler chain: after each step, and ½ E u² dt summed."""

    mean: np.ndarray
    variance: np.ndarray
    kl: float


def euler_moments(q, p, dt: float, num_steps: int) -> Moments:
    """w' = w + θ(μ - w) h + σ √h ξ, and u = (f_q - f_p) / σ, which is affine in w."""
    mean, variance, kl = START, 0.0, 0.0
    slope = (p.rate - q.rate) / q.scale
    shift = (q.rate * q.mean - p.rate * p.mean) / q.scale
    means, variances = [mean], [variance]
    for _ in range(num_steps):
        kl += ((slope * mean + shift) ** 2 + slope**2 * variance) / 2 * dt
        mean += q.rate * (q.mean - mean) * dt
        variance = variance * (1 - q.rate * dt) ** 2 + q.scale**2 * dt
        means.append(mean)
        variances.append(variance)
    return Moments(np.array(means), np.array(variances), kl)


def assert_mean(samples, expected: Any) -> None:
    """Within 4.5 standard errors."""
    samples = np.asarray(samples)
    error = np.std(samples, axis=0) / np.sqrt(len(samples)) + 1e-14
    z = (np.mean(samples, axis=0) - expected) / error
    assert np.all(np.abs(z) < 4.5), z


def test_moments_of_ornstein_uhlenbeck_under_euler():
    """The chain's own moments at each step. Catches a wrong drift, scale or time."""
    num = 20_000
    sol = jax.jit(
        lambda key: sde.sdeint(
            POSTERIOR.drift,
            POSTERIOR.diffusion,
            jnp.full(num, START),
            np.linspace(0.0, 1.0, NUM_STEPS + 1),
            key=key,
            solver=sde.EulerMaruyama(),
            stepsize=sde.Fixed(DT),
        )
    )(jr.key(0))
    exact = euler_moments(POSTERIOR, PRIOR, DT, NUM_STEPS)
    assert_mean(sol.ys.T, exact.mean)
    ratio = np.var(sol.ys[1:], axis=1) / exact.variance[1:]
    assert np.all(np.abs(ratio - 1) < 4.5 * np.sqrt(2 / num)), ratio
    neighbours = (sol.ys[5] - exact.mean[5]) * (sol.ys[6] - exact.mean[6])
    assert_mean(neighbours, exact.variance[5] * (1 - POSTERIOR.rate * DT))


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.7])
def test_transition_solves_its_equations(rate):
    """m' = θ(μ - m), v' = σ² - 2θv; parts compose; θ = 0 is Brownian motion; the
    gradient at θ = 0 is finite. Catches a lost 2, a NaN from 0 / 0."""
    process = sde.OrnsteinUhlenbeck(rate=rate, mean=0.4, scale=1.5)
    y0 = jnp.array([2.0, -1.0])
    t = jnp.asarray(0.9)
    mean, variance = process.transition(t, y0)
    rates = jax.jacfwd(lambda t: process.transition(t, y0))(t)
    np.testing.assert_allclose(rates[0], rate * (0.4 - mean), atol=1e-12)
    np.testing.assert_allclose(rates[1], 1.5**2 - 2 * rate * variance, atol=1e-12)
    half, half_variance = process.transition(t / 2, y0)
    again, more = process.transition(t / 2, half)
    np.testing.assert_allclose(again, mean, atol=1e-12)
    decay = np.exp(-rate * 0.9)
    np.testing.assert_allclose(more + decay * half_variance, variance, atol=1e-8)
    if rate == 0.7:
        limit = process.transition(jnp.asarray(60.0), y0)
        np.testing.assert_allclose(limit[0], 0.4, atol=1e-12)
        np.testing.assert_allclose(limit[1], 1.5**2 / 1.4, atol=1e-12)
    else:
        np.testing.assert_allclose(variance, 1.5**2 * 0.9, rtol=1e-8)
    make = lambda rate: sde.OrnsteinUhlenbeck(rate, 0.4, 1.5).transition(t, y0)[1].sum()
    assert np.isfinite(jax.grad(make)(rate))


@pytest.fixture(scope="module")
def estimates(double):
    """For each solver: value, ∫ ½u² and gradient of every estimator on 4,000 paths."""
    params = {"rate": jnp.asarray(0.8), "mean": jnp.asarray(0.6)}

    def of_solver(solver):
        def one(key):
            def value(params, path_kl):
                sol = solve(params, key, solver, path_kl)
                return sol.path_kl[-1], sol.half_squares[-1]

            return {
                name: jax.value_and_grad(value, has_aux=True)(params, path_kl)
                for name, path_kl in ESTIMATORS.items()
            }

        return jax.jit(jax.vmap(one))(jr.split(jr.key(1), 4000))

    found = {}

    def lookup(name):
        if name not in found:
            found[name] = jax.device_get(of_solver(SOLVERS[name]))
        return found[name]

    return lookup


# The compilation takes most of these tests' time.
SLOW = ("StratonovichMilstein", "EulerHeun", "Heun", "ShARK")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in SOLVERS],
)
def test_estimators_agree_in_mean_and_gradient(estimates, name):
    """∫ u dB is a martingale, in value and in gradient; its value is the same whatever
    is stopped. Catches the Itô sum taken at the midpoint or with other increments."""
    out = estimates(name)
    (kl, squares), kl_grad = out["kl"]
    np.testing.assert_array_equal(kl, squares)
    for estimator in ("full", "stl"):
        (value, half), grad = out[estimator]
        np.testing.assert_allclose(half, squares, rtol=1e-12)
        assert np.std(value - kl) > 0.1
        assert_mean(value - kl, 0.0)
        for param in kl_grad:
            assert_mean(grad[param] - kl_grad[param], 0.0)
    np.testing.assert_allclose(out["stl"][0][0], out["full"][0][0], rtol=1e-12)
    assert np.std(out["stl"][1]["mean"] - out["full"][1]["mean"]) > 0.1


def test_path_kl_is_the_euler_chains(estimates):
    """E ½∫u² of the same grid, its limit, and the gradient of that recursion.
    Catches a lost half, a swapped sign of u's parts, a right-point sum."""
    exact = euler_moments(POSTERIOR, PRIOR, DT, NUM_STEPS).kl
    for estimator in ESTIMATORS:
        assert_mean(estimates("EulerMaruyama")[estimator][0][0], exact)

    def of(rate, mean):
        q = sde.OrnsteinUhlenbeck(rate, mean, POSTERIOR.scale)
        return euler_moments(q, PRIOR, DT, NUM_STEPS).kl

    eps = 1e-5
    by_rate = (of(0.8 + eps, 0.6) - of(0.8 - eps, 0.6)) / (2 * eps)
    by_mean = (of(0.8, 0.6 + eps) - of(0.8, 0.6 - eps)) / (2 * eps)
    for estimator in ESTIMATORS:
        grad = estimates("EulerMaruyama")[estimator][1]
        assert_mean(grad["rate"], by_rate)
        assert_mean(grad["mean"], by_mean)
    # Solvers of a higher order are near the limit already.
    limit = euler_moments(POSTERIOR, PRIOR, 1e-4, 10_000).kl
    for name in ("SRA1", "Midpoint", "ReversibleHeun"):
        kl = estimates(name)["kl"][0][0]
        assert (
            abs(np.mean(kl) - limit) < 4.5 * np.std(kl) / np.sqrt(4000) + 0.01 * limit
        )


def test_full_monte_carlo_is_the_log_ratio_of_the_chains():
    """log q / p of each Euler chain's Gaussian steps, to rounding, at every time, with
    multiplicative noise and a noise-free leaf. Catches (seen) a diffusion taken at the
    right point, a noise-free leaf in the sum, an increment that isn't the step's."""

    def drift(t, y, args):
        return {"h": y["w"].sum() - y["h"], "w": jnp.sin(y["w"] + t) + y["h"]}

    def diffusion(t, y, args):
        return {"h": None, "w": 0.5 * jnp.sqrt(1 + y["w"] ** 2)}

    def prior_drift(t, y, args):
        return {"h": None, "w": -y["w"]}

    ts = np.array([0.0, 0.1, 0.25, 0.6, 1.0])
    sol = sde.sdeint(
        drift,
        diffusion,
        {"h": jnp.asarray(0.3), "w": jnp.array([0.5, -1.0, 0.2])},
        ts,
        key=jr.key(2),
        solver=sde.EulerMaruyama(),
        stepsize=sde.Grid(),
        path_kl=sde.FullMonteCarlo(),
        prior_drift=prior_drift,
    )
    expected = [0.0]
    for k, dt in enumerate(np.diff(ts)):
        y = jax.tree.map(lambda v, k=k: v[k], sol.ys)
        after = sol.ys["w"][k + 1]
        scale = diffusion(ts[k], y, None)["w"] * np.sqrt(dt)
        q = scipy.stats.norm(y["w"] + drift(ts[k], y, None)["w"] * dt, scale)
        p = scipy.stats.norm(y["w"] + prior_drift(ts[k], y, None)["w"] * dt, scale)
        expected.append(expected[-1] + np.sum(q.logpdf(after) - p.logpdf(after)))
    np.testing.assert_allclose(sol.path_kl, expected, atol=1e-12)


def test_gaussian_kl_of_the_start():
    """Against quadrature; the sampled forms have its mean and differ in gradient as
    they should. Catches a lost half, σ for σ², a score that is not stopped."""
    mean, scale, mean0, scale0 = 0.7, 0.4, -0.1, 1.3
    grid = np.linspace(-6, 6, 200_001)
    q, p = scipy.stats.norm(mean, scale), scipy.stats.norm(mean0, scale0)
    exact = np.trapezoid(q.pdf(grid) * (q.logpdf(grid) - p.logpdf(grid)), grid)

    def value(params, noise, estimator):
        mean, log_scale = params
        scale = jnp.exp(log_scale)
        sample = mean + scale * noise
        rest = jnp.asarray(mean0), jnp.asarray(scale0)
        return estimator.gaussian(sample, mean, scale, *rest)

    params = jnp.asarray(mean), jnp.log(scale)
    noise = jr.normal(jr.key(3), (20_000,))
    both = {
        name: jax.vmap(
            jax.value_and_grad(lambda q, n, e=e: value(q, n, e)), in_axes=(None, 0)
        )(params, noise)
        for name, e in ESTIMATORS.items()
    }
    np.testing.assert_allclose(both["kl"][0], exact, rtol=1e-7)
    for name in ("full", "stl"):
        assert_mean(both[name][0], exact)
        for found, wanted in zip(both[name][1], both["kl"][1], strict=True):
            assert_mean(found, wanted[0])
    # At q = p sticking the landing leaves no variance.
    at_prior = jnp.asarray(mean0), jnp.log(scale0)
    grads = jax.vmap(
        jax.grad(lambda n, q: value(q, n, ESTIMATORS["stl"]), argnums=1),
        in_axes=(0, None),
    )(noise[:100], at_prior)
    np.testing.assert_allclose(jnp.stack(grads), 0.0, atol=1e-12)
