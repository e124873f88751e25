"""Raw times and the dates that they count."""

import numpy as np
import pytest

from ornstein.data import load_schema, load_series_csv, save_schema
from ornstein.data._clock import Clock
from ornstein.recipe import Recipe
from ornstein.recipe.inputs import load_data


@pytest.mark.parametrize(
    ("unit", "first", "step"),
    [("days", "2024-01-31", "1D"), ("hours", "2024-01-31T06:30", "90m")],
)
def test_dates_come_back_from_a_models_time(tmp_path, unit, first, step):
    """Catches a unit that is forgotten, a start that is, and a schema without them."""
    gap = np.timedelta64(int(step[:-1]), step[-1])
    days = np.datetime64(first, "s") + np.arange(10) * gap
    rows = [f"{day},{i}" for i, day in enumerate(days)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["when,value", *rows, ""]))
    data = load_series_csv(path, time="when", value="value", time_unit=unit)
    save_schema(tmp_path / "data.json", data)
    clock = load_schema(tmp_path / "data.json").clock
    assert clock is not None
    assert clock.has_dates
    assert clock.column == "when"
    clock = clock.turned(start=2.0, unit=7.0)
    raw = clock.undo(clock.apply(data.test.x.ts))
    np.testing.assert_array_equal(clock.dates(raw)[0], days)


def test_large_times_keep_their_gaps(tmp_path):
    """Seconds since 1970. Catches (seen) gaps of 200 that are 256 and 128 in single
    precision, and a model's clock that counts from another start."""
    ts = 1_700_000_000.0 + 200 * np.arange(30)
    path = tmp_path / "own.csv"
    rows = [f"{name},{t:.0f},{i % 5}" for name in "abcd" for i, t in enumerate(ts)]
    path.write_text("\n".join(["id,t,value", *rows, ""]))
    recipe = Recipe().changed(
        model="latent-sde", data=str(path), time="t", series="id", test_fraction=0.25
    )
    data = load_data(recipe)
    assert data.clock is not None
    np.testing.assert_allclose(np.diff(data.train.x.ts), 0.1, rtol=1e-4)
    np.testing.assert_array_equal(data.clock.undo(data.clock.apply(ts)), ts)
    np.testing.assert_allclose(data.clock.apply(ts), data.train.x.ts[0], atol=1e-5)


def test_numbers_are_no_dates(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["t,value", *(f"{i},{i}" for i in range(10)), ""]))
    clock = load_series_csv(path, time="t", value="value").clock
    assert clock is not None
    assert not clock.has_dates


def test_another_clock_is_another_model():
    """Of a run whose times were rounded before their start was taken off: catches
    (seen) a unit of 1280 for 2000, and a start 64 seconds off."""
    clock = Clock("t", start=1_700_000_000.0, unit=2000.0)
    assert clock.is_close(clock.turned(start=1_700_000_000.5, unit=2000.0))
    assert not clock.is_close(clock.turned(start=1_700_000_000.0, unit=1280.0))
    assert not clock.is_close(clock.turned(start=1_700_000_064.0, unit=2000.0))
