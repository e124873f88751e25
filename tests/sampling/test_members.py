"""Chains that start from optimised members: an ensemble's, or members of their own."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.mcmc import HMC
from ornstein.potential import Potential
from ornstein.prior import GaussianPrior
from ornstein.sampling import optimised_starts, sample
from ornstein.train import NonFiniteError

PRIOR = GaussianPrior(1.5)
STILL = HMC(1, 1e-6, adapt_step_size=False, adapt_mass=False)


def rows(num: int = 30):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num, 2)).astype("float32")
    y = x @ [[1.0], [-2.0]] + 0.4 * rng.normal(size=(num, 1))
    return SimpleNamespace(x=x, y=y.astype("float32"))


def network(key: int = 0, width: int = 3):
    return orn.nn.MLP(2, 1, [width], key=jr.key(key))


def noise():
    return orn.Gaussian(0.5, learn_scale=True)


def run(starts, model=None, **options):
    options = {"num_samples": 1, "num_warmup": 0, "num_chains": 3} | options
    return sample(
        network() if model is None else model,
        rows(),
        options.pop("likelihood", noise()),
        kernel=STILL,
        prior=PRIOR,
        likelihood_prior=GaussianPrior(1.0),
        key=jr.key(2),
        starts=starts,
        **options,
    )


@pytest.fixture(scope="module")
def fitted():
    ensemble = orn.Ensemble([network(key) for key in range(3)])
    return orn.fit(ensemble, rows(), noise(), key=jr.key(1), num_epochs=3)


def test_a_chain_from_each_member(fitted):
    """Catches the members in another order (seen), and the scale before it was learned.

    The steps are so short that a first sample is where its chain began.
    """
    samples = run(fitted)
    params, scale = samples.positions
    for number in range(3):
        own = jax.tree.leaves(eqx.filter(fitted.model.member(number), eqx.is_array))
        chain = [np.asarray(a)[number, 0] for a in jax.tree.leaves(params)]
        for found, wanted in zip(chain, own, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-4)
    log_scale = float(fitted.likelihood.log_scale)
    assert abs(log_scale - np.log(0.5)) > 1e-3
    np.testing.assert_allclose(scale.log_scale, log_scale, atol=1e-4)
    assert samples.starts == "at the 3 members of an ensemble, one chain from each"
    # An ensemble by itself has learned no scale.
    _, scale = run(fitted.model).positions
    np.testing.assert_allclose(scale.log_scale, np.log(0.5), atol=1e-4)


@pytest.mark.parametrize("kind", ["map", "deterministic"])
def test_all_chains_start_at_a_network_that_was_trained(kind):
    """Catches its scale before it was learned, and chains that are not told apart from
    those that start apart (R-hat of them shows no other mode)."""
    net = network(3)
    model = (
        orn.functions.MAP.of(net, PRIOR) if kind == "map" else orn.Deterministic(net)
    )
    fit = orn.fit(model, rows(), noise(), key=jr.key(1), num_epochs=3)
    samples = run(fit)
    params, scale = samples.positions
    wanted = eqx.filter(fit.model.network, eqx.is_array)
    for found, own in zip(*map(jax.tree.leaves, (params, wanted)), strict=True):
        first = np.asarray(found)[:, 0]
        np.testing.assert_allclose(first, np.stack([own] * 3), atol=1e-4)
    np.testing.assert_allclose(scale.log_scale, fit.likelihood.log_scale, atol=1e-4)
    assert abs(float(fit.likelihood.log_scale) - np.log(0.5)) > 1e-3
    assert samples.starts == "from one point, a network that was trained"
    with pytest.raises(ValueError, match="another network than the one"):
        run(fit, network(width=4))


@pytest.mark.parametrize("by", ["starts", "jitter"])
def test_a_note_on_one_point_names_what_put_chains_there(by):
    """Of chains that agree. Catches advice to leave out what nobody gave."""
    net, likelihood = eqx.nn.Linear(2, 1, key=jr.key(0)), orn.Gaussian(0.5)
    options = {"jitter": 0.01}
    if by == "starts":
        model = orn.functions.MAP.of(net, PRIOR)
        fit = orn.fit(model, rows(), likelihood, key=jr.key(1), num_epochs=3)
        options = {"starts": fit}
    samples = sample(
        net,
        rows(),
        likelihood,
        kernel=HMC(25, 0.1, jitter=0.1),
        prior=PRIOR,
        key=jr.key(2),
        num_samples=1000,
        num_warmup=100,
        **options,
    )
    assert any(f"leave out `{by}`" in note for note in samples.notes), samples.notes


class Indexed(eqx.Module):
    """A network with whole numbers of 64 bits."""

    linear: eqx.nn.Linear
    index: np.ndarray

    def __call__(self, x):
        return jax.vmap(self.linear)(x[:, self.index])


def test_numpys_whole_numbers_are_no_other_network():
    net = Indexed(eqx.nn.Linear(2, 1, key=jr.key(0)), np.array([1, 0]))
    samples = run(orn.Deterministic(net), net)
    found = np.asarray(samples.positions[0].linear.weight)[:, 0]
    np.testing.assert_allclose(found, np.stack([net.linear.weight] * 3), atol=1e-4)


def test_members_of_equinox_networks():
    """Catches the wrapper around such a network taken for another network."""
    nets = [eqx.nn.MLP(2, 1, 3, 1, key=jr.key(k)) for k in range(2)]
    samples = run(orn.Ensemble(nets), nets[0], num_chains=2)
    found = np.asarray(samples.positions[0].layers[0].weight)[:, 0]
    wanted = [net.layers[0].weight for net in nets]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_only_what_is_sampled_may_differ(fitted):
    """With `where`, members whose other weights are not the network's are refused."""
    last = lambda net: net.layers[-1]
    with pytest.raises(ValueError, match="in parameters that are not: give"):
        run(fitted, where=last)
    other = eqx.tree_at(last, network(), last(network(7)))
    samples = run(orn.Ensemble([network(), other]), where=last, num_chains=2)
    found = np.asarray(samples.positions[0].layers[-1].weight)[1, 0]
    np.testing.assert_allclose(found, last(other).weight, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"num_chains": 4}, ValueError, "has 3 members.*give `num_chains` 3"),
        ({"model": network(width=4)}, ValueError, "another network than the one"),
        (
            {"model": orn.nn.MLP(2, 1, [3], activation=jnp.sin, key=jr.key(0))},
            ValueError,
            "and they compute something else",
        ),
        (
            {"likelihood": orn.StudentT(4.0, 0.5, learn_scale=True)},
            ValueError,
            "are to sample the scale of `StudentT`; give the one",
        ),
        ({"jitter": 0.1}, ValueError, "both say where chains start"),
    ],
)
def test_other_members_are_refused(fitted, options, kind, said):
    with pytest.raises(kind, match=said):
        run(fitted, **options)


def test_members_that_are_no_networks_are_refused():
    noisy = orn.Ensemble([orn.MeanField(network(k), PRIOR) for k in range(3)])
    with pytest.raises(TypeError, match="`Ensemble of MeanField`"):
        run(noisy)
    with pytest.raises(TypeError, match="got `MeanField`: give `starts` an"):
        run(orn.MeanField(network(), PRIOR))


def optimised(**options):
    options = {"num_chains": 3, "num_steps": 300, "key": jr.key(5)} | options
    model = options.pop("model", eqx.nn.Linear(2, 1, key=jr.key(0)))
    return optimised_starts(
        model, rows(), orn.Gaussian(0.4), prior=options.pop("prior", PRIOR), **options
    )


def test_members_reach_the_maximum_a_posteriori():
    """Of a linear network there is one, in closed form. Catches the prior left out
    (seen), and a member that meets another's gradient."""
    starts = optimised(prior=GaussianPrior(0.1), num_steps=1500)
    x, y = np.asarray(rows().x, float), np.asarray(rows().y, float)
    design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    precision = design.T @ design / 0.4**2 + np.eye(3) / 0.1**2
    exact = np.linalg.solve(precision, design.T @ y[:, 0] / 0.4**2)
    layer = starts.positions[0]
    found = np.concatenate([layer.weight[:, 0], layer.bias], axis=1)
    np.testing.assert_allclose(found, np.tile(exact, (3, 1)), atol=1e-4)


def test_members_are_their_own_and_the_same_however_they_are_cut(monkeypatch):
    """Catches batches that depend on how many steps a call has, and members
    with one beginning."""
    few = {"model": network(), "num_steps": 40, "batch_size": 5}
    whole = optimised(**few)
    monkeypatch.setattr("ornstein.sampling._optimised._CALL_SECONDS", 0.0)
    again = optimised(**few)
    assert eqx.tree_equal(whole.positions, again.positions)
    weight = np.asarray(whole.positions[0].layers[0].weight)
    assert np.min(abs(weight[0] - weight[1])) > 1e-3
    near = optimised(**few | {"num_chains": 2})
    first = np.asarray(near.positions[0].layers[0].weight)[0]
    assert first.shape == weight[0].shape


def test_chains_start_at_optimised_members():
    model = network()
    starts = optimised(model=model)
    options = {"likelihood": orn.Gaussian(0.4)}
    samples = run(starts, model, **options)
    assert samples.starts == starts.how
    assert "optimised by 300 steps of Adam" in str(samples.starts)
    found = np.asarray(samples.positions[0].layers[0].weight)[:, 0]
    wanted = np.asarray(starts.positions[0].layers[0].weight)
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    target = Potential(model, rows(), orn.Gaussian(0.4), prior=PRIOR)
    energy = jax.vmap(target)(starts.positions)
    assert np.max(np.asarray(energy)) < float(target(target.start)) - 20


def test_members_that_leave_the_finite_numbers():
    with pytest.raises(NonFiniteError, match="divide its `learning_rate` by 10"):
        optimised(learning_rate=1e30, num_steps=40)
    with pytest.raises(ValueError, match="`learning_rate` must be positive"):
        optimised(learning_rate=0.0)
    with pytest.raises(ValueError, match="num_steps"):
        optimised(num_steps=0)


class Heard:
    """A callback that writes down what it hears."""

    def __init__(self):
        self.calls = []

    def start(self, plan):
        self.calls.append(("start", plan.num_steps))

    def advance(self, step, record):
        self.calls.append((record["phase"], step))
        if step > 8:
            raise KeyboardInterrupt

    def stop(self):
        self.calls.append(("stop", None))


def test_callbacks_hear_of_members_and_end_them():
    heard = Heard()
    with pytest.raises(KeyboardInterrupt):
        optimised(num_steps=10**6, callbacks=[heard])
    assert heard.calls[0] == ("start", 10**6)
    assert heard.calls[1] == ("members", 1)
    assert heard.calls[-1] == ("stop", None)
    assert heard.calls[-2][1] < 10**4  # calls follow the clock, not steps
