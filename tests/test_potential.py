"""Potentials against densities written out by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from ornstein.data._base import Split
from ornstein.likelihood import Categorical, CustomLikelihood, Gaussian
from ornstein.network import split_where
from ornstein.nn import MLP
from ornstein.potential import DensityPotential, Potential, Tempered
from ornstein.prior import GaussianPrior, fan_in_prior

NUM_DATA = 5
PRIOR_SCALE, NOISE = 2.0, 0.5


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(NUM_DATA, 2)).astype(np.float32)
    y = rng.normal(size=(NUM_DATA, 1)).astype(np.float32)
    return Split(x, y)


@pytest.fixture
def network(getkey):
    return MLP(2, 1, (3,), key=getkey())


@pytest.fixture
def potential(network, data):
    prior = GaussianPrior(PRIOR_SCALE)
    return Potential(network, data, Gaussian(NOISE), prior=prior, batch_size=2)


def moved(position, key):
    leaves, treedef = jax.tree.flatten(position)
    keys = jax.random.split(key, len(leaves))
    move = lambda a, key: a + 0.3 * jax.random.normal(key, a.shape)
    return jax.tree.unflatten(treedef, list(map(move, leaves, keys)))


def test_energy_by_hand(potential, network, data, getkey):
    position = moved(potential.start, getkey())
    params, _ = position
    network = eqx.combine(params, network)
    densities = [norm.logpdf(w, 0.0, PRIOR_SCALE) for w in jax.tree.leaves(params)]
    prior = float(sum(map(np.sum, densities)))
    output = network(jnp.asarray(data.x))
    likelihood = float(np.sum(norm.logpdf(data.y, output, NOISE)))
    assert potential(position) == pytest.approx(-prior - likelihood, rel=1e-5)
    assert potential.prior_energy(position) == pytest.approx(-prior, rel=1e-5)
    assert potential.likelihood_energy(position) == pytest.approx(-likelihood, rel=1e-5)


def test_estimate_is_unbiased_over_all_batches(potential, getkey):
    """Its value and gradient, averaged over every batch; catches a lost N/n."""
    position = moved(potential.start, getkey())
    keys = jax.random.split(getkey(), 400)
    batches = np.asarray(jax.vmap(lambda k: potential.draw_rows(key=k))(keys))
    one_of_each = {tuple(batch): i for i, batch in enumerate(batches)}
    assert len(one_of_each) == NUM_DATA**2  # with replacement, in order
    keys = keys[np.array(list(one_of_each.values()))]
    estimate = jax.value_and_grad(lambda q, key: potential.estimate(q, key=key))
    estimates = jax.jit(jax.vmap(estimate, in_axes=(None, 0)))(position, keys)
    mean = jax.tree.map(lambda a: jnp.mean(a, axis=0), estimates)
    exact = jax.value_and_grad(potential)(position)
    assert eqx.tree_equal(mean, exact, rtol=1e-4, atol=1e-4)


def test_a_batch_that_is_given_counts_for_all_rows(network, data, getkey):
    """By hand, of a sample of twice as many. Catches (seen) the sample's N / n."""
    prior, num_data = GaussianPrior(PRIOR_SCALE), 2 * NUM_DATA
    potential = Potential(
        network, data, Gaussian(NOISE), prior=prior, batch_size=2, num_data=num_data
    )
    position = moved(potential.start, getkey())
    x, y = jnp.asarray(data.x[:3]) + 1, jnp.asarray(data.y[:3])
    params, _ = position
    output = eqx.combine(params, network)(x)
    likelihood = num_data / 3 * np.sum(norm.logpdf(y, output, NOISE))
    expected = float(potential.prior_energy(position)) - float(likelihood)
    batch = potential.of_batch(x, y)
    assert batch.estimate(position, key=getkey()) == pytest.approx(expected, rel=1e-5)
    for energy_fn in (potential, batch):
        with pytest.raises(NotImplementedError, match=f"all {num_data} rows was asked"):
            energy_fn(position)
    with pytest.raises(ValueError, match="`num_data` is 1, fewer than the"):
        Potential(network, data, Gaussian(NOISE), prior=prior, num_data=1)


def test_batches_are_uniform_and_independent(potential):
    keys = jax.random.split(jax.random.key(0), 5_000)
    rows = np.asarray(jax.vmap(lambda k: potential.draw_rows(key=k))(keys))
    pairs = np.bincount(rows[:, 0] * NUM_DATA + rows[:, 1], minlength=NUM_DATA**2)
    expected = len(rows) / NUM_DATA**2
    assert np.max(np.abs(pairs - expected)) < 4.5 * np.sqrt(expected)


def test_row_gradients_against_the_jacobian(potential, getkey):
    position, rows = moved(potential.start, getkey()), jnp.array([3, 0, 3])
    energies = potential.row_energies(position, rows)
    total = jnp.sum(potential.row_energies(position, jnp.arange(NUM_DATA)))
    expected = float(potential.likelihood_energy(position))
    assert total == pytest.approx(expected, rel=1e-5)
    jacobian = jax.jacobian(lambda q: potential.row_energies(q, rows))(position)
    gradients = potential.row_gradients(position, rows)
    assert eqx.tree_equal(gradients, jacobian, rtol=1e-4, atol=1e-5)
    assert energies[0] == energies[2]


def test_tempered_divides_energy_and_estimate(potential, getkey):
    tempered, position, key = Tempered(potential, 4.0), potential.start, getkey()
    assert tempered(position) == pytest.approx(float(potential(position)) / 4)
    expected = float(potential.estimate(position, key=key)) / 4
    assert tempered.estimate(position, key=key) == pytest.approx(expected)


def test_noisy_gradients_of_a_density():
    """Mean the density's, variance as asked for, in each entry by itself."""
    density = DensityPotential(lambda q: -jnp.sum(q["a"] ** 3), gradient_noise=0.09)
    position = {"a": jnp.array([1.0, 2.0])}
    keys = jax.random.split(jax.random.key(0), 20_000)
    gradient = jax.grad(lambda q, key: density.estimate(q, key=key))
    found = jax.vmap(gradient, in_axes=(None, 0))(position, keys)["a"]
    noise = (np.asarray(found) - np.array([3.0, 12.0])) / 0.3
    assert np.max(np.abs(noise.mean(0))) < 4.5 / np.sqrt(len(keys))
    assert np.max(np.abs(np.cov(noise.T) - np.eye(2))) < 4.5 * np.sqrt(2 / len(keys))
    assert density(position) == pytest.approx(9.0)


def test_where_chooses_what_moves(network, data):
    last = lambda net: net.layers[-1]
    potential = Potential(
        network, data, Gaussian(NOISE), prior=GaussianPrior(1.0), where=last
    )
    params, _ = potential.start
    assert eqx.tree_equal(last(params), last(eqx.filter(network, eqx.is_array)))
    assert jax.tree.leaves(params.layers[0]) == []
    both = lambda net: (net.layers[0].weight, net.layers[1].bias)
    chosen, rest = split_where(network, both)
    assert len(jax.tree.leaves(chosen)) == 2
    assert eqx.tree_equal(eqx.combine(chosen, rest), network)
    # What stays is not differentiated.
    gradient, _ = jax.grad(potential)(potential.start)
    assert jax.tree.structure(gradient) == jax.tree.structure(params)


def test_learned_scale_has_its_own_prior(network, data):
    potential = Potential(
        network,
        data,
        Gaussian(NOISE, learn_scale=True),
        prior=GaussianPrior(1.0),
        likelihood_prior=GaussianPrior(3.0),
    )
    params, scale = potential.start
    log_scale = jax.tree.leaves(scale)
    assert len(log_scale) == 1
    wider = jax.tree.map(lambda a: a + 1.0, scale)
    change = potential.prior_energy((params, wider)) - potential.prior_energy(
        (params, scale)
    )
    log_prob = lambda value: np.sum(norm.logpdf(value, 0.0, 3.0))
    expected = log_prob(log_scale[0]) - log_prob(log_scale[0] + 1.0)
    assert change == pytest.approx(float(expected), rel=1e-3)
    # The scale of the likelihood itself has moved: e times as wide.
    _, likelihood = potential.combine((params, wider))
    assert jnp.exp(jax.tree.leaves(likelihood)[0]) == pytest.approx(NOISE * np.e)


def test_equinox_networks_of_one_example_are_adapted(data, getkey):
    network = eqx.nn.MLP(2, 1, 3, 1, key=getkey())
    potential = Potential(network, data, Gaussian(NOISE), prior=GaussianPrior(1.0))
    by_hand = -np.sum(
        norm.logpdf(data.y, jax.vmap(network)(jnp.asarray(data.x)), NOISE)
    )
    energy = potential.likelihood_energy(potential.start)
    assert energy == pytest.approx(float(by_hand), rel=1e-5)
    # `where` and priors are of the network as it was given.
    potential = Potential(
        network,
        data,
        Gaussian(NOISE),
        prior=fan_in_prior(network),
        where=lambda net: net.layers[-1],
    )
    assert potential.likelihood_energy(potential.start) == energy
    weight, bias = network.layers[-1].weight, network.layers[-1].bias
    prior = norm.logpdf(weight, 0.0, 1 / np.sqrt(3)).sum() + norm.logpdf(bias).sum()
    found = potential.prior_energy(potential.start)
    assert found == pytest.approx(-float(prior), rel=1e-5)


class BatchNormalised(eqx.Module):
    norm: eqx.nn.BatchNorm

    def __call__(self, x):
        return x


class FlatOutput(eqx.Module):
    """A network whose output has no axis of its own."""

    network: eqx.Module

    def __call__(self, x):
        return self.network(x)[..., 0]  # pyright: ignore[reportCallIssue]


def refusal(network, data, likelihood=None, **settings):
    settings = {"prior": GaussianPrior(1.0)} | settings
    return Potential(network, data, likelihood or Gaussian(NOISE), **settings)


class Doubled(eqx.Module):
    """A network with each output twice."""

    network: eqx.Module

    def __call__(self, x):
        return jnp.repeat(self.network(x), 2, axis=-1)  # pyright: ignore[reportCallIssue]


def test_outputs_that_are_not_one_for_each_row_are_refused(network, data):
    """Before a step is taken. Catches (seen) (rows,) for (rows, 1), whose likelihood is
    one number of all rows, which a batch then counted once for each of its rows."""
    flat, column = FlatOutput(network), Split(data.x, data.y[:, 0])
    for split in (column, data):
        with pytest.raises(ValueError, match=r"a scalar for each row, .*shape \(1,\)"):
            refusal(flat, split)
    said = r"of a batch of \d+ rows has shape \(\)"
    whole = CustomLikelihood(lambda output, y: jnp.sum(output - y))
    one = Split(data.x[:1], data.y[:1])
    for split in (data, one):
        with pytest.raises(ValueError, match=said):
            refusal(network, split, whole)
    assert refusal(network, one).num_rows == 1
    by_output = CustomLikelihood(lambda output, y: jnp.sum(output - y, axis=0))
    pair = Split(data.x, np.repeat(data.y, 2, axis=1))
    with pytest.raises(ValueError, match=r"of a batch of \d+ rows has shape \(2,\)"):
        refusal(Doubled(network), pair, by_output)


def test_refusals(network, data):
    normalised = BatchNormalised(eqx.nn.BatchNorm(2, "batch", mode="ema"))
    with pytest.raises(ValueError, match="has batch statistics"):
        refusal(normalised, data)
    with pytest.raises(ValueError, match="no parameters to sample"):
        refusal(lambda x: x, data)
    with pytest.raises(ValueError, match="no parameters to sample"):
        refusal(network, data, where=lambda net: ())
    with pytest.raises(ValueError, match="learns its scale, which needs a prior"):
        refusal(network, data, Gaussian(NOISE, learn_scale=True))
    with pytest.raises(ValueError, match=r"The prior has shape \(7,\)"):
        refusal(network, data, prior=GaussianPrior(np.ones(7)))
    with pytest.raises(ValueError, match=r"The prior has shape \(7,\)"):
        refusal(
            network,
            data,
            Gaussian(NOISE, learn_scale=True),
            likelihood_prior=GaussianPrior(np.ones(7)),
        )
    with pytest.raises(ValueError, match="`batch_size` must be at least 1, got 0"):
        refusal(network, data, batch_size=0)
    with pytest.raises(ValueError, match="class"):
        refusal(network, data, Categorical())
    with pytest.raises(ValueError, match="takes 4 numbers a row, and x has 2"):
        refusal(eqx.nn.Sequential([eqx.nn.Linear(4, 1, key=jax.random.key(0))]), data)
    with pytest.raises(ValueError, match="`temperature` must be positive, got 0"):
        Tempered(DensityPotential(jnp.sum), 0.0)
    with pytest.raises(ValueError, match="`gradient_noise` must not be negative"):
        DensityPotential(jnp.sum, gradient_noise=-1.0)
