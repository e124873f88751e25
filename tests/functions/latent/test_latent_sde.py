"""Latent SDEs against the Kalman filter of the same Euler chain, and bad input."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.latent import linear_gaussian as exact

import ornstein as orn
from ornstein.data import Split
from ornstein.functions import (
    ConstantDiffusion,
    FirstFrames,
    GRURecognition,
    LatentStart,
    LinearDrift,
    NetDiffusion,
    NoRecognition,
    ProcessDrift,
    SplitRecognition,
)
from ornstein.sde import (
    KL,
    RK4,
    EulerMaruyama,
    Fixed,
    FullMonteCarlo,
    Grid,
    Heun,
    Milstein,
    OrnsteinUhlenbeck,
    ReversibleHeun,
    StickTheLanding,
)

NUM_PATHS = 4000
PROCESS = OrnsteinUhlenbeck(rate=1.0, scale=0.6)


@eqx.filter_jit
def weigh(model, x, key):
    """Each path's log weight and its states."""
    drawn = model(x, key=key)
    log_weight = exact.LIKELIHOOD.log_prob(drawn.output, x) - drawn.local_kl
    return log_weight, model.trajectory(x, key=key)[..., 0]


@eqx.filter_jit
def call(model, x, key, index=None):
    return model(x, key=key, index=index)


def weights_of(num_substeps, estimator):
    model = exact.exact_model(num_substeps, estimator)
    found = weigh(model, exact.copies(NUM_PATHS), jr.key(1))
    return [np.asarray(part, np.float64) for part in found]


@pytest.fixture(scope="module")
def weighed():
    """Log weights and paths of the exact drift, with 6 and 12 steps an interval."""
    return {steps: weights_of(steps, FullMonteCarlo()) for steps in (6, 12)}


@pytest.mark.parametrize("steps", [6, 12])
def test_weighted_paths_are_the_smoothers(weighed, steps):
    """Paths weighted by p(y, path) / q(path) have the chain's evidence, mean, variance.

    That holds for any drift of q, so it is of everything else: q(z₀) and its KL, the
    path KL, the mask. (Seen: KL(z₀) left out, a start narrower than its KL says, one
    path for all rows.)
    """
    log_weight, z = weighed[steps]
    smoothed = exact.kalman(exact.TS, exact.VALUES, exact.MASK, steps)
    ratio = np.exp(log_weight - smoothed.evidence)
    error = np.std(ratio) / NUM_PATHS**0.5
    assert abs(np.mean(ratio) - 1) < 4.5 * error < 0.1
    weight = ratio / np.sum(ratio)
    mean = weight @ z
    square = weight @ (z - mean) ** 2
    spread = (weight**2 @ (z - mean) ** 2) ** 0.5
    assert np.all(np.abs(mean - smoothed.mean) < 4.5 * spread)
    assert np.all(4.5 * spread < 0.2 * smoothed.variance**0.5)
    error = (weight**2 @ ((z - mean) ** 2 - square) ** 2) ** 0.5
    assert np.all(np.abs(square - smoothed.variance) < 4.5 * error)
    assert np.all(4.5 * error < 0.25 * smoothed.variance)


def test_bound_reaches_the_evidence_as_steps_shrink(weighed):
    """At most the evidence; half the gap at half the step. (Seen: late context.)"""
    gaps = {}
    for steps, (log_weight, _) in weighed.items():
        smoothed = exact.kalman(exact.TS, exact.VALUES, exact.MASK, steps)
        gaps[steps] = smoothed.evidence - np.mean(log_weight)
        assert gaps[steps] > 4.5 * np.std(log_weight) / NUM_PATHS**0.5
    assert 1.6 < gaps[6] / gaps[12] < 2.7
    assert gaps[12] < 0.05 * np.sum(exact.MASK)


def test_unweighted_paths_are_nearly_the_smoothers(weighed):
    """Mean and variance of q itself, O(dt) away."""
    _, z = weighed[12]
    smoothed = exact.kalman(exact.TS, exact.VALUES, exact.MASK, 12)
    sd = smoothed.variance**0.5
    assert np.all(np.abs(np.mean(z, 0) - smoothed.mean) < 0.1 * sd)
    assert np.all(np.abs(np.std(z, 0) / sd - 1) < 0.1)


@pytest.mark.parametrize("estimator", [KL(), StickTheLanding()])
def test_estimators_agree_in_mean(weighed, estimator):
    """In path and start alike. (Seen: a log ratio of z₀ that is wrong in one.)"""
    other, _ = weighed[6]
    log_weight, _ = weights_of(6, estimator)
    error = (np.var(other) + np.var(log_weight)) ** 0.5 / NUM_PATHS**0.5
    assert abs(np.mean(log_weight) - np.mean(other)) < 4.5 * error < 0.2


def test_without_noise_a_linear_posterior_is_at_its_mean(weighed):
    """The mean of a linear equation is its solution without noise, from the mean of z₀.

    Catches (seen) the prior's drift in place of the posterior's, and z₀ drawn.
    """
    _, z = weighed[6]
    model = exact.exact_model(6, KL())
    without_noise = model.posterior_parts().without_noise
    assert without_noise is not None
    silent = without_noise()
    x = exact.copies(2)
    one, other = silent.trajectory(x, key=jr.key(1))[..., 0]
    np.testing.assert_array_equal(one, other)
    error = np.std(z, 0) / NUM_PATHS**0.5
    assert np.all(np.abs(np.asarray(one) - np.mean(z, 0)) < 4.5 * error)
    drawn = call(silent, x, jr.key(2))
    assert float(jnp.sum(jnp.abs(drawn.local_kl))) == 0
    assert not silent.posterior_parts().is_random


def test_named_parts_are_the_value_of_the_kl():
    """Whatever the estimator, logs show KL(z₀) in closed form and ∫ ½‖u‖² dt."""
    x = exact.copies(8)
    by_kl = call(exact.exact_model(4, KL()), x, jr.key(0))
    by_full = call(exact.exact_model(4, FullMonteCarlo()), x, jr.key(0))
    parts = by_kl.local_terms
    assert set(parts) == {"kl_path", "kl_initial"}
    total = parts["kl_path"] + parts["kl_initial"]
    np.testing.assert_allclose(total, by_kl.local_kl, rtol=1e-5)
    for name, part in by_full.local_terms.items():
        np.testing.assert_allclose(part, parts[name], rtol=1e-5)
    assert np.all(np.abs(by_full.local_kl - by_kl.local_kl) > 1e-3)
    assert float(by_kl.kl) == 0


# Series with gaps, for models of two features and three latent dimensions.
TIMES = np.cumsum(np.array([0.3, 0.2, 0.5, 0.1, 0.4, 0.3]))
OBSERVED = np.array([1, 1, 0, 1, 1, 0], bool)[:, None] & np.array(
    [[1, 1], [1, 0], [1, 1], [0, 1], [1, 1], [1, 1]], bool
)


def series(seed=0, num_rows=4):
    values = jr.normal(jr.key(seed), (num_rows, len(TIMES), 2))
    mask = np.broadcast_to(OBSERVED, values.shape)
    return orn.Series.of(TIMES, values, mask)


def networks(kind="gru", **changes):
    """Away from the prior, so that whatever reaches the drift moves the path."""
    recognition = FirstFrames(3, 2, 3, width_sizes=(4,), key=jr.key(0))
    if kind != "first frames":
        parts = {"hidden_size": 5, "context_size": 2, "key": jr.key(0)}
        gru = GRURecognition(2, 3, **parts)
        recognition = gru if kind == "gru" else SplitRecognition(recognition, gru)
    choices = {
        "prior": PROCESS,
        "drift_widths": (6,),
        "integrator": orn.Integrator(EulerMaruyama(), Grid(num_substeps=2)),
        "key": jr.key(1),
    }
    model = orn.LatentSDE.make(recognition, 2, **(choices | changes))
    last = model.posterior_drift.net.layers[-1]
    drawn = 0.8 * jr.normal(jr.key(2), last.weight.shape)
    where = lambda m: m.posterior_drift.net.layers[-1].weight
    return eqx.tree_at(where, model, drawn)


def test_a_split_recognition_begins_by_one_and_follows_the_other():
    """Catches parts exchanged, and a context that the start's encoder gives."""
    first = FirstFrames(3, 2, 3, width_sizes=(4,), context_size=0, key=jr.key(0))
    rest = GRURecognition(2, 3, hidden_size=5, context_size=2, key=jr.key(1))
    both = SplitRecognition(first, rest)
    assert (both.latent_size, both.context_size) == (3, rest.context_size)
    row = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], series())
    args = (row.ts, jnp.where(row.mask, row.values, 0), row.mask)
    seen, begun, read = both(*args), first(*args), rest(*args)
    np.testing.assert_array_equal(seen.mean, begun.mean)
    np.testing.assert_array_equal(seen.scale, begun.scale)
    np.testing.assert_array_equal(seen.context(0.3), read.context(0.3))


@pytest.mark.parametrize("kind", ["gru", "first frames", "both"])
def test_missing_values_do_not_matter(kind):
    """NaN in their places changes nothing, nor the gradient. (Seen.)"""
    x = series()
    spoilt = orn.Series(x.ts, np.where(x.mask, x.values, np.nan), x.mask)
    model, likelihood = networks(kind), exact.LIKELIHOOD

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model, x):
        drawn = model(x, key=jr.key(3))
        return jnp.sum(drawn.local_kl) - jnp.sum(likelihood.log_prob(drawn.output, x))

    clean, clean_grad = loss(model, x)
    value, grad = loss(model, spoilt)
    assert float(clean) == float(value)
    assert np.isfinite(float(clean))
    assert eqx.tree_equal(clean_grad, grad)


def test_a_row_does_not_depend_on_the_others():
    """Other series, at other times, leave a row's path and KL as they are."""
    x, other, model = series(), series(seed=1), networks()
    mixed = jax.tree.map(lambda a, b: np.concatenate([a[:2], b[2:]]), x, other)
    mixed = orn.Series(
        mixed.ts * np.array([[1], [1], [2], [3]], np.float32), *_of(mixed)
    )
    whole, found = (call(model, rows, jr.key(3)) for rows in (x, mixed))
    np.testing.assert_allclose(found.local_kl[:2], whole.local_kl[:2], rtol=1e-5)
    np.testing.assert_allclose(found.output[:2], whole.output[:2], rtol=1e-5, atol=1e-6)
    assert not np.any(np.isclose(found.local_kl[2:], whole.local_kl[2:]))


def _of(x):
    return x.values, x.mask


def test_rows_have_paths_of_their_own_in_training():
    """The same series twice: two paths without an index, one with. (Both seen.)"""
    x = jax.tree.map(lambda leaf: np.repeat(leaf[:1], 2, axis=0), series())
    training = call(networks(), x, jr.key(3)).output
    one_draw = call(networks(), x, jr.key(3), jnp.asarray(0)).output
    assert not np.any(np.isclose(training[0], training[1]))
    np.testing.assert_allclose(one_draw[0], one_draw[1], rtol=1e-5, atol=1e-6)


def test_the_future_leaves_the_past_alone():
    """Extended, it has the same path before, and no more to pay. (Seen: no prior.)"""
    x, model = series(), networks()
    later = x.extended([2.0, 2.5, 3.0])
    known, asked = (call(model, rows, jr.key(3), jnp.asarray(1)) for rows in (x, later))
    past = asked.output[:, : len(TIMES)]
    np.testing.assert_allclose(past, known.output, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(asked.local_kl, known.local_kl, rtol=1e-5)


@pytest.mark.parametrize("extrapolates", [False, True])
def test_after_the_last_observation_the_prior_moves_the_path(extrapolates):
    """The Euler chain's moments, given the state at the last observation. (Seen.)"""
    model = networks(extrapolates_posterior=extrapolates)
    x = jax.tree.map(lambda leaf: np.repeat(leaf[:1], NUM_PATHS, axis=0), series())
    x = x.extended([2.2, 2.6])
    z = eqx.filter_jit(model.trajectory)(x, key=jr.key(4))
    grid = exact.grid_of(np.asarray(x.ts[0], np.float64)[4:], 2)
    steps = np.diff(grid)
    decay, variance = 1.0, 0.0
    for dt in steps:
        decay, variance = decay * (1 - dt), variance * (1 - dt) ** 2 + 0.36 * dt
    moved = np.asarray(z[:, -1] - decay * z[:, 4], np.float64)
    off = np.abs(np.mean(moved, 0)) / (variance / NUM_PATHS) ** 0.5
    off_variance = np.abs(np.var(moved, 0) / variance - 1) / (2 / NUM_PATHS) ** 0.5
    is_prior = bool(np.all(off < 4.5) and np.all(off_variance < 4.5))
    assert is_prior != extrapolates


def test_a_last_frame_that_is_seen_in_part_is_the_last():
    r"""The posterior holds, and costs $\tfrac12 \|c / g\|^2$ a time, up to the last
    frame of which *any* value was observed: by hand, for a constant control. Catches
    (seen) frames that count only where all values were observed."""
    control = jnp.array([0.3, -0.6, 0.9])
    model = eqx.tree_at(
        lambda m: m.posterior_drift, networks(), lambda t, z, context: control
    )
    mask = np.ones((5, len(TIMES), 2), bool)
    mask[1, -1, 0] = mask[2, -1, 1] = False
    mask[3, -1] = False
    mask[4, -2:], mask[4, -2, 1] = False, True
    x = orn.Series.of(TIMES, jr.normal(jr.key(0), mask.shape), mask)
    drawn = call(model, x, jr.key(3))
    last = TIMES[np.array([-1, -1, -1, -2, -2])]
    rate = 0.5 * float(jnp.sum(control**2)) / 0.6**2
    expected = rate * (last - TIMES[0])
    np.testing.assert_allclose(drawn.local_terms["kl_path"], expected, rtol=1e-5)


def test_prior_samples_are_the_priors():
    """Moments of the Euler chain from p(z₀). (Seen: its mean left out.)"""
    start = LatentStart(3, mean=0.4, scale=0.5)
    model = networks(start=start)
    drawn = model.sample_prior(TIMES, key=jr.key(0), num_samples=NUM_PATHS)
    mean, variance = 0.4, 0.25
    for dt in np.diff(exact.grid_of(TIMES, 2)):
        mean, variance = mean * (1 - dt), variance * (1 - dt) ** 2 + 0.36 * dt
    z = np.asarray(drawn.z[:, -1], np.float64)
    assert np.all(np.abs(np.mean(z, 0) - mean) < 4.5 * (variance / NUM_PATHS) ** 0.5)
    spread = (2 / NUM_PATHS) ** 0.5
    assert np.all(np.abs(np.var(z, 0) / variance - 1) < 4.5 * spread)
    np.testing.assert_allclose(drawn.output, model.decoder(drawn.z), rtol=1e-5)


def test_a_vanished_diffusion_is_seen():
    """Against the spread of the prior's paths, whatever z's unit. (Seen: its own.)"""
    share = lambda scale, start: networks(
        prior=LinearDrift(3), diffusion=ConstantDiffusion(scale), start=start
    ).noise_share(TIMES, key=jr.key(0))
    assert np.all(np.asarray(share(0.5, LatentStart(3))) > 0.3)
    assert np.all(np.asarray(share(1e-4, LatentStart(3))) < 1e-3)
    small = LatentStart(3, scale=1e-4)
    assert np.all(np.asarray(share(1e-4, small)) > 0.3)


@pytest.mark.parametrize("scale", [0.5, 1e-5])
def test_diagnose_reports_a_vanished_diffusion(scale):
    model = networks(prior=LinearDrift(3), diffusion=ConstantDiffusion(scale))
    fit = orn.Fit(model, orn.OverTime(orn.Gaussian(0.5)), None, {})
    split = Split(series(), series())
    found = orn.diagnose(fit, split, key=jr.key(0), num_draws=2)
    names = [finding.name for finding in found.findings]
    assert ("diffusion-gone" in names) == (scale == 1e-5)


def test_unread_times_change_nothing_for_the_encoder():
    """A time at which nothing is observed, put in or taken out, is no information.

    Seen: such a time read, and a gap to it counted.
    """
    x = series(num_rows=1)
    kept = np.any(np.asarray(x.mask[0]), axis=-1)
    recognition = networks().recognition
    with_gaps = recognition(
        *(jnp.asarray(leaf[0]) for leaf in (x.ts, x.values, x.mask))
    )
    rest = (jnp.asarray(leaf[0][kept]) for leaf in (x.ts, x.values, x.mask))
    without = recognition(*rest)
    np.testing.assert_allclose(with_gaps.mean, without.mean, rtol=1e-5)
    np.testing.assert_allclose(with_gaps.scale, without.scale, rtol=1e-5)
    for t in (0.3, 0.49, 0.5, 0.7, 1.0, 1.05, 1.2, 1.49):
        t = jnp.asarray(t, jnp.float32)
        np.testing.assert_allclose(
            with_gaps.context(t), without.context(t), rtol=1e-4, atol=1e-6
        )


def test_context_is_of_what_comes_next():
    """At an observation it is the next one's already, so far away. (Seen: its own.)"""
    x = series(num_rows=1)
    context = (
        networks()
        .recognition(*(jnp.asarray(leaf[0]) for leaf in (x.ts, x.values, x.mask)))
        .context
    )
    waits = [float(context(jnp.asarray(t, jnp.float32))[-1]) for t in (0.3, 0.4, 0.6)]
    np.testing.assert_allclose(waits, [0.2, 0.1, 0.5], atol=1e-5)
    changed = x.values.copy()
    changed[0, 1] += 1
    other = (
        networks()
        .recognition(*(jnp.asarray(leaf[0]) for leaf in (x.ts, changed, x.mask)))
        .context
    )
    at = lambda c, t: np.asarray(c(jnp.asarray(t, jnp.float32)))
    assert not np.allclose(at(context, 0.4), at(other, 0.4))
    np.testing.assert_array_equal(at(context, float(x.ts[0, 1])), at(other, x.ts[0, 1]))


def test_fit_records_both_parts_and_leaves_the_process_alone():
    """Nats per data set add up; a learned scale moves, a process not. (Both seen.)"""
    x = series(num_rows=6)
    process = OrnsteinUhlenbeck(rate=jnp.ones(3), scale=0.6)
    model = networks(
        prior=ProcessDrift(process),
        diffusion=ConstantDiffusion(0.6),
        estimator=StickTheLanding(),
    )
    likelihood = orn.OverTime(orn.Laplace(0.5, learn_scale=True))
    options = {"num_epochs": 2, "batch_size": 3, "num_draws": 2, "learning_rate": 1e-2}
    split = Split(x, x)
    fit = orn.fit(
        model,
        split,
        likelihood,
        key=jr.key(0),
        validation=orn.Validation(split),
        **options,
    )
    last = {name: values[-1] for name, values in fit.history.items()}
    parts = last["kl_path"] + last["kl_initial"]
    assert last["local_kl"] == pytest.approx(parts, rel=1e-5)
    elbo = last["log_likelihood"] - last["local_kl"]
    assert last["elbo"] == pytest.approx(elbo, rel=1e-5)
    assert last["kl"] == 0
    assert eqx.tree_equal(fit.model.prior_drift.process, process)
    assert eqx.tree_equal(fit.model.start, model.start)
    scales = [a.likelihood.scale for a in (fit.likelihood, likelihood)]
    assert not np.isclose(*scales)
    where = lambda m: (m.recognition, m.posterior_drift, m.decoder)
    before, after = (
        jax.tree.leaves(eqx.filter(where(m), eqx.is_inexact_array))
        for m in (model, fit.model)
    )
    assert all(not np.array_equal(*pair) for pair in zip(before, after, strict=True))


@pytest.mark.parametrize("likelihood", [orn.Gaussian, orn.Laplace, orn.Cauchy])
def test_predict_over_time(likelihood):
    """Bands over time, blocks that don't matter, scores by the mask (seen)."""
    x = series()
    fit = orn.Fit(networks(), orn.OverTime(likelihood(0.3)), None, {})
    key = jr.key(0)
    whole = orn.predict(fit, x, key=key, num_draws=8)
    blocks = orn.predict(fit, x, key=key, num_draws=8, batch_size=3)
    lower, upper = whole.interval(0.9)
    assert lower.shape == x.shape
    assert np.all(lower < whole.median)
    assert np.all(whole.median < upper)
    np.testing.assert_allclose(blocks.median, whole.median, rtol=1e-4, atol=1e-4)
    scores = orn.evaluate(whole, x)
    middle = whole.median if likelihood is orn.Cauchy else whole.mean
    errors = (np.asarray(middle) - x.values)[x.mask]
    assert scores["rmse"] == pytest.approx(np.mean(errors**2) ** 0.5, rel=1e-4)
    inside = ((lower <= x.values) & (x.values <= upper))[x.mask]
    assert scores["coverage_90"] == pytest.approx(np.mean(inside))
    density = np.exp(np.asarray(whole.value_log_prob(x)))[x.mask]
    assert scores["nll"] == pytest.approx(-np.mean(np.log(density)), rel=1e-5)
    marginals = likelihood(0.3).marginals(whole.outputs)
    by_draw = np.exp(np.asarray(marginals.log_prob(jnp.asarray(x.values))))
    np.testing.assert_allclose(density, by_draw.mean(0)[x.mask], rtol=1e-4)


def test_state_dependent_noise_of_two_solvers_agrees():
    """Euler-Maruyama and Milstein tend to one Itô solution."""
    steps = Grid(num_substeps=30)
    diffusion = NetDiffusion(3, 4, bounds=(0.1, 0.9), key=jr.key(3))
    of = lambda solver: networks(
        prior=LinearDrift(3),
        diffusion=diffusion,
        integrator=orn.Integrator(solver, steps),
    )
    x = series()
    one, other = (
        call(of(s), x, jr.key(0), jnp.asarray(0)) for s in (EulerMaruyama(), Milstein())
    )
    apart = np.abs(np.asarray(one.output - other.output))
    assert 1e-5 < np.max(apart) < 0.1


def test_single_series_without_an_encoder():
    """q(z₀) is a parameter: KL(z₀) in closed form, whatever is observed."""
    recognition = NoRecognition(1, mean=0.5, scale=0.7)
    model = orn.LatentSDE.make(
        recognition, 1, prior=OrnsteinUhlenbeck(1.0), drift_widths=(4,), key=jr.key(0)
    )
    drawn = call(model, exact.copies(3), jr.key(0))
    expected = (0.49 + 0.25 - 1) / 2 - np.log(0.7)
    np.testing.assert_allclose(drawn.local_terms["kl_initial"], expected, rtol=1e-5)
    np.testing.assert_allclose(drawn.local_terms["kl_path"], 0, atol=1e-10)


def test_latent_ode_solves_its_equation():
    """dz/dt = -z from a start that costs KL(z₀) alone. (Seen: nothing.)"""
    model = orn.LatentODE.make(
        NoRecognition(3, scale=0.5),
        2,
        drift=LinearDrift(3),
        integrator=orn.Integrator(RK4(), Grid(num_substeps=4)),
        key=jr.key(0),
    )
    x = series()
    z = np.asarray(eqx.filter_jit(model.trajectory)(x, key=jr.key(0)))
    expected = z[:, :1] * np.exp(-(TIMES - TIMES[0]))[None, :, None]
    np.testing.assert_allclose(z, expected, rtol=1e-4)
    drawn = call(model, x, jr.key(0))
    kl = 3 * ((0.25 - 1) / 2 - np.log(0.5))
    np.testing.assert_allclose(drawn.local_kl, kl, rtol=1e-5)
    assert set(drawn.local_terms) == {"kl_initial"}
    prior = model.sample_prior(TIMES, key=jr.key(1), num_samples=NUM_PATHS).z
    assert np.all(
        np.abs(np.std(prior[:, 0], axis=0) - 1) < 4.5 / (2 * NUM_PATHS) ** 0.5
    )


REFUSED = {
    "steps of one length": (
        lambda: networks(integrator=orn.Integrator(EulerMaruyama(), Fixed(0.1))),
        "steps from one time of its series to the next",
    ),
    "a grid of its own": (
        lambda: networks(integrator=orn.Integrator(EulerMaruyama(), Grid(TIMES))),
        "steps from one time of its series to the next",
    ),
    "noise of the state": (
        lambda: networks(
            prior=LinearDrift(3), integrator=orn.Integrator(Heun(), Grid())
        ),
        "`NetDiffusion` depends on the state.*`Heun` solves Stratonovich's",
    ),
    "noise of the state, later": (
        lambda: call(
            orn.with_solver(networks(prior=LinearDrift(3)), solver=ReversibleHeun()),
            series(),
            jr.key(0),
        ),
        "`ReversibleHeun` solves Stratonovich's",
    ),
    "two diffusions": (
        lambda: networks(diffusion=ConstantDiffusion(0.1)),
        "has a diffusion of its own",
    ),
    "sizes": (
        lambda: networks(start=LatentStart(2)),
        r"gives 3 latent dimensions and p\(z₀\) has 2",
    ),
    "sizes of encoders": (
        lambda: SplitRecognition(
            FirstFrames(3, 2, 3, key=jr.key(0)), GRURecognition(2, 4, key=jr.key(0))
        ),
        "`start` gives 3 latent dimensions and `context` 4",
    ),
    "a scale of the start": (
        lambda: LatentStart(2, scale=0.0),
        "`scale` must be one po",
    ),
    "a diffusion": (
        lambda: ConstantDiffusion(np.array([0.1, -1.0])),
        "`scale` must be one positi",
    ),
    "bounds": (
        lambda: NetDiffusion(2, bounds=(0.0, 1.0), key=jr.key(0)),
        "`bounds` must be positive and increase",
    ),
    "a short series": (
        lambda: call(networks("first frames"), _two_points(), jr.key(0)),
        "`FirstFrames` reads 3 points and got a series of 2",
    ),
    "one time": (
        lambda: networks().sample_prior(TIMES[:1], key=jr.key(0), num_samples=2),
        "`ts` must be at least two times",
    ),
}


def _two_points():
    return orn.Series.of([0.0, 1.0], np.zeros((2, 2, 2)))


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input(case):
    build, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        build()


def test_arrays_are_no_series():
    with pytest.raises(
        TypeError, match=r"takes a `Series` with rows first, got ndarray"
    ):
        networks()(np.zeros((2, 3, 1)), key=jr.key(0))


@pytest.mark.slow
def test_a_trained_network_reaches_the_evidence():
    """Within 0.05 nats an observation, from nothing but the series."""
    process = OrnsteinUhlenbeck(rate=exact.RATE, scale=exact.SIGMA)
    keys = jr.split(jr.key(0), 3)
    recognition = GRURecognition(1, 1, hidden_size=16, context_size=8, key=keys[0])
    model = orn.LatentSDE.make(
        recognition,
        1,
        prior=process,
        start=LatentStart(1, mean=exact.MEAN, scale=exact.SPREAD),
        drift_widths=(32,),
        integrator=orn.Integrator(EulerMaruyama(), Grid(num_substeps=6)),
        estimator=StickTheLanding(),
        key=keys[1],
    )
    model = eqx.tree_at(lambda m: m.decoder, model, exact.Slope())
    x = exact.copies(64)
    fit = orn.fit(
        model,
        Split(x, x),
        exact.LIKELIHOOD,
        key=keys[2],
        num_epochs=2500,
        batch_size=64,
        learning_rate=1e-2,
    )
    log_weight, _ = weigh(fit.model, exact.copies(NUM_PATHS), jr.key(1))
    evidence = exact.kalman(exact.TS, exact.VALUES, exact.MASK, 6).evidence
    gap = evidence - float(np.mean(log_weight))
    assert -0.01 < gap < 0.05 * np.sum(exact.MASK)
