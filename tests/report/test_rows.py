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

from ornstein.data import Data, Split
from ornstein.likelihood import Categorical, Gaussian
from ornstein.prediction import Prediction
from ornstein.report import KeptRows, load_rows, read_run, save_rows, write_report
from ornstein.report._errors import bins_of, ece_error, quantile_error
from ornstein.report.page import Ids
from ornstein.report.rows import _judged, judge_rows
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
