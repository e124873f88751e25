"""What `--tune` asks of `tune`, and what becomes of the answer."""

import numpy as np
import pytest

from ornstein.recipe import _search, prepare, preset_recipe, tune_recipe
from ornstein.recipe._training import Prepared
from ornstein.train import Tuning


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    recipe = preset_recipe("digits", model="implicit")
    options = {"num_components": 4, "test_draws": 20, "width": "6"}
    return prepare(recipe.changed(noise_learning_rate=0.3, **options))


def test_search_of_an_implicit_network(prepared: Prepared, monkeypatch):
    """Catches rows that are trained on and chosen by, a rate that no trial feels, and
    fewer draws of each component than the recipe has.
    """
    asked = {}

    def answer(make_model, split, likelihood, *, space, validation, options, key):
        asked.update(space=space, split=split, validation=validation.split)
        setting = {name: values[-1] for name, values in space.items()}
        asked["model"], asked["options"] = make_model(setting), options(setting)
        return Tuning([setting], setting, None)  # type: ignore[arg-type]

    monkeypatch.setattr(_search, "tune", answer)
    names = ["lr", "noise-lr", "components"]
    recipe, _ = tune_recipe(prepared, names, trial_epochs=2)
    rate = prepared.recipe.training.learning_rate
    assert asked["space"] == {
        "learning_rate": pytest.approx([rate / 3, rate, 3 * rate]),
        "noise_learning_rate": pytest.approx([0.1, 0.3, 0.9]),
        "num_components": [4, 8, 16],
    }
    num_rows = len(prepared.data.train)
    assert len(asked["split"]) + len(asked["validation"]) == num_rows
    assert len(asked["validation"]) == pytest.approx(0.1 * num_rows, abs=10)
    assert asked["model"].num_strata == 16
    rates = {"weights": pytest.approx(3 * rate), "noise": pytest.approx(0.9)}
    assert asked["options"]["learning_rate"] == rates
    assert asked["options"]["num_epochs"] == 2
    assert recipe.training.epochs == prepared.recipe.training.epochs
    assert recipe.implicit.num_components == 16
    assert recipe.training.test_draws == 80
    assert recipe.data.validation_fraction == 0  # the run trains on all rows


@pytest.mark.parametrize(("optimiser", "rate"), [("muon", 1e-3), ("adam", 4e-3)])
def test_search_of_the_nodes_rate_begins_at_the_recipes_own(optimiser, rate):
    """Catches (seen) that of the weights, of which muon gives nodes a quarter."""
    recipe = preset_recipe("digits", model="implicit").changed(
        optimiser=optimiser, learning_rate=4e-3, noise_learning_rate=None
    )
    found = _search._values(recipe, "noise_learning_rate")
    assert found == pytest.approx([rate / 3, rate, 3 * rate])


def test_series_are_held_out_before_they_are_learned_from_again(tmp_path, monkeypatch):
    """Catches (seen) validation series that training has from a later point on, and
    that show the model all that it is asked for."""
    rng = np.random.default_rng(0)
    lines = [f"s{i},{t},{rng.normal()}" for i in range(10) for t in range(12)]
    path = tmp_path / "series.csv"
    path.write_text("\n".join(["id,t,value", *lines, ""]))
    options = {"data": str(path), "time": "t", "series": "id", "start_every": 2}
    recipe = preset_recipe(str(path), model="latent-sde", time="t", series="id")
    prepared = prepare(recipe.changed(**options))
    asked = {}

    def answer(make_model, split, likelihood, *, validation, **rest):
        asked.update(split=split, validation=validation.split)
        return Tuning([], {"learning_rate": 0.1}, None)  # type: ignore[arg-type]

    monkeypatch.setattr(_search, "tune", answer)
    tune_recipe(prepared, ["lr"])
    held, learned = asked["validation"], asked["split"]
    of = lambda series: set(np.asarray(series.values)[np.asarray(series.mask)].tolist())
    assert len(learned) + 5 * len(held) == len(prepared.data.train)
    assert not of(held.y) & of(learned.y)
    assert not (np.asarray(held.x.mask) & np.asarray(held.y.mask)).any()


def test_validation_rows_stay_those_of_the_recipe(prepared: Prepared, monkeypatch):
    held = prepared.data.with_validation(0.25)
    asked = {}

    def answer(*arguments, validation, space, **rest):
        asked["validation"] = validation.split
        return Tuning([], {"learning_rate": 0.1}, None)  # type: ignore[arg-type]

    monkeypatch.setattr(_search, "tune", answer)
    tune_recipe(prepared._replace(data=held), ["lr"])
    assert asked["validation"] is held.validation
