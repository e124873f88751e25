"""Runs of the families around a plain network, against the library called by hand."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

from ornstein.cli import main
from ornstein.evaluation._evaluate import evaluate
from ornstein.functions import prune, with_solver
from ornstein.prediction import FittedModel, predict
from ornstein.prior import GaussianPrior
from ornstein.recipe import Keys, Recipe, load_run, prepare
from ornstein.sde import Fixed
from ornstein.train import Fit, load_model, load_sparse

TINY = "--data toy/cos --width 4 --epochs 3 --test-draws 4"


def train(path: Path, options: str) -> dict:
    assert main(["train", *TINY.split(), *options.split(), "--out", str(path)]) == 0
    return json.loads((path / "result.json").read_text())


def by_hand(run: Path):
    recipe = Recipe.from_json(json.loads((run / "config.json").read_text())["recipe"])
    prepared = prepare(recipe)
    like = (prepared.model, prepared.likelihood)
    model, likelihood = load_model(run / "checkpoints" / "final.npz", like)
    return prepared, Fit(model, likelihood, None, {})


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "mean-field"
    train(path, "--model mean-field")
    return path


def test_mean_field_result_is_what_the_library_says(run: Path, capsys):
    """Also of `evaluate`: catches a model that is not the one that was trained."""
    prepared, fit = by_hand(run)
    result = json.loads((run / "result.json").read_text())
    assert result["model"] == "mean-field"
    assert result["kl"] == pytest.approx(result["kl_weights"])
    assert result["kl"] == pytest.approx(float(fit.model.family.kl(fit.model.prior)))
    assert result["elbo"] < -result["kl"] + 1e3
    key = Keys.of(prepared.recipe).test
    prediction = predict(fit, prepared.data.test.x, key=key, num_draws=4)
    scores = evaluate(prediction, prepared.data.test.y)
    for name, value in scores.items():
        assert result[name] == pytest.approx(value, rel=1e-4), name
    assert main(["evaluate", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nll"] == result["nll"]


def test_normals_over_paths_turn_the_dial(tmp_path: Path, capsys):
    """Whitened weights as trained, at another step. Catches the run's own step."""
    path = tmp_path / "run"
    options = "--data toy/cos --width 4 --steps 3 --test-draws 4 --network sdebnn"
    options += " --model mean-field --path-modes 2 --dt 0.25"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    prepared, fit = by_hand(path)
    result = json.loads((path / "result.json").read_text())
    assert (result["network"], result["num_epochs"]) == ("sdebnn", 3)
    assert result["kl"] == pytest.approx(float(fit.model.family.kl(GaussianPrior(1.0))))
    turned = with_solver(fit.model, stepsize=Fixed(0.125))
    key, test = Keys.of(prepared.recipe).test, prepared.data.test
    finer = FittedModel(turned, fit.likelihood)
    wanted = evaluate(predict(finer, test.x, key=key, num_draws=4), test.y)
    assert abs(wanted["nll"] / result["nll"] - 1) > 1e-5
    capsys.readouterr()
    assert main(["evaluate", str(path), "--dt", "0.125", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nll"] == pytest.approx(wanted["nll"], rel=1e-6)
    inputs, output = tmp_path / "x.npz", tmp_path / "y.csv"
    np.savez(inputs, x=np.zeros((2, 1), np.float32))
    assert main(["predict", str(path), str(inputs), "-o", str(output)]) == 0


@pytest.mark.parametrize("model", ["mean-field", "deterministic"])
def test_a_path_of_increments_is_trained_and_judged(model: str, tmp_path: Path):
    """The default coordinates. Catches (seen) a diagnosis of half their steps, which
    they do not have, and a run that is lost with it."""
    path = tmp_path / "run"
    options = f"--data toy/cos --width 4 --steps 3 --network sdebnn --model {model}"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    findings = json.loads((path / "result.json").read_text())["diagnosis"]
    assert "coarse-step" not in {finding["name"] for finding in findings}
    assert main(["evaluate", str(path)]) == 0


def test_what_was_trained_is_kept_before_it_is_judged(tmp_path: Path, monkeypatch):
    """Catches (seen) a run that a failing diagnosis loses."""
    path = tmp_path / "run"

    def fails(*given, **named):
        raise ValueError("out of luck")

    monkeypatch.setattr("ornstein.cli._diagnosis.diagnose", fails)
    options = "--data toy/cos --width 4 --steps 3 --model mean-field"
    assert main(["train", *options.split(), "--out", str(path)]) != 0
    assert (path / "checkpoints" / "final.npz").is_file()
    monkeypatch.undo()
    assert main(["evaluate", str(path)]) == 0


def test_prune_judges_what_it_writes(run: Path, capsys):
    """Catches a curve of other draws, and a file of another fraction."""
    assert main(["prune", str(run), "--fraction", "0.6", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    fractions = [row["fraction"] for row in result["curve"]]
    assert fractions == [0, 0.5, 0.6, 0.75, 0.9, 0.95, 0.98]
    prepared, fit = by_hand(run)
    test, key = prepared.data.test, Keys.of(prepared.recipe).test
    sparse = load_sparse(run / "sparse.npz", fit.model)
    expected = prune(fit.model, 0.6)
    pairs = zip(jax.tree.leaves(sparse), jax.tree.leaves(expected), strict=True)
    for found, leaf in pairs:
        np.testing.assert_array_equal(found, leaf)
    assert result["num_weights"] == expected.num_weights
    left = FittedModel(sparse, fit.likelihood)
    scores = evaluate(predict(left, test.x, key=key, num_draws=4), test.y)
    for name in ("rmse", "nll", "crps"):
        assert result[name] == pytest.approx(scores[name], rel=1e-4)
        assert result["curve"][2][name] == result[name]
    trained = json.loads((run / "result.json").read_text())
    assert result["curve"][0]["nll"] == pytest.approx(trained["nll"], rel=1e-4)
    assert result["sparse_bytes"] == (run / "sparse.npz").stat().st_size


POSTHOC = {
    "laplace": "--curvature last-layer --no-linearised",
    "swag": "--swag-epochs 3 --swag-rate 0.001",
}


@pytest.mark.parametrize("model", POSTHOC)
def test_what_is_made_of_a_trained_network(model: str, tmp_path: Path, capsys):
    """Catches a file that holds the network alone, and twins that are no network; and
    (seen) a bound that doesn't say that its prior was fitted."""
    path = tmp_path / "run"
    result = train(path, f"--model {model} {POSTHOC[model]}")
    assert result["epistemic_share"] > 0
    assert result["num_parameters"] == 13  # of the network
    assert (result["elbo"] is None) == (model == "swag")
    fitted = any("point estimate" in note for note in result["notes"])
    assert fitted == (model == "laplace")
    assert main(["train", "--resume", str(path)]) == 0
    capsys.readouterr()
    args = ["evaluate", str(path), "--audit", "--json"]
    assert main(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rmse"] == pytest.approx(result["rmse"], rel=1e-6)
    rows = json.loads((path / "audit.json").read_text())["relatives"]
    twin = next(row for row in rows if row["name"] == "trained without noise")
    assert twin["gain"] != 0
    assert load_run(path).fit.model.num_strata == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--model laplace --likelihood cauchy", "--likelihood gaussian, or --model en"),
        ("--model laplace --likelihood laplace", "the same for all targets, and that"),
        (
            "--model laplace --width 100-100 --curvature full",
            "--curvature full makes 10,401 weights of this network random together, "
            "and more than 6,500 are too many: give --curvature diagonal",
        ),
        (
            "--model laplace --width 6500 --curvature last-layer",
            "--curvature last-layer makes 6,501 weights",
        ),
        ("--model laplace --network odenet", "--model laplace is made of a network of"),
        ("--model swag --swag-epochs 1", "--swag-epochs must be at least 2"),
        ("--model swag --swag-rate 0", "--swag-rate must be positive"),
        ("--model deterministic --curvature full", "--curvature does nothing for"),
        (
            "--model map --network hierarchical --weight-scale 3",
            "give --prior gaussian and --weight-scale 1",
        ),
        ("--model map --narrow-scale 0.1", "--narrow-scale does nothing for --prior"),
        ("--model mean-field --mixture 0.1", "--mixture does nothing for --prior"),
        (
            "--model map --weight-scale -1",
            "--weight-scale must be positive and finite",
        ),
        ("--model map --kl-weight -1", "--kl-weight must be finite and not negative"),
        (
            "--model map --prior scale-mixture --mixture 2",
            "--mixture must lie above 0 and below 1, got 2",
        ),
    ],
)
def test_what_cannot_be_made_is_refused_before_training(options, sentence, capsys):
    """Catches a refusal after hours of training, or in Python's words."""
    assert main(["train", *TINY.split(), *options.split()]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_epochs_of_swag_that_leave_the_numbers_lose_no_training(tmp_path: Path, capsys):
    """Catches (seen) advice about an option that the door has not, and a run whose
    trained network nothing can use."""
    path = tmp_path / "run"
    args = [*TINY.split(), "--model", "swag", "--swag-rate", "1e20"]
    assert main(["train", *args, "--out", str(path)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "use a lower --swag-rate than 1e+20" in said
    assert f"change the option in {path / 'config.json'}, then go on with" in said
    config = json.loads((path / "config.json").read_text())
    config["recipe"]["posthoc"]["swag_rate"] = 0.01
    (path / "config.json").write_text(json.dumps(config))
    steps = (path / "metrics.jsonl").read_text()
    assert main(["train", "--resume", str(path)]) == 0
    assert (path / "metrics.jsonl").read_text() == steps
    assert json.loads((path / "result.json").read_text())["epistemic_share"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ensemble", "mc-dropout", "deterministic", "map"])
def test_families_train_resume_and_predict(model: str, tmp_path: Path, capsys):
    options = f"--model {model}" + " --num-members 2" * (model == "ensemble")
    path = tmp_path / "run"
    result = train(path, options)
    assert result["elbo"] is None  # and no KL
    assert result["kl_path"] is result["kl_initial"] is None  # no path, and it says so
    assert (result["epistemic_share"] > 0) == (model in ("ensemble", "mc-dropout"))
    (path / "checkpoints" / "final.npz").unlink()
    assert main(["train", "--resume", str(path)]) == 0
    again = json.loads((path / "result.json").read_text())
    assert again["nll"] == result["nll"]
    inputs, table = tmp_path / "x.npz", tmp_path / "p.csv"
    np.savez(inputs, x=np.zeros((3, 1), np.float32))
    assert main(["predict", str(path), str(inputs), "-o", str(table)]) == 0
    assert len(table.read_text().splitlines()) == 4
    capsys.readouterr()
    assert main(["evaluate", str(path), "--ood", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rmse"] == result["rmse"]


def test_map_goes_to_the_mode(tmp_path: Path):
    """As the command line runs it: the ridge at the noise scale that it learned.

    Catches (seen) a prior that is left out, and one of another scale.
    """
    table = tmp_path / "own.csv"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(14, 3))
    y = x @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=14) + 3
    names = {"header": "a,b,c,y", "comments": ""}
    np.savetxt(table, np.c_[x, y], delimiter=",", **names)
    options = "--target y --model map --width none --prior gaussian"
    options += " --weight-scale 0.4 --epochs 4000 --learning-rate 0.01"
    args = ["--data", str(table), *options.split()]
    assert main(["train", *args, "--out", str(tmp_path / "run")]) == 0
    prepared, fit = by_hand(tmp_path / "run")
    rows = prepared.data.train.in_memory()
    inputs = np.c_[np.asarray(rows.x, float), np.ones(len(rows.x))]
    precision = float(fit.likelihood.scale) ** -2
    left = precision * inputs.T @ inputs + np.eye(4) / 0.4**2
    mode = np.linalg.solve(left, precision * inputs.T @ rows.y)
    layer = fit.model.network.layers[0]
    found = np.concatenate([layer.weight, layer.bias[None]])
    np.testing.assert_allclose(found, mode, atol=2e-3)
    history = [
        json.loads(line)
        for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    ]
    energy = -float(fit.model.prior.log_prob(fit.model.params))
    assert history[-1]["kl"] == pytest.approx(energy, rel=1e-3)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["elbo"] is None
    assert result["objective"] == "log joint density"
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Energy of the prior" in page
    assert "KL of posterior and prior" not in page
    assert "KL ends at" not in page


def test_a_mode_is_not_reached_by_a_bound(tmp_path: Path, monkeypatch, capsys):
    """Of Laplace's approximation, which has one afterwards. Catches (seen) a report and
    a figure that call the energy of its prior a KL, and the log joint density an ELBO;
    and (seen) points without a prior that are told of one's energy.
    """
    drawn = {}
    monkeypatch.setattr(
        "ornstein.report._figures.training_curves",
        lambda curves, **options: drawn.update(curves) or Figure(),
    )
    result = train(tmp_path / "run", "--model laplace --likelihood gaussian")
    assert result["elbo"] is not None
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Energy of the prior" in page
    assert "KL of posterior and prior" not in page
    assert {"loss", "energy of the prior"} <= set(drawn)
    assert not {"elbo", "kl"} & set(drawn)
    capsys.readouterr()
    train(tmp_path / "point", "--model deterministic")
    said = capsys.readouterr().err
    assert "log likelihood -" in said
    assert "energy" not in said


def test_what_training_had_to_say_is_kept(tmp_path: Path):
    """Catches (seen) a bound by empirical Bayes that loses its caveat once it is read
    again."""
    options = "--model mean-field --optimiser ivon --empirical-bayes --prior fan-in"
    result = train(tmp_path / "run", options)
    assert any("empirical Bayes" in note for note in result["notes"])
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    again = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert again["notes"] == result["notes"]


def test_help_shows_the_defaults_of_the_model(capsys):
    """Catches a preset of an SDE-BNN behind another model's options."""
    with pytest.raises(SystemExit):
        main("train --help --data digits --model mc-dropout".split())
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: 200-200)" in text
    assert "(default: relu)" in text


def test_an_ensemble_is_averaged_over_its_own_members(tmp_path: Path):
    """Catches (seen) a number of members refused for a number of draws that nobody
    gave."""
    options = "--data toy/cos --model ensemble --num-members 2 --width 3 --epochs 1"
    assert main(["train", *options.split(), "--out", str(tmp_path / "run")]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["recipe"]["training"]["test_draws"] == 2
