"""Figure 2 of Jospin et al. (2022) and the ellipses of constant SGD."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ornstein.studies import EXPERIMENTS, Study
from ornstein.studies.samplers._csgd_ellipses import gaussian_kl
from ornstein.studies.samplers._sghmc_distributions import (
    IS_RIGHT_BELOW,
    exact_masses,
    total_variation,
)


def test_exact_masses():
    """Catches a wrong sign or power in U, and mass lost beyond the edges.

    The obvious twin: rejection from a normal, which every sampler could be.
    """
    edges = np.array([-1.2, -0.3, 0.1, 1.0])
    found = exact_masses(edges)
    assert found.sum() == pytest.approx(1)
    rng = np.random.default_rng(0)
    theta = rng.normal(scale=1.2, size=2_000_000)
    log_ratio = 2 * theta**2 - theta**4 + theta**2 / (2 * 1.44)
    kept = theta[np.log(rng.uniform(size=theta.size)) < log_ratio - log_ratio.max()]
    counts = np.histogram(kept, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    assert stats.chisquare(counts, found * len(kept)).pvalue > 1e-5


def test_total_variation():
    assert total_variation(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    assert total_variation(np.array([0.5, 0.5]), np.array([0.4, 0.6])) == (
        pytest.approx(0.1)
    )


def test_gaussian_kl():
    """Against ½(tr(S₂⁻¹S₁) − d + ln |S₂|/|S₁|) for numbers, and by samples."""
    assert gaussian_kl(np.eye(2), np.eye(2)) == 0
    assert gaussian_kl(np.array([[4.0]]), np.array([[1.0]])) == pytest.approx(
        0.5 * (4 - 1 - np.log(4))
    )
    first = np.array([[2.0, 0.5], [0.5, 1.0]])
    second = np.array([[1.0, -0.2], [-0.2, 1.5]])
    normals = [stats.multivariate_normal(cov=c) for c in (first, second)]
    draws = normals[0].rvs(200_000, random_state=0)
    terms = normals[0].logpdf(draws) - normals[1].logpdf(draws)
    assert gaussian_kl(first, second) == pytest.approx(
        terms.mean(), abs=4.5 * terms.std() / len(draws) ** 0.5
    )


@pytest.mark.slow
def test_sghmc_distributions(tmp_path: Path):
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    rows = EXPERIMENTS["sghmc-distributions"].run(study)
    assert len(rows) == 5
    for row in rows:
        assert row["is_right"] == row["expected_right"], row
        if not row["expected_right"]:
            assert row["total_variation"] > 2 * IS_RIGHT_BELOW
    assert (tmp_path / "distributions.png").is_file()


@pytest.mark.slow
def test_csgd_ellipses(tmp_path: Path):
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    rows = EXPERIMENTS["csgd-ellipses"].run(study)
    kls = {row["preconditioner"]: row["kl_to_posterior"] for row in rows}
    assert kls["Full"] < 0.01 < kls["Diagonal"] < kls["Scalar"]
    for row in rows:
        # Chains are nearer to their own recursion than the approximation is.
        assert row["chains_error"] < 0.03 < row["ou_error"] < 0.1
    assert (tmp_path / "csgd_ellipses.png").is_file()
