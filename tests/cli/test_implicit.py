"""Implicit networks from the command line, against the library called by hand."""

import csv
import json
from pathlib import Path

import jax
import numpy as np
import pytest

from ornstein.cli import main
from ornstein.evaluation._evaluate import component_diversity, evaluate
from ornstein.network import initial_state
from ornstein.prediction import FittedModel, predict
from ornstein.recipe import Keys, Prepared, Recipe, prepare
from ornstein.train import load_model, recompute_statistics, save_model

TINY = "--model implicit --data digits --num-components 2 --num-draws 1 --test-draws 4"
TINY += " --train-rows 300 --test-rows 60 --batch-size 100 --epochs 2"


def train(path: Path, options: str) -> dict:
    assert main(["train", *TINY.split(), *options.split(), "--out", str(path)]) == 0
    return json.loads((path / "result.json").read_text())


def by_hand(run: Path) -> tuple[Prepared, FittedModel]:
    recipe = Recipe.from_json(json.loads((run / "config.json").read_text())["recipe"])
    prepared = prepare(recipe)
    like = (prepared.model, prepared.likelihood, initial_state(prepared.model))
    return prepared, FittedModel(*load_model(run / "checkpoints" / "final.npz", like))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    train(path, "--width 8 --mixture-kl monte-carlo")
    return path


def test_result_is_what_the_library_says(run: Path):
    prepared, fit = by_hand(run)
    result = json.loads((run / "result.json").read_text())
    test, key = prepared.data.test, Keys.of(prepared.recipe).test
    assert len(test) == 60
    prediction = predict(fit, test.x, key=key, num_draws=4)
    scores = evaluate(prediction, test.y) | component_diversity(prediction, 2)
    for name, value in scores.items():
        assert result[name] == pytest.approx(value, rel=1e-4), name
    assert (result["model"], result["network"]) == ("implicit", "mlp")
    assert result["kl"] == result["kl_mixture"] != result["kl_nodes"]


def test_evaluate_sweeps_noise_and_meets_other_data(run: Path, capsys):
    """The run's own test rows are other data that nothing can tell apart."""
    trained = json.loads((run / "result.json").read_text())
    capsys.readouterr()
    options = ["--noise-sweep", "--ood-data", "digits", "--json"]
    assert main(["evaluate", str(run), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nll"] == trained["nll"]
    assert found["kl_mixture"] == pytest.approx(trained["kl_mixture"])
    assert 0.4 < found["ood"]["digits"]["auroc"] < 0.6
    rows = found["noise_sweep"]["rows"]
    assert len(rows) == 22
    assert set(found["noise_sweep"]["entropy_correlation"]) == {
        "gaussian",
        "salt-and-pepper",
    }
    # No noise, other draws: about the run's own score.
    assert rows[0]["nll"] == pytest.approx(trained["nll"], abs=0.2)
    assert main(["evaluate", str(run)]) == 0  # and without them, as before


def test_a_file_of_an_older_version_still_loads(run: Path, tmp_path: Path, capsys):
    """Without a state, as all were before there was any."""
    prepared, fit = by_hand(run)
    final = run / "checkpoints" / "final.npz"
    kept = final.read_bytes()
    save_model(final, (fit.model, fit.likelihood))
    capsys.readouterr()
    assert main(["evaluate", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_draws"] == 4
    final.write_bytes(kept)
    inputs, table = tmp_path / "x.npz", tmp_path / "p.csv"
    np.savez(inputs, x=prepared.data.x_scaling.undo(prepared.data.test.x[:3]))
    assert main(["predict", str(run), str(inputs), "-o", str(table)]) == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    key = Keys.of(prepared.recipe).test
    prediction = predict(fit, prepared.data.test.x[:3], key=key, num_draws=4)
    for row, probs in zip(rows, np.asarray(prediction.probs), strict=True):
        found = [float(row[f"p({digit})"]) for digit in range(10)]
        np.testing.assert_allclose(found, probs, rtol=1e-3, atol=1e-6)


def test_batch_statistics_are_those_of_the_averaged_weights(tmp_path: Path, capsys):
    """Kept, read and gone on with. Catches statistics of the last weights beside a
    running mean of them, and a file without any.
    """
    path = tmp_path / "run"
    options = "--network resnet-8 --network-width 0.25 --ema 0.5 --epochs 1"
    result = train(path, options)
    prepared, fit = by_hand(path)
    expected = recompute_statistics(
        fit.model,
        prepared.data.train.x,
        key=Keys.of(prepared.recipe).statistics,
        batch_size=100,
    )
    found, fresh = (jax.tree.leaves(s) for s in (fit.state, initial_state(fit.model)))
    for ours, theirs in zip(found, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert any(np.any(a != b) for a, b in zip(found, fresh, strict=True))
    capsys.readouterr()
    assert main(["evaluate", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nll"] == result["nll"]
    (path / "checkpoints" / "final.npz").unlink()
    assert main(["train", "--resume", str(path)]) == 0
    again = json.loads((path / "result.json").read_text())
    assert again["nll"] == result["nll"]


@pytest.mark.slow
def test_tune_holds_rows_out_and_then_trains_on_all(tmp_path: Path):
    path = tmp_path / "tuned"
    result = train(path, "--width 8 --tune components,noise-lr --tune-epochs 1")
    table = result["tuning"]
    assert len(table) == 9
    best = min(table, key=lambda row: row["val_nll"])
    prepared, fit = by_hand(path)
    assert len(prepared.data.train) == 300
    assert prepared.recipe.training.noise_learning_rate == best["noise_learning_rate"]
    assert fit.model.num_strata == best["num_components"]
    assert prepared.recipe.training.test_draws == 2 * best["num_components"]


def test_help_shows_the_network_of_the_data(capsys):
    """Catches another network's options, which would be refused."""
    with pytest.raises(SystemExit):
        main("train --help --data mnist --model implicit".split())
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: lenet)" in text
    with pytest.raises(SystemExit):
        main("train --help --data mnist --model implicit --network vgg16".split())
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: vgg16)" in text
