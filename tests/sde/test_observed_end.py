"""A process observed at its end, whose exact posterior drift is known."""

import itertools
import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from ornstein import sde

pytestmark = pytest.mark.usefixtures("double")

# dw = -w dt + σ dB from 0; y ~ N(w(1), s²).
SIGMA, S, Y = 1.0, 0.5, 1.2
PRIOR = sde.OrnsteinUhlenbeck(rate=1.0, scale=SIGMA)
SPREAD = SIGMA**2 * (1 - math.exp(-2)) / 2
EVIDENCE = scipy.stats.norm(0, math.sqrt(S**2 + SPREAD)).logpdf(Y)
NUM_PATHS = 4000
ESTIMATORS = {
    "kl": sde.KL(),
    "full": sde.FullMonteCarlo(),
    "stl": sde.StickTheLanding(),
}


def bridge(t):
    """The exact posterior's drift, -w + c(t) (y - e^(t - 1) w)."""
    decay = jnp.exp(t - 1)
    variance = S**2 + SIGMA**2 * (1 - decay**2) / 2
    return decay, SIGMA**2 * decay / variance


def loss(phi, key, num_steps, path_kl):
    """-ELBO of one path, with the drift u* + φ · features."""

    def drift(t, w, args):
        decay, gain = bridge(t)
        features = jnp.stack([jnp.ones_like(w), w, t, w * t, jnp.sin(3 * w)])
        return -w + gain * (Y - decay * w) + SIGMA * phi @ features

    sol = sde.sdeint(
        drift,
        PRIOR.diffusion,
        jnp.zeros(()),
        np.array([0.0, 1.0]),
        key=key,
        solver=sde.EulerMaruyama(),
        stepsize=sde.Fixed(1 / num_steps),
        path_kl=path_kl,
        prior_drift=PRIOR.drift,
    )
    fit = -((Y - sol.ys[-1]) ** 2) / (2 * S**2) - math.log(S * math.sqrt(2 * math.pi))
    return sol.path_kl[-1] - fit


def grid_elbo(num_steps: int) -> float:
    """The ELBO of the Euler chain by the recursion of w's mean and variance."""
    mean, variance, kl, dt = 0.0, 0.0, 0.0, 1 / num_steps
    for k in range(num_steps):
        decay, gain = map(float, bridge(k * dt))
        kl += gain**2 / SIGMA**2 * ((Y - decay * mean) ** 2 + decay**2 * variance)
        mean += (-mean + gain * (Y - decay * mean)) * dt
        variance = variance * (1 - (1 + gain * decay) * dt) ** 2 + SIGMA**2 * dt
    fit = -((Y - mean) ** 2 + variance) / (2 * S**2)
    return fit - math.log(S * math.sqrt(2 * math.pi)) - kl * dt / 2


def run(num_steps: int, estimator: str):
    """Losses and gradients at φ = 0, of each path."""
    one = jax.value_and_grad(loss)
    batch = jax.jit(
        jax.vmap(lambda key: one(jnp.zeros(5), key, num_steps, ESTIMATORS[estimator]))
    )
    return jax.device_get(batch(jr.split(jr.key(0), NUM_PATHS)))


@pytest.fixture(scope="module")
def runs(double):
    cases = [("stl", 20), ("stl", 80), ("stl", 320)]
    cases += [(name, num) for name in ("kl", "full") for num in (20, 80)]
    return {(name, num): run(num, name) for name, num in cases}


def test_elbo_is_the_euler_grids(runs):
    """Catches a lost half (seen), a sum at the wrong end of the step, another time."""
    for (name, num_steps), (losses, _) in runs.items():
        error = np.std(losses) / np.sqrt(NUM_PATHS)
        z = (-np.mean(losses) - grid_elbo(num_steps)) / error
        assert abs(z) < 4.5, (name, num_steps, z)


def test_elbo_goes_to_the_evidence_with_dt(runs):
    """The Monte Carlo ELBO's own gap, since u dB takes the variance away. Catches an
    Itô sum that converges to something else."""
    gaps, errors = [], []
    for num_steps in (20, 80, 320):
        losses = runs["stl", num_steps][0]
        gaps.append(-np.mean(losses) - EVIDENCE)
        errors.append(np.std(losses) / np.sqrt(NUM_PATHS))
    exact = [grid_elbo(n) - EVIDENCE for n in (20, 40, 80, 160, 320)]
    for a, b in itertools.pairwise(exact):
        assert 1.7 < a / b < 2.3
    for gap, wanted, error in zip(gaps, exact[::2], errors, strict=True):
        assert abs(gap - wanted) < 4.5 * error
    assert abs(gaps[0]) < 0.05
    assert abs(gaps[2]) < abs(gaps[0]) / 8 + 4.5 * errors[2]


def test_sticking_the_landing_takes_the_gradients_variance_away(runs):
    """Like dt² at the exact drift, where the others keep theirs. Catches (seen) the
    gradient through w stopped too, or the parameters not stopped."""
    variance = {case: np.var(grad, axis=0).mean() for case, (_, grad) in runs.items()}
    for few, many in ((20, 80), (80, 320)):
        assert 10 < variance["stl", few] / variance["stl", many] < 24, variance
    for name in ("kl", "full"):
        assert 0.6 < variance[name, 20] / variance[name, 80] < 1.6, variance
        assert variance[name, 80] > 100 * variance["stl", 80]


def test_expected_gradients_agree(runs):
    """The same expected gradient from the three, entry by entry."""
    for num_steps in (20, 80):
        reference = runs["kl", num_steps][1]
        for name in ("full", "stl"):
            difference = runs[name, num_steps][1] - reference
            error = np.std(difference, axis=0) / np.sqrt(NUM_PATHS)
            assert np.all(np.abs(np.mean(difference, axis=0)) < 4.5 * error)
