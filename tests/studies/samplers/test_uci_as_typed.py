"""`reproduce uci-as-typed`: presets as they are, and what they score."""

from pathlib import Path

import numpy as np
import pytest

from ornstein.cli import main
from ornstein.recipe import Recipe, SampleRecipe, hand_over, load_data, preset_recipe
from ornstein.studies import Study
from ornstein.studies.samplers import _uci_as_typed


@pytest.fixture
def table(tmp_path: Path, monkeypatch) -> Path:
    """A line with noise, for UCI's yacht; presets shortened to seconds."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 120)
    y = 100 * x + 10 * rng.normal(size=120)
    path = tmp_path / "line.csv"
    np.savetxt(path, np.stack([x, y], 1), delimiter=",", header="x,y", comments="")

    def preset(name: str, model: str) -> Recipe:
        recipe = preset_recipe(str(path), model=model).changed(target=["y"])
        if model == "auto":
            return recipe
        return recipe.changed(steps=300, epochs=None)

    def shortened(recipe: Recipe, data) -> SampleRecipe:
        found = hand_over(recipe, data)
        assert isinstance(found, SampleRecipe)
        short = {"num_warmup": 20, "num_samples": 20, "start_steps": 200}
        return found.changed(num_integration_steps=20, **short)

    monkeypatch.setattr(_uci_as_typed, "preset_recipe", preset)
    monkeypatch.setattr(_uci_as_typed, "hand_over", shortened)
    monkeypatch.setattr(_uci_as_typed, "load_data", load_data)
    monkeypatch.setattr(_uci_as_typed.jax, "clear_caches", lambda: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("model", ["auto", "mean-field"])
def test_a_row_is_in_the_targets_units(table: Path, model: str):
    """Catches scores of standardised targets, and a sign."""
    models = (f"yacht/{model}",)
    study = Study(table, "quick", seed=0, say=lambda text: None, models=models)
    (row,) = _uci_as_typed.UCI_AS_TYPED.run(study)
    assert row["rmse"] == pytest.approx(10, rel=0.35)
    assert row["log_likelihood"] == pytest.approx(-np.log(10) - 1.42, abs=0.4)
    assert row["num_splits"] == 1
    published = {"auto": 0.67, "mean-field": 6.89}[model]
    assert row["rmse_over_published"] == pytest.approx(row["rmse"] / published)


def test_what_is_kept_is_shown_alone(table: Path):
    """Catches a table that takes a day before it shows an hour's rows."""
    study = Study(table, "quick", seed=0, say=lambda text: None, models=("kept",))
    assert _uci_as_typed.UCI_AS_TYPED.run(study) == []
    name, settings = _uci_as_typed._piece(study, "yacht", "ensemble", 0)
    scores = {"rmse": 0.5, "log_likelihood": -1.0, "seconds": 3.0}
    study.piece(name, settings, lambda: scores)
    (row,) = _uci_as_typed.UCI_AS_TYPED.run(study)
    assert (row["data"], row["model"]) == ("yacht", "ensemble")
    assert row["split_numbers"] == [0]


def test_an_unknown_row_is_refused(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "uci-as-typed", "--models", "ship"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "--models ship is no row of `reproduce uci-as-typed`" in said
    assert "such as yacht/auto" in said


def test_rows_have_errors_over_splits():
    """One split has none."""
    found = {n: {"rmse": 1.0 + n, "log_likelihood": 0.0, "seconds": 2} for n in (0, 2)}
    row = _uci_as_typed._row("yacht", "auto", found)
    assert row["rmse"] == 2
    assert row["rmse_se"] == pytest.approx(1.0)
    assert row["split_numbers"] == [0, 2]
    assert "r_hat" not in row  # of fits
    sampled = {n: one | {"r_hat": 1.0 + n} for n, one in found.items()}
    assert _uci_as_typed._row("yacht", "auto", sampled)["r_hat"] == 2
    assert "rmse_se" not in _uci_as_typed._row("yacht", "auto", {0: found[0]})
