"""Scores under corruptions, against scores worked out one by one."""

import math
from pathlib import Path

import jax
import numpy as np
import pytest

from ornstein.data import ByteScale, Data, corrupt, load
from ornstein.evaluation import corruption_scores
from ornstein.evaluation._corruptions import summarise_corruptions
from ornstein.evaluation._evaluate import evaluate
from ornstein.functions import ImplicitBNN
from ornstein.likelihood import Categorical, Gaussian
from ornstein.nn import MLP, Flattened
from ornstein.prediction import FittedModel, predict

NAMES = ("fog", "gaussian_noise")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def data() -> Data:
    return load("digits")


@pytest.fixture(scope="module")
def fit() -> FittedModel:
    network = Flattened(MLP(64, 10, (8,), key=jax.random.key(0)))
    model = ImplicitBNN(network, num_components=2, key=jax.random.key(1))
    return FittedModel(model, Categorical())


def test_rows_are_scores_of_corrupted_images(fit: FittedModel, data: Data):
    """Catches images of another severity or scale, other functions, another order."""
    key, lines = jax.random.key(2), []
    found = corruption_scores(
        fit,
        data,
        num_draws=4,
        key=key,
        num_rows=30,
        corruptions=NAMES,
        say=lines.append,
    )
    scale = ByteScale.of(data)
    clean = scale.to_bytes(data.test.x[:30])
    where = [(row["corruption"], row["severity"]) for row in found["rows"]]
    assert where == [(name, severity) for name in NAMES for severity in range(1, 6)]
    for row in [found["clean"], *found["rows"]]:
        x = data.test.x[:30]
        if "corruption" in row:
            x = scale.from_bytes(corrupt(clean, row["corruption"], row["severity"]))
        prediction = predict(fit, x, key=key, num_draws=4)
        probs = np.asarray(prediction.mean)
        wrong = np.mean(probs.argmax(1) != data.test.y[:30])
        assert row["error"] == pytest.approx(wrong)
        scores = evaluate(prediction, data.test.y[:30])
        for name in ("accuracy", "nll", "ece", "brier"):
            assert row[name] == pytest.approx(scores[name], rel=1e-5), (row, name)
    assert len({row["nll"] for row in found["rows"]}) == 10
    assert found["generated"]
    assert found["num_rows"] == 30
    assert "generated with CIFAR-10-C's constants" in found["note"]
    assert found["note"] in lines[0]
    assert [line.split(":")[0] for line in lines[1:]] == list(NAMES)


def test_means_are_over_the_right_axis():
    """Errors by hand; catches axes exchanged and a relative error of means."""
    errors = {"a": (0.1, 0.2, 0.3), "b": (0.5, 0.6, 0.7), "c": (0.9, 0.9, 0.9)}
    rows = [
        {"corruption": name, "severity": severity, "error": error}
        | {"accuracy": 1 - error, "nll": 10 * error, "ece": severity, "brier": 0.0}
        for name, values in errors.items()
        for severity, error in enumerate(values, 1)
    ]
    found = summarise_corruptions(rows, clean_error=0.05)
    assert found["mce"] == pytest.approx(5.1 / 9)
    assert found["mce_relative_to_clean"] == pytest.approx((4 + 12 + 18) / 3)
    assert [row["severity"] for row in found["per_severity"]] == [1, 2, 3]
    second = found["per_severity"][1]
    assert second["error"] == pytest.approx(1.7 / 3)
    assert second["error_std"] == pytest.approx(np.std([0.2, 0.6, 0.9], ddof=1))
    assert second["nll_std"] == pytest.approx(10 * second["error_std"])
    assert (second["ece"], second["ece_std"]) == (2, 0)
    assert [row["corruption"] for row in found["per_corruption"]] == ["a", "b", "c"]
    assert found["per_corruption"][1]["error"] == pytest.approx(0.6)
    assert found["per_corruption"][1]["ece"] == pytest.approx(2)
    perfect = summarise_corruptions(rows[:3], clean_error=0.0)
    assert math.isnan(perfect["mce_relative_to_clean"])
    assert math.isnan(perfect["per_severity"][0]["error_std"])


def test_bad_input(fit: FittedModel, data: Data):
    key = jax.random.key(0)
    with pytest.raises(
        ValueError, match="digits is a classification with a `Gaussian`"
    ):
        corruption_scores(
            FittedModel(fit.model, Gaussian(1.0)), data, num_draws=2, key=key
        )
    with pytest.raises(ValueError, match="toy/cos is a regression"):
        corruption_scores(fit, load("toy/cos"), num_draws=2, key=key)
    with pytest.raises(ValueError, match="no corruptions to judge by"):
        corruption_scores(fit, data, num_draws=2, key=key, corruptions=())
    with pytest.raises(ValueError, match="no corruption 'rain'"):
        corruption_scores(fit, data, num_draws=2, key=key, corruptions=("rain",))
    with pytest.raises(ValueError, match="0 rows are not among the 360"):
        corruption_scores(fit, data, num_draws=2, key=key, num_rows=0)
