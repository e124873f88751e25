"""Files to predict from, as a run of sequences takes them: steps, starts and ends."""

import dataclasses
from decimal import Decimal
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ornstein as orn
from ornstein.cli._flags import said
from ornstein.data import DataError, Series, Span, load_schema, save_schema
from ornstein.prediction import FittedModel
from ornstein.recipe import Recipe, prepare, read_series
from ornstein.recipe.inputs import SeriesInputs, load_data

TINY = {"latent_size": 1, "hidden_size": 3, "context_size": 2, "drift_widths": "3"}
TINY |= {"likelihood": "gaussian", "substeps": 2}


def written(path: Path, rows: list[str], header: str = "t,a") -> Path:
    path.write_text("\n".join([header, *rows, ""]))
    return path


def recipe_of(path: Path, **changes) -> Recipe:
    options = {"model": "latent-sde", "solver": "euler", "gradient": "checkpointed"}
    return Recipe().changed(
        data=str(path), time="t", test_draws=4, **options | TINY | changes
    )


def untrained(recipe: Recipe) -> tuple[Any, FittedModel]:
    """A fit whose posterior's drift is not its prior's, as training would leave it."""
    prepared = prepare(recipe)
    keys = jax.random.split(jax.random.key(1), 1000)
    leaves, tree = jax.tree.flatten(prepared.model)
    moved = [
        leaf + 0.5 * jax.random.normal(key, leaf.shape)
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)
        else leaf
        for leaf, key in zip(leaves, keys[: len(leaves)], strict=True)
    ]
    model = jax.tree.unflatten(tree, moved)
    return prepared, FittedModel(model, prepared.likelihood, None)


def mean_of(fit: FittedModel, x: Series) -> np.ndarray:
    key = jax.random.key(0)
    return np.asarray(orn.predict(fit, x, key=key, num_draws=4).mean)


def asked(fit: FittedModel, inputs: SeriesInputs) -> np.ndarray:
    """The means, a line for each of the file."""
    return inputs.in_file_order(mean_of(fit, inputs.given))[:, 0]


@pytest.fixture
def single(tmp_path: Path) -> tuple[Any, FittedModel]:
    """One series from time 10 on: twenty times half apart, the last four for the
    test."""
    rows = [f"{10 + 0.5 * t},{np.sin(t):.4f}" for t in range(20)]
    return untrained(recipe_of(written(tmp_path / "own.csv", rows)))


def test_what_one_series_taught_ends_where_its_training_did(single, tmp_path):
    """Whichever cells and rows a file has: the training series with later times.

    Catches (seen) a posterior that ends at the file's last value, and one that is
    stepped past its end by a gap of the file.
    """
    prepared, fit = single
    later = 1.6 + 0.1 * np.arange(17)
    whole = mean_of(fit, prepared.data.train.x.extended(later))[0, :, 0]
    files = [
        ["10,0.1", "11,", "20,", "25,"],
        ["10,", "11,0.3", "20,0.3", "25,7"],
        ["10,1", "25,"],
    ]
    for rows in files:
        path = written(tmp_path / "asked.csv", rows)
        found = asked(fit, read_series(path, prepared.recipe, prepared.data))
        times = [float(row.split(",")[0]) for row in rows]
        expected = whole[[round(2 * (time - 10)) for time in times]]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_path_of_one_series_begins_where_its_training_did(single, tmp_path):
    """Catches (seen) a start that is put at the first time of the file."""
    prepared, fit = single
    all_rows = [f"{10 + 0.5 * t},1" for t in range(31)]
    ask = lambda rows: read_series(
        written(tmp_path / "asked.csv", rows), prepared.recipe, prepared.data
    )
    whole = asked(fit, ask(all_rows))
    for first in (4, 16, 20):
        np.testing.assert_allclose(
            asked(fit, ask(all_rows[first:])), whole[first:], rtol=1e-4, atol=1e-5
        )
    inputs = ask(all_rows[4:])
    assert inputs.is_own.sum() == 27
    np.testing.assert_array_equal(inputs.x.mask[inputs.is_own], True)
    with pytest.raises(DataError, match="begins at 9.5, and the.* at 10: leave") as no:
        ask(["9.5,1", "10,1"])
    assert "--recognition none" in said(no.value)


def test_run_that_does_not_know_its_times_takes_the_file_s(single, tmp_path):
    """Runs of before: their file's first time and last value."""
    prepared, _ = single
    data = dataclasses.replace(prepared.data, span=None)
    path = written(tmp_path / "asked.csv", ["12,1", "12.5,2", "13,"])
    inputs = read_series(path, prepared.recipe, data)
    assert inputs.given is inputs.x
    np.testing.assert_allclose(inputs.x.ts, [[0.4, 0.5, 0.6]], rtol=1e-6)
    far = written(tmp_path / "far.csv", ["12,1", "32,2"])
    x = read_series(far, prepared.recipe, data).x
    assert np.diff(x.ts).max() <= 0.5 * 1.001  # five median gaps


def test_early_dates_are_named_as_dates(tmp_path):
    rows = [f"2024-03-{day:02d},{day % 3}" for day in range(1, 20)]
    recipe = recipe_of(written(tmp_path / "own.csv", rows))
    path = written(tmp_path / "asked.csv", ["2024-02-28,1", "2024-03-02,"])
    with pytest.raises(DataError, match="at 2024-02-28, and the .* at 2024-03-01:"):
        read_series(path, recipe, load_data(recipe))


def test_dates_with_a_zone_are_no_dates_without(tmp_path):
    """Catches (seen) a file whose hours were moved without a word."""
    rows = [f"2024-03-{day:02d}T06:00,{day % 3}" for day in range(1, 20)]
    recipe = recipe_of(written(tmp_path / "own.csv", rows), time_unit="hours")
    data = load_data(recipe)
    save_schema(tmp_path / "data.json", data)
    learned = load_schema(tmp_path / "data.json")
    asked = ["2024-03-02T06:00+01:00,1", "2024-03-03T06:00+01:00,"]
    path = written(tmp_path / "asked.csv", asked)
    with pytest.raises(DataError, match="'t' have a time zone, .* with no time zone"):
        read_series(path, recipe, learned)
    before = dataclasses.replace(learned.clock, has_zone=None)
    read_series(path, recipe, dataclasses.replace(learned, clock=before))


def test_span_is_kept_with_the_run(single, tmp_path):
    """Catches a schema without it, and one of before that cannot be read."""
    data = single[0].data
    assert data.span == Span(first=0.0, last=1.5, gap=data.span.gap)
    assert data.span.gap == pytest.approx(0.1, rel=1e-4)
    path = tmp_path / "data.json"
    save_schema(path, data)
    assert load_schema(path).span == data.span
    path.write_text(path.read_text().replace('"span"', '"was"'))
    assert load_schema(path).span is None


def test_span_leaves_padding_out():
    long = Series.of([1.0, 2.0, 3.5, 4.0], np.ones((4, 1)))
    short = Series.of([0.0, 9.0], np.ones((2, 1)), np.array([True, False]))
    assert Span.of(long) == Span(first=1.0, last=4.0, gap=1.5)
    assert Span.of(Series.padded([long, short])) == Span(None, 4.0, 1.5)
    assert Span.of(short) == Span(0.0, 0.0, None)


def several(path: Path, num_times: int, num_empty: int = 0, skip: int = 0) -> Path:
    """Two series; `skip` rows are left out before the last of the first."""
    rows = [
        f"{name},{t},{'' if t >= num_times - num_empty else round(np.cos(t + k), 3)}"
        for k, name in enumerate("uv")
        for t in range(num_times)
        if not (name == "u" and num_times - 1 - skip <= t < num_times - 1)
    ]
    return written(path, rows, "id,t,a")


@pytest.mark.parametrize("recognition", ["gru", "first-frames-gru"])
def test_far_time_is_reached_by_steps_of_training(recognition, tmp_path):
    """As if the rows between were in the file.

    Catches (seen) a gap of any length that is crossed in two steps, in which an OU
    prior explodes.
    """
    recipe = recipe_of(
        several(tmp_path / "own.csv", 12),
        **{"series": "id", "test_fraction": 0.5, "recognition": recognition},
        **{"latent_prior": "ou", "rate": 3.0, "latent_noise": "fixed", "sigma": 0.5},
    )
    prepared, fit = untrained(recipe)
    whole = several(tmp_path / "whole.csv", 200, num_empty=190)
    gappy = several(tmp_path / "gappy.csv", 200, num_empty=190, skip=180)
    read = lambda path: read_series(path, recipe, prepared.data)
    ours, theirs = asked(fit, read(gappy)), asked(fit, read(whole))
    kept = [*range(19), 199, *range(200, 400)]
    np.testing.assert_allclose(ours, theirs[kept], rtol=1e-3, atol=1e-4)
    assert np.abs(ours).max() < 10


def test_first_frames_stay_the_first(tmp_path):
    """Catches times between frames, which a network would take for frames."""
    options = {"series": "id", "test_fraction": 0.5, "recognition": "first-frames"}
    recipe = recipe_of(several(tmp_path / "own.csv", 12), frames=3, **options)
    path = written(
        tmp_path / "asked.csv", ["u,0,1", "u,4,2", "u,8,3", "u,12,"], "id,t,a"
    )
    inputs = read_series(path, recipe, load_data(recipe))
    np.testing.assert_allclose(inputs.x.ts[0, :3], [0, 0.4, 0.8], rtol=1e-5)
    assert inputs.is_own[0].tolist() == [True] * 3 + [False] * 3 + [True]


def test_times_too_far_are_refused(tmp_path):
    """Catches a file that asks for more steps than there is room for."""
    options = {"series": "id", "test_fraction": 0.5, "recognition": "gru"}
    recipe = recipe_of(several(tmp_path / "own.csv", 12), **options)
    data = load_data(recipe)
    far = written(tmp_path / "far.csv", ["u,0,1", "u,1e9,"], "id,t,a")
    with pytest.raises(DataError, match=r"up to 1e\+09 times as far apart .* nearer"):
        read_series(far, recipe, data)
    rows = [f"u,{10**9 + t},1" for t in range(3)]
    with pytest.raises(DataError, match="one number in single precision, as the model"):
        read_series(written(tmp_path / "b.csv", rows, "id,t,a"), recipe, data)


def test_seconds_since_1970_are_predicted_as_they_are_learned(tmp_path):
    """Catches (seen) times a minute apart that were refused as one."""
    ts = 1_700_000_000 + 60 * np.arange(30)
    rows = [f"{k},{t},{(t // 60 + k) % 5}" for k in range(4) for t in ts]
    recipe = recipe_of(
        written(tmp_path / "own.csv", rows, "id,t,a"), series="id", test_fraction=0.5
    )
    data = load_data(recipe)
    later = [f"9,{t + 1800},{'1' if t == ts[0] else ''}" for t in ts]
    path = written(tmp_path / "asked.csv", later, "id,t,a")
    inputs = read_series(path, recipe, data)
    np.testing.assert_allclose(inputs.x.ts[0], 3 + 0.1 * np.arange(30), rtol=1e-5)


def test_posterior_that_goes_on_is_not_charged_for_padding(tmp_path):
    """Catches (seen) the KL of a short series, which grew with the longest's."""
    rows = [f"{k},{t},{t % 3}" for k in range(4) for t in range(8 + 8 * k)]
    recipe = recipe_of(
        written(tmp_path / "own.csv", rows, "id,t,a"),
        **{"series": "id", "test_fraction": 0.25, "extrapolates_posterior": True},
    )
    with pytest.raises(ValueError, match="2 of 3 training series end before") as no:
        prepare(recipe)
    assert "--extrapolates-posterior" in said(no.value)
    prepare(recipe.changed(extrapolates_posterior=False))
    for longest in range(4):  # held out or not
        rows = [
            f"{k},{t},{t % 3}"
            for k in range(4)
            for t in range(16 if k == longest else 8)
        ]
        written(tmp_path / "own.csv", rows, "id,t,a")
        with pytest.raises(ValueError, match="of 3 training series end before"):
            prepare(recipe)
    even = [f"{k},{t},{t % 3}" for k in range(4) for t in range(8)]
    written(tmp_path / "own.csv", even, "id,t,a")
    prepare(recipe)
    prepare(recipe.changed(lengths=[4, 8]))


def test_series_are_told_apart_as_they_are_written(tmp_path):
    """Catches (seen) 1.10 and 1.1 that are one, by names that are numbers."""
    rows = [f"{name},{t},{t % 3}" for name in ("1.1", "1.10", "7") for t in range(9)]
    recipe = recipe_of(written(tmp_path / "own.csv", rows, "id,t,a"), series="id")
    asked_rows = ["1.10,0,5", "1.1,0,6", "1.10,1,7", "1.1,1,8"]
    path = written(tmp_path / "asked.csv", asked_rows, "id,t,a")
    inputs = read_series(path, recipe, load_data(recipe))
    assert inputs.names == ("1.10", "1.1")
    assert inputs.cells.tolist() == [0, 2, 1, 3]
    assert inputs.columns["id"] == ["1.10", "1.1", "1.10", "1.1"]


def test_decimals_of_parquet_are_among_the_values(tmp_path):
    """Catches (seen) columns of numbers that are left out unless they are named."""
    decimals = pa.array([Decimal(f"{t % 3}.25") for t in range(12)])
    assert pa.types.is_decimal(decimals.type)
    ids = pa.array([Decimal(10**20 + t // 4) for t in range(12)], pa.decimal128(38, 0))
    frame = pa.table({"id": ids, "t": [float(t) for t in range(12)], "a": decimals})
    path = tmp_path / "own.parquet"
    pq.write_table(frame, path)
    data = load_data(recipe_of(path, series="id"))
    assert data.feature_names == ("a",)
    (said_of,) = [note for note in data.notes if "for the test, series" in str(note)]
    assert "series 10000000000000000000" in str(said_of)
    inputs = read_series(path, recipe_of(path, series="id"), data)
    assert inputs.names == tuple(str(10**20 + row) for row in range(3))
