"""Raw times and the dates that they count."""

import numpy as np
import pytest

from ornstein.data import load_schema, load_series_csv, save_schema


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


def test_numbers_are_no_dates(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["t,value", *(f"{i},{i}" for i in range(10)), ""]))
    clock = load_series_csv(path, time="t", value="value").clock
    assert clock is not None
    assert not clock.has_dates
