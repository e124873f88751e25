"""Figures of table 1's networks, at toy size: what they read, keep, count and draw."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ornstein.recipe import _published as _recipe_files
from ornstein.studies import Study
from ornstein.studies.sdebnn import (
    _fig5,
    _fig6,
    _fig7,
    _fig11,
    _inducing_images,
    _stl_training,
    _table1_dial,
)
from ornstein.studies.sdebnn._table1_runs import trained_row

DATA = "flowers.csv"
SMALL: dict[str, Any] = {"target": ["y"], "width": "2", "epochs": 2, "test_draws": 2}
SOLVED = SMALL | {"solver": "euler", "dt": 0.5}
BAYESIAN = SOLVED | {"model": "sdebnn", "start": "point", "drift_widths": "2"}
RECIPES = {
    "sdebnn": BAYESIAN,
    "sdebnn-stl": BAYESIAN | {"estimator": "stl"},
    "odenet": SOLVED | {"model": "deterministic", "network": "odenet"},
}
RUN = ("sdebnn", 0)
IMAGES = {"model": "deterministic", "width": "4", "epochs": 1, "test_draws": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A working directory with a table of two columns, and recipes for it."""
    path = tmp_path_factory.mktemp("figures")
    random = np.random.default_rng(0)
    kinds = np.arange(120) % 3
    lines = [f"{k + random.normal()},{random.normal()},{'abc'[k]}" for k in kinds]
    (path / DATA).write_text("\n".join(["u,v,y", *lines, ""]))
    for name, options in RECIPES.items():
        recipe = {"about": name, "quick": {"seeds": [0], "options": options}}
        file = path / "recipes" / DATA / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(recipe))
    return path


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setattr(_recipe_files, "_folder", lambda: folder / "recipes")


def study(name: str, said: list[str], **options) -> Study:
    options = {"data": DATA} | options
    return Study(Path("runs") / name, "quick", seed=0, say=said.append, **options)


def test_calibration_over_steps(monkeypatch: pytest.MonkeyPatch):
    """Both networks are trained once, in the folder of table 1; steps are counted."""
    monkeypatch.setattr(_table1_dial, "DTS", (0.5, 0.25))
    said: list[str] = []
    rows = _fig11.FIG11.run(study("fig11", said))
    assert Path(f"results/table1/{DATA}-quick/sdebnn-0.json").is_file()
    for model in ("odenet", "sdebnn"):
        own = [row for row in rows if row["model"] == model]
        assert [row["num_drift_evaluations"] for row in own] == [2, 4]
        assert len({row["nll"] for row in own}) == 2
    assert Path("runs/fig11/ece_dt.png").is_file()
    said.clear()
    assert _fig11.FIG11.run(study("fig11", said)) == rows
    assert not any("training" in line or "computing" in line for line in said)


def test_a_network_trained_again_leaves_table_1_as_it_was(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As in a clone, whose table has results and no models. Seen failing: a figure put
    its own training in the place of the committed result.
    """
    shutil.copy(folder / DATA, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_table1_dial, "DTS", (0.5,))
    said: list[str] = []
    figure = lambda: _fig11.FIG11.run(study("fig11-clone", said, models=("sdebnn",)))
    figure()
    table = Path(f"results/table1/{DATA}-quick")
    shutil.rmtree(table / "runs")
    committed = json.loads((table / "sdebnn-0.json").read_text())
    committed |= {"nll": 9.9, "provenance": {"commit": "of before"}}
    (table / "sdebnn-0.json").write_text(json.dumps(committed))
    (table / "sdebnn-0.npz").write_bytes(b"of before")
    (row,) = figure()
    assert json.loads((table / "sdebnn-0.json").read_text()) == committed
    assert (table / "sdebnn-0.npz").read_bytes() == b"of before"
    assert any("sdebnn-0.json stays as it was" in line for line in said)
    # The result is that of the model that is there, also in the next call.
    said.clear()
    assert figure() == [row]
    assert not any("training" in line or "computing" in line for line in said)
    _, _, record = trained_row(_table1_dial.table_study(study("x", [])), DATA, *RUN)
    assert record["nll"] != 9.9
    assert record["provenance"] != committed["provenance"]
    # Killed before it was judged: it is, and is not taken for the table's.
    (table / "runs" / "sdebnn-0" / "result.json").unlink()
    _, _, again = trained_row(_table1_dial.table_study(study("x", [])), DATA, *RUN)
    assert again["nll"] == pytest.approx(record["nll"])
    # A damaged copy of a result is no reason to train again.
    (table / "runs" / "sdebnn-0" / "result.json").write_text("{")
    _, _, kept = trained_row(_table1_dial.table_study(study("x", [])), DATA, *RUN)
    assert kept == committed


@pytest.mark.slow
def test_speed_against_precision(monkeypatch: pytest.MonkeyPatch):
    """Tolerances beside steps, on the first rows; both reliability diagrams."""
    monkeypatch.setattr(_table1_dial, "DTS", (0.5, 0.25))
    monkeypatch.setattr(_table1_dial, "RTOLS", (0.1,))
    monkeypatch.setattr(_table1_dial, "_ADAPTIVE_ROWS", {"quick": 5})
    rows = _fig6.FIG6.run(study("fig6", []))
    assert [row.get("test_rows") for row in rows] == [24, 24, 5, None, None]
    assert [row.get("rtol") for row in rows][2] == 0.1
    assert rows[2]["num_drift_evaluations"] >= 2
    names = ("dial_nll", "dial_ece", "reliability_odenet", "reliability_sdebnn")
    assert all(Path(f"runs/fig6/{name}.png").is_file() for name in names)


def test_learning_curves_of_sticking_the_landing():
    """A value an epoch, from each run's own folder."""
    rows = _stl_training.STL_TRAINING.run(study("stl", []))
    assert [row["sticking_the_landing"] for row in rows] == ["without", "with"]
    for row in rows:
        assert len(row["loss"]) == len(row["elbo"]) == 2
        assert row["gradient_snr_at_end"] > 0
    assert Path("runs/stl/elbo.png").is_file()


def test_severities_of_corruptions(folder: Path):
    """Two figures from one scoring: means over corruptions, clean rows first."""
    options = IMAGES | {"train_rows": 64, "test_rows": 20}
    file = folder / "mine.json"
    quick = {"seeds": [0], "options": options}
    file.write_text(json.dumps({"about": "mine", "quick": quick}))
    ours = {"data": "digits", "models": (str(file),)}
    rows = _fig7.FIG7.run(study("fig7", [], **ours))
    assert [row["severity"] for row in rows] == list(range(6))
    said: list[str] = []
    (whole,) = _fig7.FIG9.run(study("fig9", said, **ours))
    assert sum("kept from before" in line for line in said) == 1 + 19
    errors = [row["error"] for row in rows[1:]]
    assert whole["mce"] == pytest.approx(np.mean(errors))
    assert whole["clean_error"] == pytest.approx(rows[0]["error"])
    assert whole["num_rows"] == 20
    assert Path("runs/fig7/error.png").is_file()


def _judged_on(monkeypatch, data: str, generated: bool, folder: Path) -> bool:
    """What is shown as scores: of which images those are that they were made of."""
    function = SimpleNamespace(
        num_strata=1, posterior_parts=lambda: SimpleNamespace(is_random=False)
    )
    prepared = SimpleNamespace(
        data=SimpleNamespace(name=data, test=range(2)),
        recipe=SimpleNamespace(data=SimpleNamespace(data_dir=None)),
    )
    record = {"provenance": {"commit": "c"}, "notes": []}
    row = (prepared, SimpleNamespace(model=function), record)
    images = SimpleNamespace(generated=generated)
    monkeypatch.setattr(_fig7, "trained_row", lambda *args: row)
    monkeypatch.setattr(_fig7, "table_study", lambda study: study)
    monkeypatch.setattr(
        _fig7, "corrupted_images", lambda *args, **options: images, raising=False
    )
    monkeypatch.setattr(
        _fig7,
        "corruption_scores",
        lambda *args, keep, **options: {"fog": keep("fog", lambda: generated)},
    )
    ours = Study(folder, "quick", seed=0, say=lambda text: None, data=data)
    return _fig7._judged_one(ours, "sdebnn", 0)["fog"]


@pytest.mark.parametrize(("seed", "own"), [(None, [0, 2]), (0, [0]), (1, [1])])
def test_a_study_of_one_seed_is_of_that_one(
    seed: int | None, own: list[int], monkeypatch: pytest.MonkeyPatch
):
    """Seen failing: of seeds 0 and 2, seed 1 was 1 and 3."""
    monkeypatch.setattr(_fig7, "load_recipe", lambda *args: ((0, 2), None))
    monkeypatch.setattr(_fig7, "_NUM_SEEDS", {"quick": None})
    monkeypatch.setattr(_fig7, "_judged_one", lambda *args: {"seed": args[2]})
    ours = Study(Path("runs"), "quick", seed=seed, say=print, models=("sdebnn",))
    assert [found["seed"] for found in _fig7._judged(ours)] == own


def test_scores_of_generated_images_are_not_the_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Seen failing: scores of generated images under the published files' note."""
    for generated in (True, False, True):
        found = _judged_on(monkeypatch, "cifar10", generated, tmp_path)
        assert found == generated
        assert _judged_on(monkeypatch, "cifar10", generated, tmp_path) == generated


@pytest.mark.parametrize("data", ["cifar10", "digits"])
def test_scores_of_before_are_kept_where_they_are_of_one_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
):
    """Data without published files. Catches their hour of scores computed again."""
    settings = {"rows": 2, "draws": 1, "trained": {"commit": "c"}}
    piece = {"settings": settings, "value": "of before"}
    path = tmp_path / "pieces" / "corrupted_sdebnn_0_fog.json"
    path.parent.mkdir()
    path.write_text(json.dumps(piece))
    found = _judged_on(monkeypatch, data, True, tmp_path)
    assert found == (True if data == "cifar10" else "of before")


@pytest.mark.slow
def test_gradient_methods(monkeypatch: pytest.MonkeyPatch):
    """Equal losses of exact gradients, and memory by XLA's own account."""
    tiny = {"train_rows": 64, "test_rows": 16, "epochs": 2, "dt": 0.5, "width": "2"}
    tiny |= {"batch_size": 16, "drift_widths": "2", "image_augmentation": False}
    monkeypatch.setattr(_fig5, "_CHANGES", {"quick": tiny})
    monkeypatch.setattr(_fig5, "_SEEDS", {"quick": 1})
    monkeypatch.setattr(_fig5, "_STEPS", {"quick": (2, 16)})
    rows = _fig5.FIG5.run(study("fig5", [], data="digits"))
    trained = {row["gradient"]: row for row in rows if "losses" in row}
    last = {name: row["losses"][-1] for name, row in trained.items()}
    for name in ("checkpointed", "reversible"):
        assert last[name] == pytest.approx(last["backprop"], rel=1e-4)
        assert trained[name]["seconds_a_step"] > 1e-4
    growth = {
        name: row["temporary_megabytes_16"] / row["temporary_megabytes_2"]
        for name, row in trained.items()
    }
    assert growth["reversible"] < 1.1 < growth["backprop"]
    assert trained["backsolve"]["drift_evaluations_backward"] > 0
    (summary,) = [row for row in rows if row["gradient"] == "backsolve"][1:]
    gap = abs(last["backsolve"] - last["backprop"])
    assert summary["largest_difference_from_backprop"] == pytest.approx(gap)


def test_inducing_inputs_are_judged_on_images():
    with pytest.raises(ValueError, match=r"`data` flowers\.csv: give one of digits"):
        _inducing_images.INDUCING_IMAGES.run(study("inducing", []))


def test_what_inducing_inputs_gain():
    """Over seeds, within each kind of w₀. Catches the wrong sign, and starts mixed."""
    scores = {
        ("point", "plain"): (1.0, 3.0),
        ("point", "8 inducing inputs"): (5.0, 7.0),
        ("gaussian", "plain"): (10.0, 10.0),
        ("gaussian", "8 inducing inputs"): (9.0, 7.0),
    }
    rows = [
        {"w0": start, "drift": drift, "seed": seed}
        | dict.fromkeys(_inducing_images._GAINS, score)
        for (start, drift), pair in scores.items()
        for seed, score in enumerate(pair)
    ]
    found = _inducing_images.gains(rows)
    assert [(row["w0"], row["elbo"]) for row in found] == [
        ("point", 4.0),
        ("gaussian", -2.0),
    ]
