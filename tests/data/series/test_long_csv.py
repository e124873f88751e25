"""Long tables of the user's own: read a second way, and every bad one refused."""

import dataclasses
import re
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ornstein.data as od
from ornstein.cli._flags import flagged, said
from ornstein.data import Clock

TWO = """id,t,a,b,who
u,0,1,10,x
v,5,7,,x
u,0.5,2,,x
v,6,8,80,x
u,2,,30,x
"""


def write(folder, text, name="own.csv"):
    path = folder / name
    path.write_text(text)
    return path


def read(folder, text, **options):
    options = {"time": "t", "series": "id", "value": "a"} | options
    return od.read_long_csv(write(folder, text), **options)


def many(num_series, num_times, seed=0):
    """A long table of numbers, and the same numbers side by side."""
    rng = np.random.default_rng(seed)
    values = rng.normal(100, 3, (num_series, num_times))
    lines = [
        f"s{row},{time},{float(values[row, time])!r}"
        for time in range(num_times)
        for row in range(num_series)
    ]
    return "\n".join(["id,t,a", *lines]), values


CLOCK = Clock("t", column="t")
ASKED = {
    "unsorted": ("id,t,a\nu,0,1\nu,2,2\nu,1,3\n", "sort the file by series and time."),
    "repeated": ("id,t,a\nu,0,1\nu,0,2\nu,1,3\n", "keep one of them."),
    "one point": (
        "id,t,a\nu,0,1\n",
        "leave it out, or ask for another time with an empty cell.",
    ),
    "nothing known": (
        "id,t,a\nu,0,1\nu,1,\nv,0,\nv,1,\n",
        "v' has no observed value: leave that series out, or fill in one that is "
        "known.",
    ),
    "no value": (
        "id,t,b\nu,0,1\nu,1,2\n",
        "has no column 'a', whose values the model learned: add "
        "it, with empty cells where nothing was measured; its columns are id, t, b.",
    ),
    "no time": (
        "id,time,a\nu,0,1\nu,1,2\n",
        "has no column 't' for time: its columns are id, time, "
        "a, and the model needs one of that name.",
    ),
}
ASKED_OF_ONE = {
    "unsorted": ("t,a\n0,1\n2,2\n1,3\n", "is read as one series, as the model's was."),
    "repeated": ("t,a\n0,1\n0,2\n1,3\n", "is read as one series, as the model's was."),
    "one point": ("t,a\n0,1\n", "times; ask for another time with an empty cell."),
    "nothing known": ("t,a\n0,\n1,\n", "value: fill in one that is known."),
}


@pytest.mark.parametrize("case", [*ASKED, *(f"{case} of one" for case in ASKED_OF_ONE)])
def test_who_asks_for_a_forecast_is_told_what_forecasts_take(case, tmp_path):
    """Catches (each seen) advice to name columns, which the training named."""
    is_of_one = case.endswith(" of one")
    name = case.removesuffix(" of one")
    text, wanted = (ASKED_OF_ONE if is_of_one else ASKED)[name]
    with pytest.raises(od.DataError) as caught:
        read(tmp_path, text, series=None if is_of_one else "id", clock=CLOCK)
    assert str(caught.value).endswith(wanted), caught.value
    assert "`" not in str(caught.value)
    assert "--" not in said(caught.value)


def test_who_trains_is_told_what_training_takes(tmp_path):
    """Catches (seen) advice to name the column of series beside its name."""
    unsorted, repeated = "u,0,1\nu,2,2\nu,1,3\n", "u,0,1\nu,0,2\nu,1,3\n"
    for rows in (unsorted, repeated):
        with pytest.raises(od.DataError, match="tells series apart with `series`"):
            read(tmp_path, f"id,t,a\n{rows}", series=None)
        with pytest.raises(od.DataError) as caught:
            read(tmp_path, f"id,t,a\n{rows}")
        assert "`series`" not in str(caught.value)


def test_a_column_of_empty_cells_is_read(tmp_path):
    """What the sentence on a missing one says to do."""
    table = read(tmp_path, "id,t,a,b\nu,0,1,\nu,1,,\n", value=["a", "b"], clock=CLOCK)
    np.testing.assert_array_equal(table.values, [[[1, np.nan], [np.nan, np.nan]]])


def test_rows_go_to_their_series_and_gaps_to_the_mask(tmp_path):
    """Catches rows that are dealt out wrongly, and a gap that became a zero (seen)."""
    table = read(tmp_path, TWO, value=["a", "b"])
    nan = np.nan
    np.testing.assert_array_equal(table.ts, [[0, 0.5, 2], [5, 6, 7]])
    np.testing.assert_array_equal(
        table.values,
        [[[1, 10], [2, nan], [nan, 30]], [[7, nan], [8, 80], [nan, nan]]],
    )
    np.testing.assert_array_equal(table.lengths, [3, 2])
    np.testing.assert_array_equal(table.is_own[1], [True, True, False])
    assert table.names == ("u", "v")
    assert table.feature_names == ("a", "b")
    assert table.origin is None
    assert "who were left out" in table.notes[0]
    series = table.to_series()
    np.testing.assert_array_equal(series.mask, ~np.isnan(table.values))
    np.testing.assert_array_equal(series.values, np.nan_to_num(table.values))


def test_parquet_is_read_as_csv_is(tmp_path):
    frame = pa.table({"id": [1, 1, 2, 2], "t": [0, 1, 0, 3], "a": [1.5, None, 2, 4]})
    pq.write_table(frame, tmp_path / "own.parquet")
    table = od.read_long_csv(tmp_path / "own.parquet", time="t", series="id", value="a")
    np.testing.assert_array_equal(table.values[..., 0], [[1.5, np.nan], [2, 4]])
    assert table.names == ("1", "2")


@pytest.mark.parametrize(
    ("unit", "days"),
    [("days", 1), ("hours", 1 / 24), ("minutes", 1 / 1440), ("weeks", 7)],
)
def test_dates_become_numbers_in_the_unit(tmp_path, unit, days):
    """Catches another unit or origin (seen): a leap year's end of February."""
    text = "t,a\n2024-02-28,1\n2024-03-01,2\n2024-03-01T12:00:00,3\n"
    table = read(tmp_path, text, series=None, time_unit=unit)
    np.testing.assert_allclose(table.ts, [np.array([0, 2, 2.5]) / days], rtol=1e-12)
    assert table.origin == "2024-02-28"
    note = table.notes[0]
    assert f"{unit} since 2024-02-28; `time_unit` names another unit" in note
    assert "; --time-unit names another unit" in flagged(note)
    later = read(
        tmp_path,
        "t,a\n2024-03-02T00:00:00,1\n2024-03-03T00:00:00,2\n",
        series=None,
        time_unit=unit,
        origin=table.origin,
    )
    np.testing.assert_allclose(later.ts, [np.array([3, 4]) / days], rtol=1e-12)


def test_times_with_a_zone_count_from_one_instant(tmp_path):
    text = "t,a\n2024-01-01T00:00:00Z,1\n2024-01-01T06:00:00Z,2\n"
    origin = "2024-01-01T01:00:00+01:00"
    table = read(tmp_path, text, series=None, time_unit="hours", origin=origin)
    np.testing.assert_allclose(table.ts, [[0, 6]], atol=1e-12)


HOURS = {
    "zone": "2024-01-{:02d}T06:00:00Z",
    "no zone": "2024-01-{:02d}T06:00:00",
    "numbers": "{:d}",
}


@pytest.fixture(scope="module")
def clocks(tmp_path_factory):
    """Of runs that count hours from the first of the month, six o'clock."""
    folder, found = tmp_path_factory.mktemp("clocks"), {}
    for name, form in HOURS.items():
        rows = [f"{form.format(day)},{day % 3}" for day in range(1, 9)]
        path = folder / f"{name}.csv"
        path.write_text("\n".join(["t,a", *rows, ""]))
        options = {"time": "t", "value": "a", "time_unit": "hours"}
        found[name] = od.load_series_csv(path, **options).clock
    return found


@pytest.mark.parametrize("given", HOURS)
@pytest.mark.parametrize("learned", HOURS)
def test_a_clock_counts_as_training_did(learned, given, clocks, tmp_path):
    """Catches (seen) days where training had hours, and zones that are taken off."""
    rows = [f"{HOURS[given].format(day)},1" for day in (3, 5)]
    text = "\n".join(["t,a", *rows, ""])
    how = {"series": None, "clock": clocks[learned]}
    if learned != given:
        what = "time zone, and the model learned from dates with (no|a) time zone"
        match = "the model learned from" if "numbers" in (learned, given) else what
        with pytest.raises(od.DataError, match=match):
            read(tmp_path, text, **how)
        return
    table = read(tmp_path, text, **how)
    expected = [3, 5] if given == "numbers" else [48, 96]
    np.testing.assert_allclose(table.ts, [expected])
    assert table.origin == clocks[learned].origin


def test_a_clock_of_before_takes_all_dates(clocks, tmp_path):
    """Which did not know of time zones."""
    clock = dataclasses.replace(clocks["no zone"], has_zone=None)
    for name in ("zone", "no zone"):
        rows = [f"{HOURS[name].format(day)},1" for day in (3, 5)]
        text = "\n".join(["t,a", *rows, ""])
        table = read(tmp_path, text, series=None, clock=clock)
        np.testing.assert_allclose(table.ts, [[48, 96]])


def test_large_times_count_from_the_first_of_the_table(tmp_path):
    """Seconds since 1970. Catches (seen) times a minute apart that were refused as
    one, where a model counts from the first."""
    rows = [f"{k},{1_700_000_000 + 60 * t},{t % 3}" for k in "01" for t in range(5)]
    text = "\n".join(["id,t,a", *rows, ""])
    assert read(tmp_path, text).ts[0, 1] == 1_700_000_060
    options = {"time": "t", "series": "id", "value": "a", "test_fraction": 0.5}
    data = od.load_series_csv(tmp_path / "own.csv", **options)
    np.testing.assert_array_equal(np.diff(data.train.x.ts), 60)


def test_split_by_series(tmp_path):
    """Whole series are held out, and the scale is of the training series alone.

    Catches a scale of x or of y that saw the validation series (both seen).
    """
    text, values = many(10, 4)
    path = write(tmp_path, text)
    options = {"time": "t", "series": "id", "value": "a", "validation_fraction": 0.25}
    data = od.load_series_csv(path, **options, seed=1)
    assert data.validation is not None
    parts = (data.train, data.validation, data.test)
    assert [len(part) for part in parts] == [6, 2, 2]
    raw = [data.y_scaling.undo(part.y.values)[..., 0] for part in parts]
    together = np.concatenate(raw)
    np.testing.assert_allclose(
        together[np.argsort(together[:, 0])], values[np.argsort(values[:, 0])], 1e-5
    )
    for part in parts:
        np.testing.assert_allclose(part.x.values, part.y.values, atol=1e-6)
    np.testing.assert_allclose(data.y_scaling.mean, raw[0].mean(), rtol=1e-6)
    np.testing.assert_allclose(data.y_scaling.scale, raw[0].std(), rtol=1e-5)
    held = [f"s{np.abs(values[:, 0] - row[0]).argmin()}" for row in raw[2]]
    assert f"for the test, series {', '.join(held)}." in data.notes[-1]
    other = od.load_series_csv(path, **options, seed=2)
    assert not np.array_equal(other.test.y.values, data.test.y.values)
    same = od.load_series_csv(path, **options, seed=1)
    np.testing.assert_array_equal(same.test.y.values, data.test.y.values)


def test_the_file_has_a_fingerprint(tmp_path):
    """As a table of rows has. Catches (seen) test series that change unnoticed: the
    scale, which is of the training series, does not tell."""
    path = write(tmp_path, many(10, 4)[0])
    load = partial(od.load_series_csv, path, time="t", series="id", value="a")
    data = load()
    assert data.source is not None
    assert data.source.paths == (str(path),)
    assert (data.source.num_rows, data.source.num_columns) == (40, 3)
    data.source.check_unchanged()
    data.check_same(load())
    held, text = data.test_names[0], path.read_text()
    path.write_text(re.sub(rf"({held},\d,).*", r"\g<1>55.5", text))
    other = load()
    np.testing.assert_array_equal(other.train.x.values, data.train.x.values)
    with pytest.raises(od.DataError, match=r"has changed since .* \(40 rows then\)"):
        data.source.check_unchanged()
    with pytest.raises(od.DataError, match="has changed since this run read it"):
        data.check_same(other)
    dataclasses.replace(data, source=None).check_same(other)  # of a run of before
    path.unlink()
    with pytest.raises(od.DataNotFoundError, match="is not there: put it back"):
        data.source.check_unchanged()


@pytest.mark.parametrize("by", ["series", "time"])
def test_test_series_have_their_names(by, tmp_path):
    """As the file has them, in the order of the rows."""
    text, values = many(5, 8)
    options = {"time": "t", "series": "id", "value": "a", "hold_out_by": by}
    data = od.load_series_csv(write(tmp_path, text), **options)
    raw = data.y_scaling.undo(data.test.x.values)[..., 0]
    rows = [np.abs(values[:, 0] - row[0]).argmin() for row in raw]
    assert data.test_names == tuple(f"s{row}" for row in rows)
    assert len(rows) == {"series": 1, "time": 5}[by]
    alone = write(tmp_path, "t,a\n0,1\n1,2\n2,4\n3,3\n4,2\n")
    assert od.load_series_csv(alone, time="t", value="a").test_names == ()


def test_split_by_time(tmp_path):
    """The end of a single series is asked for, and never shown.

    Catches an end that training saw, that x shows, or that the scale knows (each seen).
    """
    text, values = many(1, 20)
    data = od.load_series_csv(
        write(tmp_path, text), time="t", value="a", validation_fraction=0.1
    )
    assert data.validation is not None
    np.testing.assert_array_equal(data.train.x.ts, [np.arange(14)])
    np.testing.assert_array_equal(data.validation.x.ts, [np.arange(16)])
    np.testing.assert_array_equal(data.test.x.ts, [np.arange(20)])
    at = np.arange(20)
    np.testing.assert_array_equal(data.validation.x.mask[0, :, 0], at[:16] < 14)
    np.testing.assert_array_equal(data.validation.y.mask[0, :, 0], at[:16] >= 14)
    np.testing.assert_array_equal(data.test.x.mask[0, :, 0], at < 16)
    np.testing.assert_array_equal(data.test.y.mask[0, :, 0], at >= 16)
    assert not data.test.x.values[0, 16:].any()
    np.testing.assert_allclose(data.y_scaling.mean, values[0, :14].mean(), rtol=1e-9)
    raw = data.y_scaling.undo(data.test.y.values[0, 16:, 0])
    np.testing.assert_allclose(raw, values[0, 16:], rtol=1e-6)
    assert "last 20%" in data.notes[-1]


def test_split_by_time_cuts_each_series_at_its_own_end(tmp_path):
    """Series of 4 and 8 times: a test of 1 and 2."""
    rows = [(0, t) for t in range(4)] + [(1, t) for t in range(8)]
    text = "id,t,a\n" + "\n".join(f"{i},{t},{10 * i + t}" for i, t in rows)
    data = od.load_series_csv(
        write(tmp_path, text),
        time="t",
        series="id",
        value="a",
        hold_out_by="time",
        standardise=False,
    )
    assert data.y_scaling is None
    assert data.train.x.ts.shape == (2, 6)
    np.testing.assert_array_equal(data.train.x.mask.sum((1, 2)), [3, 6])
    np.testing.assert_array_equal(data.test.x.mask.sum((1, 2)), [3, 6])
    assert data.test.y.values[data.test.y.mask].tolist() == [3, 16, 17]


def test_precision_is_lost_after_scaling_only(tmp_path):
    """A small spread around a large number survives (seen to fail in float32)."""
    text, values = many(1, 30)
    text = "\n".join(
        [
            "id,t,a",
            *(f"s,{t},{float(1e8 + value)!r}" for t, value in enumerate(values[0])),
        ]
    )
    data = od.load_series_csv(write(tmp_path, text), time="t", value="a")
    part = values[0, :24]
    expected = (part - part.mean()) / part.std()
    np.testing.assert_allclose(data.train.y.values[0, :, 0], expected, atol=1e-5)


GOOD = "id,t,a\nu,0,1\nu,1,2\nv,0,3\nv,1,4\n"

BAD_TABLES = {
    "no file": (
        lambda f: od.read_long_csv(f / "no.csv", time="t", value="a"),
        "no fil",
    ),
    "no rows": (lambda f: read(f, "id,t,a\n"), "a header and no rows"),
    "unsorted": (
        lambda f: read(f, "id,t,a\nu,0,1\nv,0,1\nu,2,2\nu,1,3\nv,1,1\n"),
        r"series 'u' is not in the order of time: row 3, counting from 0, is earlier "
        "than row 2; sort the file",
    ),
    "repeated": (
        lambda f: read(f, "id,t,a\nu,0,1\nv,0,1\nu,1,2\nu,1,3\nv,1,1\n"),
        r"series 'u' has one time twice, in rows 2 and 3",
    ),
    "several series unsaid": (lambda f: read(f, GOOD, series=None), "order of time"),
    "one point": (
        lambda f: read(f, "id,t,a\nu,0,1\nu,1,1\nv,0,1\n"),
        r"series 'v' has one point, in row 2, counting",
    ),
    "nothing observed": (
        lambda f: read(f, "id,t,a\nu,0,1\nu,1,1\nv,0,\nv,1,NaN\n"),
        "series 'v' has no observed value",
    ),
    "empty column": (lambda f: read(f, "id,t,a\nu,0,\nu,1,\n"), "no observed value"),
    "mixed times": (
        lambda f: read(f, "id,t,a\nu,0,1\nu,1,1\nu,2024-01-01,1\n"),
        r"mixed type, '0' in row 0 and '2024-01-01' in row 2, counting",
    ),
    "words for times": (
        lambda f: read(f, "id,t,a\nu,soon,1\nu,later,1\n"),
        r"holds no times \(for instance 'soon'\): give numbers, or ISO",
    ),
    "zones for some": (
        lambda f: read(f, "id,t,a\nu,2024-01-01T00:00Z,1\nu,2024-01-01T01:00,1\n"),
        "has dates of several forms",
    ),
    "hours of a day": (
        lambda f: read(f, "id,t,a\nu,10:00,1\nu,11:00,1\n"),
        "holds no times",
    ),
    "no time": (lambda f: read(f, "id,t,a\nu,0,1\nu,,1\n"), "no time in row 1"),
    "infinite time": (lambda f: read(f, "id,t,a\nu,0,1\nu,inf,1\n"), "time inf in row"),
    "text": (
        lambda f: read(f, "id,t,a\nu,0,1\nu,1,\nu,2,low\nu,3,NA\nu,4,x\n"),
        r"'a' has 2 cells that are not numbers, the first 'low' in row 2, counting",
    ),
    "dates for values": (
        lambda f: read(f, "id,t,a\nu,0,2024-01-01\nu,1,2024-01-02\n"),
        "not numbers, the first '2024-01-01' in row 0",
    ),
    "infinite value": (
        lambda f: read(f, "id,t,a\nu,0,1\nu,1,inf\n"),
        "'a' has 1 infinite values, the first in row 1",
    ),
    "unnamed series": (
        lambda f: read(f, "id,t,a\nu,0,1\n,1,1\n"),
        "names no series in row 1",
    ),
    "no such time": (
        lambda f: read(f, GOOD, time="time"),
        r"no column 'time' for time.*: its columns are id, t, a",
    ),
    "no such series": (
        lambda f: read(f, GOOD, series="ID"),
        r"no column 'ID' for series.*: its columns are id, t, a",
    ),
    "no such value": (
        lambda f: read(f, GOOD, value=["a", "b"]),
        r"no column 'b' for value.*: its columns are id, t, a",
    ),
    "no value": (lambda f: read(f, GOOD, value=[]), "needs a value: name the column"),
    "one for two": (
        lambda f: read(f, GOOD, value="t"),
        "column 't' was named for time and for value",
    ),
    "large times": (
        lambda f: read(f, "id,t,a\nv,0,1\nv,1,1\nu,1700000000,1\nu,1700000001,1\n"),
        "rows 2 and 3, counting from 0, are one number in single precision",
    ),
    "unit": (lambda f: read(f, GOOD, time_unit="day"), r"unit of time 'day' \(did you"),
    "origin of numbers": (
        lambda f: read(f, GOOD, origin="2024-01-01"),
        "are numbers, which have no date",
    ),
    "origin": (
        lambda f: read(f, "t,a\n2024-01-01,1\n2024-01-02,2\n", series=None, origin="x"),
        "`origin` must be an ISO date such as 2024-01-31, got 'x'",
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_table(case, tmp_path):
    make, match = BAD_TABLES[case]
    with pytest.raises(od.DataError, match=match) as caught:
        make(tmp_path)
    assert len(str(caught.value).splitlines()) == 1


BAD_SPLITS = {
    "how": (GOOD, {"hold_out_by": "rows"}, "must be 'series' or 'time', got 'rows'"),
    "one series": (
        "id,t,a\nu,0,1\nu,1,2\nu,2,2\n",
        {"hold_out_by": "series"},
        "no holding out 20% of 1 rows",
    ),
    "all": (GOOD, {"hold_out_by": "time", "test_fraction": 1.0}, "lie between 0 and 1"),
    "short": (
        GOOD,
        {"hold_out_by": "time"},
        r"Series 'u' has 2 times: holding out its end leaves",
    ),
    "nothing at the end": (
        "id,t,a\nu,0,1\nu,1,2\nu,2,2\nu,3,\n",
        {},
        "without an observed value",
    ),
}


@pytest.mark.parametrize("case", BAD_SPLITS)
def test_bad_split(case, tmp_path):
    text, options, match = BAD_SPLITS[case]
    options = {"time": "t", "series": "id", "value": "a"} | options
    with pytest.raises(od.DataError, match=match):
        od.load_series_csv(write(tmp_path, text), **options)
