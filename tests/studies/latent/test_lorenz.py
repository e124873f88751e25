"""The stochastic Lorenz attractor, at toy size: what is scored and drawn."""

from pathlib import Path

import numpy as np
import pytest

from ornstein.data import load
from ornstein.functions import PriorSamples
from ornstein.studies import Study
from ornstein.studies.latent import _lorenz


@pytest.mark.slow
def test_reproduce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both models, and a figure of each prior beside the data's."""
    settings = _lorenz._Settings(
        epochs=1,
        batch_size=128,
        hidden_size=2,
        drift_widths=(2,),
        num_draws=2,
        num_prior=20,
    )
    monkeypatch.setitem(_lorenz._SETTINGS, "quick", settings)
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    rows = _lorenz.LORENZ.run(study)
    assert [row["model"] for row in rows] == ["latent SDE", "latent ODE"]
    for row in rows:
        assert 0 <= row["forecast_coverage_90"] <= 1
        assert row["test_kl_per_series"] > 0
    assert 0 < rows[0]["noise_share_least"] <= rows[0]["noise_share_most"] < 1
    pictures = {"prior_of_the_latent_SDE", "prior_of_the_latent_ODE", "test_paths"}
    assert {path.stem for path in tmp_path.glob("*.png")} == pictures


def test_pieces_of_before_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Catches settings that lost a name, with which hours are computed again."""
    old = _lorenz._SETTINGS["quick"]._asdict() | {"max_diffusion": 2.0, "seed": 0}
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    kept = {"scores": {"score": 1.0}, "paths": np.zeros((2, 100, 3)).tolist()}
    for name in ("latent_SDE", "latent_ODE"):
        study.piece(name, old, lambda: kept)
    monkeypatch.setattr(_lorenz, "_learned", None)
    assert [row["score"] for row in _lorenz.LORENZ.run(study)] == [1.0, 1.0]


def test_distance_of_the_prior():
    """Of distributions, whatever the order of rows; catches a mean of differences."""
    y = load("toy/lorenz").test.y
    same = PriorSamples(y.values, y.values[::-1])
    assert _lorenz._distance(same, y) == 0
    shifted = PriorSamples(y.values, y.values + 0.5)
    assert _lorenz._distance(shifted, y) == pytest.approx(0.5, rel=1e-5)
