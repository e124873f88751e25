"""Commands on tiny sequences of two features, against the library by hand."""

import contextlib
import csv
import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import ornstein as orn
from ornstein.cli import main
from ornstein.cli.commands import _predict
from ornstein.data import load_series_csv, read_long_csv
from ornstein.prediction import FittedModel
from ornstein.recipe import Keys, Recipe, prepare
from ornstein.report import _figures, write_figures
from ornstein.train import ProgressBar

TINY = "--latent-size 1 --hidden-size 3 --context-size 2 --drift-widths 3 --substeps 1"
TINY += " --epochs 2 --test-draws 3"
COLUMNS = "--time day --series id --value level flow"
START = datetime.date(2024, 1, 1)
NUM_SERIES, NUM_TIMES = 6, 8


def table(path: Path, *, first: int = 0, num_empty: int = 0, scale: float = 10) -> Path:
    """Level about 100, flow about 1 with gaps; the last `num_empty` times are empty."""
    rng, rows = np.random.default_rng(0), ["id,day,level,flow,remark"]
    for name in range(NUM_SERIES):
        for at in range(NUM_TIMES):
            level, flow = 100 + scale * rng.normal(), 1 + rng.normal()
            seen = "" if (at + name) % 3 == 0 else f"{flow:.3f}"
            cells = f"{level:.3f},{seen}" if at < NUM_TIMES - num_empty else ","
            day = START + datetime.timedelta(days=first + 2 * at)
            rows.append(f"s{name},{day},{cells},fine")
    path.write_text("\n".join([*rows, ""]))
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder with `own.csv` and the run on it, `run`."""
    folder = tmp_path_factory.mktemp("runs")
    own = table(folder / "own.csv")
    options = f"--data {own} {COLUMNS} {TINY} --out {folder / 'run'}"
    assert main(["train", *options.split()]) == 0
    return folder


def by_hand(run: Path) -> tuple:
    recipe = Recipe.from_json(json.loads((run / "config.json").read_text())["recipe"])
    prepared = prepare(recipe)
    like = (prepared.model, prepared.likelihood)
    return prepared, FittedModel(
        *orn.load_model(run / "checkpoints" / "final.npz", like)
    )


def test_result_is_what_the_library_says(runs: Path):
    """Of values that the model was not shown; the KL is summed over series.

    Catches a test of what was seen, and a KL counted twice or once a data set.
    """
    result = json.loads((runs / "run" / "result.json").read_text())
    prepared, fit = by_hand(runs / "run")
    test, train = prepared.data.test, prepared.data.train
    assert result["model"] == "latent-sde"
    assert not (test.x.mask & test.y.mask).any()
    assert test.y.mask.any((1, 2)).all()
    key = Keys.of(prepared.recipe).test
    prediction = orn.predict(fit, test.x, key=key, num_draws=3)
    scores = orn.evaluate(prediction, test.y)
    for name, value in scores.items():
        assert result[name] == pytest.approx(value, rel=1e-4), name
    asked = np.asarray(test.y.mask)
    error = (np.asarray(prediction.mean) - test.y.values)[asked]
    assert result["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-4)
    x = jax.tree.map(jax.numpy.asarray, train.x)
    draws_key, elbos, paths = (
        jax.random.split(Keys.of(prepared.recipe).bound)[1],
        [],
        [],
    )
    for index in range(3):
        draw = fit.model(x, key=draws_key, index=index)
        kl = np.sum(sum(draw.local_terms.values()))
        elbos.append(np.sum(fit.likelihood.log_prob(draw.output, train.y)) - kl)
        paths.append(np.sum(draw.local_terms["kl_path"]))
    assert result["elbo"] == pytest.approx(np.mean(elbos), rel=1e-3)
    assert result["kl_path"] == pytest.approx(np.mean(paths), rel=1e-3, abs=1e-6)
    assert result["kl"] == pytest.approx(result["kl_path"] + result["kl_initial"])
    assert 0 < result["noise_share"] <= 1
    assert isinstance(result["diagnosis"], list)
    assert (runs / "run" / "figures" / "series.png").stat().st_size > 0


def test_the_figure_has_the_names_of_the_file(runs: Path, monkeypatch):
    """Catches (seen) series that are called by their place among the test's."""
    prepared, fit = by_hand(runs / "run")
    data = prepared.data
    key = Keys.of(prepared.recipe).test
    prediction = orn.predict(fit, data.test.x, key=key, num_draws=3)
    drawn = {}

    def kept(path: Path, figure: Figure) -> Path:
        drawn[path.stem] = figure
        return path

    monkeypatch.setattr(_figures, "save_figure", kept)
    how = {"history": {}, "key": key, "num_draws": 3}
    write_figures(Path("nowhere"), fit, prediction, data, **how)
    titles = [axes.get_title(loc="left") for axes in drawn["series"].axes]
    named = [title for title in titles if title]
    assert any(f"the test, series {', '.join(named)}." in note for note in data.notes)


def test_predict_continues_the_training_dates(runs: Path, tmp_path: Path):
    """The future of a file that begins a month later, in the units of the data.

    Catches times counted from the new file's first, values left standardised, rows of
    one series given to another, dates in another form than the file's, and axes that
    count days.
    """
    later = table(tmp_path / "later.csv", first=30, num_empty=3)
    lines = later.read_text().splitlines()
    mixed = [lines[0], *(lines[1 + s * 8 + t] for t in range(8) for s in range(6))]
    text = re.sub(r"(\d{4}-\d\d-\d\d)", r"\1 00:00", "\n".join([*mixed, ""]))
    later.write_text(text)
    out, picture = tmp_path / "out.csv", tmp_path / "bands.svg"
    options = f"-o {out} --interval 0.5 --figure {picture}"
    assert main(["predict", str(runs / "run"), str(later), *options.split()]) == 0
    drawn = re.findall("<!-- (.*) -->", picture.read_text())
    assert {"day", "Feb", "2024-Feb"} <= set(drawn)
    found, given = (
        list(csv.DictReader(p.read_text().splitlines())) for p in (out, later)
    )
    assert [(r["id"], r["day"]) for r in found] == [(r["id"], r["day"]) for r in given]
    prepared, fit = by_hand(runs / "run")
    clock, scaling = prepared.data.clock, prepared.data.x_scaling
    names = {"time": "day", "series": "id", "value": ["level", "flow"]}
    long = read_long_csv(later, **names, origin="2024-01-01")
    long = long._replace(ts=(long.ts - clock.start) / clock.unit)
    key = Keys.of(prepared.recipe).test
    prediction = orn.predict(fit, long.to_series(scaling), key=key, num_draws=3)
    lower, upper = prediction.interval(0.5)
    for what, values in {
        "mean": prediction.mean,
        "lower": lower,
        "upper": upper,
    }.items():
        raw = np.asarray(values) * scaling.scale + scaling.mean
        for feature, name in enumerate(["level", "flow"]):
            ours = np.array([float(r[f"{what} of {name}"]) for r in found])
            expected = raw[..., feature].T.ravel()  # the file has times first
            np.testing.assert_allclose(ours, expected, rtol=1e-4)
    medians = [float(r["median of level"]) for r in found]
    assert 60 < np.mean(medians) < 140


def test_predict_keeps_columns_called_as_a_prediction(
    runs: Path, tmp_path: Path, monkeypatch
):
    """Catches (seen) names of series, or times, that the prediction's replaced."""
    read = _predict.read_series

    def renamed(*args):
        inputs = read(*args)
        names = ("mean of level", "median of flow")
        columns = dict(zip(names, inputs.columns.values(), strict=True))
        return inputs._replace(columns=columns)

    monkeypatch.setattr(_predict, "read_series", renamed)
    later, out = (
        table(tmp_path / "later.csv", first=30, num_empty=3),
        tmp_path / "o.csv",
    )
    assert main(["predict", str(runs / "run"), str(later), "-o", str(out)]) == 0
    found, given = (
        list(csv.DictReader(p.read_text().splitlines())) for p in (out, later)
    )
    assert [r["mean of level (input)"] for r in found] == [r["id"] for r in given]
    assert [r["median of flow (input)"] for r in found] == [r["day"] for r in given]


def test_model_time_is_ten_median_gaps(runs: Path):
    """Rows are two days apart, from the first training day on."""
    prepared, _ = by_hand(runs / "run")
    assert prepared.data.clock.origin == "2024-01-01"
    assert prepared.data.clock.unit == pytest.approx(20.0)
    ts = prepared.data.train.x.ts
    np.testing.assert_allclose(ts[0], 0.1 * np.arange(NUM_TIMES), atol=1e-6)


def test_interrupted_run_goes_on_to_the_same_end(runs: Path, monkeypatch, capsys):
    """Catches a resume that starts over, or with other columns; and (seen) one of which
    the test series have changed, whose scores then came to stand in its report.
    """
    advance, path = ProgressBar.advance, runs / "stopped"

    def interrupt(self, step, record):
        advance(self, step, record)
        if step >= 1:
            raise KeyboardInterrupt

    options = f"--data {runs / 'own.csv'} {COLUMNS} {TINY} --out {path}".split()
    with monkeypatch.context() as patch:
        patch.setattr(ProgressBar, "advance", interrupt)
        assert main(["train", *options]) == 130
    with changed(runs / "own.csv"):
        capsys.readouterr()
        assert main(["train", "--resume", str(path)]) == 2
        assert "has changed since this run read it (48 rows" in capsys.readouterr().err
    assert main(["train", "--resume", str(path)]) == 0
    same = [by_hand(p)[1].model for p in (runs / "run", path)]
    for ours, theirs in zip(*map(jax.tree.leaves, same), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@contextlib.contextmanager
def changed(path: Path) -> Iterator[None]:
    """For a while, with the series of the test higher by 5 in their first column."""
    text = path.read_text()
    held = load_series_csv(path, time="day", series="id", value="level").test_names
    lines = [line.split(",") for line in text.splitlines()]
    for cells in lines:
        if cells[0] in held:
            cells[2] = str(float(cells[2]) + 5)
    path.write_text("\n".join([*map(",".join, lines), ""]))
    try:
        yield
    finally:
        path.write_text(text)


def test_a_changed_file_is_refused(runs: Path, capsys):
    """By `evaluate` and `--resume` of a finished run (seen), not by `predict`."""
    run, out = runs / "run", runs / "after.csv"
    with changed(runs / "own.csv"):
        for arguments in ("evaluate", "train --resume"):
            capsys.readouterr()
            assert main([*arguments.split(), str(run)]) == 2
            said = capsys.readouterr().err
            assert "own.csv has changed since this run read it (48 rows then)" in said
        assert main(["predict", str(run), str(runs / "own.csv"), "-o", str(out)]) == 0
    text = (runs / "own.csv").read_text()
    (runs / "own.csv").unlink()
    try:
        for arguments in ("evaluate", "train --resume"):
            assert main([*arguments.split(), str(run)]) == 2
            assert "is not there: put it back" in capsys.readouterr().err
    finally:
        (runs / "own.csv").write_text(text)


def test_evaluate_repeats_the_result(runs: Path, capsys):
    """And says of which of two log likelihoods no comparison holds."""
    trained = json.loads((runs / "run" / "result.json").read_text())
    assert main(["evaluate", str(runs / "run"), "--json"]) == 0
    said = capsys.readouterr()
    assert "only the best draw counts: compare by nll" in " ".join(said.err.split())
    same = json.loads(said.out)
    assert same["joint_nll"] == pytest.approx(trained["joint_nll"])
    assert same["nll"] == trained["nll"]
    assert same["elbo"] == pytest.approx(trained["elbo"])


def test_one_series_is_tested_at_its_end(tmp_path: Path, monkeypatch, capsys):
    """No --value and no --series: all numbers are one series, of a latent ODE.

    Catches a text column that stops it, a recognition that one series can't teach, and
    notes that name options as Python does (`predict` said "`value` names others").
    """
    monkeypatch.chdir(tmp_path)
    rows = [f"{0.5 * t},{np.sin(t):.4f},calm" for t in range(20)]
    Path("one.csv").write_text("\n".join(["t,wave,mood", *rows, ""]))
    options = "--data one.csv --time t --drift-widths 3 --epochs 2 --test-draws 2"
    options += " --model latent-ode --out run"
    assert main(["train", *options.split()]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the values are wave; --value names others." in said
    prepared, fit = by_hand(Path("run"))
    assert isinstance(fit.model, orn.LatentODE)
    assert isinstance(fit.model.recognition, orn.functions.NoRecognition)
    assert prepared.data.train.x.num_times == 16
    assert prepared.data.test.y.mask.sum() == 4
    result = json.loads(Path("run/result.json").read_text())
    assert result["kl_path"] is None
    assert result["kl"] == pytest.approx(result["kl_initial"])
    Path("more.csv").write_text("t,wave\n0,0.1\n1,0.2\n20,\n30,\n")
    assert main("predict run more.csv -o out.csv".split()) == 0
    found = Path("out.csv").read_text().splitlines()
    assert len(found) == 5
    Path("other.csv").write_text("t,wave\n0,\n1,3\n20,5\n30,\n")
    assert main("predict run other.csv -o same.csv".split()) == 0
    assert Path("same.csv").read_text().splitlines() == found
    # From training's beginning on, wherever the file begins, in steps of training.
    later = 1.6 + 0.1 * np.arange(45)
    x = prepared.data.train.x.extended(later)
    key = Keys.of(prepared.recipe).test
    whole = np.asarray(orn.predict(fit, x, key=key, num_draws=2).mean)[0, :, 0]
    whole = whole * prepared.data.y_scaling.scale[0] + prepared.data.y_scaling.mean[0]
    Path("late.csv").write_text("t,wave\n20,1\n30,\n")
    assert main("predict run late.csv -o late_out.csv".split()) == 0
    for name, at in {"out.csv": [0, 2, 40, 60], "late_out.csv": [40, 60]}.items():
        rows = csv.DictReader(Path(name).read_text().splitlines())
        means = [float(row["mean"]) for row in rows]
        np.testing.assert_allclose(means, whole[at], rtol=1e-3, atol=1e-4)
    said = " ".join(capsys.readouterr().out.split())
    assert "whatever values the file has" in said
    assert "the values are wave; --value names others." in said


BAD = {
    "no time": (
        "train --data own.csv --model latent-sde",
        "learns sequences: name the",
    ),
    "images": ("train --data digits --model latent-sde", "digits holds none"),
    "another model": (
        f"train --data own.csv {COLUMNS} --model mean-field",
        "own.csv holds sequences, which --model mean-field does not learn",
    ),
    "time of images": ("train --data digits --time t", "--data digits is none"),
    "series of images": (
        "train --data digits --series id",
        "--series is for sequences",
    ),
    "target": (f"train --data own.csv {COLUMNS} --target level", "with --value"),
    "unsorted": ("train --data own.csv --time day", "tells series apart with --series"),
    "repeated": ("train --data twice.csv --time t", "one time twice"),
    "one point": ("train --data lonely.csv --time t --series id", "has one point"),
    "missing": ("train --data blank.csv --time t --value y", "no observed value"),
    "mixed": ("train --data mixed.csv --time t", "times of mixed type"),
    "column": ("train --data own.csv --time dy --series id", "no column 'dy'"),
    "no numbers": (
        "train --data own.csv --time level --series flow",
        "own.csv has no column of numbers to learn beside 'level' and 'flow'",
    ),
    "start scale": (
        f"train --data own.csv {COLUMNS} {TINY} --start-scale 0",
        "--start-scale must be positive, got 0",
    ),
    "prior scale": (
        f"train --data own.csv {COLUMNS} {TINY} --latent-noise fixed --sigma=-1",
        "--sigma must be positive, got -1",
    ),
    "sigma of a network": (
        f"train --data own.csv {COLUMNS} {TINY} --sigma 0.7",
        "--sigma does nothing for --latent-noise net",
    ),
    "negative start": (
        f"train --data own.csv {COLUMNS} {TINY} --start-drift=-1",
        "--start-drift must not be negative, got -1",
    ),
    "start of a linear drift": (
        f"train --data own.csv {COLUMNS} {TINY} --latent-prior linear --start-drift 0",
        "--start-drift does nothing for --latent-prior linear",
    ),
    "noise of an ODE": (
        f"train --data own.csv {COLUMNS} --model latent-ode --max-noise 3",
        "--max-noise does nothing for --model latent-ode",
    ),
    "identity": (
        f"train --data own.csv {COLUMNS} {TINY} --decoder-widths identity",
        "give --latent-size 2",
    ),
    "frames": (f"train --data own.csv {COLUMNS} --frames 5", "--frames does nothing"),
    "step": (f"train --data own.csv {COLUMNS} --dt 0.5", "--dt does nothing"),
    "solver": (
        f"train --data own.csv {COLUMNS} {TINY} --solver heun",
        "depends on the state.*EulerMaruyama",
    ),
    "time scale": (
        f"train --data own.csv {COLUMNS} --time-scale 0",
        "--time-scale must",
    ),
    "test seen": (f"train --data own.csv {COLUMNS} --test-seen 0", "--test-seen must"),
    "classes": (
        f"train --data own.csv {COLUMNS} {TINY} --likelihood categorical",
        "--likelihood categorical is of classes",
    ),
    "sample": ("sample --data toy/gbm", "ornstein train --model latent-sde"),
    "evaluate ood": ("evaluate run --ood", "--ood is not for sequences"),
    "evaluate dt": ("evaluate run --dt 0.1", "--dt is not for sequences"),
    "evaluate dial": ("evaluate run --dial 0.1", "--dial is not for sequences"),
    "predict numbers": ("predict run count.csv -o p.csv", "learned from dates"),
    "predict columns": ("predict run twice.csv -o p.csv", "no column 'day'"),
    "predict arrays": ("predict run x.npz -o p.csv", "holds no sequences"),
    "predict figure": (
        "predict run own.csv -o p.csv --figure p.txt",
        "must end in .png",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(
    case: str, runs: Path, tmp_path, monkeypatch, capsys
):
    """And leaves the folder as it was."""
    arguments, match = BAD[case]
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text((runs / "own.csv").read_text())
    Path("twice.csv").write_text("t,y\n0,1\n1,2\n1,3\n")
    Path("lonely.csv").write_text("id,t,y\na,0,1\na,1,2\nb,0,1\n")
    Path("blank.csv").write_text("t,y\n0,\n1,\n2,\n")
    Path("mixed.csv").write_text("t,y\n0,1\n2024-01-01,2\n2,3\n")
    Path("count.csv").write_text("id,day,level,flow\na,0,1,1\na,1,2,2\n")
    np.savez("x.npz", x=np.zeros((3, 2)))
    Path("run").symlink_to(runs / "run")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    sentence = err.strip().splitlines()[-1]
    assert sentence.startswith("ornstein: "), err
    assert re.search(match, sentence), sentence
    assert "Traceback" not in err + out
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_raw_times_stay_in_the_library(runs: Path):
    """`load_series_csv` scales no times, and says from when dates count."""
    data = load_series_csv(
        runs / "own.csv", time="day", series="id", value=["level", "flow"]
    )
    assert data.clock is not None
    assert data.clock.name == "days since 2024-01-01"
    assert (data.clock.start, data.clock.unit) == (0.0, 1.0)
    np.testing.assert_allclose(data.train.x.ts[0], 2.0 * np.arange(NUM_TIMES))
