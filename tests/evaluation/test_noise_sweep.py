"""Sweeps over noise and other data, against scores worked out one by one."""

import jax
import numpy as np
import pytest
import scipy.stats

from ornstein.data import Data, Split, Standardisation, load, mix_with_noise
from ornstein.evaluation import entropy_correlation, inputs_like, noise_sweep
from ornstein.evaluation._evaluate import evaluate
from ornstein.functions import ImplicitBNN
from ornstein.likelihood import Categorical, Gaussian
from ornstein.nn import MLP, Flattened
from ornstein.prediction import FittedModel, predict

CLASSES = ("a", "b", "c")


def photos(side: int, channels: int, peak: float, num_rows: int = 20) -> Data:
    """Raw pixels from 0 to `peak`, standardised by channel."""
    rng = np.random.default_rng(side + channels)
    raw = rng.uniform(0, peak, (num_rows, side, side, channels)).astype(np.float32)
    raw[0] = peak
    scaling = Standardisation.fit(raw, (0, 1, 2))
    y = rng.integers(0, 3, num_rows).astype(np.int32)
    split = Split(scaling.apply(raw), y)
    name = f"photos of {side}"
    return Data(name, "classification", split, split, None, 3, CLASSES, scaling)


@pytest.fixture(scope="module")
def fit() -> FittedModel:
    network = Flattened(MLP(16, 3, (8,), key=jax.random.key(0)))
    model = ImplicitBNN(network, num_components=2, key=jax.random.key(1))
    return FittedModel(model, Categorical())


def test_rows_are_scores_of_noisy_inputs(fit: FittedModel):
    """Catches new functions or new noise at each intensity, and parts exchanged."""
    split = photos(4, 1, 1.0).test
    rows = noise_sweep(
        fit,
        split,
        key=jax.random.key(2),
        num_draws=6,
        gammas=(0.0, 0.5),
        fractions=(0.2,),
    )
    where = [(row["noise"], row["intensity"]) for row in rows]
    assert where == [("gaussian", 0), ("gaussian", 0.5), ("salt-and-pepper", 0.2)]
    draws_key, noise_key, salt_key = jax.random.split(jax.random.key(2), 3)
    u = np.asarray(jax.random.uniform(salt_key, split.x.shape))
    salted = np.where(u < 0.1, split.x.min(), split.x)
    noisy = [
        split.x,
        np.asarray(mix_with_noise(split.x, 0.5, key=noise_key)),
        np.where(u >= 0.9, split.x.max(), salted),
    ]
    for row, x in zip(rows, noisy, strict=True):
        prediction = predict(fit, x, key=draws_key, num_draws=6)
        probs = np.asarray(jax.nn.softmax(prediction.outputs, axis=-1), np.float64)
        total = scipy.stats.entropy(probs.mean(0), axis=-1).mean()
        aleatoric = scipy.stats.entropy(probs, axis=-1).mean()
        assert row["entropy"] == pytest.approx(total, rel=1e-4)
        assert row["aleatoric"] == pytest.approx(aleatoric, rel=1e-4)
        assert row["epistemic"] == pytest.approx(total - aleatoric, abs=1e-4)
        scores = evaluate(prediction, split.y)
        assert (row["accuracy"], row["nll"]) == (scores["accuracy"], scores["nll"])


def test_correlation_is_of_ranks():
    """Catches Pearson's, and kinds of noise put together."""
    entropies = {"one": [0.1, 0.2, 5.0, 4.9], "other": [3.0, 2.0, 1.0, 0.0]}
    rows = [
        {"noise": noise, "intensity": i / 10, "entropy": value}
        for noise, values in entropies.items()
        for i, value in enumerate(values)
    ]
    found = entropy_correlation(rows)
    expected = scipy.stats.spearmanr([0, 1, 2, 3], entropies["one"]).statistic
    assert found == pytest.approx({"one": expected, "other": -1.0})
    constant = [row | {"entropy": 1.0} for row in rows[:4]]
    assert np.isnan(entropy_correlation(constant)["one"])


def test_sweep_is_of_classes(fit: FittedModel):
    numbers = FittedModel(fit.model, Gaussian(0.1))
    with pytest.raises(ValueError, match="this fit has a `Gaussian` likelihood"):
        noise_sweep(numbers, photos(4, 1, 1.0).test, key=jax.random.key(0), num_draws=2)


def test_other_data_take_the_form_of_ours():
    """Catches another set's own scaling, and pixels that stay 16 or 255 times as
    bright.
    """
    ours, theirs = photos(4, 3, 255.0), photos(4, 1, 16.0)
    raw = theirs.x_scaling.undo(theirs.test.x) * (255 / 16)
    expected = ours.x_scaling.apply(np.repeat(raw, 3, -1).astype(np.float32))
    np.testing.assert_allclose(inputs_like(theirs, ours), expected, atol=1e-4)
    # Colour to grey: white stays white, whatever the weights of its channels.
    grey = inputs_like(ours, theirs)
    assert grey.shape == (20, 4, 4, 1)
    white = theirs.x_scaling.apply(np.full((1, 4, 4, 1), 16, np.float32))
    np.testing.assert_allclose(grey[:1], white, atol=1e-4)
    # A flat image stays flat in another size.
    larger = inputs_like(photos(8, 3, 1.0), ours)
    assert larger.shape == (20, 4, 4, 3)
    np.testing.assert_allclose(larger[0], ours.test.x[0], atol=1e-3)


def test_other_data_that_cannot_be_made_alike():
    ours, four = photos(4, 3, 1.0), photos(4, 4, 1.0)
    with pytest.raises(ValueError, match="have 4 channels and the model takes 3"):
        inputs_like(four, ours)
    with pytest.raises(ValueError, match="toy/cos has rows of 1 numbers.*takes images"):
        inputs_like(load("toy/cos"), ours)
