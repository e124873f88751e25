"""Diversity against loops over pairs of members and rows."""

import itertools

import jax
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from ornstein import metrics

PROBS = np.asarray(jax.nn.softmax(2 * jr.normal(jr.key(0), (5, 40, 4)), axis=-1))


def test_disagreement_counts_pairs():
    """Catches pairs of a member with itself, and guesses compared to the mean's."""
    pairs = list(itertools.combinations(range(5), 2))
    found = [
        PROBS[i, row].argmax() != PROBS[j, row].argmax()
        for i, j in pairs
        for row in range(40)
    ]
    assert 0.3 < np.mean(found) < 0.9
    np.testing.assert_allclose(metrics.disagreement(PROBS), np.mean(found), rtol=1e-5)
    np.testing.assert_allclose(metrics.disagreement(PROBS[[0, 0, 0]]), 0, atol=1e-6)


def test_pairwise_kl_is_the_mean_over_ordered_pairs():
    """Catches one direction alone, its reverse, and pairs that count themselves."""
    pairs = itertools.permutations(range(4), 2)
    # Only the first member is flat, so that the two directions differ much.
    probs = np.concatenate([np.full((1, 40, 4), 0.25), PROBS[:3]])
    found = [scipy.stats.entropy(probs[i], probs[j], axis=-1).mean() for i, j in pairs]
    np.testing.assert_allclose(metrics.pairwise_kl(probs), np.mean(found), rtol=1e-5)
    np.testing.assert_allclose(metrics.pairwise_kl(PROBS[[1, 1]]), 0, atol=1e-6)


def test_certain_members_have_a_finite_kl():
    sure = np.eye(2, dtype=np.float32)[:, None, :]
    expected = -np.log(np.finfo(np.float32).tiny)
    np.testing.assert_allclose(metrics.pairwise_kl(sure), expected, rtol=1e-6)


@pytest.mark.parametrize("metric", [metrics.disagreement, metrics.pairwise_kl])
def test_one_member_is_refused(metric):
    with pytest.raises(ValueError, match="between members, and there are 1"):
        metric(PROBS[:1])
