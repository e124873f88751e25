"""`ornstein train --stream`, as it is typed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ornstein.cli import main
from ornstein.recipe import default_model, preset_recipe, unread_options

QUICK = ["--model", "mean-field", "--width", "3", "--test-draws", "3"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of Parquet, a category among their columns."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(0)
    for number in range(3):
        a, city = rng.normal(size=100), rng.choice(["Graz", "Wien"], 100)
        table = pd.DataFrame({"a": a, "city": city, "y": a + (city == "Graz")})
        name = f"part-0000{number}-of-00003.parquet"
        table.to_parquet(folder / name, row_group_size=30)
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of twenty, dark and bright, no two of one size."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    rng = np.random.default_rng(0)
    for i in range(40):
        path = folder / ("oak" if i % 2 else "pine") / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 128, (12 + i, 50 - i, 3)) + 120 * (i % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    return folder


def typed(*args: object) -> int:
    return main([str(arg) for arg in args])


@pytest.fixture(scope="module")
def run(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    how = ["--shuffle-buffer", 50, "--validation-fraction", 0.1, "--steps", 8]
    train = ["train", "--data", shards, "--target", "y", "--stream", *QUICK]
    assert typed(*train, *how, "--out", out, "--json") == 0
    return out


def test_a_run_is_judged_and_predicts_as_any_other(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """A table in memory is encoded as the rows on disk were, gaps and all."""
    result = json.loads((run / "result.json").read_text())
    assert any("216 training rows stay on disk" in note for note in result["notes"])
    assert typed("evaluate", run, "--json") == 0
    assert json.loads(capsys.readouterr().out)["nll"] == pytest.approx(result["nll"])
    new = pd.DataFrame({"city": ["Wien", "Bern", None], "a": [0.5, None, 1.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    assert typed("predict", run, tmp_path / "new.csv", "-o", out) == 0
    assert np.isfinite(pd.read_csv(out)["mean"]).all()


def test_a_finished_run_resumes_where_its_shards_are_as_they_were(
    run: Path, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    assert typed("train", "--resume", run) == 0
    capsys.readouterr()
    file = shards / "part-00001-of-00003.parquet"
    kept = shutil.copy(file, tmp_path / "kept")
    try:
        table = pd.read_parquet(file)
        table.assign(a=table["a"] + 1).to_parquet(file)
        assert typed("train", "--resume", run) == 2
        assert "has changed since this run read it" in capsys.readouterr().err
        file.unlink()
        assert typed("train", "--resume", run) == 2
        said = capsys.readouterr().err
        assert "part-00001-of-00003.parquet is missing: copy them there" in said
    finally:
        shutil.copy(kept, file)


def test_images_on_disk_are_judged_and_predicted_as_others_are(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """With their file names, and with corruptions, which look at training images."""
    out, named = tmp_path / "run", tmp_path / "named.csv"
    how = ["--image-size", 8, "--image-fit", "pad", "--shuffle-buffer", 7]
    network = ["--network", "mlp", "--batch-size", 8, "--steps", 8]
    train = ["train", "--data", photos, "--stream", *QUICK, *network, *how]
    assert typed(*train, "--image-augmentation", "--out", out, "--json") == 0
    result = json.loads((out / "result.json").read_text())
    assert any("32 training images stay on disk" in note for note in result["notes"])
    capsys.readouterr()
    assert (
        typed("evaluate", out, "--corruptions", "--corruption-rows", 2, "--json") == 0
    )
    assert json.loads(capsys.readouterr().out)["nll"] == pytest.approx(result["nll"])
    assert typed("predict", out, photos / "oak", "-o", named) == 0
    found = pd.read_csv(named)
    assert set(found["file"]) == {f"{i}.jpg" for i in range(1, 40, 2)}
    assert np.isfinite(found["p(oak)"]).all()


def test_images_on_disk_have_the_preset_of_images_in_memory(photos: Path, shards: Path):
    """Catches the family and the network of tables; and options that are not shown."""
    assert default_model(str(photos), stream=True) == default_model(str(photos))
    assert default_model(str(shards), stream=True) == "ensemble"
    recipe = preset_recipe(str(photos))
    of_images = {"image_size", "image_fit", "image_augmentation", "shuffle_buffer"}
    on_disk = recipe.changed(stream=True)
    assert not unread_options(on_disk) & of_images
    assert {"target", "features", "test"} <= unread_options(on_disk)
    of_rows = preset_recipe(str(shards)).changed(stream=True)
    assert unread_options(of_rows) & of_images == of_images - {"shuffle_buffer"}


REFUSED = {
    "chains": (["--stream", "--model", "chains"], "name another --model, such as ens"),
    "laplace": (["--stream", "--model", "laplace"], "--stream leaves them on disk"),
    "rows": (["--stream", *QUICK, "--train-rows", "9"], "leave --stream out"),
    "tune": (["--stream", *QUICK, "--tune", "lr"], "with --validation-fraction"),
    "buffer": (["--stream", *QUICK, "--shuffle-buffer", "0"], "at least 1 row, got 0"),
    "no stream": (QUICK, "is a folder of .parquet files: --stream reads such"),
    "buffer alone": ([*QUICK, "--shuffle-buffer", "9"], "give --stream, or leave it"),
    "image size": (["--stream", *QUICK, "--image-size", "9"], "--image-size is for"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_cannot_be_are_refused(
    name: str, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """In one sentence, before a folder is made."""
    options, said = REFUSED[name]
    out = tmp_path / "run"
    train = ["train", "--data", shards, "--target", "y", "--out", out, *options]
    assert typed(*train) == 2
    error = capsys.readouterr().err
    assert said in error.splitlines()[-1]
    assert error.count("ornstein: ") == 1
    assert not out.exists()


@pytest.mark.parametrize("stream", [(), ("--stream", "--model", "map")])
def test_a_folder_of_other_tables(stream, tmp_path: Path, capsys):
    """Catches (seen) a folder of images in what is said of one that has .csv files."""
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(2):
        pd.DataFrame({"a": [1, 2], "y": [3, 4]}).to_csv(folder / f"{number}.csv")
    args = ["train", "--data", folder, "--target", "y", "--out", tmp_path / "run"]
    assert typed(*args, *stream) == 2
    error = capsys.readouterr().err
    assert "rows has .csv files: --stream" in error or (
        "rows is a folder of .csv files: give one .csv or .parquet file" in error
    )
    assert "target" not in error
    assert not (tmp_path / "run").exists()


OF_IMAGES = {
    "target": (["--target", "y"], "has its own target: leave --target out"),
    "no size": ([], "bring all images to one size, for instance by --image-size"),
    "buffer": (["--shuffle-buffer", "0"], "at least 1 row, got 0"),
    "size": (["--image-size", "0"], "--image-size must be from 1 to 4096 pixels"),
    "chains": (["--image-size", "8", "--model", "chains"], "name another --model"),
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_options_that_images_cannot_have_are_refused(
    name: str, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    options, said = OF_IMAGES[name]
    out = tmp_path / "run"
    train = ["train", "--data", photos, "--stream", *QUICK, "--network", "mlp"]
    assert typed(*train, "--out", out, *options) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not out.exists()


CHAINS = ["--width", "3", "--num-warmup", "8", "--num-samples", "6"]
CHAINS += ["--num-chains", "2", "--thin", "2", "--batch-size", "20"]


def test_chains_of_batches_are_judged_and_predict_as_any_other(
    shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """By a kernel that sees batches, where none is named; resumed with nothing left."""
    out = tmp_path / "run"
    sample = ["sample", "--data", shards, "--target", "y", "--stream"]
    assert typed(*sample, *CHAINS, "--out", out, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["kernel"] == "sghmc"
    assert any("240 training rows stay on disk" in note for note in result["notes"])
    assert typed("evaluate", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["nll"] == pytest.approx(result["nll"])
    new = pd.DataFrame({"city": ["Wien", None], "a": [0.5, 1.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    assert typed("predict", out, tmp_path / "new.csv", "-o", tmp_path / "out.csv") == 0
    assert np.isfinite(pd.read_csv(tmp_path / "out.csv")["mean"]).all()
    capsys.readouterr()
    assert typed("sample", "--resume", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["nll"] == result["nll"]


def test_chains_start_at_members_that_saw_the_same_rows(
    shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """Catches (seen) rows on disk that are compared by their shapes alone."""
    members = tmp_path / "members"
    train = ["train", "--data", shards, "--target", "y", "--stream", "--width", "3"]
    train += ["--model", "ensemble", "--num-members", "2", "--steps", "2"]
    assert typed(*train, "--out", members) == 0
    sample = ["sample", "--data", shards, "--target", "y", "--stream", *CHAINS]
    sample += ["--activation", "relu", "--start-from", members]
    assert typed(*sample, "--out", tmp_path / "run") == 0
    capsys.readouterr()
    assert typed(*sample, "--seed", 1, "--out", tmp_path / "other") == 2
    assert "was trained on other rows" in capsys.readouterr().err


NOT_SAMPLED = {
    "hmc": (["--kernel", "hmc"], "take --kernel adaptive-sgld, psgld, sghmc, sgld or"),
    "constant": (["--kernel", "constant-sgd"], "batches that are drawn with replace"),
    "members": (["--start-from", "members"], "--stream --model ensemble`, map or det"),
}


@pytest.mark.parametrize("name", NOT_SAMPLED)
def test_chains_that_need_other_rows_are_refused(
    name: str, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    options, said = NOT_SAMPLED[name]
    out = tmp_path / "run"
    sample = ["sample", "--data", shards, "--target", "y", "--stream", *options]
    assert typed(*sample, "--out", out) == 2
    assert said in " ".join(capsys.readouterr().err.splitlines()[-1:])
    assert not out.exists()
