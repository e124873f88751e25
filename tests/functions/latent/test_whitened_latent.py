"""`whiten` of a latent SDE: one path as a function of independent standard normals."""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.latent import linear_gaussian as exact

import ornstein as orn
from ornstein._normals import standard_normal
from ornstein.data import Split
from ornstein.functions import (
    ConstantDiffusion,
    GridIncrements,
    LevyCiesielski,
    LinearDrift,
    NoRecognition,
    WhitenedLatentSDE,
    diagnose_chains,
)
from ornstein.sde import (
    KL,
    SRA1,
    Adaptive,
    Backprop,
    EulerMaruyama,
    Fixed,
    Grid,
    Heun,
    Milstein,
    Reversible,
    ReversibleHeun,
)

TS = np.array([0.0, 0.3, 0.5, 1.0, 1.1])
SEEN = np.flatnonzero(exact.MASK)


def net_model(solver=None, diffusion=None, **how) -> orn.LatentSDE:
    """A drift network, and by default noise that depends on the state."""
    solver = EulerMaruyama() if solver is None else solver
    steps = how.pop("stepsize", Grid(num_substeps=3))
    return orn.LatentSDE.make(
        NoRecognition(2),
        3,
        diffusion=diffusion,
        integrator=orn.Integrator(solver, steps, how.pop("gradient", Backprop())),
        key=jr.key(4),
    )


def normals(network: WhitenedLatentSDE, key) -> WhitenedLatentSDE:
    """The network at the very normals of `LatentSDE.sample_prior`'s first path."""
    z_key, path_key = jr.split(jr.split(key, 1)[0])
    steps = jnp.arange(network.path.shape[0], dtype=jnp.uint32)
    shape = network.start.shape
    draw = lambda step: standard_normal(jr.fold_in(path_key, step), shape)
    path = jax.vmap(draw)(steps)
    where = lambda n: (n.start, n.path)
    return eqx.tree_at(where, network, (jr.normal(z_key, shape), path))


@pytest.mark.parametrize(
    ("solver", "diffusion"),
    [
        (EulerMaruyama(), None),
        (Milstein(), None),
        (Heun(), ConstantDiffusion(0.7)),
        (ReversibleHeun(), ConstantDiffusion(np.array([0.7, 0.2]))),
    ],
    ids=["Euler", "Milstein", "Heun", "ReversibleHeun"],
)
def test_a_prior_draw_is_the_models_own_to_the_last_bit(solver, diffusion):
    """Of Euler's method; of longer formulas to rounding, which a compiler orders."""
    model = net_model(solver, diffusion)
    network = normals(orn.whiten(model, ts=TS, point_scale=None), jr.key(7))
    own = model.sample_prior(TS, key=jr.key(7), num_samples=1)
    found = network.latent_path()
    assert float(jnp.ptp(found)) > 0.3
    if isinstance(solver, EulerMaruyama):
        np.testing.assert_array_equal(found, own.z[0])
    np.testing.assert_allclose(found, own.z[0], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(network(TS), own.output[0], rtol=2e-6, atol=2e-6)


def linear_network(coordinates, ts=exact.TS, num_substeps=2) -> WhitenedLatentSDE:
    return orn.whiten(exact.exact_model(num_substeps, KL()), coordinates, ts=ts)


def gaussian_posterior(network, ts, seen, values) -> tuple[np.ndarray, np.ndarray]:
    """Of z(t) in a linear model: z and output are affine in ξ ~ N(0, I)."""
    params, static = eqx.partition(network, eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    z_at = lambda xi: eqx.combine(unravel(xi), static).latent_path(ts)[:, 0]
    slope = np.asarray(jax.jacobian(z_at)(flat), np.float64)
    level = np.asarray(z_at(jnp.zeros_like(flat)), np.float64)
    design = exact.SLOPE * slope[seen] / exact.NOISE
    covariance = np.linalg.inv(np.eye(len(flat)) + design.T @ design)
    error = (values[seen] - exact.SLOPE * level[seen]) / exact.NOISE
    mean = level + slope @ covariance @ design.T @ error
    return mean, np.diag(slope @ covariance @ slope.T)


def test_the_posterior_of_a_linear_path_is_the_smoothers():
    """In closed form, at irregular times. Catches (seen) increments of the wrong
    variance, and a start that is not standardised."""
    network = linear_network(GridIncrements())
    found = gaussian_posterior(network, exact.TS, SEEN, exact.VALUES)
    smoothed = exact.kalman(exact.TS, exact.VALUES, exact.MASK, 2)
    np.testing.assert_allclose(found[0], smoothed.mean, atol=2e-5)
    np.testing.assert_allclose(found[1], smoothed.variance, atol=2e-5)


def test_as_many_modes_as_equal_steps_are_all_paths():
    """Then the posterior is the smoother's; with a quarter of them it is smoother.
    Catches (seen) modes on [0, 1] for a path on [0, 2]."""
    ts, seen = np.linspace(0.0, 2.0, 9), np.array([1, 2, 5, 8])
    values = np.where(np.isin(np.arange(9), seen), np.cos(3 * ts), 9.0)
    smoothed = exact.kalman(ts, values, np.isin(np.arange(9), seen), 2)
    found = {
        modes: gaussian_posterior(
            linear_network(LevyCiesielski(modes), ts), ts, seen, values
        )
        for modes in (16, 4)
    }
    np.testing.assert_allclose(found[16][0], smoothed.mean, atol=2e-5)
    np.testing.assert_allclose(found[16][1], smoothed.variance, atol=2e-5)
    assert np.all(found[4][1] < smoothed.variance)
    assert np.abs(found[4][0] - smoothed.mean).max() > 1e-2


def test_increments_are_sums_on_a_coarser_grid():
    """The same Brownian path, in both of its forms. Catches (seen) sums of standard
    normals that are not scaled by their own steps."""
    fine = np.array([0.0, 0.1, 0.3, 0.6, 0.7, 1.0])
    coarse = fine[[0, 2, 3, 5]]
    bound = GridIncrements().on_grid(fine, (0.0, 1.0))
    for grid in (fine, coarse):
        units = bound.units(grid, (0.0, 1.0))
        np.testing.assert_allclose(units @ units.T, np.eye(len(grid) - 1), atol=1e-12)
        steps = np.diff(bound.matrix(grid, 0.0, (0.0, 1.0)), axis=0)
        np.testing.assert_allclose(units * np.sqrt(np.diff(grid))[:, None], steps)


def sampled(network, split, likelihood, **how) -> orn.PosteriorSamples:
    return orn.sample(
        network,
        split,
        likelihood,
        kernel=orn.HMC(num_integration_steps=3),
        prior=orn.GaussianPrior(1.0),
        key=jr.key(2),
        num_chains=2,
        **how,
    )


def test_chains_over_a_linear_path_reach_the_smoother():
    """Means and variances of z(t), within Monte Carlo error. Catches (seen) a decoder
    that reads the path one time late, and observations counted twice."""
    network = linear_network(GridIncrements())
    split = Split(exact.TS[SEEN].astype(np.float32), exact.VALUES[SEEN, None])
    samples = sampled(
        network, split, orn.Gaussian(exact.NOISE), num_warmup=300, num_samples=2000
    )
    path = jax.vmap(jax.vmap(lambda p: eqx.combine(p, samples.network).latent_path()))
    z = np.asarray(path(samples.positions[0])[..., 0], np.float64)
    smoothed = exact.kalman(exact.TS, exact.VALUES, exact.MASK, 2)
    squares = (z - smoothed.mean) ** 2
    for draws, wanted in ((z, smoothed.mean), (squares, smoothed.variance)):
        ess = np.asarray(diagnose_chains(jnp.asarray(draws)).ess_bulk)
        assert ess.min() > 400, ess
        error = draws.std(axis=(0, 1)) / np.sqrt(ess)
        score = (draws.mean(axis=(0, 1)) - wanted) / error
        assert np.abs(score).max() < 4.5, score
        assert np.all(error < 0.1 * smoothed.variance**0.5)


def test_a_series_of_one_row_is_the_same_data_as_its_times():
    """With its mask, under `OverTime`; some features are missing at some times."""
    network = normals(orn.whiten(net_model(), ts=TS), jr.key(1))
    values = jr.normal(jr.key(0), (len(TS), 3))
    mask = np.arange(15).reshape(5, 3) % 4 > 0
    series = orn.Series.of(TS, values, mask)
    output = network(series)
    assert output.shape == (1, 5, 3)
    np.testing.assert_array_equal(output[0], network(series.ts[0]))
    np.testing.assert_array_equal(
        network(TS[[3, 1], None]), output[0][jnp.array([3, 1])]
    )
    found = orn.OverTime(orn.Gaussian(0.4)).log_prob(output, series)
    by_value = orn.Gaussian(0.4).marginals(output[0]).log_prob(values)
    of_seen = float(np.asarray(by_value)[mask].sum())
    assert float(found[0]) == pytest.approx(of_seen, rel=1e-5)


@eqx.filter_jit
def call(model, index):
    return model(jnp.asarray(TS), key=jr.key(3), index=index)


def families(network) -> dict[str, orn.AbstractRandomFunction]:
    prior = orn.GaussianPrior(1.0)
    mean_field = orn.MeanField(network, prior, init_scale=0.5)
    moved = eqx.tree_at(lambda n: n.path, network, network.path + 1)
    x = TS[1:].astype(np.float32)
    split = Split(x, np.sin(x)[:, None].repeat(3, axis=1))
    how = {"num_warmup": 4, "num_samples": 3}
    return {
        "MeanField": mean_field,
        "Ensemble": orn.Ensemble([network, moved]),
        "samples": sampled(network, split, orn.Gaussian(0.4), **how),
    }


def test_paths_of_samples_and_fits_are_those_of_their_draws():
    """Decoded they are the draw's output, and a dial turns them. Catches (seen) paths
    of other draws."""
    network = orn.whiten(net_model(), ts=TS)
    for name, model in families(network).items():
        z = orn.latent_paths(model, key=jr.key(3), num_draws=3)
        assert z.shape == (3, 5, 2), name
        for index in range(3):
            decode = model.network_at(index, key=jr.key(3)).decoder.module()
            output = call(model, jnp.asarray(index)).output
            np.testing.assert_allclose(decode(z[index]), output, atol=1e-5)
        coarse = orn.with_solver(model, stepsize=Grid(num_substeps=1))
        moved = orn.latent_paths(coarse, key=jr.key(3), num_draws=3) - z
        assert 1e-5 < float(jnp.abs(moved).max()) < 1.0, name


def test_what_is_kept_has_no_numbers_and_what_is_not_starts_where_it_was():
    """And a network whose law of motion is kept equals another of the same model."""
    model = net_model()
    kept, free = (orn.whiten(model, ts=TS, point_scale=s) for s in (None, 2.0))
    arrays = lambda n: jax.tree.leaves(eqx.filter(n, eqx.is_inexact_array))
    assert [a.shape for a in arrays(kept)] == [(2,), (12, 2)]
    assert set(kept.parameter_parts()) == {"start", "path"}
    assert set(free.parameter_parts()) == {"start", "path", "points"}
    np.testing.assert_allclose(free(TS), kept(TS), rtol=1e-5, atol=1e-6)
    weight = free.drift.numbers.net.layers[0].weight
    own = model.prior_drift.net.layers[0].weight
    np.testing.assert_allclose(weight * 2 / 2**0.5, own, rtol=1e-6)
    again = orn.whiten(model, ts=TS, point_scale=None)
    assert jax.tree.structure(again) == jax.tree.structure(kept)
    assert hash(again.drift.constants.net.layers[0].weight) == hash(
        kept.drift.constants.net.layers[0].weight
    )
    linear = net_model(diffusion=ConstantDiffusion(0.3, is_learned=True))
    linear = eqx.tree_at(lambda m: m.prior_drift, linear, LinearDrift(2))
    assert len(arrays(orn.whiten(linear, ts=TS))) == 6


CHEAP = {"ts": TS}
BAD = {
    "steps": (ValueError, "known beforehand, got `Adaptive`", {"stepsize": Adaptive()}),
    "gradient": (ValueError, "no `Reversible` gradient", {"gradient": Reversible()}),
    "area": (ValueError, "`SRA1` needs Lévy areas", {"solver": SRA1()}),
}


@pytest.mark.parametrize(("error", "match", "how"), BAD.values(), ids=BAD)
def test_solves_that_a_given_path_cannot_have_are_refused(error, match, how):
    own = {"solver": Heun(), "diffusion": ConstantDiffusion(0.5)} | how
    if "gradient" in how:
        own["solver"] = ReversibleHeun()
    with pytest.raises(error, match=match):
        orn.whiten(net_model(**own), **CHEAP)
    good = net_model(ReversibleHeun(), ConstantDiffusion(0.5))
    network = orn.whiten(good, **CHEAP)
    with pytest.raises(error, match=match):
        orn.with_solver(network, **how)(TS)
    if "steps" in match:
        with pytest.raises(ValueError, match="Grid"):
            orn.with_solver(network, stepsize=Fixed(0.1))(TS)


@pytest.mark.parametrize(
    ("error", "match", "coordinates", "ts"),
    [
        (TypeError, "needs `ts`", None, None),
        (NotImplementedError, "times of 2 series", None, np.stack([TS, TS])),
        (ValueError, "increase", None, TS[::-1]),
        (ValueError, "increase", None, 2e6 + TS / 9),
        (ValueError, "at least two times", None, TS[:1]),
        (ValueError, "at most 12 modes", LevyCiesielski(16), TS),
        (ValueError, "few modes would make it", LevyCiesielski(4), TS),
        (ValueError, "does not fit the 12", GridIncrements((0.0, 0.5, 1.1)), TS),
    ],
)
def test_coordinates_and_times_that_cannot_be_are_refused(
    error, match, coordinates, ts
):
    with pytest.raises(error, match=match):
        orn.whiten(net_model(), coordinates, ts=ts)


def test_a_finer_solve_than_the_increments_is_refused():
    network = orn.whiten(net_model(), ts=TS)
    with pytest.raises(ValueError, match="does not fit the 20 steps"):
        orn.with_solver(network, stepsize=Grid(num_substeps=5))(TS)


def test_several_series_and_other_times_are_refused():
    """At once, and inside compiled code too, where times are not known before."""
    network = orn.whiten(net_model(), ts=TS)
    two = orn.Series.of(TS, np.zeros((2, 5, 3)))
    likelihood = orn.OverTime(orn.Gaussian(0.4))
    for x in (two, np.stack([TS, TS])):
        with pytest.raises(NotImplementedError, match="is one path, and takes one"):
            network(x)
    with pytest.raises(NotImplementedError, match="is one path, and takes one"):
        sampled(network, Split(two, two), likelihood, num_warmup=1, num_samples=1)
    with pytest.raises(ValueError, match=r"0\.15 is not among them"):
        network(np.array([0.3, 0.15]))
    with pytest.raises(Exception, match="does not step on"):
        jax.block_until_ready(eqx.filter_jit(network)(jnp.array([0.3, 0.15])))
    function = orn.Deterministic(network)
    with pytest.raises(ValueError, match=r"0\.15 is not among them"):
        orn.latent_paths(function, np.array([0.3, 0.15]), key=jr.key(0))
    with pytest.raises(TypeError, match="needs samples of, or a fit over"):
        orn.latent_paths(net_model(), key=jr.key(0))
    with pytest.raises(TypeError, match="leave it out for an `SDEBNN`"):
        orn.whiten(orn.SDEBNN.for_vectors(2, 1, key=jr.key(0)), ts=TS)
