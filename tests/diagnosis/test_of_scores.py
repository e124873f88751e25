"""Findings about scores: predictions whose fault, or soundness, is known exactly."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

import ornstein as orn
from ornstein import metrics
from ornstein._sentence import Sentence
from ornstein.diagnosis import diagnose
from ornstein.diagnosis._base import CheckResult
from ornstein.diagnosis._evidence import Evidence
from ornstein.diagnosis._still_rising import still_rising
from ornstein.diagnosis._weights_at_prior import weights_at_prior
from ornstein.diagnosis.scores import (
    bound_below_constant,
    confidence_off,
    coverage_off,
    known_by_heart,
    worse_than_constant,
)
from ornstein.diagnosis.scores._constant import constant_scores
from ornstein.functions import SWAG, prune
from ornstein.nn import MLP

ROWS = 300
NUM_SETS = 200
MOST_ALARMS = 3
"""Of 200 data sets; three standard errors make 0.54, and few bins a little more."""


class Same(eqx.Module):
    """What it is given: inputs are outputs."""

    shift: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + jnp.sum(self.shift)


def fit_of(likelihood: Any) -> orn.Fit:
    return orn.Fit(orn.Deterministic(Same(jnp.zeros(()))), likelihood, None, {})


def evidence(
    outputs: np.ndarray,
    likelihood: Any,
    y: np.ndarray,
    *,
    train_y: np.ndarray | None = None,
    seed: int = 0,
    **options: Any,
) -> Evidence:
    """Of a prediction with these draws of outputs."""
    draws, targets = jnp.asarray(outputs, jnp.float32), jnp.asarray(y)
    train = None
    if train_y is not None:
        zeros = np.zeros((len(train_y), outputs.shape[-1]), np.float32)
        train = orn.data.Split(zeros, train_y)
    return Evidence(
        fit_of(likelihood),
        draws[0],
        targets,
        key=jr.key(seed),
        num_draws=1,
        history={},
        num_data=None,
        scored=(orn.Prediction(draws, likelihood), targets),
        train=train,
        **options,
    )


def alarms(found: list[CheckResult]) -> int:
    return sum(result.message is not None for result in found)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("noise", "word"), [(0.6, "wide"), (1.6, "narrow")])
def test_coverage_off(noise: float, word: str):
    """Targets with another noise than the band's. Its counts are those of a normal."""
    y = noise * normal(np.random.default_rng(0), ROWS, 1)
    result = coverage_off(evidence(np.zeros((1, ROWS, 1)), orn.Gaussian(1.0), y))
    assert f"they are too {word}" in str(result.message)
    for level in (0.5, 0.9, 0.95):
        half = scipy.stats.norm.ppf(0.5 + level / 2)
        share = np.mean(np.abs(y) <= half)
        name = f"coverage_{100 * level:g}"
        assert result.numbers[name] == pytest.approx(share, abs=1e-6)
        binomial = np.sqrt(level * (1 - level) / ROWS)
        assert result.numbers[f"{name}_se"] == pytest.approx(binomial, rel=1e-3)


def test_bands_of_another_shape():
    """A tenth of the rows with ten times the noise of the others.

    Catches (seen) bands that are called too wide while the widest holds too few.
    """
    rng = np.random.default_rng(0)
    y = np.where(rng.random((ROWS, 1)) < 0.1, 3, 0.3) * normal(rng, ROWS, 1)
    y = y.astype(np.float32)
    result = coverage_off(
        evidence(np.zeros((1, ROWS, 1)), orn.Gaussian(0.45 * y.std()), y)
    )
    assert result.numbers["coverage_50"] > 0.6
    assert result.numbers["coverage_95"] < 0.95
    assert "too wide in one place and too narrow in another" in str(result.message)


def test_coverage_of_calibrated_bands_raises_no_alarm():
    """200 data sets of 300 rows. Catches errors that are too small."""
    rng = np.random.default_rng(1)
    found = [
        coverage_off(
            evidence(
                (mean := normal(rng, 1, ROWS, 1)),
                orn.Gaussian(0.5),
                mean[0] + 0.5 * normal(rng, ROWS, 1),
            )
        )
        for _ in range(NUM_SETS)
    ]
    assert alarms(found) <= MOST_ALARMS


def test_coverage_where_one_draw_is_the_truth_of_all_rows():
    """A line of unknown slope and little noise: rows are held or missed together.

    Catches binomial errors, with which half of these posteriors, all of them right,
    would be called off (seen).
    """
    rng = np.random.default_rng(2)
    x, found, by_binomial = normal(rng, 100, 1), [], 0
    for _ in range(NUM_SETS // 2):
        slopes = normal(rng, 65, 1, 1)
        y = slopes[0] * x + 0.1 * normal(rng, 100, 1)
        result = coverage_off(evidence(slopes[1:] * x, orn.Gaussian(0.1), y))
        found.append(result)
        off = abs(result.numbers["coverage_90"] - 0.9)
        by_binomial += off > 3 * np.sqrt(0.9 * 0.1 / 100)
    assert alarms(found) <= MOST_ALARMS, alarms(found)
    assert by_binomial > 25, by_binomial


def of_few_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Outputs of 16 draws, and the truth: one more draw, row by row."""
    outputs = 3 * normal(rng, 17, *shape)
    return [outputs[1:], outputs[0]]


def test_bands_of_few_draws_are_too_narrow_for_another():
    """A right posterior of 2,000 rows: what its 16 draws' bands hold, by hand.

    Catches (seen) the law of draws that helped to place the bands, which hold these
    more often. Bands of half the width are off, and of one and a half times it.
    """
    rng = np.random.default_rng(7)
    outputs, truth = of_few_draws(rng, (2000, 1))
    y = truth + normal(rng, 2000, 1)
    result = coverage_off(evidence(outputs, orn.Gaussian(1.0), y))
    assert result.message is None
    others = of_few_draws(rng, (2000, 1))[0]
    for level in (0.5, 0.9, 0.95):
        cdf = scipy.stats.norm.cdf(others[0] + normal(rng, 2000, 1) - outputs).mean(0)
        share = np.mean(np.abs(cdf - 0.5) <= level / 2)
        expected = result.numbers[f"coverage_{100 * level:g}_if_right"]
        assert (
            abs(share - expected) < 4 * result.numbers[f"coverage_{100 * level:g}_se"]
        )
    assert result.numbers["coverage_95_if_right"] < 0.92
    narrow = coverage_off(evidence(outputs / 2, orn.Gaussian(0.5), y))
    assert "they are too narrow" in str(narrow.message)
    wide = evidence(1.5 * outputs, orn.Gaussian(1.5), y)
    assert "they are too wide" in str(coverage_off(wide).message)


def test_few_rows_say_nothing_of_bands():
    y = 5 * normal(np.random.default_rng(0), 20, 1)
    assert coverage_off(evidence(np.zeros((1, 20, 1)), orn.Gaussian(1.0), y)) == (
        CheckResult({})
    )


def of_classes(
    rng: np.random.Generator, *, rows: int = ROWS, spread: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and targets that have their probabilities."""
    logits = spread * normal(rng, rows, 3)
    noise = rng.gumbel(size=logits.shape)
    return logits, np.argmax(logits + noise, axis=-1).astype(np.int32)


@pytest.mark.parametrize(
    ("factor", "words"), [(3.0, "too sure of itself"), (0.3, "less sure than")]
)
def test_confidence_off(factor: float, words: str):
    """Logits times a number; and the gap is that of accuracy and confidence."""
    logits, y = of_classes(np.random.default_rng(0))
    result = confidence_off(evidence(factor * logits[None], orn.Categorical(), y))
    assert words in str(result.message)
    probs = scipy.special.softmax(factor * logits.astype(float), axis=-1)
    gap = np.mean(probs.max(1)) - np.mean(probs.argmax(1) == y)
    assert result.numbers["overconfidence"] == pytest.approx(gap, abs=1e-5)
    ece = float(metrics.ece(jnp.asarray(probs, jnp.float32), y))
    assert result.numbers["ece"] == pytest.approx(ece, abs=1e-5)


def test_confidence_that_is_off_both_ways():
    """Too sure in half of the rows, and too unsure in the others: by the ECE alone."""
    rng = np.random.default_rng(0)
    rows = 600
    y = (rng.random(rows) < 0.75).astype(np.int32)  # all rows alike
    p = np.where(np.arange(rows) % 2, 0.98, 0.52)
    logits = np.stack([np.zeros(rows), np.log(p / (1 - p))], axis=1)
    result = confidence_off(evidence(logits[None], orn.Categorical(), y))
    assert "probabilities are too high in some places" in str(result.message)


def test_confidence_of_calibrated_probabilities_raises_no_alarm():
    """200 data sets, a third of them nearly certain, where normal errors fail.

    Catches an ECE that is held against 0, and errors of no rows wrong.
    """
    rng, found = np.random.default_rng(3), []
    for number in range(NUM_SETS):
        logits, y = of_classes(rng, spread=(1.0, 3.0, 12.0)[number % 3])
        found.append(
            confidence_off(evidence(logits[None], orn.Categorical(), y, seed=number))
        )
    assert alarms(found) <= MOST_ALARMS


def test_confidence_where_one_draw_is_the_truth_of_all_rows():
    """One unknown log odds for all rows: they are right or wrong together."""
    rng, found = np.random.default_rng(4), []
    for number in range(NUM_SETS // 2):
        odds = normal(rng, 65, 1, 1) + 1
        y = rng.random((ROWS, 1)) < scipy.special.expit(odds[0])
        outputs = np.broadcast_to(odds[1:], (64, ROWS, 1))
        of = evidence(outputs, orn.Bernoulli(), y.astype(np.float32), seed=number)
        found.append(confidence_off(of))
    assert alarms(found) <= MOST_ALARMS


def test_the_mean_of_few_draws_is_too_sure_of_another():
    """A right posterior of 16 draws. Catches (seen) draws that helped to guess."""
    rng = np.random.default_rng(8)
    outputs, truth = of_few_draws(rng, (1000, 10))
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=-1).astype(np.int32)
    result = confidence_off(evidence(outputs, orn.Categorical(), y))
    assert result.message is None
    assert result.numbers["overconfidence_if_calibrated"] > 0.02
    one = np.repeat(outputs[:1], 16, axis=0)
    sure = confidence_off(evidence(one, orn.Categorical(), y))
    assert "too sure of itself" in str(sure.message)


def test_few_rows_and_several_columns_say_nothing_of_confidence():
    logits, y = of_classes(np.random.default_rng(0), rows=20)
    few = confidence_off(evidence(9 * logits[None], orn.Categorical(), y))
    columns = np.zeros((1, ROWS, 2))
    several = confidence_off(
        evidence(columns, orn.Bernoulli(), np.zeros((ROWS, 2), np.float32))
    )
    assert few == several == CheckResult({})


def test_worse_than_constant():
    """Means that have nothing to do with targets, and the gap by hand."""
    rng = np.random.default_rng(0)
    y, train_y = 2 + normal(rng, ROWS, 1), 2 + normal(rng, ROWS, 1)
    wrong = evidence(normal(rng, 1, ROWS, 1), orn.Gaussian(1.0), y, train_y=train_y)
    result = worse_than_constant(wrong)
    mean, deviation = train_y.mean(), train_y.std()
    constant = -scipy.stats.norm.logpdf(y, mean, deviation).mean()
    assert result.numbers["nll_of_constant"] == pytest.approx(constant, abs=1e-4)
    assert "is worse than nothing" in str(result.message)
    right = evidence(np.full((1, ROWS, 1), 2.0), orn.Gaussian(1.0), y, train_y=train_y)
    assert worse_than_constant(right).message is None
    unknown = evidence(normal(rng, 1, ROWS, 1), orn.Gaussian(1.0), y)
    assert worse_than_constant(unknown) == CheckResult({})


def test_a_fit_that_learned_nothing_is_not_worse_than_a_constant():
    """200 fits of the frequencies themselves, of other training rows."""
    rng, found = np.random.default_rng(5), []
    for _ in range(NUM_SETS):
        y, train_y, own = ((rng.random(ROWS) < 0.3).astype(np.int32) for _ in range(3))
        p = own.mean()
        logits = np.broadcast_to(np.log([1 - p, p]), (1, ROWS, 2))
        of = evidence(logits, orn.Categorical(), y, train_y=train_y)
        found.append(worse_than_constant(of))
    assert alarms(found) <= MOST_ALARMS


def test_constant_guesses_of_classes_columns_and_series():
    """By hand: a class that training has not is possible; missing values are not."""
    y = np.array([0, 1, 2, 2], np.int32)
    of = evidence(np.zeros((1, 4, 3)), orn.Categorical(), y, train_y=y[:3])
    from_three = np.log([2 / 6, 2 / 6, 2 / 6, 2 / 6])
    rows = constant_of(of)
    np.testing.assert_allclose(rows, from_three, rtol=1e-6)
    unseen = evidence(np.zeros((1, 4, 3)), orn.Categorical(), y, train_y=y[:2])
    np.testing.assert_allclose(constant_of(unseen), np.log([2, 2, 1, 1]) - np.log(5))
    yes = np.array([[1, 0], [1, 1], [0, 0]], np.float32)
    both = evidence(np.zeros((1, 3, 2)), orn.Bernoulli(), yes, train_y=yes)
    p = np.array([3 / 5, 2 / 5])
    by_hand = (yes * np.log(p) + (1 - yes) * np.log(1 - p)).sum(1)
    np.testing.assert_allclose(constant_of(both), by_hand, rtol=1e-6)
    values = np.array([[[1.0], [3.0]], [[np.nan], [2.0]]], np.float32)
    series = orn.Series.of(np.arange(2.0), values, ~np.isnan(values))
    found = constant_scores(orn.OverTime(orn.Gaussian(1.0)), series, series)
    logpdf = lambda y: scipy.stats.norm.logpdf(y, 2.0, np.std([1.0, 3.0, 2.0]))
    assert found is not None
    expected = [logpdf(1.0) + logpdf(3.0), logpdf(2.0)]
    np.testing.assert_allclose(found.log_prob, expected, rtol=1e-5)


def test_a_constant_column_is_no_guess_to_be_held_against():
    """Beside a column that is fitted well, and beside one that is not.

    Catches (seen) a density of it with a deviation of 1e-6, by which a good fit is
    worse than a constant; and small units that are taken for a constant.
    """
    rng = np.random.default_rng(0)
    x = normal(rng, ROWS, 1)
    same = np.nextafter(np.float32(0.1), rng.integers(0, 2, (ROWS, 1)), dtype="f4")
    for column in (np.full_like(x, 0.3), same):
        y = np.concatenate([x, column], axis=1)
        good = evidence(
            (y + 0.1 * normal(rng, ROWS, 2))[None],
            orn.Gaussian(0.1),
            y,
            train_y=y,
            bound=(-1e6, 1.0),
        )
        assert worse_than_constant(good) == CheckResult({})
        assert bound_below_constant(good) == CheckResult({})
        assert known_by_heart(good) == CheckResult({})
    small = 1e-8 * x
    wide = evidence(small[None], orn.Gaussian(1.0), small, train_y=small)
    assert "is worse than nothing" in str(worse_than_constant(wide).message)


def of_series(
    ts: np.ndarray, values: np.ndarray, likelihood: Any, **options: Any
) -> Evidence:
    """Series that were predicted to be 0, and learned from."""
    y = orn.Series.of(ts, values)
    draws, targets = jnp.zeros((1, *values.shape)), jax.tree.map(jnp.asarray, y)
    return Evidence(
        fit_of(likelihood),
        draws[0],
        targets,
        key=jr.key(0),
        num_draws=1,
        history={},
        num_data=None,
        scored=(orn.Prediction(draws, likelihood), targets),
        train=orn.data.Split(y, y),
        **options,
    )


def test_series_are_called_series():
    """Catches (seen) "nats for 50 rows", of which the file has 200."""
    rng = np.random.default_rng(0)
    likelihood = orn.OverTime(orn.Gaussian(0.2))
    found = of_series(
        np.arange(4.0), 2 + normal(rng, 50, 4, 1), likelihood, bound=(-1e4, 1.0)
    )
    assert "-10,000 nats for 50 series, and" in str(bound_below_constant(found).message)
    assert "nats on 50 series, and" in str(worse_than_constant(found).message)


def test_a_constant_column_of_series_is_left_out():
    """The other is judged by itself, on both sides; of no other nothing is said."""
    rng = np.random.default_rng(0)
    ts, values = np.arange(4.0), normal(rng, 50, 4, 2)
    values[..., 1] = 0.3
    likelihood = orn.OverTime(orn.Gaussian(0.2))

    def found(columns: list[int]) -> CheckResult:
        return worse_than_constant(of_series(ts, values[..., columns], likelihood))

    both, varying = found([0, 1]), found([0])
    assert both.numbers == pytest.approx(varying.numbers)
    assert both.message == varying.message is not None
    assert found([1]) == CheckResult({})


def constant_of(of: Evidence) -> np.ndarray:
    assert of.train is not None
    found = constant_scores(of.likelihood, of.train.y, np.asarray(of.y))
    assert found is not None
    return found.log_prob


def test_bound_below_constant_of_a_sample_of_rows():
    """The bound is of all rows; catches a constant that is fitted to some of them."""
    y = np.repeat([0, 1], ROWS // 2).astype(np.int32)
    outputs = np.zeros((1, ROWS, 2))
    found = evidence(outputs, orn.Categorical(), y, train_y=y, bound=(-1.0, 0.1))
    found.num_data = 3 * ROWS
    constant = -3 * ROWS * np.log(2) - 0.5 * np.log(3 * ROWS)
    numbers = bound_below_constant(found).numbers
    assert numbers["constant_log_evidence"] == pytest.approx(constant, rel=1e-5)


def test_bound_below_constant():
    """Held against −N H less a half log N for a constant; errors of the bound count.

    A tempered fit is left alone, which maximised another bound.
    """
    y = np.repeat([0, 1], ROWS // 2).astype(np.int32)
    constant = -ROWS * np.log(2) - 0.5 * np.log(ROWS)
    of = lambda elbo, error: evidence(
        np.zeros((1, ROWS, 2)), orn.Categorical(), y, train_y=y, bound=(elbo, error)
    )
    result = bound_below_constant(of(constant - 31, 10.0))
    assert "less than a constant" in str(result.message)
    found = result.numbers["constant_log_evidence"]
    assert found == pytest.approx(constant, abs=1e-3)
    assert bound_below_constant(of(constant - 29, 10.0)).message is None
    assert bound_below_constant(of(constant + 1, 0.1)).message is None
    tempered = of(constant - 1000, 1.0)
    tempered.history = {"kl_weight": np.array([1.0, 0.1])}
    assert bound_below_constant(tempered) == CheckResult({})


def mean_field(scale: float = 0.1, prior: float = 1.0) -> orn.MeanField:
    network = MLP(1, 1, (40,), key=jr.key(0))
    prior_of = orn.GaussianPrior(prior)
    return orn.MeanField(network, prior_of, init_scale=scale)


def rising(history: dict[str, np.ndarray], model: Any = None) -> CheckResult:
    zeros = jnp.zeros((4, 1))
    fit = orn.Fit(mean_field() if model is None else model, orn.Gaussian(1.0), None, {})
    options: dict[str, Any] = {"num_draws": 1, "num_data": None, "history": history}
    return still_rising(Evidence(fit, zeros, zeros, key=jr.key(0), **options))


def test_still_rising():
    """A loss that falls in a line, against one that has come to rest.

    Catches a warm-up, in which the loss moves by its weight; validation rows that were
    better off before; a fit without a bound; and a few epochs.
    """
    noise = 0.02 * np.random.default_rng(0).normal(size=80)
    falls = {"loss": np.linspace(5.0, 1.0, 80) + noise}
    result = rising(falls)
    assert result.numbers["bound_rise"] == pytest.approx(19 * 4 / 79, abs=0.03)
    assert "over the last 20 of 80 epochs" in str(result.message)
    rests = {"loss": 1 + 4 * np.exp(-np.arange(80) / 5) + noise}
    assert rising(rests).message is None
    warm_up = falls | {"kl_weight": np.linspace(0.5, 1.0, 80)}
    assert rising(warm_up) == CheckResult({})
    val_nll = np.where(np.arange(80) % 2, np.abs(np.arange(80.0) - 61.0), np.nan)
    assert rising(falls | {"val_nll": val_nll}) == CheckResult({})
    assert rising(falls | {"val_nll": -np.arange(80.0)}).message is not None
    assert rising({"loss": falls["loss"][:15]}) == CheckResult({})
    assert rising(falls, orn.Deterministic(Same(jnp.zeros(())))) == CheckResult({})


def test_noise_is_no_rise():
    """200 runs at rest, whose epochs depend on each other (rho = 0.6).

    Catches errors of independent epochs (seen).
    """
    rng, found = np.random.default_rng(6), []
    for _ in range(NUM_SETS):
        noise = rng.normal(size=200)
        for i in range(1, 200):
            noise[i] += 0.6 * noise[i - 1]
        found.append(rising({"loss": noise}))
    assert alarms(found) <= 4, alarms(found)


def heart_of(
    error: float, other_error: float, rows: int = 200, model: Any = None
) -> CheckResult:
    """Of 301 parameters and their errors on training rows, and on others."""
    model = orn.Deterministic(Same(jnp.zeros(301))) if model is None else model
    rng = np.random.default_rng(0)
    likelihood = orn.Gaussian(0.2)
    seen, other = normal(rng, rows, 1), normal(rng, ROWS, 1)
    split = orn.data.Split(seen, seen + error * normal(rng, rows, 1))
    y = jnp.asarray(other + other_error * normal(rng, ROWS, 1))
    fit = orn.Fit(model, likelihood, None, {})
    options: dict[str, Any] = {"num_draws": 1, "num_data": None, "history": {}}
    of = Evidence(fit, jnp.asarray(other), y, key=jr.key(0), train=split, **options)
    return known_by_heart(of)


def test_known_by_heart():
    """Training rows that are fitted far closer than others.

    And the same gap with more rows than parameters, and rows that are all alike.
    """
    result = heart_of(0.05, 0.5)
    assert "Training rows are known by heart" in str(result.message)
    assert "301 parameters are more than 200 rows" in str(result.message)
    gap = (0.5**2 - 0.05**2) / (2 * 0.2**2)
    assert abs(result.numbers["nll_gap"] - gap) < 4 * result.numbers["nll_gap_se"]
    assert heart_of(0.05, 0.5, rows=400) == CheckResult({})
    assert heart_of(0.2, 0.2).message is None


def test_known_by_heart_where_training_is_over():
    """SWAG, an ensemble of two, and a pruned posterior, which its prior held.

    Catches (seen) no parameters at all of what is frozen.
    """
    iterates = Same(jnp.zeros((3, 301)))
    swag = SWAG.from_iterates(Same(jnp.zeros(301)), iterates, rank=2)
    for model in (swag, orn.Ensemble([swag, swag])):
        said = str(heart_of(0.05, 0.5, model=model).message)
        assert "301 parameters are more than 200 rows" in said
        assert heart_of(0.05, 0.5, rows=400, model=model) == CheckResult({})
    held = orn.MeanField(Same(jnp.zeros(301)), init_scale=1e-4)
    assert heart_of(0.05, 0.5, model=prune(held, 0.1)) == CheckResult({})


def test_weights_at_prior():
    """At the prior, and at a start from which nothing has returned to it."""

    def found(scale: float, prior: float, rows: int) -> CheckResult:
        zeros = jnp.zeros((4, 1))
        model = mean_field(scale, prior)
        fit = orn.Fit(model, orn.Gaussian(1.0), None, {})
        options: dict[str, Any] = {"num_draws": 1, "history": {}, "num_data": rows}
        return weights_at_prior(Evidence(fit, zeros, zeros, key=jr.key(0), **options))

    wide = found(10.0, 10.0, 50)
    assert wide.numbers["share_at_prior"] > 0.9
    assert "121 random weights are where their prior has them" in str(wide.message)
    assert found(10.0, 10.0, 500).message is None
    narrow = found(0.1, 10.0, 50)
    assert narrow.numbers["share_at_prior"] == 0
    assert narrow.message is None


def test_weights_at_prior_are_random_ones():
    """A last layer of 41 in a network of 1,761. Catches (seen) points that count."""
    network = MLP(1, 1, (40, 40), key=jr.key(0))
    last = lambda net: net.layers[-1]
    model = orn.MeanField(network, orn.GaussianPrior(10.0), where=last, init_scale=10.0)
    fit, zeros = orn.Fit(model, orn.Gaussian(1.0), None, {}), jnp.zeros((4, 1))

    def found(rows: int) -> CheckResult:
        options: dict[str, Any] = {"num_draws": 1, "history": {}, "num_data": rows}
        return weights_at_prior(Evidence(fit, zeros, zeros, key=jr.key(0), **options))

    assert found(100).numbers["share_at_prior"] > 0.9
    assert found(100).message is None
    assert "of 41 random weights are" in str(found(30).message)


def test_share_at_prior_by_hand():
    """KL of normals by their formula, weight by weight."""
    model = mean_field(0.95, 1.0)
    leaves = jax.tree.leaves(model.family.mean)
    mean = np.concatenate([np.ravel(leaf) for leaf in leaves]).astype(float)
    kl = 0.5 * (0.95**2 + mean**2 - 1) - np.log(0.95)
    share = model.posterior_parts().share_at_prior
    assert share is not None
    assert 0 < np.mean(kl < 0.01) < 1
    assert share() == (pytest.approx(np.mean(kl < 0.01)), 121)


def spoken(messages: list[str | None]) -> list[tuple[str, str]]:
    """In Python, and in a shell."""
    said = [message for message in messages if isinstance(message, Sentence)]
    assert len(said) == len(messages)
    return [(str(text), text.spelt("--{}".format)) for text in said]


def test_each_door_has_its_own_words():
    """Catches flags in Python, and code in a shell."""
    rng = np.random.default_rng(0)
    y = 3 * normal(rng, ROWS, 1)
    zeros = np.zeros((1, ROWS, 1))
    logits, labels = of_classes(rng)
    elbo = (-1e6, 1.0)
    tight = evidence(zeros, orn.Gaussian(0.3), y, train_y=y, bound=elbo)
    sure = evidence(5 * logits[None], orn.Categorical(), labels)
    messages = [
        coverage_off(tight).message,
        worse_than_constant(tight).message,
        bound_below_constant(tight).message,
        confidence_off(sure).message,
        rising({"loss": np.linspace(5.0, 1.0, 80)}).message,
        heart_of(0.05, 0.5).message,
    ]
    for in_python, in_shell in spoken(messages):
        assert "--" not in in_python
        assert "--" in in_shell
        for word in ("`orn.E", "`num_epochs`", "`learn_scale`", "`scale`", "Stopping"):
            assert word not in in_shell


def test_diagnose_passes_what_it_is_given():
    """All rows of the prediction, and the training rows: seen in the findings."""
    rng = np.random.default_rng(0)
    y, x = normal(rng, ROWS, 1), normal(rng, ROWS, 1)
    split = orn.data.Split(x, y)
    fit = fit_of(orn.Gaussian(0.3))
    prediction = orn.predict(fit, x, key=jr.key(0), num_draws=1)
    found = diagnose(
        fit, split, key=jr.key(1), num_rows=8, train=split, prediction=prediction
    )
    names = [finding.name for finding in found.findings]
    assert "worse-than-constant" in names
    assert "coverage-off" in names
    blind = diagnose(fit, split, key=jr.key(1), num_rows=8)  # 8 rows say nothing
    assert {"worse-than-constant", "coverage-off"}.isdisjoint(
        finding.name for finding in blind.findings
    )
    empty = split.rows(np.arange(0))
    with pytest.raises(ValueError, match="`train` has no rows"):
        diagnose(fit, split, key=jr.key(1), train=empty)
    with pytest.raises(ValueError, match="`prediction` has 300 rows and `split` has"):
        diagnose(fit, split.rows(np.arange(9)), key=jr.key(1), prediction=prediction)
