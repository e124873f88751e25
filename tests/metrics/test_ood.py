"""Detection and refusal against scikit-learn and numbers worked out by hand."""

import jax.random as jr
import numpy as np
import pytest
import sklearn.metrics

from ornstein import metrics

# Rounded, so that ties abound.
INSIDE = np.round(np.asarray(jr.normal(jr.key(0), (200,))), 1)
OUTSIDE = np.round(np.asarray(jr.normal(jr.key(1), (90,))) + 1, 1)
TRUTH = np.repeat([0, 1], [200, 90])
SCORES = np.concatenate([INSIDE, OUTSIDE])


def test_against_sklearn():
    """Catches the classes exchanged, and ties that count whole or not at all."""
    np.testing.assert_allclose(
        metrics.auroc(INSIDE, OUTSIDE), sklearn.metrics.roc_auc_score(TRUTH, SCORES)
    )
    np.testing.assert_allclose(
        metrics.aupr(INSIDE, OUTSIDE),
        sklearn.metrics.average_precision_score(TRUTH, SCORES),
    )
    fpr, tpr, _ = sklearn.metrics.roc_curve(TRUTH, SCORES, drop_intermediate=False)
    np.testing.assert_allclose(metrics.fpr95(INSIDE, OUTSIDE), fpr[tpr >= 0.95].min())


def test_perfect_and_hopeless():
    low, high = np.arange(20.0), np.arange(20.0) + 100
    assert metrics.auroc(low, high) == 1
    assert metrics.aupr(low, high) == 1
    assert metrics.fpr95(low, high) == 0
    assert metrics.auroc(high, low) == 0
    assert metrics.fpr95(high, low) == 1
    assert metrics.auroc(np.ones(3), np.ones(5)) == 0.5


def test_fpr95_needs_19_of_20():
    """Catches 0.95 * 20 rounded up to 20, which would flag the row at 0.5."""
    outside = np.concatenate([np.zeros(1), np.ones(19)])
    assert metrics.fpr95(np.full(4, 0.5), outside) == 0


@pytest.mark.parametrize("metric", [metrics.auroc, metrics.aupr, metrics.fpr95])
def test_bad_scores(metric):
    for bad in (np.array([]), np.array([1.0, np.nan])):
        with pytest.raises(ValueError, match="at least one and no NaN"):
            metric(INSIDE, bad)


def test_risk_coverage_by_hand():
    """Catches the least certain kept first, and ties in the order of rows."""
    uncertainty = np.array([0.3, 0.1, 0.2, 0.2])
    loss = np.array([1, 0, 1, 0])
    coverage, risk = metrics.risk_coverage(uncertainty, loss)
    np.testing.assert_allclose(coverage, [0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(risk, [0, 0.25, 1 / 3, 0.5])
    area = metrics.aurc(uncertainty, loss)
    np.testing.assert_allclose(area, (0.25 + 1 / 3 + 0.5) / 4)
