"""Which of several runs a report takes, against differences that are known."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from report.page import Page

from ornstein.report._run_record import RunRecord
from ornstein.report.page import Ids
from ornstein.report.rows import JudgedRows, KeptRows
from ornstein.report.sections import Sheet
from ornstein.report.sections._choice import choice

NUM = 400
NOISE = np.random.default_rng(0).normal(size=NUM)
NOISE = (NOISE - NOISE.mean()) / NOISE.std(ddof=1)
"""Of mean 0 and standard deviation 1: the mean of a multiple has a known error."""
SHARED = np.random.default_rng(1).normal(size=NUM)
Per = float | np.ndarray
"""Of each row, or of all."""


def sheet(
    gain: float, spread: float = 1.0, *, squared=0.0, faults=(), **config
) -> Sheet:
    """A run whose NLL is `gain` lower than that of one without, row by row."""
    log_prob = 5 * SHARED + gain + spread * NOISE
    columns = {"log_prob": log_prob, "width": np.ones(NUM)}
    columns["squared_error"] = np.square(SHARED) + squared + 0.1 * NOISE * (squared > 0)
    index = np.arange(NUM)
    rows = JudgedRows("numbers", NUM, index, columns, np.zeros(0), {}, {}, ())
    result = {"diagnosis": [{"name": name} for name in faults]}
    recipe = {"recipe": {"data": config}}
    record = RunRecord(Path("run"), recipe, result, None, [], None, KeptRows(rows), ())
    return Sheet(record, Ids())


def said(*sheets: Sheet) -> str:
    html = choice(sheets, [f"run {letter}" for letter in "abc"[: len(sheets)]])
    return " ".join(Page(html).text("dd").split())


def test_a_run_that_is_better_on_the_same_rows_is_taken():
    """Its difference is paired: 0.2 with an error of 0.05, where each score's is 0.25.
    Catches (seen) a sign, the first run, and errors of scores added up."""
    for sheets, best, other in [
        ((sheet(0.0, 0.0), sheet(0.2)), "run b", "run a"),
        ((sheet(0.2), sheet(0.0, 0.0)), "run a", "run b"),
    ]:
        text = said(*sheets)
        assert text.startswith(f"{best}: on 400 test rows that all have, its NLL is")
        assert f"below that of {other} by 0.200 \N{PLUS-MINUS SIGN} 0.050 nats" in text
        assert "a row (4.0 standard errors). Another seed or split is not" in text


def test_runs_that_cannot_be_told_apart_are_both_named():
    """And how many rows would tell: (2 / 0.8)² times as many. Catches (seen) the lower
    score without its error, and rows that would tell with one error."""
    text = said(sheet(0.0, 0.0), sheet(0.04))
    assert text.startswith(
        "run a or run b: these test rows cannot tell. Lowest is run b"
    )
    assert "0.040 \N{PLUS-MINUS SIGN} 0.050 nats a row. If it" in text
    assert "about 2,500 rows would tell" in text
    assert text.endswith("take the one that costs less, or has fewer faults.")
    same = said(sheet(0.1), sheet(0.1))
    assert same.startswith("run a or run b: these test rows cannot tell")
    assert "would tell" not in same


def test_of_three_the_best_must_beat_each():
    """Catches (seen) a run that beats the first, and is no better than the third."""
    first, third = sheet(0.0, 0.0), sheet(0.23, 0.9)
    text = said(first, sheet(0.25, 1.1), third)
    assert text.startswith("run b or run c: these test rows cannot tell")
    assert "run a by 0.250" in text
    assert said(first, sheet(0.6, 1.0), third).startswith("run b: on 400")


def test_what_speaks_against_the_best_is_said():
    """Catches (seen) a lower NLL that hides a larger error, or faults."""
    best = sheet(0.5, squared=0.3, faults=["coverage-off"])
    text = said(sheet(0.0, 0.0), best)
    assert text.startswith("run b: ")
    assert "But the squared error of run a is lower, by 0.300" in text
    assert "The diagnosis found faults with run b (coverage-off)" in text
    assert "But the" not in said(sheet(0.0, 0.0), sheet(0.5))


@pytest.mark.parametrize("what", ["split", "rows", "infinite", "densities"])
def test_runs_without_rows_in_common_are_not_compared(what: str):
    """Catches (seen) a difference of means of two splits, or of what is no number."""
    one, two = sheet(0.0), sheet(1.0)
    match = "a test row has no finite NLL"
    if what == "split":
        two, match = (
            sheet(1.0, split=1),
            "run b and run a are not paired: another split",
        )
    elif what == "rows":
        record = two.record
        object.__setattr__(record, "kept", None)
        match = "run b and run a are not paired: test rows are not known"
    elif what == "densities":
        for record in (one.record, two.record):
            rows = record.kept.rows._replace(kind="other")
            object.__setattr__(record, "kept", KeptRows(rows))
        match = "run b and run a are not paired: only densities are known"
    else:
        two.rows.columns["log_prob"][3] = -np.inf
    assert said(one, two).startswith("That cannot be told from these folders: " + match)


def series(gain: Per, num_values: Per, *values: str, column="id") -> Sheet:
    one = sheet(0.0, 0.3)
    columns = one.rows.columns  # type: ignore[union-attr]
    assert isinstance(columns, dict)
    columns["log_prob"] = columns["log_prob"] + gain
    columns["num_values"] = num_values + np.zeros(NUM)
    known = SimpleNamespace(
        task="series", source=None, y_scaling=None, target_names=values
    )
    object.__setattr__(one.record, "known", known)
    one.record.config["recipe"]["series"] = {"series": column}
    return one


def test_series_of_other_columns_are_not_compared():
    """Of one file, with as many values of each. Catches (seen) a run of the rain that
    is taken before one of the temperature, and series that other columns tell apart."""
    for other, match in [
        (series(1.0, 5, "rain"), "another target"),
        (series(1.0, 5, "temp", "rain"), "another target"),
        (series(1.0, 5, "temp", column="place"), "another series"),
    ]:
        assert f"not paired: {match}." in said(series(0.0, 5, "temp"), other)
    for other in (series(1.0, 5, "temp"), series(1.0, 5)):  # not known of every run
        assert said(series(0.0, 5, "temp"), other).startswith("run b: on 400")


def test_series_count_by_their_values():
    """Half of them have 100 values and half 5: run a is better by 0.2 nats a value of
    the long ones, worse by 1 of the short ones, and so better by (20 - 5) / 105.
    Catches (seen) a mean over series, by which run b was taken, and "a row"."""
    long = np.arange(NUM) % 2 == 0
    gains = np.where(long, 0.2, -1.0), 0.0
    text = said(*(series(gain, np.where(long, 100, 5)) for gain in gains))
    assert text.startswith("run a: on 400 test rows")
    assert "below that of run b by 0.1429" in text
    assert "nats a value" in text
    assert "a row" not in text
