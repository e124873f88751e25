"""What axes, lines and cards say, against numbers that are known."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ornstein.data import Data, load, load_series_csv
from ornstein.recipe import Recipe, SampleRecipe
from ornstein.report._run_record import RunRecord, _is_of_before
from ornstein.report.page import Ids
from ornstein.report.rows import JudgedRows, KeptRows
from ornstein.report.sections import Sheet
from ornstein.report.sections._card import card
from ornstein.report.sections._scores import error_of
from ornstein.report.sections._training import training
from ornstein.report.svg import Axis, Chart, axis_of

MINUS = "\N{MINUS SIGN}"


def record(result=None, history=(), **config) -> RunRecord:
    rows = JudgedRows("classes", 40, np.arange(40), {}, np.zeros(0), {}, {}, ())
    recipe = {"recipe": config}
    kept = KeptRows(rows)
    return RunRecord(
        Path("run"), recipe, result or {}, None, list(history), None, kept, ()
    )


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (0, 0.3, "0.0 0.1 0.2 0.3"),
        (0, 10_000, "0 2,000 4,000 6,000 8,000 10,000"),
        (1.0, 1.0125, "1.0000 1.0025 1.0050 1.0075 1.0100 1.0125"),
        (2010, 2012, "2,010.0 2,010.5 2,011.0 2,011.5 2,012.0"),
        (-1.234e6, -1.231e6, "-1,234,000 -1,233,000 -1,232,000 -1,231,000"),
        (0, 1.25e7, "0 2.5e+06 5.0e+06 7.5e+06 1.00e+07 1.25e+07"),
        (0, 5e-5, "0 1.0e-05 2.0e-05 3.0e-05 4.0e-05 5.0e-05"),
    ],
)
def test_ticks_say_where_they_are(low: float, high: float, written: str):
    """Catches (seen) ticks rounded by the size of the axis and not by its step: an
    R-hat of 1.0025 as 1.002, and years of which two were 2,010."""
    axis = Axis(low, high, "what")
    said = [axis.written(value).replace(MINUS, "-") for value in axis.marked]
    numbers = [float(text.replace(",", "")) for text in said]
    np.testing.assert_allclose(numbers, axis.marked, rtol=1e-12, atol=1e-12 * high)
    assert len(set(said)) == len(said)
    if "1.00e" not in written:
        assert " ".join(said) == written


def test_long_numbers_have_room():
    """Catches numbers that are cut at the figure's left, or lie on the axis' name."""
    x, y = axis_of([[0, 1]], "x"), axis_of([[-1.234e6, -1.231e6]], "nats")
    html = Chart(Ids(), "title", "words", x=x, y=y).html()
    ends = re.findall(r'<text[^>]* x="(\d+)"[^>]*text-anchor="end"[^>]*>([^<]*)<', html)
    assert ends
    for end, text in ends:
        assert int(end) - 6.5 * len(text) > 18


def test_validation_at_some_epochs_is_seen():
    """Every third of 12 epochs. Catches (seen) a curve of moves without a line."""
    history = [
        {
            "epoch": i,
            "log_likelihood": -1.0 / i,
            "val_nll": 1.0 / i if i % 3 == 0 else None,
        }
        for i in range(1, 13)
    ]
    section = training(Sheet(record(history=history), Ids()))
    assert section is not None
    panel = str(section.content).split("NLL of validation rows", 1)[1]
    path = re.search(r' d="(M[^"]*)"', panel)
    assert path is not None
    assert path[1].count("L") == 3
    cells = re.findall(r"<t[dh][^>]*>(\d+)</t[dh]>", panel.split("</table>")[0])
    assert [c for c in cells if c in ("3", "6", "9", "12")] == ["3", "6", "9", "12"]


def test_points_without_neighbours_are_dots():
    """Catches (seen) a line of which nothing is drawn."""
    x, y = axis_of([[0, 5]], "x"), axis_of([[0, 5]], "y")
    chart = Chart(Ids(), "title", "words", x=x, y=y)
    chart.line([0, 1, 2, 3, 4], [1, np.nan, 2, np.nan, 3])
    assert chart.html().count("<circle") == 3


def test_a_seed_is_written_out():
    """Catches (seen) `--seed 20240601` as 2.02e+07, which nobody can repeat."""
    run = record(data={"split": 20240601}, training={"learning_rate": 0.0012345})
    page = str(card(Sheet(run, Ids())).content)
    assert "20240601" in page
    assert "0.0012345" in page
    assert "2.02e" not in page


def table_of_model(config: dict[str, Any], known: Data | None = None) -> str:
    run = dataclasses.replace(record(), config=config, known=known)
    page = str(card(Sheet(run, Ids())).content)
    return page.split("Model and training", 1)[1].split("</table>", 1)[0]


def test_a_card_lists_what_was_read(tmp_path: Path):
    """Catches (seen) "num members 5" of a single network, the scale of classes' noise,
    and a solver and batches of chains that have none.
    """
    one = Recipe().changed(data="digits", model="deterministic").to_json()
    table = table_of_model({"recipe": one}, load("digits"))
    assert ">learning rate<" in table
    assert not re.search(">(num members|prior|scale|kl warmup|num components)<", table)
    some = Recipe().changed(data="digits", model="ensemble").to_json()
    assert ">num members<" in table_of_model({"recipe": some})
    chains = SampleRecipe().changed(data="own.csv", kernel="hmc", network="mlp")
    table = table_of_model({"sampling": chains.to_json()})
    assert ">num integration steps<" in table
    assert not re.search(">(solver|batch size|path modes|cycles)<", table)
    before = one | {"model": {"model": "of before", "sigma": 3.0}}
    assert ">sigma<" in table_of_model({"recipe": before})


def test_a_card_names_the_file_of_series(tmp_path: Path):
    """Catches (seen) a data set "that ornstein knows by name", and series as rows."""
    path = tmp_path / "own.csv"
    lines = [f"s{i},{t},{i + t % 3}" for i in range(10) for t in range(4)]
    path.write_text("\n".join(["id,t,a", *lines, ""]))
    own = load_series_csv(path, time="t", series="id", value="a")
    assert own.source is not None

    def said(known: Data, **config: Any) -> str:
        run = dataclasses.replace(record(**config), known=known)
        return str(card(Sheet(run, Ids())).content)

    page = said(own, series={"time": "t"})
    assert str(path) in page
    assert own.source.sha256 in page
    assert "40 rows, 3 columns" in page
    assert "training series" in page
    assert "test series" in page
    assert not re.search("knows by name|(training|test) rows", page)
    without = dataclasses.replace(own, source=None)
    before = said(without, series={"time": "t"})
    assert f"{path}; no fingerprint was kept" in before
    assert "knows by name" in said(load("toy/gbm"))
    assert "training rows" in said(load("toy/cos"))


def test_captions_call_series_series():
    """Catches (seen) "40 test rows" below figures of series."""
    run = record()
    assert Sheet(run, Ids()).of_rows == "40 test rows"
    run = dataclasses.replace(run, known=load("toy/gbm"))
    assert Sheet(run, Ids()).of_rows == "40 test series"


def test_a_share_of_all_has_no_known_error():
    """Catches (seen) "\N{PLUS-MINUS SIGN} 0" beside a top-3 accuracy of 1."""
    one = Sheet(record({"top_3_accuracy": 1.0}), Ids())
    assert error_of(one, "top_3_accuracy", 1.0) is None
    half = error_of(one, "top_3_accuracy", 0.5)
    assert half == pytest.approx(0.5 / np.sqrt(40))


def test_series_of_an_earlier_version_are_judged_again():
    """Catches their means over series beside another run's over values."""
    series, rows = load("toy/gbm"), record().kept
    assert rows is not None
    assert _is_of_before(rows, series)
    assert not _is_of_before(rows, None)
    assert not _is_of_before(rows, load("toy/cos"))
    columns = rows.rows.columns
    assert isinstance(columns, dict)
    columns["num_values"] = np.ones(40)
    assert not _is_of_before(rows, series)
