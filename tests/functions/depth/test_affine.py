"""An SDE-BNN that is Bayesian linear regression, all in closed form.

dw = -w dt + σ dB, w(0) ~ N(0, ρ²), dh_x = <w, features(x)> dt, y_x ~ N(h_x(1), s²).
With a drift affine in w and in the inducing inputs' h, (w, h) is Gaussian, and its mean
and covariance follow a recursion on the Euler grid. What the library computes goes
through `SDEBNN`, `SDEBlock` and `sdeint` like any other model.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from jaxtyping import Array

from ornstein.functions import SDEBNN, Integrator, SDEBlock, WeightPrior
from ornstein.likelihood import Gaussian
from ornstein.sde import Fixed, FullMonteCarlo

SIGMA, RHO, S, NUM_STEPS, NUM_PATHS = 0.8, 0.6, 0.3, 20, 3000
XS = np.array([-1.0, -0.6, 0.1, 0.5, 1.0])
YS = np.array([-0.9, -0.1, 0.4, 0.3, 1.1])
# Orthogonal columns, so that the exact posterior of w(0) factorises.
F = np.stack([np.ones(5), XS - XS.mean()], axis=1)
N, P = F.shape
PRIOR_START = np.zeros(P), np.full(P, RHO)


class Plan(NamedTuple):
    """A drift NN = `of_w[k]` w + `of_h[k]` h + `constant[k]` at step k."""

    of_w: np.ndarray
    of_h: np.ndarray
    constant: np.ndarray


def in_w_alone(numbers: np.ndarray, num_steps: int = NUM_STEPS) -> Plan:
    """Affine in w, with a constant that is linear in t."""
    matrix, at_0, slope = numbers[:4].reshape(P, P), numbers[4:6], numbers[6:]
    t = np.arange(num_steps)[:, None] / num_steps
    of_w = np.broadcast_to(matrix, (num_steps, P, P))
    return Plan(of_w, np.zeros((num_steps, P, N)), at_0 + t * slope)


def remaining(t: float) -> tuple[float, np.ndarray]:
    """From w and h at t: the mean of y is h + a F w, its covariance the second."""
    left = 1 - t
    a = 1 - np.exp(-left)
    variance = left - 2 * a + (1 - np.exp(-2 * left)) / 2
    return a, SIGMA**2 * variance * F @ F.T + S**2 * np.eye(N)


def exact_plan(num_steps: int) -> Plan:
    """The posterior's own drift, σ² ∂_w log p(y | w_t, h_t)."""
    of_w, of_h, constant = [], [], []
    for t in np.arange(num_steps) / num_steps:
        a, covariance = remaining(t)
        gain = SIGMA**2 * a * F.T @ np.linalg.inv(covariance)
        of_w.append(-gain @ F * a)
        of_h.append(-gain)
        constant.append(gain @ YS)
    return Plan(np.stack(of_w), np.stack(of_h), np.stack(constant))


def exact_start() -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of w(0) given y."""
    a, covariance = remaining(0.0)
    precision = np.eye(P) / RHO**2 + a**2 * F.T @ np.linalg.solve(covariance, F)
    assert abs(precision[0, 1]) < 1e-12
    mean = np.linalg.solve(precision, a * F.T @ np.linalg.solve(covariance, YS))
    return mean, 1 / np.sqrt(np.diag(precision))


def moments(plan: Plan, start: tuple[np.ndarray, np.ndarray]):
    """Mean and covariance of h(1), and the path KL, of the Euler chain."""
    num_steps = len(plan.of_w)
    dt = 1 / num_steps
    mean = np.concatenate([start[0], np.zeros(N)])
    covariance = np.diag(np.concatenate([start[1] ** 2, np.zeros(N)]))
    kl = 0.0
    for of_w, of_h, constant in zip(*plan, strict=True):
        reads = np.concatenate([of_w, of_h], axis=1)
        nn = reads @ mean + constant
        kl += (nn @ nn + np.trace(reads @ covariance @ reads.T)) / SIGMA**2 * dt / 2
        step = np.eye(P + N)
        step[:P] += dt * reads
        step[:P, :P] -= dt * np.eye(P)
        step[P:, :P] += dt * F
        mean = step @ mean
        mean[:P] += dt * constant
        covariance = step @ covariance @ step.T
        covariance[:P, :P] += SIGMA**2 * dt * np.eye(P)
    return mean[P:], covariance[P:, P:], kl


def kl_of_start(mean: np.ndarray, scale: np.ndarray) -> float:
    ratio = (scale / RHO) ** 2
    return float(np.sum(ratio + (mean / RHO) ** 2 - 1 - np.log(ratio)) / 2)


def exact_parts(plan: Plan, start: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    """Expected values of what `parts` gives for each path."""
    mean, covariance, kl_path = moments(plan, start)
    squares = np.sum((YS - mean) ** 2) + np.trace(covariance)
    fit = -squares / (2 * S**2) - N * np.log(S * np.sqrt(2 * np.pi))
    kl = kl_path + kl_of_start(*start)
    return {"fit": fit, "kl_path": kl_path, "kl": kl, "elbo": fit - kl}


def exact_elbo(plan: Plan, start: tuple[np.ndarray, np.ndarray]) -> float:
    return exact_parts(plan, start)["elbo"]


def evidence(num_steps: int) -> float:
    """log p(y) under the prior's own Euler chain."""
    nothing = in_w_alone(np.zeros(8), num_steps)
    mean, covariance, _ = moments(nothing, PRIOR_START)
    law = scipy.stats.multivariate_normal(mean, covariance + S**2 * np.eye(N))
    return float(law.logpdf(YS))


class Regression(eqx.Module):
    """f_h of one number a row, behind which its features are carried unmoved."""

    w: Array

    def __call__(self, t: Array, h: Array) -> Array:
        return jnp.zeros_like(h).at[:, 0].set(h[:, 1:] @ self.w)


class PlannedDrift(eqx.Module):
    """A `Plan` as a user's own NN_φ."""

    plan: Plan

    def __call__(self, t: Array, w: Regression, summary: Array) -> Regression:
        step = jnp.round(t * NUM_STEPS).astype(int)
        of_w, of_h, constant = (a[step] for a in self.plan)
        h = summary.reshape(N, 1 + P)[:, 0]
        return eqx.tree_at(lambda r: r.w, w, of_w @ w.w + of_h @ h + constant)


def with_features(x: Array) -> Array:
    """(0, features) of each row."""
    features = jnp.concatenate([jnp.ones_like(x), x - XS.mean()], axis=1)
    return jnp.concatenate([jnp.zeros_like(x), features], axis=1)


def first(h: Array) -> Array:
    return h[:, :1]


def build(plan: Plan, start: tuple[np.ndarray, np.ndarray]) -> SDEBNN:
    """The model, with the data's own inputs as its inducing inputs."""
    block = SDEBlock.make(
        Regression(jnp.asarray(start[0])),
        prior=WeightPrior(sigma=SIGMA, scale=RHO, is_relative=False),
        start_width=1.0,
        width_sizes=(1,),
        drift_scale=1.0,
        summary_size=N * (1 + P),
        integrator=Integrator(stepsize=Fixed(1 / NUM_STEPS)),
        estimator=FullMonteCarlo(),
        key=jr.key(0),
    )
    rho = Regression(jnp.log(jnp.expm1(jnp.asarray(start[1]))))
    drift = PlannedDrift(jax.tree.map(jnp.asarray, plan))
    block = eqx.tree_at(lambda b: (b.rho, b.drift), block, (rho, drift))
    return SDEBNN((with_features, block), first, jnp.asarray(XS)[:, None])


@eqx.filter_jit
def parts(model: SDEBNN, key: Array) -> dict[str, Array]:
    """Of each path; "kl" and "elbo" come from sampled log ratios."""

    def one(key: Array) -> dict[str, Array]:
        draw = model(jnp.asarray(XS)[:, None], key=key)
        fit = jnp.sum(Gaussian(S).log_prob(draw.output, jnp.asarray(YS)[:, None]))
        return {"fit": fit, "kl": draw.kl, "elbo": fit - draw.kl, **draw.terms}

    return jax.vmap(one)(jr.split(key, NUM_PATHS))


def check(plan: Plan, start: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
    """Every part within Monte Carlo error of its recursion."""
    found = jax.device_get(parts(build(plan, start), jr.key(0)))
    np.testing.assert_allclose(found["kl_initial"], kl_of_start(*start), rtol=1e-9)
    for name, exact in exact_parts(plan, start).items():
        error = found[name].std() / np.sqrt(NUM_PATHS)
        z = (found[name].mean() - exact) / error
        assert abs(z) < 4.5, (name, z)
    return found


@pytest.fixture(scope="module", autouse=True)
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


ARBITRARY = np.array([-0.4, 0.3, 0.5, -0.2, 0.3, 0.4, -0.5, 0.2])
START = np.array([0.2, 0.4]), np.array([0.3, 0.5])


def test_elbo_is_the_recursions():
    """A drift and a start that are nothing special, and one that reads h too.
    Catches (seen) a lost half, a KL(w0) left out, inducing inputs that NN does not
    see."""
    plan = in_w_alone(ARBITRARY)
    reads_h = plan._replace(of_h=np.broadcast_to(0.3 * F.T, plan.of_h.shape))
    for case in (plan, reads_h):
        check(case, START)


def test_a_drift_of_w_alone_stays_below_the_evidence():
    """At its optimum too, which the Monte Carlo bound confirms."""
    loss = lambda numbers: -exact_elbo(in_w_alone(numbers), exact_start())
    best = scipy.optimize.minimize(loss, np.zeros(8), method="BFGS").x
    optimised, plain = -loss(best), -loss(np.zeros(8))
    assert plain + 0.5 < optimised < evidence(NUM_STEPS) - 0.02
    check(in_w_alone(best), exact_start())


def test_a_drift_that_sees_the_data_reaches_the_evidence():
    """The gap of the exact drift halves with the step."""
    gaps = []
    for num_steps in (20, 40, 80, 160):
        elbo = exact_elbo(exact_plan(num_steps), exact_start())
        gaps.append(evidence(num_steps) - elbo)
    assert 0 < gaps[-1] < 0.02, gaps
    for coarse, fine in itertools.pairwise(gaps):
        assert 1.9 < coarse / fine < 2.3, gaps


def test_at_the_exact_drift_every_path_tells_the_evidence():
    """log p(y | h) minus the log ratio is log p(y) on each path, up to the step.
    Catches (seen) prior minus posterior in the Itô term."""
    found = check(exact_plan(NUM_STEPS), exact_start())
    assert abs(found["elbo"].mean() - evidence(NUM_STEPS)) < 0.2
    by_integral = found["fit"] - found["kl_path"] - found["kl_initial"]
    assert found["elbo"].std() < by_integral.std() / 3
