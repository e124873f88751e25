"""Sequences of a recipe: what is shown and asked, the model's time, and its parts."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Data, Series, Split, Standardisation, load
from ornstein.data._clock import Clock
from ornstein.functions import (
    ConstantDiffusion,
    FirstFrames,
    GRURecognition,
    LinearDrift,
    NetDiffusion,
    NetDrift,
    NoRecognition,
    ProcessDrift,
    SplitRecognition,
)
from ornstein.recipe import Recipe, first_rows, prepare, preset_recipe
from ornstein.recipe.inputs._arrange_series import ask_for_the_rest
from ornstein.recipe.inputs._series_table import on_model_time
from ornstein.recipe.presets._presets import default_model
from ornstein.sde import Checkpointed, EulerMaruyama, Grid


def sequences(ts: np.ndarray, values: np.ndarray, clock: Clock | None = None) -> Data:
    """Training rows that are the test rows too."""
    split = Split(*2 * [Series.of(ts, values)])
    return Data("own", "series", split, split, clock=clock)


@pytest.fixture
def gappy() -> Data:
    """Ten times; the second series was observed at four of them."""
    values = np.ones((2, 10, 1))
    values[1, [0, 2, 3, 4, 5, 6]] = np.nan
    return sequences(np.arange(10.0), values)


def test_half_of_what_was_observed_is_shown(gappy: Data):
    """Catches a cut by times, which shows a series that begins late nothing."""
    cut = ask_for_the_rest(gappy, fraction=0.5, num_frames=None)
    shown, asked = cut.test.x.mask[..., 0], cut.test.y.mask[..., 0]
    assert np.flatnonzero(shown[0]).tolist() == [0, 1, 2, 3, 4]
    assert np.flatnonzero(shown[1]).tolist() == [1, 7]
    assert np.flatnonzero(asked[1]).tolist() == [8, 9]
    assert np.all(cut.test.x.values[~cut.test.x.mask] == 0)  # nothing leaks
    assert cut.train.x.mask.sum() == gappy.train.x.mask.sum()
    assert "first 50%" in cut.notes[-1]
    again = ask_for_the_rest(cut, fraction=0.5, num_frames=None)
    np.testing.assert_array_equal(again.test.x.mask, cut.test.x.mask)


def test_first_frames_are_all_that_is_shown(gappy: Data):
    cut = ask_for_the_rest(gappy, fraction=0.5, num_frames=3)
    assert np.flatnonzero(cut.test.x.mask[0, :, 0]).tolist() == [0, 1, 2]
    assert np.flatnonzero(cut.test.y.mask[1, :, 0]).tolist() == [7, 8, 9]


def test_what_cannot_be_cut_says_so(gappy: Data):
    """One observed value in a series: all are judged by what they show."""
    whole = ask_for_the_rest(gappy, fraction=1.0, num_frames=None)
    assert "that the model was shown" in whole.notes[-1]
    twice = load("toy/two-points")
    assert ask_for_the_rest(twice, fraction=0.5, num_frames=None).test is twice.test
    with pytest.raises(ValueError, match="`test_seen` must lie above 0"):
        ask_for_the_rest(gappy, fraction=0.0, num_frames=None)


def test_model_time_starts_at_the_first_and_ignores_padding():
    """A short series' padding is no gap: catches a median over it."""
    long = Series.of(np.array([100.0, 104.0, 108.0]), np.ones((3, 1)))
    short = Series.of(np.array([90.0, 91.0]), np.ones((2, 1)))
    x = Series.padded([long, *3 * [short]])
    x = dataclasses.replace(x, ts=x.ts.copy())
    x.ts[1:, 2] = 99.0
    data = Data("own", "series", *2 * [Split(x, x)], clock=Clock("t"))
    turned = on_model_time(data, None)
    assert turned.clock is not None
    assert (turned.clock.start, turned.clock.unit) == (90.0, pytest.approx(10.0))
    np.testing.assert_allclose(turned.test.y.ts[0], [1.0, 1.4, 1.8], rtol=1e-6)
    np.testing.assert_allclose(turned.clock.undo(turned.train.x.ts), x.ts, rtol=1e-6)
    given = on_model_time(data, 2.0)
    np.testing.assert_allclose(given.train.x.ts[0], [5.0, 7.0, 9.0])
    with pytest.raises(ValueError, match="`time_scale` must be positive"):
        on_model_time(data, -1.0)


def test_first_rows_scale_validation_rows_too():
    """Catches validation series in the units of rows that were left out."""
    values = np.arange(24.0).reshape(4, 6, 1)
    scaling = Standardisation.fit_observed(values)
    x = Series.of(np.arange(6.0), scaling.apply(values))
    parts = [Split(x[rows], x[rows]) for rows in ([0, 1], [2], [3])]
    data = Data("own", "series", *parts, x_scaling=scaling, y_scaling=scaling)
    few = first_rows(data, 1, None)
    assert few.validation is not None
    for split, row in ((few.train, 0), (few.test, 2), (few.validation, 3)):
        for part in (split.x, split.y):
            raw = few.y_scaling.undo(part.values[0])
            np.testing.assert_allclose(raw, values[row], rtol=1e-4, atol=1e-4)


def built(data: Data, **changes) -> Any:
    recipe = preset_recipe("toy/lorenz", model="latent-sde")
    return prepare(recipe.changed(epochs=1, **changes), data).model


def test_options_reach_the_parts(gappy: Data):
    """Catches a part that is built from another's option."""
    model = built(gappy, latent_size=3, hidden_size=7, context_size=5, substeps=2)
    assert isinstance(model.recognition, GRURecognition)
    assert model.recognition.cell.hidden_size == 7
    assert (model.recognition.latent_size, model.recognition.context_size) == (3, 6)
    assert isinstance(model.prior_drift, NetDrift)
    assert isinstance(model.diffusion, NetDiffusion)
    assert model.diffusion.bounds == (0.01, 2.0)
    assert model.start.is_learned
    assert isinstance(model.integrator.stepsize, Grid)
    assert model.integrator.stepsize.num_substeps == 2
    assert isinstance(model.integrator.gradient, Checkpointed)
    assert isinstance(model.integrator.solver, EulerMaruyama)
    plain = {"max_noise": 1.0, "learn_start": False, "start_scale": 2.0}
    model = built(
        gappy,
        recognition="first-frames",
        frames=4,
        latent_prior="ou",
        rate=0.3,
        latent_noise="fixed",
        sigma=0.7,
        latent_size=1,
        decoder_widths="identity",
        extrapolates_posterior=True,
        drift_sees_time=False,
        **plain,
    )
    assert isinstance(model.recognition, FirstFrames)
    assert model.recognition.num_frames == 4
    z, t = jnp.array([2.0]), 0.0
    assert isinstance(model.prior_drift, ProcessDrift)
    np.testing.assert_allclose(model.prior_drift(t, z), -0.6, rtol=1e-6)
    np.testing.assert_allclose(model.diffusion(t, z), 0.7, rtol=1e-6)
    assert not model.diffusion.is_learned
    assert isinstance(model.decoder, eqx.nn.Identity)
    np.testing.assert_allclose(model.start.scale, 2.0, rtol=1e-6)
    assert model.extrapolates_posterior
    assert not model.posterior_drift.sees_time
    model = built(gappy, recognition="first-frames-gru", frames=4, hidden_size=7)
    assert isinstance(model.recognition, SplitRecognition)
    first, rest = model.recognition.start, model.recognition.context
    assert isinstance(first, FirstFrames)
    assert isinstance(rest, GRURecognition)
    assert (first.num_frames, first.context_size) == (4, 0)
    assert rest.cell.hidden_size == 7
    model = built(
        gappy,
        recognition="none",
        latent_prior="linear",
        rate=0.2,
        latent_noise="learned",
        sigma=0.4,
        **plain,
    )
    assert isinstance(model.recognition, NoRecognition)
    assert isinstance(model.prior_drift, LinearDrift)
    np.testing.assert_allclose(model.prior_drift.matrix, -0.2 * np.eye(4), rtol=1e-6)
    assert isinstance(model.diffusion, ConstantDiffusion)
    assert model.diffusion.is_learned
    np.testing.assert_allclose(np.exp(model.diffusion.log_scale), 0.4, rtol=1e-6)


def test_latent_model_is_chosen_for_sequences_alone():
    assert (
        default_model("toy/gbm") == default_model("own.csv", time="t") == "latent-sde"
    )
    assert default_model("own.csv") == "auto"
    assert default_model("digits") == "sdebnn"


@pytest.mark.parametrize("model", ["latent-sde", "latent-ode"])
@pytest.mark.parametrize("data", ["toy/irregular-sine", "toy/two-points", "toy/gbm"])
def test_presets_of_built_in_sequences_build(data: str, model):
    prepared = prepare(preset_recipe(data, model=model))
    assert isinstance(prepared.likelihood, orn.OverTime)
    assert prepared.data.name == data
    draw = jax.eval_shape(
        lambda key: prepared.model(prepared.data.test.x, key=key, index=0),
        jax.random.key(0),
    )
    assert draw.output.shape == prepared.data.test.y.shape


def test_runs_before_sequences_can_still_be_read():
    """Their recipes have no parts `series` and `latent`."""
    saved = preset_recipe("toy/cos").to_json()
    del saved["series"], saved["latent"]
    assert Recipe.from_json(saved) == preset_recipe("toy/cos")


def test_patience_takes_validation_rows_that_data_bring(gappy: Data):
    recipe = preset_recipe("toy/lorenz", model="latent-sde").changed(patience=2)
    with pytest.raises(ValueError, match="`validation_fraction`"):
        prepare(recipe, gappy)
    held = dataclasses.replace(gappy, validation=gappy.test)
    assert prepare(recipe, held).data.validation is not None
