"""Metrics of classifiers against scikit-learn and numbers worked out by hand."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from ornstein import metrics
from ornstein.train.records import accuracy_and_ece, calibration_sums

PROBS = np.asarray(jax.nn.softmax(2 * jr.normal(jr.key(0), (300, 4)), axis=-1))
LABELS = np.asarray(jr.categorical(jr.key(1), jnp.log(PROBS), axis=-1))

# Five rows, two classes; confidences 0.9 0.8 0.95 0.6 0.6; right: yes no yes no yes.
HAND_PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.05, 0.95], [0.4, 0.6], [0.6, 0.4]])
HAND_LABELS = np.array([0, 1, 1, 0, 0])


def test_against_sklearn():
    """Catches a sum over rows, a mean over classes, and a log of base 2."""
    for ours, theirs in [
        (
            metrics.accuracy(PROBS, LABELS),
            sklearn.metrics.accuracy_score(LABELS, PROBS.argmax(1)),
        ),
        (
            metrics.top_k_accuracy(PROBS, LABELS, k=2),
            sklearn.metrics.top_k_accuracy_score(LABELS, PROBS, k=2),
        ),
        (metrics.nll(PROBS, LABELS), sklearn.metrics.log_loss(LABELS, PROBS)),
        (
            metrics.brier(PROBS, LABELS),
            np.mean(np.sum((PROBS - np.eye(4)[LABELS]) ** 2, axis=1)),
        ),
        (
            metrics.brier(HAND_PROBS, HAND_LABELS),
            2 * sklearn.metrics.brier_score_loss(HAND_LABELS, HAND_PROBS[:, 1]),
        ),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_ties_go_to_the_lower_class():
    """Catches a flat prediction that counts as right whatever the label."""
    flat = np.full((3, 3), 1 / 3)
    y = np.array([0, 1, 2])
    for k in (1, 2, 3):
        np.testing.assert_allclose(metrics.top_k_accuracy(flat, y, k=k), k / 3)
    with pytest.raises(ValueError, match="from 1 to 3 classes"):
        metrics.top_k_accuracy(flat, y, k=4)


def test_what_is_no_number_is_not_right():
    """Catches (seen) NaN that no class is above, and a class that is not there."""
    nan = np.full((4, 3), np.nan)
    y = np.array([0, 1, 2, 1])
    assert metrics.accuracy(nan, y) == 0
    assert metrics.top_k_accuracy(nan, y, k=3) == 0
    some = np.array([[0.2, 0.8], [0.9, np.nan], [0.6, 0.4]])
    assert metrics.accuracy(some, np.array([1, 0, 0])) == pytest.approx(2 / 3)
    assert metrics.accuracy(some[:1], np.array([7])) == 0
    assert np.isnan(metrics.ece(nan, y))
    both = np.concatenate([nan, np.eye(4, 3)[[0, 1, 2, 0]]])
    assert np.isnan(metrics.max_calibration_error(both, np.tile([0, 1, 2, 1], 2)))


def test_many_rows_are_added_up_without_drift():
    """Of 400,000 rows as surely right as they say. Catches (seen) a sum of rows one
    after another in single precision: 1.5e-3."""
    confidence = np.full(400_000, 0.9985, "float32")
    y = (np.arange(len(confidence)) % 2_000 < 3).astype(int)
    probs = np.stack([confidence, 1 - confidence], axis=1)
    assert metrics.ece(probs, y) < 1e-6
    bins = metrics.reliability(probs, y)
    assert bins.confidence[-1] == pytest.approx(0.9985, abs=2e-5)
    assert int(bins.counts[-1]) == len(y)


HALF = [np.float16, jnp.bfloat16]


@pytest.mark.parametrize("dtype", HALF)
def test_rows_of_half_precision_are_counted(dtype):
    """As the same numbers in single precision. Catches (seen) bins that stop at 256
    or 2,048 rows, and an ECE of 0 for 0.03."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0.5, 1, 20_000)
    probs = np.stack([first, 1 - first], axis=1).astype(dtype)
    y = (rng.uniform(size=len(first)) > first - 0.03).astype(int)
    single = probs.astype(np.float32)
    for metric in (
        metrics.nll,
        metrics.brier,
        metrics.ece,
        metrics.adaptive_ece,
        metrics.classwise_ece,
        metrics.max_calibration_error,
    ):
        assert float(metric(probs, y)) == pytest.approx(float(metric(single, y)))
    assert metrics.ece(probs, y) == pytest.approx(0.03, abs=0.01)
    assert int(metrics.reliability(probs, y).counts.sum()) == len(y)
    sums = calibration_sums(jnp.asarray(probs), jnp.asarray(y))
    found = accuracy_and_ece(np.asarray(sums, np.float64))
    assert found["accuracy"] == pytest.approx(float(metrics.accuracy(single, y)))
    assert found["ece"] == pytest.approx(float(metrics.ece(single, y)), abs=1e-4)


@pytest.mark.parametrize("dtype", HALF)
def test_uncertainty_of_half_precision(dtype):
    """Catches (seen) sums over rows of infinity, and differences of rounded parts."""
    draws = np.stack([PROBS, PROBS[:, ::-1]]).astype(dtype)
    single = draws.astype(np.float32)
    for metric in (metrics.split_entropy, metrics.pairwise_kl):
        np.testing.assert_allclose(metric(draws), metric(single), rtol=1e-5)
    confidence = np.full((3, 100_000), 0.75, dtype)
    confidence[0] = 0.5
    expected = metrics.overconfidence_error(confidence.astype(np.float64))
    assert metrics.overconfidence_error(confidence) == pytest.approx(expected)
    resampled = metrics.resampled_ece(confidence, confidence > 0.6, num_resamples=0)
    np.testing.assert_allclose(resampled[0], [0.5, 0.25, 0.25], rtol=1e-6)


def test_the_order_of_equal_rows_does_not_matter():
    """Catches (seen) a calibrated guess with an adaptive ECE of 0.47 on rows that are
    sorted by class."""
    probs = np.tile([[0.5, 0.3, 0.2]], (30, 1))
    for y in (np.repeat([0, 1], 15), np.tile([0, 1], 15)):
        assert metrics.adaptive_ece(probs, y) == pytest.approx(0, abs=1e-6)


def test_resamples_have_the_bins_of_the_ece():
    """Catches (seen) 0.6 that lies in the ninth bin in single precision and in the
    tenth in double."""
    confidence = np.array([[0.6, 0.62]], "float32")
    probs = np.stack([confidence[0], 1 - confidence[0]], axis=1)
    found = metrics.resampled_ece(confidence, np.array([[True, False]]))
    expected = metrics.ece(probs, np.array([0, 1]))
    assert found[0, 0] == pytest.approx(float(expected), abs=1e-6)


def test_errors_of_eces_are_those_over_rows():
    """Against the spread over other rows of the same two models. Catches (seen)
    resamples of each model by itself, of whose difference the spread is twice this.
    """
    rng = np.random.default_rng(0)

    def rows(num: int) -> tuple[np.ndarray, np.ndarray]:
        """Two models that are too sure, and mostly wrong about the same rows."""
        p = rng.uniform(0.6, 0.75, num)
        one, other = rng.uniform(size=(2, num))
        same = rng.uniform(size=num) < 0.8
        is_right = np.stack([one < p, np.where(same, one, other) < p])
        return np.stack([p + 0.2, p + 0.1]), is_right

    def differences(found: np.ndarray) -> np.ndarray:
        return found[:, 0] - found[:, 1]

    one = rows(2_000)
    found = metrics.resampled_ece(*one)
    for model in range(2):
        confidence, is_right = (part[model] for part in one)
        probs = np.stack([confidence, 1 - confidence], 1)
        expected = metrics.ece(probs, 1 - is_right)
        np.testing.assert_allclose(found[0, model], expected, rtol=1e-4)
    others = [metrics.resampled_ece(*rows(2_000), num_resamples=0) for _ in range(400)]
    spread = differences(np.concatenate(others)).std(ddof=1)
    assert differences(found[1:]).std(ddof=1) == pytest.approx(spread, rel=0.25)


def test_reliability_by_hand():
    """Catches bins that include their lower edge: 0.6 and 0.8 are edges of fifths."""
    bins = metrics.reliability(HAND_PROBS, HAND_LABELS, num_bins=5)
    np.testing.assert_allclose(bins.edges, np.arange(6) / 5, rtol=1e-6)
    np.testing.assert_array_equal(bins.counts, [0, 0, 2, 1, 2])
    nan = np.nan
    np.testing.assert_allclose(bins.confidence, [nan, nan, 0.6, 0.8, 0.925], rtol=1e-6)
    np.testing.assert_allclose(bins.accuracy, [nan, nan, 0.5, 0.0, 1.0])


@pytest.mark.parametrize("num_bins", [7, 15, 20, 30])
def test_edges_lie_in_the_bin_below(num_bins):
    """Catches edges that round to a number of the bin above (12 to 14 of 15, seen)."""
    edges = np.asarray(
        metrics.reliability(np.eye(2), np.arange(2), num_bins=num_bins).edges
    )
    for number, edge in enumerate(edges[1:]):
        probs = np.array([[edge, *[0.0] * 40]], np.float32)  # the largest, if small
        counts = metrics.reliability(probs, np.arange(1), num_bins=num_bins).counts
        assert int(np.argmax(counts)) == number


def test_calibration_errors_by_hand():
    """Catches an unweighted mean over bins, and empty bins that count."""
    # Bins of fifths: gaps 0.1 (2 rows), 0.8 (1 row), 0.075 (2 rows).
    args = (HAND_PROBS, HAND_LABELS)
    expected = (2 * 0.1 + 0.8 + 2 * 0.075) / 5
    np.testing.assert_allclose(metrics.ece(*args, num_bins=5), expected, rtol=1e-5)
    worst = metrics.max_calibration_error(*args, num_bins=5)
    np.testing.assert_allclose(worst, 0.8, rtol=1e-5)
    # Two bins by rank: {0.6, 0.6, 0.8} with 1 right, {0.9, 0.95} with 2 right.
    adaptive = metrics.adaptive_ece(*args, num_bins=2)
    np.testing.assert_allclose(adaptive, (1.0 + 0.15) / 5, rtol=1e-5)
    # Class 1 with two bins: 0.1 0.2 0.4 (one is of class 1), 0.95 0.6 (one is).
    # Class 0: 0.05 0.4 (one is of class 0), 0.9 0.8 0.6 (two are).
    classwise = metrics.classwise_ece(*args, num_bins=2)
    np.testing.assert_allclose(
        classwise, ((0.3 + 0.55) / 5 + (0.55 + 0.3) / 5) / 2, rtol=1e-5
    )


def test_calibrated_and_not():
    """Catches an error that cannot see confidence: labels are drawn from `PROBS`."""
    bound = 0.1
    overconfident = PROBS**3 / np.sum(PROBS**3, axis=1, keepdims=True)
    for error in (metrics.ece, metrics.adaptive_ece):
        assert error(PROBS, LABELS) < bound < error(overconfident, LABELS)
    assert metrics.classwise_ece(PROBS, LABELS) < metrics.classwise_ece(
        overconfident, LABELS
    )


def test_compiled_metrics_agree():
    """Catches a metric that a training step cannot contain."""
    for metric in (
        metrics.accuracy,
        metrics.nll,
        metrics.brier,
        metrics.ece,
        metrics.adaptive_ece,
        metrics.classwise_ece,
    ):
        np.testing.assert_allclose(
            jax.jit(metric)(PROBS, LABELS), metric(PROBS, LABELS), rtol=1e-5
        )


def test_entropy_split():
    """Catches aleatoric and epistemic exchanged."""
    draws = np.stack([PROBS, PROBS[:, ::-1]])
    total, aleatoric, epistemic = metrics.split_entropy(draws)
    np.testing.assert_allclose(
        total, scipy.stats.entropy(draws.mean(0), axis=-1), rtol=1e-5
    )
    np.testing.assert_allclose(
        aleatoric, scipy.stats.entropy(PROBS, axis=-1), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(epistemic, total - aleatoric, rtol=1e-5, atol=1e-6)
    # Draws that are sure and disagree: ignorance alone.
    sure = np.eye(2)[:, None, :]
    np.testing.assert_allclose(
        np.ravel(metrics.split_entropy(sure)), [np.log(2), 0, np.log(2)], rtol=1e-6
    )


def test_corruption_errors_by_hand():
    """Catches a ratio of means where the mean of ratios belongs."""
    errors = np.array([[0.2, 0.4], [0.1, 0.1]])
    baseline = np.array([[0.3, 0.3], [0.2, 0.2]])
    np.testing.assert_allclose(
        metrics.mean_corruption_error(errors, baseline), (1.0 + 0.5) / 2
    )
    np.testing.assert_allclose(metrics.mean_corruption_error(errors, 0.1), (3 + 1) / 2)
    relative = metrics.relative_corruption_error(
        errors, baseline, clean_error=0.05, clean_reference=0.1
    )
    np.testing.assert_allclose(relative, (0.5 / 0.4 + 0.1 / 0.2) / 2)
