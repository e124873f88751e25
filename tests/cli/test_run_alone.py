"""A run folder is all that predictions need."""

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import ornstein as orn
from ornstein.cli import main
from ornstein.data import DataNotFoundError
from ornstein.recipe import check_data_there, keep_schema, read_recipe, save_final
from ornstein.train import CheckpointError, RunFolder

TINY = ["--width", "4", "--epochs", "2", "--test-draws", "3"]
CITIES = ["Wien", "Graz", "Steyr"]


def write(path: Path, rows: range, *, target: str = "grade") -> Path:
    names = {"grade": lambda i: "ABC"[i % 3], "price": lambda i: f"{10 * i},5"}
    lines = [f"p{i};{i},5;{CITIES[i % 3]};{names[target](i)}" for i in rows]
    path.write_text("\n".join([f"id;area;city;{target}", *lines, ""]))
    return path


def train(folder: Path, *options: str, target: str = "grade") -> Path:
    data = write(folder / "own.csv", range(40), target=target)
    args = ["--data", str(data), "--target", target, "--id-column", "id", *TINY]
    code = main(["train", *args, *options, "--out", str(folder / "run")])
    assert code == 0
    return folder / "run"


def predicted(run: Path, inputs: Path, *options: str) -> str:
    out = inputs.with_suffix(".out.csv")
    args = [str(run), str(inputs), "-o", str(out), "--overwrite", *options]
    assert main(["predict", *args]) == 0
    return out.read_text()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    return train(folder, "--model", "mean-field")


@pytest.mark.parametrize("model", ["mean-field", "chains"])
def test_a_run_elsewhere_predicts_the_same_bits(model, tmp_path):
    """Its folder moved, its CSV gone. Catches a training file that is read again."""
    options = ["--model", model]
    if model == "chains":  # as `ornstein sample` makes them
        data = write(tmp_path / "own.csv", range(40))
        args = ["--data", str(data), "--target", "grade", "--width", "3"]
        args += ["--num-samples", "4", "--num-warmup", "4", "--num-chains", "1"]
        args += ["--num-integration-steps", "2"]
        assert main(["sample", *args, "--out", str(tmp_path / "run")]) in (0, 1)
        run = tmp_path / "run"
    else:
        run = train(tmp_path, *options)
    inputs = write(tmp_path / "new.csv", range(50, 60))
    before = predicted(run, inputs)
    (tmp_path / "own.csv").unlink()
    elsewhere = tmp_path / "other" / "place"
    elsewhere.parent.mkdir()
    shutil.move(run, elsewhere)
    assert predicted(elsewhere, inputs) == before


def test_a_changed_file_is_said_and_changes_nothing(run, tmp_path, capsys):
    """The issue's own: other rows, and a class renamed."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    own = Path(orn.load_run(copy).prepared.data.source.paths[0])
    inputs = write(tmp_path / "new.csv", range(50, 60))
    before, text = predicted(copy, inputs), own.read_text()
    try:
        own.write_text(text.replace(";A\n", ";Z\n"))
        assert predicted(copy, inputs) == before
        capsys.readouterr()
        assert main(["evaluate", str(copy)]) == 2
        assert "has changed since this run read it (40 rows" in capsys.readouterr().err
        assert main(["train", "--resume", str(copy)]) == 2
        assert "has changed since" in capsys.readouterr().err
        write(own, range(20))
        assert predicted(copy, inputs) == before
        own.unlink()
        assert main(["evaluate", str(copy)]) == 2
        assert "is not there: put it back" in capsys.readouterr().err
        assert main(["train", "--resume", str(copy)]) == 2
        assert "is not there: put it back" in capsys.readouterr().err
    finally:
        own.write_text(text)
    assert main(["evaluate", str(copy)]) == 0


def test_data_are_looked_for_where_the_recipe_says(run, tmp_path, monkeypatch):
    """Catches (seen) data that another user's `~` has, refused as not there."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    own = orn.load_run(copy).prepared.data.source.paths[0]
    schema = copy / "data.json"
    schema.write_text(schema.read_text().replace(own, str(tmp_path / "gone.csv")))
    folder = RunFolder(copy)
    recipe = read_recipe(folder)
    moved = dataclasses.replace(
        recipe, data=dataclasses.replace(recipe.data, data="~/own.csv")
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DataNotFoundError, match="gone.csv, from which this run"):
        check_data_there(folder, moved)
    (tmp_path / "own.csv").touch()
    check_data_there(folder, moved)


def test_ids_and_inputs_beside_predictions(run, tmp_path):
    inputs = write(tmp_path / "new.csv", range(50, 53))
    rows = list(csv.DictReader(predicted(run, inputs).splitlines()))
    assert [row["id"] for row in rows] == ["p50", "p51", "p52"]
    assert list(rows[0])[:3] == ["id", "prediction", "p(A)"]
    text = predicted(run, inputs, "--with-inputs")
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0])[:5] == ["id", "area", "city", "grade", "prediction"]
    assert [row["city"] for row in rows] == ["Steyr", "Wien", "Graz"]


def test_load_run_predicts_tables_and_arrays(tmp_path):
    """As the shell does, in target units. Catches standard units, and lost indices."""
    run = train(tmp_path, "--model", "mean-field", target="price")
    inputs = write(tmp_path / "new.csv", range(50, 60), target="price")
    trained = orn.load_run(run)
    assert trained.target_names == ("price",)
    assert trained.task == "regression"
    frame = pd.read_csv(inputs, sep=";", decimal=",", index_col=None)
    frame.index = pd.Index(range(100, 110))
    found = trained.predict(frame)
    shell = pd.read_csv(tmp_path / "new.out.csv") if predicted(run, inputs) else None
    table = found.to_frame()
    assert list(table.index) == list(range(100, 110))
    assert list(table["id"]) == list(shell["id"])
    for name in ("mean", "lower", "upper", "epistemic"):
        np.testing.assert_allclose(table[name], shell[name], rtol=1e-6)
    np.testing.assert_allclose(found.mean[:, 0], shell["mean"], rtol=1e-6)
    variance = shell["epistemic"] + shell["aleatoric"]
    np.testing.assert_allclose(found.std[:, 0] ** 2, variance, rtol=1e-4)
    np.testing.assert_allclose(found.interval()[0][:, 0], shell["lower"], rtol=1e-6)
    by_path = trained.predict(inputs)
    np.testing.assert_array_equal(by_path.mean, found.mean)
    columns = frame[["area", "city"]].to_numpy()  # without names, in their order
    np.testing.assert_array_equal(trained.predict(columns).mean, found.mean)
    with pytest.raises(ValueError, match=r"shape \(3,\), .* 2 columns area, city"):
        trained.predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match="has no column 'city'"):
        trained.predict(frame.drop(columns="city"))


def test_load_run_of_classes(run):
    trained = orn.load_run(run)
    assert trained.class_names == ("A", "B", "C")
    found = trained.predict(pd.DataFrame({"area": [1.0, 2.0], "city": ["Wien", "Rom"]}))
    assert found.probs.shape == (2, 3)
    assert set(found.classes) <= set("ABC")
    assert "'city' has 'Rom'" in found.notes[0]


def test_classes_have_no_interval(run, tmp_path, capsys):
    """Catches (seen) an option that is passed over without a word."""
    inputs, out = write(tmp_path / "new.csv", range(50, 53)), tmp_path / "p.csv"
    assert main(["predict", str(run), str(inputs), f"-o{out}", "--interval=0.5"]) == 2
    said = capsys.readouterr().err
    assert "--interval is of numbers, and the run learned classes from" in said
    assert not out.exists()


def test_images_are_named(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for i in range(24):
        path = tmp_path / "photos" / f"class{i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8), np.uint8)).save(path)
    args = ["--data", str(tmp_path / "photos"), "--model", "deterministic", *TINY]
    run = tmp_path / "run"
    assert main(["train", *args, "--out", str(run)]) == 0
    (tmp_path / "photos").rename(tmp_path / "moved")
    out = tmp_path / "p.csv"
    assert main(["predict", str(run), str(tmp_path / "moved"), "-o", str(out)]) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert rows[0]["file"] == "class0/0.png"
    assert len(rows) == 24
    capsys.readouterr()
    args = [str(run), str(tmp_path / "moved"), "-o", str(out), "--overwrite"]
    assert main(["predict", *args, "--with-inputs"]) == 2
    assert "--with-inputs repeats the columns of a table" in capsys.readouterr().err


def test_a_stem_that_was_whitened(tmp_path):
    """Catches (seen) a run that whitens the patches of images that are not there."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (24, 8, 8, 3)).astype(np.uint8)
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(24) % 2)
    np.savez(tmp_path / "new.npz", x=x[:5])
    args = ["--data", str(tmp_path / "own.npz"), "--model", "map", *TINY]
    args += ["--network", "sdebnn", "--stem", "patches", "--blocks", "1"]
    args += ["--path-modes", "2", "--solver", "euler", "--dt", "0.5"]
    run = tmp_path / "run"
    assert main(["train", *args, "--out", str(run)]) == 0
    trained = json.loads((run / "result.json").read_text())
    (tmp_path / "own.npz").rename(tmp_path / "moved.npz")
    assert len(predicted(run, tmp_path / "new.npz").splitlines()) == 6
    (tmp_path / "moved.npz").rename(tmp_path / "own.npz")
    assert main(["evaluate", str(run)]) == 0
    again = json.loads((run / "evaluation.json").read_text())
    assert again["nll"] == trained["nll"]


def test_a_schema_of_another_run_is_refused(run, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    schema = copy / "data.json"
    schema.write_text(schema.read_text().replace('"A"', '"Z"'))
    with pytest.raises(CheckpointError, match=r"or data.json is another's"):
        orn.load_run(copy)
    schema.write_text("{")
    inputs = write(tmp_path / "new.csv", range(50, 53))
    assert main(["predict", str(copy), str(inputs), "-o", str(tmp_path / "p.csv")]) != 0
    assert "data.json" in capsys.readouterr().err


def test_runs_of_before_read_their_data(run, tmp_path):
    """Without a schema, of versions that kept none; and going on writes one."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    inputs = write(tmp_path / "new.csv", range(50, 60))
    before = predicted(copy, inputs)
    fit = orn.load_run(copy).fit
    (copy / "data.json").unlink()
    with pytest.raises(CheckpointError, match=r"or data.json is another's"):
        orn.load_run(copy)  # one that had a schema
    save_final(RunFolder.open(copy), fit)
    trained = orn.load_run(copy)
    assert trained.has_rows
    assert trained.with_rows() is trained
    assert predicted(copy, inputs) == before
    keep_schema(RunFolder.open(copy), trained.prepared.data)
    known = json.loads((copy / "data.json").read_text())
    assert known == json.loads((run / "data.json").read_text())
