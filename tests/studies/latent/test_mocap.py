"""Motion capture: who is shown what, and what is scored."""

from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.stats

from ornstein.prediction import predict
from ornstein.recipe import Recipe, load_recipe, prepare, preset_recipe
from ornstein.recipe._training import Keys, fit_options, train
from ornstein.studies.latent._mocap import _judged, summary


@pytest.mark.parametrize(
    ("model", "num_starts", "num_lengths"),
    [("latent-sde", 21, 4), ("latent-ode", 41, 3)],
)
def test_a_test_row_shows_three_frames_and_asks_for_the_rest(
    data_dir: Path, model: str, num_starts: int, num_lengths: int
):
    seeds, recipe = load_recipe("mocap", model, "quick")
    assert seeds == (0, 1, 2)
    data = prepare(recipe.changed(data_dir=str(data_dir))).data
    for split, num_rows in ((data.test, 4), (data.validation, 3)):
        assert split is not None
        assert len(split) == num_rows
        np.testing.assert_array_equal(split.x.mask.all((0, 2)), np.arange(300) < 3)
        np.testing.assert_array_equal(split.y.mask.all((0, 2)), np.arange(300) >= 3)
    # 16 sequences, three tempos; raw units: errors are the papers'.
    assert len(data.train) == 16 * num_starts * 3 * num_lengths
    assert data.y_scaling is None


def test_the_score_is_the_error_of_the_mean_of_the_asked(data_dir: Path):
    """Catches frames scored that were shown, and squares averaged over draws."""
    _, recipe = load_recipe("mocap", "latent-sde", "quick")
    recipe = recipe.changed(
        data_dir=str(data_dir),
        epochs=1,
        start_every=200,
        tempos=(),
        lengths=(),
        test_draws=4,
        train_rows=2,
    )
    found = _judged(recipe)
    assert found["test_mse"] == pytest.approx(found["rmse"] ** 2, rel=1e-3)
    assert found["test_mse"] == pytest.approx(np.mean(found["test_mse_by_series"]))
    thirds = [v for name, v in found.items() if name.startswith("mse_frames")]
    assert found["test_mse"] == pytest.approx(np.mean(thirds), rel=1e-5)
    assert len(found["loss"]) == len(found["val_nll"]) == 1
    assert found["kl_weight"] == 5.0  # a figure at another than 1 says so
    assert found["joint_nll"] > 1000 * found["nll"]  # of a series, and of a value
    prepared = prepare(recipe)
    held = prepared.data.validation
    assert held is not None
    key = Keys.of(recipe).test
    draws = predict(train(prepared), held.x, key=key, num_draws=4)
    by_hand = np.mean((np.asarray(draws.mean) - held.y.values)[:, 3:] ** 2)
    assert found["val_mse"] == pytest.approx(by_hand, rel=1e-3)
    assert found["val_mse"] != pytest.approx(found["test_mse"], rel=1e-3)


def test_summary_is_over_seeds():
    """Catches a standard deviation called an interval: the paper's ± is one by t."""
    errors = {"latent-sde": [4.0, 6.0, 6.5], "latent-ode": [9.0]}
    rows = [
        {"model": m, "test_mse": e, "nll": e / 2, "kl_weight": 5.0}
        for m, es in errors.items()
        for e in es
    ]
    sde, ode = summary(rows)
    assert (sde["model"], sde["seeds"], sde["kl_weight"]) == ("latent-sde", 3, 5.0)
    assert (sde["mean_test_mse"], sde["mean_nll"]) == (5.5, 2.75)
    assert sde["sd_test_mse"] == pytest.approx(np.std(errors["latent-sde"], ddof=1))
    mean, error = 5.5, scipy.stats.sem(errors["latent-sde"])
    _, upper = scipy.stats.t.interval(0.95, 2, mean, error)
    assert sde["t95_test_mse"] == pytest.approx(upper - mean)
    assert sde["t95_nll"] == pytest.approx(sde["t95_test_mse"] / 2)
    assert (ode["mean_test_mse"], ode["sd_test_mse"]) == (9.0, None)
    assert ode["t95_test_mse"] is None


LORENZ = preset_recipe("toy/lorenz", model="latent-sde").changed(
    train_rows=4, test_rows=2
)


def test_training_series_begin_again():
    data = prepare(LORENZ.changed(start_every=33)).data
    assert len(data.train) == 3 * 4
    assert len(data.test) == 2
    again, first = data.train.x.values[4:8], data.train.x.values[:4]
    np.testing.assert_array_equal(again[:, :67], first[:, 33:])
    assert any("3 of its points on, every 33" in note for note in data.notes)


def test_training_series_are_played_at_tempos():
    data = prepare(LORENZ.changed(tempos=(1.0, 2.0))).data
    assert len(data.train) == 2 * 4
    first, faster = np.split(np.asarray(data.train.x.values), 2)
    np.testing.assert_allclose(faster[:, :50], first[:, :99:2], atol=1e-4)
    assert any("at the tempos 1, 2" in note for note in data.notes)


def test_training_series_are_cut_short():
    data = prepare(LORENZ.changed(lengths=(10, 100))).data
    assert len(data.train) == 2 * 4
    for series in (data.train.x, data.train.y):
        short, whole = np.split(np.asarray(series.mask).all(-1), 2)
        np.testing.assert_array_equal(short.sum(-1), 10)
        assert whole.all()
    assert any("up to its points 10, 100" in note for note in data.notes)


def test_noise_is_added_to_what_is_seen():
    recipe = LORENZ.changed(input_noise=0.5)
    data = prepare(recipe).data
    noisy = fit_options(recipe, data)["augmentation"](
        data.train.x, key=jax.random.key(0)
    )
    added = np.asarray(noisy.values) - data.train.x.values
    np.testing.assert_allclose(np.std(added), 0.5, rtol=0.05)
    assert fit_options(LORENZ, data)["augmentation"] is None


REFUSED = {
    "number from 1 to 66": LORENZ.changed(start_every=67),
    "`start_every` -1": LORENZ.changed(start_every=-1),
    "one or more positive numbers": LORENZ.changed(tempos=(1.0, 0.0)),
    "whole numbers from 1 to 100": LORENZ.changed(lengths=(50, 101)),
    "`lengths` is for sequences": Recipe().changed(lengths=(3,)),
    "`input_noise` must not be negative": LORENZ.changed(input_noise=-0.1),
    "`start_every` is for sequences": Recipe().changed(start_every=3),
    "`input_noise` is for sequences": Recipe().changed(input_noise=0.1),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_options_that_cannot_be_are_refused(sentence: str):
    with pytest.raises(ValueError, match=sentence):
        prepare(REFUSED[sentence])
