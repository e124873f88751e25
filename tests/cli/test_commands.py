"""Every command on tiny runs, against the library called by hand."""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import ornstein as orn
from ornstein.cli import main
from ornstein.cli.commands import _train
from ornstein.nn.conv._forms import FORMS
from ornstein.recipe import Keys, Recipe, prepare
from ornstein.train import ProgressBar, Tuning

TINY = "--epochs 4 --width 2 --drift-widths 2 --num-inducing 0 --dt 0.5 --num-draws 1"
TINY += " --test-draws 3 --data toy/cos"
REQUIRED = ["model", "data", "num_parameters", "train_seconds", "elbo", "kl_path"]
REQUIRED += ["kl_initial", "kl_weight", "epistemic_share", "rmse", "nll", "crps"]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", *TINY.split(), "--out", str(path)]) == 0
    return path


def by_hand(run: Path):
    recipe = Recipe.from_json(json.loads((run / "config.json").read_text())["recipe"])
    prepared = prepare(recipe)
    like = (prepared.model, prepared.likelihood)
    model, likelihood = orn.load_model(run / "checkpoints" / "final.npz", like)
    return prepared, orn.Fit(model, likelihood, None, {})


def test_result_is_what_the_library_says(run: Path):
    """Catches a model, key or likelihood that is not the one that was trained."""
    prepared, fit = by_hand(run)
    result = json.loads((run / "result.json").read_text())
    assert set(REQUIRED) <= set(result)
    key = Keys.of(prepared.recipe).test
    prediction = orn.predict(fit, prepared.data.test.x, key=key, num_draws=3)
    scores = orn.evaluate(prediction, prepared.data.test.y)
    for name, value in scores.items():
        assert result[name] == pytest.approx(value, rel=1e-4), name
    zeroed = orn.Fit(orn.without_drift(fit.model), fit.likelihood, None, {})
    other = orn.predict(zeroed, prepared.data.test.x, key=key, num_draws=3)
    nll = orn.evaluate(other, prepared.data.test.y)["nll"]
    assert result["without_drift"]["nll"] == pytest.approx(nll, rel=1e-4)
    assert result["drift_gain"] == pytest.approx(nll - scores["nll"], abs=1e-4)


def test_result_says_what_was_minimised(run: Path):
    """Catches (seen) a run of the importance-weighted bound that does not say so."""
    result = json.loads((run / "result.json").read_text())
    assert (result["objective"], result["training_draws"]) == ("elbo", 1)
    recipe = Recipe().changed(importance_weighted=True, num_draws=8)
    said = {"objective": "importance-weighted", "training_draws": 8}
    assert _train._objective(recipe) == said
    one = Recipe().changed(model="deterministic", num_draws=4)
    assert _train._objective(one)["training_draws"] == 1


def test_elbo_is_that_of_the_loss(run: Path):
    """Catches a wrong scale of the likelihood or the KL in the reported bound."""
    prepared, fit = by_hand(run)
    result = json.loads((run / "result.json").read_text())
    train, num_data = prepared.data.train, len(prepared.data.train)
    draws_key = jax.random.split(Keys.of(prepared.recipe).bound)[1]
    elbos = []
    for index in range(3):
        draw = fit.model(jax.numpy.asarray(train.x), key=draws_key, index=index)
        fits = fit.likelihood.log_prob(draw.output, train.y)
        elbos.append(float(num_data * np.mean(fits) - draw.kl))
    assert result["elbo"] == pytest.approx(np.mean(elbos), rel=1e-4)
    assert result["elbo_se"] == pytest.approx(np.std(elbos, ddof=1) / 3**0.5, rel=1e-3)
    assert result["kl"] == pytest.approx(result["kl_path"] + result["kl_initial"])


def test_evaluate_repeats_the_result_and_turns_the_dial(run: Path, capsys):
    trained = json.loads((run / "result.json").read_text())
    assert main(["evaluate", str(run), "--ood", "--json"]) == 0
    out, _ = capsys.readouterr()
    same = json.loads(out)  # nothing but JSON on standard output
    assert same["nll"] == trained["nll"]
    assert same["elbo"] == pytest.approx(trained["elbo"])
    assert 0 <= same["ood"]["noise"]["auroc"] <= 1
    assert set(same["provenance"]) == {
        *("command", "commit", "versions", "device", "processor", "cores"),
        *("seed", "seconds"),
    }
    numerics = ["--dt", "0.25", "--dial", "0.5", "0.25"]
    assert main(["evaluate", str(run), *numerics, "--json"]) == 0
    out, _ = capsys.readouterr()
    turned = json.loads(out)
    assert turned["nll"] != trained["nll"]
    coarse, fine = turned["dial"]
    assert fine["nll"] == pytest.approx(turned["nll"])
    assert coarse["num_drift_evaluations"] < fine["num_drift_evaluations"]


def test_predict_writes_target_units(tmp_path: Path, capsys):
    """Catches a mean or a variance left in standardised units."""
    rows = [f"{i / 10},{1000 + 50 * i / 10}" for i in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["a,y", *rows, ""]))
    run, table = tmp_path / "run", tmp_path / "p.csv"
    options = TINY.replace("toy/cos", str(tmp_path / "own.csv"))
    args = ["train", *options.split(), "--model", "sdebnn", "--target", "y"]
    assert main([*args, "--out", str(run)]) == 0
    own = str(tmp_path / "own.csv")
    assert main(["predict", str(run), own, "-o", str(table), "--interval", "0.5"]) == 0
    with table.open(newline="") as file:
        found = list(csv.DictReader(file))
    prepared, fit = by_hand(run)
    x = orn.data.read_inputs(own, prepared.data).x
    key = Keys.of(prepared.recipe).test
    prediction = orn.predict(fit, x, key=key, num_draws=3)
    mean, scale = prepared.data.y_scaling.mean[0], prepared.data.y_scaling.scale[0]
    column = lambda name: np.array([float(row[name]) for row in found])
    lower, upper = prediction.interval(0.5)
    expected = {
        "mean": mean + scale * prediction.mean[:, 0],
        "lower": mean + scale * lower[:, 0],
        "upper": mean + scale * upper[:, 0],
        "epistemic": scale**2 * prediction.epistemic[:, 0],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(column(name), np.asarray(values), rtol=1e-4)


def test_interrupted_run_goes_on_to_the_same_end(run: Path, tmp_path, monkeypatch):
    """Catches a resume that starts over, or with other options."""
    path = tmp_path / "stopped"
    advance = ProgressBar.advance

    def interrupt(self, step, record):
        advance(self, step, record)
        if step >= 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ProgressBar, "advance", interrupt)
        assert main(["train", *TINY.split(), "--out", str(path)]) == 130
    assert not (path / "result.json").exists()
    assert main(["train", "--resume", str(path)]) == 0
    same = [by_hand(p)[1].model for p in (run, path)]
    for ours, theirs in zip(*map(jax.tree.leaves, same), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_result_says_which_epoch_the_weights_are_of(tmp_path: Path):
    """Catches (seen) those of the best epoch that are called the last."""
    path = tmp_path / "stopped"
    options = (
        "--data toy/cos --model deterministic --epochs 60 --width 4 --learning-rate 0.3"
    )
    options += " --validation-fraction 0.25 --patience 1 --test-draws 1"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    lines = (path / "metrics.jsonl").read_text().splitlines()
    nll = [json.loads(line)["val_nll"] for line in lines]
    assert len(nll) < 60
    result = json.loads((path / "result.json").read_text())
    assert result["weights"] == f"best epoch: {len(nll) - 1}"
    assert result["num_epochs"] == len(nll)


def test_the_table_of_trials_survives_a_resume(tmp_path: Path, monkeypatch):
    """Catches (seen) a result of a run that was gone on with, or judged again, without
    the trials that chose its recipe.
    """
    table = [{"learning_rate": 0.1, "val_nll": 0.5}, {"val_nll": math.inf}]

    def found(prepared, names, **how):
        return prepared.recipe, Tuning(table, {}, None)  # type: ignore[arg-type]

    def interrupt(self, step, record):
        raise KeyboardInterrupt

    monkeypatch.setattr("ornstein.cli.commands._train.tune_recipe", found)
    path = tmp_path / "tuned"
    options = "--data toy/cos --model deterministic --epochs 2 --width 4 --tune lr"
    with monkeypatch.context() as patch:
        patch.setattr(ProgressBar, "advance", interrupt)
        arguments = [*options.split(), "--test-draws", "1", "--out", str(path)]
        assert main(["train", *arguments]) == 130
    for _ in range(2):  # gone on with, and judged again
        assert main(["train", "--resume", str(path)]) == 0
        result = json.loads((path / "result.json").read_text())
        assert result["tuning"] == [table[0], {"val_nll": None}]
    (path / "tuning.json").write_text("[")
    assert main(["train", "--resume", str(path)]) == 2


@pytest.mark.slow
def test_tune_trains_the_best_setting(tmp_path: Path):
    path = tmp_path / "tuned"
    options = f"{TINY} --tune lr --tune-epochs 1 --validation-fraction 0.25"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    table = json.loads((path / "result.json").read_text())["tuning"]
    recipe = json.loads((path / "config.json").read_text())["recipe"]
    assert len(table) == 3
    best = min(table, key=lambda row: row["val_nll"])
    assert recipe["training"]["learning_rate"] == best["learning_rate"]


@pytest.mark.slow
def test_images_leave_a_diagram_and_galleries(tmp_path: Path):
    path = tmp_path / "digits"
    options = "--data digits --epochs 1 --width 2 --drift-widths 2 --dt 0.5"
    options += " --test-draws 2 --batch-size 700"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    figures = {figure.stem for figure in (path / "figures").iterdir()}
    names = {"training", "reliability", "most_certain", "least_certain"}
    assert figures == names
    result = json.loads((path / "result.json").read_text())
    assert {"accuracy", "ece", "brier", "entropy"} <= set(result)


def test_info_as_json(capsys):
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["data"]["digits"]["where"] == "built in"
    assert "inducing" in found["experiments"]


def test_info_of_a_run_names_the_forms_of_its_convolutions(tmp_path: Path, capsys):
    """Catches a face that is mixed up with another, and a run without images."""
    folder = str(tmp_path / "run")
    train = ["train", "--data", "digits", "--model", "sdebnn", "--out", folder]
    assert main([*train, "--width", "4", "--epochs", "1", "--test-draws", "2"]) == 0
    capsys.readouterr()
    assert main(["info", folder, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["convolutions"]
    assert rows
    assert all(row["images"].count("×") == 2 for row in rows)
    for row in rows:
        faces = "convolution", "input gradient"
        if "transposed" in row["kernel"]:
            faces = faces[::-1]
        for face, known in zip(faces, ("conv", "input gradient"), strict=True):
            assert row[face].split(",")[0] in FORMS[known]
        assert row["kernel gradient"] in FORMS["kernel gradient"]
    assert any("transposed" in row["kernel"] for row in rows)
    assert main(["info", folder, "--recipes"]) == 2


@pytest.mark.slow
def test_recipes_are_listed(capsys):
    assert main(["info", "--recipes", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["recipes"]
    num_models = {"cifar10": 12, "mnist": 12, "mocap": 2}
    assert len(rows) == 3 * sum(num_models.values())
    found = {(row["data"], row["model"], row["scale"]): row for row in rows}
    assert found["mnist", "sdebnn", "quick"]["num_parameters"] == 160_816
    assert found["mnist", "sdebnn", "quick"]["seeds"] == 3


def test_as_people_start_it(tmp_path: Path):
    """In its own process: the script, the exit code, and no traceback."""
    program = [sys.executable, "-c", "import sys; from ornstein.cli import main; "]
    program[-1] += "sys.exit(main())"
    arguments = ["evaluate", "nowhere"]
    done = subprocess.run(
        [*program, *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("ornstein: nowhere is not a run")
    assert done.stderr.count("\n") == 1
