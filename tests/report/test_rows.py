"""What is kept of test rows, against the scores of the result and against files."""

import io
import json
import math
import shutil
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from report.page import Page
from scipy.stats import norm

from ornstein.data import Column, Data, Series, Split, Standardisation
from ornstein.evaluation import evaluate
from ornstein.likelihood import Categorical, Cauchy, Gaussian, OverTime
from ornstein.prediction import Prediction
from ornstein.report import KeptRows, load_rows, read_run, save_rows, write_report
from ornstein.report._errors import bins_of, ece_error, quantile_error
from ornstein.report.page import Ids
from ornstein.report.rows import _example, _judged, judge_rows
from ornstein.report.sections import Sheet, comparison
from ornstein.report.sections._comparison import why_not_paired


def kept(run: Path) -> KeptRows:
    found = load_rows(run)
    assert found is not None
    return found


def result_of(run: Path) -> dict:
    return json.loads((run / "result.json").read_text())


def test_classes_add_up_to_the_result(classes: Path):
    """Catches rows of another split, other draws, or guesses that are mixed up."""
    rows, result = kept(classes).rows, result_of(classes)
    columns = rows.columns
    right = columns["guess"] == columns["y"]
    assert right.mean() == pytest.approx(result["accuracy"])
    assert -columns["log_prob"].mean() == pytest.approx(result["nll"], rel=1e-5)
    assert columns["entropy"].mean() == pytest.approx(result["entropy"], rel=1e-5)
    parts = columns["aleatoric"] + columns["epistemic"]
    assert parts == pytest.approx(columns["entropy"], abs=1e-5)
    share, size = right.mean(), len(right)
    expected = math.sqrt(share * (1 - share) / (size - 1))
    assert rows.errors["accuracy"] == pytest.approx(expected)


def test_numbers_add_up_to_the_result_in_the_targets_unit(numbers: Path):
    """Catches densities or errors that are left in standard units."""
    rows, result = kept(numbers).rows, result_of(numbers)
    nll = -rows.columns["log_prob"].astype(float).mean()
    assert nll == pytest.approx(result["nll_in_target_units"], rel=1e-5)
    rmse = math.sqrt(rows.columns["squared_error"].astype(float).mean())
    assert rmse == pytest.approx(result["rmse_in_target_units"], rel=1e-5)
    inside = np.mean(np.abs(rows.cdf - 0.5) <= 0.45)
    assert inside == pytest.approx(result["coverage_90"])
    lines = (numbers.parent / "price.csv").read_text().splitlines()[1:]
    truth = {line.split(",")[0]: float(line.split(",")[-1]) for line in lines}
    for one in rows.examples:
        assert float(one.truth) == pytest.approx(truth[one.name], rel=1e-3)


def test_a_constant_guess_is_told_by_its_own_densities(numbers: Path):
    """Catches a Gaussian in other units: the gain would be off by log(scale)."""
    rows = kept(numbers).rows
    y = rows.columns["y"].astype(float)
    density = -0.5 * (((y - y.mean()) / y.std()) ** 2 + np.log(2 * np.pi * y.var()))
    gains = rows.columns["log_prob"] - density
    assert rows.constants["nll_gain"] == pytest.approx(gains.mean(), abs=1e-4)
    error = gains.std(ddof=1) / math.sqrt(len(y))
    assert rows.errors["nll_gain"] == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("what", ["ece", "quantiles"])
def test_errors_of_calibration_are_the_bootstraps(what: str):
    """Catches a wrong sign or scale of the delta method, where gaps are clear."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, 2000)
    is_right = rng.uniform(size=2000) < confidence**3
    cdf = rng.beta(0.6, 0.6, 2000)

    def ece(rows: np.ndarray) -> float:
        gaps = confidence[rows] - is_right[rows]
        return float(np.abs(np.bincount(bins_of(confidence[rows]), gaps)).sum() / 2000)

    def calibration(rows: np.ndarray) -> float:
        levels = np.arange(1, 20) / 20
        return float(np.mean([abs(np.mean(cdf[rows] <= p) - p) for p in levels]))

    score = {"ece": ece, "quantiles": calibration}[what]
    said = ece_error(confidence, is_right) if what == "ece" else quantile_error(cdf)
    again = [score(rng.integers(0, 2000, 2000)) for _ in range(400)]
    assert said == pytest.approx(np.std(again), rel=0.15)


def test_the_error_of_calibration_counts_rows_and_not_their_values():
    """Of 40 series with an offset each, some of their values not observed. Catches
    (seen) values that count as rows: an error of a fifteenth, and gaps in the mask."""
    rng = np.random.default_rng(0)
    offset, noise = rng.normal(0.5, 0.9, (40, 1)), rng.normal(0, 0.4, (40, 300))
    cdf = np.asarray(norm.cdf(offset + noise))
    mask = rng.uniform(size=cdf.shape) < rng.uniform(0.2, 1, (40, 1))
    cdf = np.where(mask, cdf, np.nan)
    levels = np.arange(1, 20) / 20

    def calibration(rows: np.ndarray) -> float:
        values = cdf[rows][mask[rows]]
        return float(np.mean([abs(np.mean(values <= p) - p) for p in levels]))

    again = [calibration(rng.integers(0, 40, 40)) for _ in range(400)]
    assert quantile_error(cdf, mask) == pytest.approx(np.std(again), rel=0.15)
    assert quantile_error(cdf[mask]) < 0.2 * np.std(again)


def test_series_without_a_mean_are_numbers():
    """A Cauchy's. Catches (seen) rows of which densities alone are kept, so that two
    such runs were not compared, and errors of values as if each were a row."""
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(30, 1, 1)) + rng.normal(size=(30, 5, 1))).astype("f4")
    mask = rng.uniform(size=values.shape) < 0.8
    mask[:, 0] = True
    ts = np.broadcast_to(np.arange(5, dtype=np.float32), (30, 5))
    series = Series(ts, np.where(mask, values, 0), mask)
    split = Split(series, series)
    data = Data("own", "series", split, split, target_names=("a",))
    outputs = jnp.asarray(rng.normal(size=(4, 30, 5, 1)), jnp.float32)
    prediction = Prediction(outputs, OverTime(Cauchy(0.5)))
    rows, result = judge_rows(prediction, data), evaluate(prediction, series)
    assert rows.kind == "numbers"
    counts = rows.columns["num_values"].astype(float)
    assert counts.tolist() == mask.sum((1, 2)).tolist()
    mse = np.sum(rows.columns["squared_error"] * counts) / counts.sum()
    assert math.sqrt(mse) == pytest.approx(float(result["rmse"]), rel=1e-5)
    inside = np.mean(np.abs(rows.cdf - 0.5) <= 0.45)
    assert inside == pytest.approx(float(result["coverage_90"]))
    assert "epistemic" not in rows.columns
    cdf = np.asarray(prediction.cdf(series), float)
    assert rows.errors["calibration_error"] == quantile_error(cdf, mask)


@pytest.mark.parametrize("classes", [(0, 2), (2,)])
def test_classes_without_a_test_row_do_not_warn(classes: tuple[int, ...]):
    """Catches (seen) NumPy's words on a logarithm of 0, and a constant guess of -0."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.array(classes, np.int32), 6)
    split = Split(rng.normal(size=(len(y), 2)).astype(np.float32), y)
    data = Data(
        "own",
        "classification",
        split,
        split,
        num_classes=3,
        class_names=("a", "b", "c"),
    )
    logits = jnp.asarray(rng.normal(size=(4, len(y), 3)), jnp.float32)
    rows = judge_rows(Prediction(logits, Categorical()), data)
    assert rows.constants["nll"] == pytest.approx(math.log(len(classes)))
    assert math.copysign(1, rows.constants["nll"]) == 1
    gain = rows.columns["log_prob"].mean() + math.log(len(classes))
    assert rows.constants["nll_gain"] == pytest.approx(gain, rel=1e-5)


def test_dates_of_examples_are_their_days():
    """Catches (seen) midnight that single precision puts into the day before."""
    days = np.arange(18_000, 20_500, 7.0)[:, None]
    scaling = Standardisation.fit(days)
    raw = np.ravel(scaling.undo(scaling.apply(days)))
    column = Column("day", "date")
    expected = [str(np.datetime64(int(day), "D")) for day in days[:, 0]]
    assert [_example._cell(column, value) for value in raw] == expected


def test_numbers_of_examples_have_no_power_of_ten():
    """Catches (seen) 9999.7 as 1e+04."""
    shown = [_example._written(value) for value in (9999.4, 9999.7, -9999.7, 1e4)]
    assert shown == ["9999", "10,000", "-10,000", "10,000"]


def test_examples_are_at_the_ends_and_named(classes: Path):
    """Catches the order upside down, and names of other rows."""
    rows = kept(classes).rows
    entropy, names = rows.columns["entropy"], [one.name for one in rows.examples]
    certain = [one.row for one in rows.examples if one.is_certain]
    others = np.delete(entropy, certain)
    assert entropy[certain].max() <= others.min() + 1e-6
    assert all(name.startswith("p") for name in names)
    lines = (classes.parent / "grade.csv").read_text().splitlines()[1:]
    truth = {line.split(",")[0]: line.split(",")[-1] for line in lines}
    assert all(truth[one.name] == one.truth for one in rows.examples)


def test_examples_of_images_are_the_files(images: Path):
    """Catches a wrong white, a transposed image, or a name of another file."""
    rows = kept(images).rows
    assert rows.examples
    for one in rows.examples:
        there = np.asarray(Image.open(images.parent / "images" / one.name))
        assert one.name.startswith(one.truth)
        shown = np.asarray(Image.open(io.BytesIO(one.image)))
        assert np.abs(shown.astype(int) - there.astype(int)).max() <= 1


def test_what_is_saved_is_what_is_read(chains: Path, tmp_path: Path):
    """Catches an array that loses its shape, or a field that is not written."""
    there = kept(chains)
    assert there.chains is not None
    assert there.chains.traces.shape[:2] == (len(there.chains.labels), 2)
    save_rows(tmp_path, there)
    again = load_rows(tmp_path)
    assert again is not None
    assert again.rows.examples == there.rows.examples
    for part in ("rows", "chains"):
        for one, two in zip(getattr(there, part), getattr(again, part), strict=True):
            np.testing.assert_equal(one, two)


def test_many_rows_are_kept_evenly_spaced(monkeypatch):
    """Catches a file that grows with the test set, and errors of kept rows alone."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1000).astype(np.int32)
    split = Split(rng.normal(size=(1000, 2)).astype(np.float32), y)
    names = ("a", "b", "c")
    data = Data("own", "classification", split, split, num_classes=3, class_names=names)
    logits = jnp.asarray(rng.normal(size=(4, 1000, 3)), jnp.float32)
    prediction = Prediction(logits, Categorical())
    whole = judge_rows(prediction, data)
    monkeypatch.setattr(_judged, "MOST_ROWS", 11)
    few = judge_rows(prediction, data)
    assert few.index.tolist() == [0, 100, 200, 300, 400, 500, 599, 699, 799, 899, 999]
    assert few.num_rows == 1000
    np.testing.assert_equal(dict(few.errors), dict(whole.errors))
    assert (few.columns["y"] == y[few.index]).all()


def test_bands_of_numbers_are_of_the_rows_that_are_kept(monkeypatch):
    """A million rows' bands take longer than their training. Catches bands of other
    rows, rows without one that are kept or shown, and errors of kept rows alone.
    """
    rng = np.random.default_rng(1)
    y = rng.normal(size=300).astype(np.float32)
    split = Split(rng.normal(size=(300, 2)).astype(np.float32), y)
    data = Data("own", "regression", split, split, target_names=("y",))
    outputs = jnp.asarray(rng.normal(size=(4, 300, 1)), jnp.float32)
    prediction = Prediction(outputs, Gaussian(0.5))
    whole = judge_rows(prediction, data)
    monkeypatch.setattr(_judged, "MOST_ROWS", 31)
    few = judge_rows(prediction, data)
    assert few.num_rows == 300
    assert len(few.index) == 31
    np.testing.assert_equal(dict(few.errors), dict(whole.errors))
    for name, column in few.columns.items():
        near = {"rtol": 1e-5, "atol": 1e-5, "err_msg": name}
        np.testing.assert_allclose(column, whole.columns[name][few.index], **near)
    assert {one.row for one in few.examples} <= set(few.index.tolist())
    widths = np.argsort(few.columns["width"], kind="stable")
    certain = [one.row for one in few.examples if one.is_certain]
    assert certain == few.index[widths[: len(certain)]].tolist()


def test_a_run_of_before_predicts_again_or_says_what_is_missing(
    classes: Path, tmp_path: Path
):
    """Catches a report that ends where the training file is gone."""
    data, run = tmp_path / "grade.csv", tmp_path / "run"
    shutil.copy(classes.parent / "grade.csv", data)
    shutil.copytree(classes, run)
    (run / "test_rows.npz").unlink()
    schema = json.loads((run / "data.json").read_text())
    said = []
    found = read_run(run, say=said.append).kept
    assert len(said) == 1
    assert found is not None
    for name, column in kept(classes).rows.columns.items():
        assert found.rows.columns[name] == pytest.approx(column, abs=1e-5), name
    schema["source"]["paths"] = [str(tmp_path / "gone.csv")]
    (run / "data.json").write_text(json.dumps(schema))
    text = write_report(run, tmp_path / "page.html").read_text()
    main = Page(text).text("main")
    assert "are missing, for the run keeps no test rows of this version" in main
    assert "Scores" in main
    assert "Reliability" not in main


def test_the_paired_difference_is_that_of_the_scores(classes: Path, ensemble: Path):
    """Catches a sign, rows in another order, and an error of unpaired rows."""
    ids = Ids()
    sheets = [Sheet(read_run(run), ids, 3) for run in (classes, ensemble)]
    assert why_not_paired(*sheets) == ""
    content = comparison(sheets, ["one", "two"]).content
    page = Page(content.split("below 0 is better")[2].split("</tbody>")[0])
    cells = [text for at, text in page.texts if "td" in at]
    first, second = (sheet.rows.columns["log_prob"].astype(float) for sheet in sheets)
    difference = result_of(ensemble)["nll"] - result_of(classes)["nll"]
    error = np.std(first - second, ddof=1) / math.sqrt(len(first))
    numbers = [float(c.replace("\N{MINUS SIGN}", "-")) for c in cells[-4:]]
    assert numbers[0] == pytest.approx(difference, abs=0.1 * error)
    assert numbers[1] == pytest.approx(error, rel=0.06)


def test_rows_that_are_not_the_same_are_not_paired(classes, numbers, tmp_path):
    """Catches a difference of two splits, or of two kinds of targets."""
    other = tmp_path / "other split"
    shutil.copytree(classes, other)
    config = json.loads((other / "config.json").read_text())
    config["recipe"]["data"]["split"] = 1
    (other / "config.json").write_text(json.dumps(config))
    sheet = lambda run: Sheet(read_run(run), Ids())
    assert "another split" in why_not_paired(sheet(classes), sheet(other))
    assert "another kind" in why_not_paired(sheet(classes), sheet(numbers))
