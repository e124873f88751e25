"""`ornstein evaluate --audit` on a tiny run: its twins, its folder, what it refuses."""

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import ornstein as orn
from ornstein.cli import _audit, main
from ornstein.potential import Potential
from ornstein.recipe import (
    Keys,
    Recipe,
    fit_options,
    load_run,
    mode_at_start,
    prepare,
    read_sample_recipe,
    train as recipe_train,
)
from ornstein.recipe._run_sampling import potential_arguments
from ornstein.train import RunFolder, load_model

TINY = "--epochs 4 --width 2 --drift-widths 2 --num-inducing 0 --dt 0.5 --num-draws 1"
TINY += " --test-draws 3 --data toy/cos --start gaussian --kl-warmup 0"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", *TINY.split(), "--out", str(path)]) == 0
    return path


def read(run: Path) -> dict[str, Any]:
    return json.loads((run / "audit.json").read_text())


def trained(run: Path, name: str) -> Path:
    return run / "audit" / name / "checkpoints" / "final.npz"


def test_twins_of_the_runs_own_recipe(run: Path, capsys: pytest.CaptureFixture):
    """Trained by hand they score the same: of the run's options, start and keys."""
    assert main(["evaluate", str(run), "--audit"]) == 0
    out, _ = capsys.readouterr()
    found = read(run)
    assert found["sentence"] in out
    assert found == json.loads((run / "evaluation.json").read_text())["audit"]
    recipe = Recipe.from_json(json.loads((run / "config.json").read_text())["recipe"])
    prepared = prepare(recipe)
    silent = orn.without_noise(prepared.model)
    keys, data = Keys.of(recipe), prepared.data
    options = fit_options(recipe, data)
    fit = orn.fit(silent, data.train, prepared.likelihood, key=keys.fit, **options)
    prediction = orn.predict(fit, data.test.x, key=keys.test, num_draws=3)
    nll = orn.evaluate(prediction, data.test.y)["nll"]
    scores = {row["name"]: row["scores"] for row in found["relatives"]}
    assert scores["trained without noise"]["nll"] == pytest.approx(nll, rel=1e-4)
    assert "Training the twin with q = p" in out
    assert trained(run, "with-q-is-p").is_file()


def test_finished_twins_are_kept(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    """And read again, to the same numbers; those of another recipe are replaced.

    Catches (seen) a recipe whose tuples are lists in its file: all twins trained anew.
    """
    if not (run / "audit.json").is_file():
        assert main(["evaluate", str(run), "--audit"]) == 0
    before = read(run)
    starts = []

    def train(prepared: Any, **how: Any) -> Any:
        starts.append(how["resume"])
        return recipe_train(prepared, **how)

    monkeypatch.setattr(_audit, "train", train)
    assert main(["evaluate", str(run), "--audit"]) == 0
    assert starts == []
    assert read(run) == before
    # Of another recipe: what is there is no twin of this run.
    config = run / "audit" / "without-noise" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"twin": "other"}))
    # Interrupted before it was finished: it goes on.
    trained(run, "with-q-is-p").unlink()
    assert main(["evaluate", str(run), "--audit"]) == 0
    assert starts == [False, True]
    assert read(run) == before
    assert not list((run / "audit").glob(".*replaced*"))


def test_twins_of_natural_gradients(tmp_path: Path):
    """Their weights are points, which Adam moves as it moves the run's own. Catches
    (seen) a twin that is given to IVON, which refuses it."""
    options = "--data toy/cos --model mean-field --optimiser ivon --epochs 1"
    options += " --width 3 --learn-scale --test-draws 2"
    assert main(["train", *options.split(), "--out", str(tmp_path / "run")]) == 0
    assert main(["evaluate", str(tmp_path / "run"), "--audit"]) == 0
    kinds = [row["kind"] for row in read(tmp_path / "run")["relatives"]]
    assert kinds == ["fit", "put back", "silenced", "twin", "twin"]


def test_without_twins(run: Path):
    """Nothing is trained, and the verdict is of what there is."""
    assert main(["evaluate", str(run), "--audit", "--audit-twins", "none"]) == 0
    kinds = [row["kind"] for row in read(run)["relatives"]]
    assert kinds == ["fit", "put back", "put back", "put back", "silenced"]


def test_twins_of_what_ivon_trained(tmp_path: Path):
    """Neither has normal weights: both are trained by Adam, at the points' rate.

    Catches (seen) twins that take the run's own optimiser, which refuses them.
    """
    run = tmp_path / "run"
    options = "--data toy/cos --model mean-field --optimiser ivon --width 3 --epochs 2"
    options += " --learning-rate 0.2 --learn-scale --test-draws 3"
    options += " --init-hessian 0.5 --hessian-decay 0.99"
    assert main(["train", *options.split(), "--out", str(run)]) == 0
    assert main(["evaluate", str(run), "--audit"]) == 0
    for name in ("without-noise", "with-q-is-p"):
        config = json.loads((run / "audit" / name / "config.json").read_text())
        training = config["recipe"]["training"]
        assert training["optimiser"] == "adam"
        assert training["learning_rate"] == pytest.approx(0.02)
        assert trained(run, name).is_file()


def test_samples(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Put back to the prior of their own options, and beside a mode of what they
    sample, which is found once and kept."""
    options = "--data toy/cos --kernel hmc --num-integration-steps 2 --width 3"
    options += " --num-samples 6 --num-warmup 20 --num-chains 2 --test-draws 12"
    options += " --prior gaussian --prior-scale 3"
    assert main(["sample", *options.split(), "--out", str(tmp_path / "run")]) == 0
    assert main(["evaluate", str(tmp_path / "run"), "--audit"]) == 0
    found = read(tmp_path / "run")
    assert [row["name"] for row in found["relatives"]] == [
        "the fit",
        "weights at prior",
        "trained without noise",
    ]
    assert main(["evaluate", str(tmp_path / "run"), "--audit"]) == 0
    assert "The twin without noise is in" in capsys.readouterr().out
    assert read(tmp_path / "run") == found
    found_again = load_run(tmp_path / "run").with_rows()
    prepared, samples = found_again.prepared, found_again.fit
    recipe = read_sample_recipe(RunFolder.open(tmp_path / "run"))
    start = mode_at_start(recipe, prepared)
    like = (start, prepared.likelihood, None)
    mode, likelihood, _ = load_model(trained(tmp_path / "run", "without-noise"), like)
    potential = Potential(**potential_arguments(recipe, prepared))
    assert eqx.tree_equal(likelihood, prepared.likelihood)
    scale = potential.start[1]  # empty: it is given
    energies = [float(potential((each.params, scale))) for each in (start, mode)]
    slopes = [jax.grad(potential)((each.params, scale))[0] for each in (start, mode)]
    steepest = [max(float(abs(a).max()) for a in jax.tree.leaves(s)) for s in slopes]
    assert energies[1] < energies[0]
    assert steepest[1] < 0.02 * steepest[0], steepest
    fit = samples.posterior_parts().at_prior(
        ("weights",), jax.random.fold_in(Keys.of(prepared.recipe).test, 3)
    )
    spread = np.std(np.asarray(fit.positions[0].layers[0].weight))
    assert spread == pytest.approx(3.0, rel=0.5)
    assert found["kl"] == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--audit-twins none", "--audit-twins says which twins --audit trains"),
        ("--audit --dt 0.25", "leave --solver, --dt, --rtol, --atol and --dial out"),
    ],
)
def test_bad_input(run: Path, options: str, said: str, capsys: pytest.CaptureFixture):
    assert main(["evaluate", str(run), *options.split()]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_run_that_claims_no_posterior(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Is refused before anything is scored; and its result has no bound."""
    path = tmp_path / "run"
    options = "--data toy/cos --model deterministic --width 2 --epochs 2"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    result = json.loads((path / "result.json").read_text())
    assert result["elbo"] is None
    assert "kl" not in result
    assert main(["evaluate", str(path), "--audit"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "The --model of this run claims no posterior" in said
    assert "Leave --audit out." in said
    assert not (path / "evaluation.json").exists()
