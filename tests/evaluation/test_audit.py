"""Whether a posterior does anything, against relatives put together by hand."""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import away_from_prior
from functions.small_networks import Normalised

import ornstein as orn
from ornstein.data import Data, Split, load
from ornstein.evaluation import Relative, audit
from ornstein.evaluation._bound import DrawSums, log_likelihood_bought
from ornstein.evaluation._verdict import judge
from ornstein.functions import MAP, HeldAtPrior
from ornstein.nn import MLP
from ornstein.prediction import FittedModel

KEY, NUM_DRAWS = jr.key(2), 4
DATA = load("toy/cos")


def relative(kind: str, gain: float, error: float = 0.01) -> Relative:
    return Relative(f"{kind} one", kind, {}, gain, error, 0.0)


@pytest.mark.parametrize(
    ("verdict", "gains", "said"),
    [
        ("does nothing", {"put back": 0.02, "twin": 0.02}, "0.02 ± 0.01"),
        ("does nothing", {"put back": -0.0009, "twin": -0.5}, "0.5 ± 0.01"),
        ("does nothing", {"silenced": 0.02}, "0.02 ± 0.01"),
        ("in between", {"put back": 0.025, "twin": 0.02}, "too few to tell"),
        ("does", {"put back": 0.5, "twin": 0.2}, "0.2 ± 0.01"),
        ("in between", {"put back": 0.5}, "no twins were trained"),
        ("in between", {"put back": 0.5, "twin": 0.02}, "no different (0.02"),
        ("in between", {"put back": 0.5, "twin": -0.2}, "0.2 ± 0.01 nats a row better"),
        ("in between", {"put back": -0.5, "twin": 0.2}, "0.5 ± 0.01 nats a row better"),
        ("in between", {"put back": 0.0, "twin": 0.2}, "no part of it does anything"),
        ("in between", {"put back": math.inf}, "no twins were trained"),
        (
            "in between",
            {"put back": 0.5, "twin": 3e7},
            "a twin so far behind is broken",
        ),
    ],
)
def test_verdicts(verdict: str, gains: dict[str, float], said: str):
    """Catches (seen) a threshold without the error. Two twins must both be beaten."""
    relatives = [relative(kind, gain) for kind, gain in gains.items()]
    found, sentence = judge(relatives)
    assert found == verdict
    assert said in sentence
    assert sentence.endswith(".")
    if verdict == "does":
        assert judge([*relatives, relative("twin", 0.0)])[0] == "in between"


def test_what_counts():
    """From three standard errors on, and from a thousandth of a nat."""
    verdicts = [
        judge([relative("put back", gain, error)])[0]
        for gain, error in ((0.0029, 1e-3), (0.0031, 1e-3), (9e-4, 0.0), (1.1e-3, 0.0))
    ]
    assert verdicts == ["does nothing", "in between"] * 2


@pytest.fixture(scope="module")
def fit() -> FittedModel:
    """Of two parts, both away from the prior."""
    model = orn.SDEBNN.for_vectors(
        1,
        1,
        width_sizes=(3,),
        drift_widths=(3,),
        num_inducing=0,
        start_width=0.1,
        integrator=orn.Integrator(stepsize=orn.sde.Fixed(0.25)),
        key=jr.key(0),
    )
    return FittedModel(away_from_prior(model, scale=2.0), orn.Gaussian(0.3))


def log_prob(fit: Any, split: Split) -> np.ndarray:
    prediction = orn.predict(fit, split.x, key=KEY, num_draws=NUM_DRAWS)
    return np.asarray(prediction.log_prob(split.y), np.float64)


def test_relatives_by_hand(fit: FittedModel):
    """With paired errors. Catches (seen) "all parts" that is only the last of them."""
    found = audit(fit, DATA, key=KEY, num_draws=NUM_DRAWS)
    model = fit.model
    path = orn.without_drift(model)
    prior = orn.prior_of(model)
    start = eqx.tree_at(  # the prior's w0, and the posterior's own drift
        lambda m: [layer.drift for layer in m.layers[1:]],
        prior,
        [layer.drift for layer in model.layers[1:]],
    )
    silent = orn.without_noise(model)
    expected = {
        "start at prior": start,
        "path at prior": path,
        "start and path at prior": prior,
        "without noise": silent,
    }
    names = [each.name for each in found.relatives]
    assert names == ["the fit", *expected]
    ours = log_prob(fit, DATA.test)
    for each in found.relatives[1:]:
        other = log_prob(FittedModel(expected[each.name], fit.likelihood), DATA.test)
        rows = ours - other
        assert each.gain == pytest.approx(rows.mean(), rel=1e-3, abs=1e-5), each.name
        error = math.hypot(rows.std(ddof=1) / math.sqrt(rows.size), each.draws_se)
        assert each.gain_se == pytest.approx(error, rel=1e-3), each.name
        assert each.scores["nll"] == pytest.approx(-other.mean(), rel=1e-4)
        assert 0 <= each.scores["auroc_noise"] <= 1
    bound = orn.evaluation.evidence_bound(
        fit, DATA.train, key=jr.fold_in(KEY, 4), num_draws=NUM_DRAWS
    )
    for name in ("kl", "kl_path", "kl_initial"):
        assert found.kl[name] == pytest.approx(bound[name])


def test_log_likelihood_bought(fit: FittedModel):
    """Nats of the whole training set, with the same draws, and their error. Catches
    (seen) a KL left in."""
    found = audit(fit, DATA, key=KEY, num_draws=NUM_DRAWS)
    draws_key = jr.split(jr.fold_in(KEY, 4))[1]
    totals, each_draw = [], []
    for model in (fit.model, orn.prior_of(fit.model)):
        sums = []
        for index in range(NUM_DRAWS):
            draw = model(jnp.asarray(DATA.train.x), key=draws_key, index=index)
            each = fit.likelihood.log_prob(draw.output, jnp.asarray(DATA.train.y))
            sums.append(float(jnp.sum(each)))
        totals.append(np.mean(sums))
        each_draw.append(sums)
    bought = totals[0] - totals[1]
    assert found.log_likelihood_bought == pytest.approx(bought, rel=1e-3)
    error = np.std(np.subtract(*each_draw), ddof=1) / NUM_DRAWS**0.5
    assert found.log_likelihood_bought_se == pytest.approx(error, rel=1e-2)
    assert f"± {found.log_likelihood_bought_se:.2g} nats" in found.spent_and_bought
    assert found.num_data == len(DATA.train)
    text = str(found)
    assert text.endswith("is not known.")
    assert "start and path at prior" in text
    assert found.to_json()["verdict"] == found.verdict


def sums(blocks: Any, part_seen: float) -> DrawSums:
    blocks = np.asarray(blocks, np.float64)
    return DrawSums(blocks, 0 * blocks, {}, part_seen, 1)


def test_the_error_of_what_was_bought_is_of_paired_draws():
    """Noise that both sides share is in neither's gain. Catches (seen) the errors of
    both sides added up."""
    noise = np.random.default_rng(0).normal(size=(1, 16))
    own = 0.1 * np.random.default_rng(1).normal(size=(1, 16))
    found = log_likelihood_bought(sums(noise + own + 2.0, 1.0), sums(noise, 1.0))
    expected = own.mean() + 2.0, own.std(ddof=1) / 4
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_error_of_rows_that_were_not_seen():
    """Of ten blocks, half of the data: as in another sample of rows. Catches (seen) an
    error over draws alone."""
    rng = np.random.default_rng(0)
    gains, found = [], []
    for _ in range(400):
        blocks = np.repeat(rng.normal(3.0, 1.0, size=(20, 1)), 2, axis=1)
        part = sums(2 * blocks[:10], 0.5)  # of 20 blocks 10, scaled to all
        bought, error = log_likelihood_bought(part, sums(0 * blocks[:10], 0.5))
        gains.append(bought - blocks[:, 0].sum())
        found.append(error)
    assert np.std(gains) == pytest.approx(np.sqrt(np.mean(np.square(found))), rel=0.15)


def linear_data() -> Data:
    """Twelve rows of ten features: a fit of points has learned the noise."""
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(10, 1))

    def split(num: int) -> Split:
        x = rng.normal(size=(num, 10))
        y = x @ slopes + 0.5 * rng.normal(size=(num, 1))
        return Split(x.astype(np.float32), y.astype(np.float32))

    return Data("linear", "regression", split(12), split(400))


def test_a_posterior_that_does_something():
    """Mean field on a linear model: better than least squares, and than the prior.

    Twins begin where the fit did, and q = p has nothing to train but the likelihood's
    scale. Catches (seen) a twin whose q is trained.
    """
    data = linear_data()
    likelihood = orn.Gaussian(0.5, learn_scale=True)
    model = orn.MeanField(MLP(10, 1, (), key=jr.key(0)), orn.GaussianPrior(1.0))
    seen = {}

    def train(model: Any, name: str) -> orn.Fit:
        found = orn.fit(
            model,
            data.train,
            likelihood,
            key=jr.key(1),
            num_epochs=1500,
            batch_size=12,
            learning_rate=2e-2,
        )
        seen[name] = model, found
        return found

    fit = train(model, "fit")
    retraining = orn.Retraining(model, train)
    found = audit(fit, data, key=KEY, num_draws=64, retraining=retraining)
    assert found.verdict == "does", found.sentence
    assert [each.name for each in found.relatives if each.kind == "twin"] == [
        "trained without noise",
        "trained with q = p",
    ]
    first, last = seen["without noise"]
    assert isinstance(first, MAP)  # points under the same prior, not least squares
    weight = lambda net: np.asarray(net.layers[0].weight)
    np.testing.assert_array_equal(weight(first.network), weight(model.family.mean))
    first, last = seen["with q = p"]
    assert isinstance(first, HeldAtPrior)
    assert eqx.tree_equal(first, last.model)
    assert not eqx.tree_equal(last.likelihood, likelihood)


def test_nothing_is_trained_where_nothing_is_a_point():
    """q = p of all weights, with a scale that is given, is the prior itself, which is
    there already."""
    model = orn.MeanField(MLP(1, 1, (2,), key=jr.key(0)))
    fit = FittedModel(model, orn.Gaussian(0.3))
    names = []

    def train(model: Any, name: str) -> FittedModel:
        names.append(name)
        return FittedModel(model, fit.likelihood)

    retraining = orn.Retraining(model, train)
    found = audit(fit, DATA, key=KEY, num_draws=2, retraining=retraining)
    assert names == ["without noise"]
    assert [each.kind for each in found.relatives].count("twin") == 1


def test_predictions_that_are_no_numbers():
    """Of a relative they are an infinite loss, which JSON says as null."""
    model = orn.MeanField(MLP(1, 1, (2,), key=jr.key(0)), orn.GaussianPrior(1e30))
    fit = FittedModel(model, orn.Gaussian(0.3))
    found = audit(fit, DATA, key=KEY, num_draws=2)
    row = found.to_json()["relatives"][1]
    assert row["gain"] is None
    assert row["scores"] == {}


def test_batch_statistics_of_relatives():
    """Are those of their own weights, and not of the fit's."""
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    data = Data("rows", "regression", Split(x, x[:, :2]), Split(x, x[:, :2]))
    model = orn.ImplicitBNN(Normalised(key=jr.key(0)), key=jr.key(1))
    state = orn.train.recompute_statistics(model, x, key=jr.key(3))
    fit = FittedModel(model, orn.Gaussian(0.3), state)
    found = audit(fit, data, key=KEY, num_draws=NUM_DRAWS)
    assert found.kl["kl_mixture"] == found.kl["kl"] > found.kl["kl_nodes"]
    parts = model.posterior_parts()
    for each, other in (
        ("nodes at prior", parts.at_prior(parts.parts, KEY)),
        ("without noise", model.to_deterministic()),
    ):
        own = orn.train.recompute_statistics(
            other, x, state=state, key=jr.fold_in(KEY, 2)
        )
        nll = -log_prob(FittedModel(other, fit.likelihood, own), data.test).mean()
        scores = {row.name: row.scores for row in found.relatives}[each]
        assert scores["nll"] == pytest.approx(nll, rel=1e-4), each


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (orn.Deterministic(MLP(1, 1, (), key=jr.key(0))), "`Deterministic` claims no"),
        (orn.MCDropout(MLP(1, 1, (2,), key=jr.key(0))), "`MCDropout` claims no"),
        (
            orn.Ensemble([MLP(1, 1, (), key=jr.key(i)) for i in range(2)]),
            "`Ensemble` claims no posterior",
        ),
    ],
)
def test_a_function_that_claims_no_posterior(model: Any, said: str):
    """Says so in a sentence."""
    with pytest.raises(ValueError, match=said):
        audit(FittedModel(model, orn.Gaussian(0.3)), DATA, key=KEY)


def test_samples_of_an_unknown_prior():
    """Say what they need; with it they are put back."""
    network = MLP(1, 1, (2,), key=jr.key(0))
    samples = orn.sample(
        network,
        DATA.train,
        orn.Gaussian(0.3),
        kernel=orn.HMC(3),
        prior=orn.GaussianPrior(2.0),
        key=jr.key(1),
        num_samples=6,
        num_warmup=6,
        num_chains=2,
    )
    found = audit(samples, DATA, key=KEY, num_draws=12)
    assert [each.name for each in found.relatives] == ["the fit", "weights at prior"]
    assert (found.kl, found.log_likelihood_bought) == ({}, None)
    assert "not known" in str(found)
    unknown = dataclasses.replace(samples, prior=None)
    with pytest.raises(ValueError, match="give `samples.with_prior"):
        audit(unknown, DATA, key=KEY)


@pytest.mark.parametrize("is_learned", [True, False])
def test_a_twin_whose_noise_scale_collapsed(is_learned: bool):
    """Is compared again with the fit's scale, and decides nothing. Catches (seen) a
    comparison that ends with an NLL of millions, or that is with the twin's own scale;
    a scale that is given did not collapse."""
    likelihood = orn.Gaussian(0.3, learn_scale=is_learned)
    model = orn.MeanField(MLP(1, 1, (2,), key=jr.key(0)))
    fit, twins = FittedModel(model, likelihood), {}

    def train(model: Any, name: str) -> FittedModel:
        scale = 1e-4 if name == "without noise" else 0.3
        twins[name] = FittedModel(model, orn.Gaussian(scale, learn_scale=is_learned))
        return twins[name]

    retraining = orn.Retraining(model, train)
    found = audit(fit, DATA, key=KEY, num_draws=NUM_DRAWS, retraining=retraining)
    relatives = {each.name: each for each in found.relatives}
    assert relatives["trained without noise"].gain > 1e5
    assert found.verdict == "in between"
    assert "a twin so far behind is broken" in found.sentence
    again = relatives.get("trained without noise, at the fit's noise scale")
    if not is_learned:
        assert again is None
        return
    other = FittedModel(twins["without noise"].model, likelihood)
    rows = log_prob(fit, DATA.test) - log_prob(other, DATA.test)
    assert again.kind == "rescaled"
    assert again.gain == pytest.approx(rows.mean(), rel=1e-3, abs=1e-5)
    said = "the one trained without noise, at the fit's noise scale is "
    assert said in found.sentence
    assert len([each for each in found.relatives if each.kind == "rescaled"]) == 1


@pytest.mark.parametrize("num_rows", [0, 1])
def test_a_single_row_is_no_comparison(fit: FittedModel, num_rows: int):
    """Catches (seen) errors over one row, which are no numbers, or none."""
    few = Split(DATA.test.x[:num_rows], DATA.test.y[:num_rows])
    data = Data("few", "regression", DATA.train, few)
    said = f"An audit compares test rows in pairs and few has {num_rows}: give 2 or"
    with pytest.raises(ValueError, match=said):
        audit(fit, data, key=KEY, num_draws=NUM_DRAWS)


@pytest.mark.usefixtures("unchecked")
def test_rows_in_place_of_data_are_refused(fit: FittedModel):
    """Reported: a split of rows ended in an AttributeError."""
    split: Any = DATA.train
    with pytest.raises(TypeError, match="`data` must be a `Data`, got Split"):
        audit(fit, split, key=KEY)
