"""Faults that records of training, or gradients, show."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from diagnosis.small_fit import DATA, with_model
from jaxtyping import Array

import ornstein as orn
from ornstein.diagnosis import Diagnosis, diagnose
from ornstein.nn import MLP

KEY = jr.key(2)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 1)).astype(np.float32)
NOISE = RNG.normal(size=(400, 1)).astype(np.float32)


def names(found: Diagnosis) -> list[str]:
    """But for bands: 20 epochs leave none that hold what they say."""
    each = [finding.name for finding in found.findings]
    return [name for name in each if name != "coverage-off"]


def mean_field(*, learning_rate: float) -> orn.Fit:
    model = orn.MeanField(MLP(1, 1, (4,), key=jr.key(0)), init_scale=0.1)
    return orn.fit(
        model,
        DATA.train,
        orn.Gaussian(0.1414),
        key=jr.key(1),
        num_epochs=20,
        batch_size=8,
        learning_rate=learning_rate,
    )


def test_kl_still():
    """A rate at which nothing moves, against one at which the KL does."""
    still = diagnose(mean_field(learning_rate=1e-9), DATA.test, key=KEY)
    assert names(still) == ["kl-still"]
    moved = diagnose(mean_field(learning_rate=1e-2), DATA.test, key=KEY)
    assert names(moved) == []
    assert moved.numbers["kl_change"] > 0.01


def test_kl_of_a_path_that_stays_at_the_prior():
    """Changes by all of itself, and is nothing."""
    model = orn.SDEBNN.for_vectors(1, 1, key=jr.key(0))
    fit = orn.Fit(model, orn.Gaussian(0.1), None, {})
    values = np.array([0.0, 1e-4, 2e-4, 1e-4])
    history = {"grad_norm": np.ones(4), "kl_path": values}
    assert "kl-still" in names(diagnose(fit, DATA.test, key=KEY, history=history))
    history |= {"kl_path": 1e4 * values}
    found = diagnose(fit, DATA.test, key=KEY, history=history)
    assert "kl-still" not in names(found)


class Rooted(eqx.Module):
    """Finite everywhere, and its gradient is not."""

    weight: Array
    shift: Array

    def __call__(self, x: Array) -> Array:
        return self.weight * x + jnp.sqrt(jnp.abs(self.shift))


def test_gradient_nan():
    """In the gradient alone, in a record alone, and in the parameters."""
    rooted = Rooted(jnp.ones(()), jnp.zeros(()))
    fit = orn.Fit(orn.Deterministic(rooted), orn.Gaussian(0.1), None, {})
    found = diagnose(fit, DATA.test, key=KEY)
    assert names(found) == ["gradient-nan"]
    assert "the gradient at the parameters" in found.findings[0].message
    sound = with_model(
        fit, eqx.tree_at(lambda m: m.network.shift, fit.model, jnp.ones(()))
    )
    assert names(diagnose(sound, DATA.test, key=KEY)) == []
    history = {"grad_norm": np.array([1.0, np.inf, 1.0])}
    found = diagnose(sound, DATA.test, key=KEY, history=history)
    assert "history['grad_norm']" in found.findings[0].message
    lost = eqx.tree_at(lambda m: m.network.shift, fit.model, jnp.full((), jnp.nan))
    found = diagnose(with_model(fit, lost), DATA.test, key=KEY)
    assert names(found) == ["gradient-nan"]
    assert "the parameters" in found.findings[0].message


def test_gradient_of_a_network_whose_dropout_is_off():
    """Catches (seen) dropout that is on again, and has no key."""
    silent = eqx.nn.Dropout(0.5, inference=True)
    network = eqx.nn.Sequential([silent, eqx.nn.Linear(1, 1, key=jr.key(0))])
    fit = orn.Fit(orn.Deterministic(network), orn.Gaussian(0.1), None, {})
    found = diagnose(fit, DATA.test, key=KEY)
    assert found.numbers["num_places_not_finite"] == 0


@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_gradient_noise(slope: float):
    """Targets that have nothing to do with the inputs, and targets that do.

    Both fits end in gradients without signal, as all do; one has explained something.
    """
    split = orn.data.Split(X, slope * X + NOISE)
    fit = orn.fit(
        orn.Deterministic(MLP(1, 1, (), key=jr.key(0))),
        split,
        orn.Gaussian(1.0),
        key=jr.key(1),
        num_epochs=30,
        batch_size=20,
        learning_rate=0.05,
    )
    found = diagnose(fit, split, key=KEY)
    assert names(found) == ([] if slope else ["gradient-noise"])
    assert 0.01 < found.numbers["gradient_snr"] < 0.1


def test_gradients_of_a_dead_group():
    """By the name of the group, whatever the fit explains."""
    fit = mean_field(learning_rate=1e-2)
    silent = {"gradient_snr_noise": np.zeros(20), "step": np.arange(1, 21) * 10}
    found = diagnose(fit, DATA.test, key=KEY, history=fit.history | silent)
    assert names(found) == ["gradient-noise"]
    finding = next(f for f in found.findings if f.name == "gradient-noise")
    assert "most entries of the noise have none" in finding.message


def test_wrong_num_data():
    """A batch's size passed to `elbo_loss` in a loop of one's own; rows repeated."""
    model = orn.MeanField(MLP(1, 1, (4,), key=jr.key(0)), init_scale=0.1)
    likelihood = orn.Gaussian(0.1414)
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    optimiser = optax.adam(1e-2)

    @eqx.filter_jit
    def step(params, opt_state, rows, key, num_data: int):
        def loss_fn(params):
            batch = (jnp.asarray(DATA.train.x)[rows], jnp.asarray(DATA.train.y)[rows])
            model = eqx.combine(params, rest)
            return orn.elbo_loss(model, likelihood, batch, num_data=num_data, key=key)

        grads, info = jax.grad(loss_fn, has_aux=True)(params)
        updates, opt_state = optimiser.update(grads, opt_state)
        loss, _ = loss_fn(params)
        records = {"loss": loss, "log_likelihood": info.log_likelihood, "kl": info.kl}
        return optax.apply_updates(params, updates), opt_state, records

    def train(num_data: int) -> Diagnosis:
        moving, opt_state, records = params, optimiser.init(params), []
        for i in range(10):
            rows = jnp.arange(8) + 8 * (i % 5)
            key = jr.fold_in(jr.key(1), i)
            moving, opt_state, record = step(moving, opt_state, rows, key, num_data)
            records.append(record)
        history = {
            name: np.array([float(r[name]) for r in records]) for name in records[0]
        }
        fit = orn.Fit(eqx.combine(moving, rest), likelihood, None, {})
        options = {"history": history, "num_data": len(DATA.train)}
        return diagnose(fit, DATA.test, key=KEY, **options)

    right, wrong = train(40), train(8)
    assert "wrong-num-data" not in names(right)
    assert right.numbers["num_data_used"] == pytest.approx(40, rel=1e-3)
    assert "wrong-num-data" in names(wrong)
    assert wrong.numbers["num_data_used"] == pytest.approx(8, rel=1e-3)


def test_repeated_rows():
    """`fit` counts each of them; the caller says how many there are."""
    split = jax.tree.map(lambda a: np.concatenate([a] * 3), DATA.train)
    model = orn.MeanField(MLP(1, 1, (4,), key=jr.key(0)), init_scale=0.1)
    fit = orn.fit(model, split, orn.Gaussian(0.1414), key=jr.key(1), num_epochs=2)
    assert names(diagnose(fit, DATA.test, key=KEY, num_data=40)) == ["wrong-num-data"]


def test_bad_input():
    model = orn.Deterministic(MLP(1, 1, (), key=KEY))
    fit = orn.Fit(model, orn.Gaussian(0.1), None, {})
    with pytest.raises(ValueError, match="`num_draws` must be at least 1"):
        diagnose(fit, DATA.test, key=KEY, num_draws=0)
    empty = orn.data.Split(X[:0], NOISE[:0])
    with pytest.raises(ValueError, match="`split` has no rows"):
        diagnose(fit, empty, key=KEY)
