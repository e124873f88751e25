"""How far confidence may be from accuracy, and the two places that say it."""

import jax.numpy as jnp
import numpy as np
import pytest
from diagnosis.test_of_scores import evidence

import ornstein as orn
from ornstein.data import Data, Split
from ornstein.diagnosis.scores import confidence_off
from ornstein.metrics import overconfidence_error
from ornstein.prediction import Prediction
from ornstein.report.page import percent
from ornstein.report.rows import judge_rows
from ornstein.report.sections._lead import confidence_words


def test_it_is_the_spread_of_data_sets_whose_truth_is_a_draw():
    """Catches (seen) rows that are right or wrong independently, and a lost 1/n."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 1.0, size=(8, 1)) * rng.uniform(0.6, 1.0, size=(8, 40))
    truth = p[rng.integers(8, size=40_000)]
    is_right = rng.random(truth.shape) < truth
    gaps = (p.mean(axis=0) - is_right).mean(axis=1)
    assert overconfidence_error(p) == pytest.approx(gaps.std(), rel=0.02)
    one = p[:1]
    binomial = np.sqrt((one * (1 - one)).sum()) / 40
    assert overconfidence_error(one) == pytest.approx(binomial)
    assert overconfidence_error(p) > 2 * binomial


def test_report_and_diagnosis_have_the_same():
    """Of draws that differ as wholes, an order more than of independent rows. Catches
    (seen) a report that reckons with these."""
    rng = np.random.default_rng(1)
    num, sides = 300, np.repeat([2.0, -2.0], 4)[:, None]
    y = rng.integers(0, 2, num).astype(np.int32)
    logits = np.stack(
        [0.2 + sides + 0.1 * rng.normal(size=(8, num)), np.zeros((8, num))], -1
    )
    split = Split(rng.normal(size=(num, 2)).astype(np.float32), y)
    names = {"num_classes": 2, "class_names": ("a", "b")}
    data = Data("own", "classification", split, split, **names)
    prediction = Prediction(jnp.asarray(logits, jnp.float32), orn.Categorical())
    rows = judge_rows(prediction, data)
    found = confidence_off(evidence(logits, orn.Categorical(), y)).numbers
    error = found["overconfidence_se"]
    assert rows.errors["overconfidence"] == pytest.approx(error, rel=1e-5)
    assert error > 5 * np.sqrt(0.25 / num)
    assert f"\N{PLUS-MINUS SIGN} {percent(error)}, were it right" in confidence_words(
        rows
    )
    before = {name: e for name, e in rows.errors.items() if name != "overconfidence"}
    assert confidence_words(rows._replace(errors=before)).endswith("guesses are right")
