"""Tempos of motion capture: what each fold holds out, and how errors are pooled."""

from pathlib import Path

import numpy as np
import pytest

from ornstein.data import load
from ornstein.recipe import load_recipe
from ornstein.studies import Study
from ornstein.studies.latent import _mocap_tempos


def test_each_training_walk_is_held_out_once_and_test_walks_are_not_there(data_dir):
    whole = load("mocap", data_dir=data_dir)
    assert whole.validation is not None
    held = []
    for fold in range(4):
        data = _mocap_tempos.without_fold(whole, fold)
        assert data.validation is not None
        assert (len(data.train), len(data.validation)) == (12, 4)
        np.testing.assert_array_equal(data.test.x.values, whole.validation.x.values)
        both = np.concatenate([data.train.y.values, data.validation.y.values])
        _same_walks(both, whole.train.y.values)
        held.append(data.validation.y.values)
    _same_walks(np.concatenate(held), whole.train.y.values)


def test_a_fold_is_judged_by_each_walk_once(data_dir: Path):
    """Catches errors of rows that were learned, or of every start, tempo and length."""
    _, recipe = load_recipe("mocap", "latent-sde", "quick")
    assert not isinstance(recipe, list)
    few = {"epochs": 1, "start_every": 200, "lengths": (50,), "test_draws": 2}
    found = _mocap_tempos._judged(recipe.changed(data_dir=str(data_dir), **few), 1)
    assert (len(found["held_out"]), len(found["validation"])) == (4, 3)
    assert np.isfinite([*found["held_out"], *found["validation"]]).all()


def test_a_set_of_tempos_has_the_mean_of_all_walks(tmp_path: Path, monkeypatch):
    """Each of 19 walks counts once, however often the validation walks are judged."""

    def judged(recipe, fold):
        scale = sum(recipe.series.tempos)
        return {"held_out": [scale + fold] * 4, "validation": [8.0 * fold] * 3}

    monkeypatch.setattr(_mocap_tempos, "_judged", judged)
    monkeypatch.setattr(_mocap_tempos, "_CANDIDATES", ((), (0.5, 0.5)))
    study = Study(tmp_path, "quick", seed=0, say=lambda line: None)
    none, half = _mocap_tempos.MOCAP_TEMPOS.run(study)
    assert none["mse_held_out"] == pytest.approx(1.5)
    assert none["mse_validation"] == pytest.approx(12.0)
    assert none["mse"] == pytest.approx((16 * 1.5 + 3 * 12) / 19)
    assert (half["tempos"], half["mse_held_out"]) == ([0.5, 0.5], pytest.approx(2.5))
    monkeypatch.setattr(_mocap_tempos, "_judged", None)  # pieces are kept
    assert _mocap_tempos.MOCAP_TEMPOS.run(study) == [none, half]


def _same_walks(some: np.ndarray, others: np.ndarray):
    """The same rows in whatever order."""
    order, other = (np.argsort(walks[:, 0, 0]) for walks in (some, others))
    np.testing.assert_array_equal(some[order], others[other])
