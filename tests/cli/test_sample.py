"""`ornstein sample` on tiny runs, against the library called by hand."""

import csv
import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import ornstein as orn
from ornstein._sentence import OptionError
from ornstein.cli import main
from ornstein.recipe import (
    KERNELS,
    Keys,
    SampleRecipe,
    check_sampling,
    load_run,
    open_sampling,
    prepare,
    preset_sampling,
    read_sample_recipe,
)
from ornstein.recipe._kernels import build_kernel, is_minibatch
from ornstein.recipe._run_sampling import potential_arguments
from ornstein.recipe._sampling_options import SamplingOptions
from ornstein.sampling import ChainProgress
from ornstein.train import RunFolder

SMALL = "--data toy/cos --width 3"
SMALL += " --num-samples 6 --num-warmup 20 --num-chains 2 --test-draws 12"
TINY = f"{SMALL} --kernel hmc --num-integration-steps 2"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    options = [*TINY.split(), "--learn-scale"]
    assert main(["sample", *options, "--out", str(path)]) == 0
    return path


def by_hand(run: Path):
    config = json.loads((run / "config.json").read_text())
    recipe = SampleRecipe.from_json(config["sampling"])
    prepared = prepare(recipe.recipe)
    folder = run / "checkpoints" / "samples"
    return recipe, prepared, open_sampling(recipe, prepared, folder)


def test_result_is_what_the_library_says(run: Path):
    """Catches samples of another run, and a scale that is not each draw's own."""
    recipe, prepared, samples = by_hand(run)
    assert recipe.sampling.num_integration_steps == 2
    assert (samples.num_chains, samples.num_samples) == (2, 6)
    result = json.loads((run / "result.json").read_text())
    key = Keys.of(prepared.recipe).test
    prediction = orn.predict(samples, prepared.data.test.x, key=key, num_draws=12)
    for name, value in orn.evaluate(prediction, prepared.data.test.y).items():
        assert result[name] == pytest.approx(value, rel=1e-4), name
    assert result["kernel"] == "hmc"
    unknown = ("elbo", "kl_path", "kl_initial", "kl_weight")
    assert [result[name] for name in unknown] == [None] * 4
    assert result["num_parameters"] == 3 * 2 + 3 + 1 + 1
    acceptance = np.mean(samples.info["acceptance_rate"])
    assert result["acceptance_rate"] == pytest.approx(acceptance, rel=1e-4)
    assert result["num_warmup"] == [20, 20]
    assert result["r_hat"] > 0.8
    assert 0 < result["ess_bulk"]
    assert (run / "figures" / "bands.png").is_file()


def test_evaluate_and_predict_read_the_run(run: Path, tmp_path: Path, capsys):
    result = json.loads((run / "result.json").read_text())
    assert main(["evaluate", str(run), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["nll"] == pytest.approx(result["nll"], rel=1e-5)
    assert again["kl_weight"] is None  # there is no KL to weigh (1 seen)
    assert main(["evaluate", str(run), "--draws", "13"]) == 0
    assert "some of the 12 stored samples more often" in capsys.readouterr().out
    inputs = tmp_path / "x.csv"
    _, prepared, _ = by_hand(run)
    name = prepared.data.feature_names[0] if prepared.data.feature_names else "x"
    inputs.write_text(f"{name}\n0.5\n-0.25\n")
    output = tmp_path / "y.csv"
    code = main(["predict", str(run), str(inputs), "-o", str(output)])
    said = capsys.readouterr().err
    assert code == 0, said
    assert len(list(csv.DictReader(output.read_text().splitlines()))) == 2
    assert main(["evaluate", str(run), "--dt", "0.1"]) == 2
    assert "no solver" in capsys.readouterr().err


def test_an_interrupted_run_goes_on(run: Path, tmp_path: Path, monkeypatch, capsys):
    """Bit for bit what the whole run gives, by `train` too; options are refused."""
    path = tmp_path / "stopped"
    options = [*TINY.split(), "--learn-scale", "--out", str(path)]
    advance = ChainProgress.advance

    def interrupt(self, step, record):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChainProgress, "advance", interrupt)
    assert main(["sample", *options]) == 130
    assert "ornstein sample --resume" in capsys.readouterr().out
    monkeypatch.setattr(ChainProgress, "advance", advance)
    assert main(["sample", "--resume", str(path), "--num-samples", "7"]) == 2
    assert "leave the others out" in capsys.readouterr().err
    assert main(["train", "--resume", str(path), "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    whole = json.loads((run / "result.json").read_text())
    assert resumed["nll"] == whole["nll"]
    assert main(["sample", "--resume", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nll"] == whole["nll"]


@pytest.mark.parametrize("name", ["data.json", "config.json"])
def test_samples_of_another_run_are_refused(name, run: Path, tmp_path: Path, capsys):
    """Reported: with another run's data.json the predictions were wrong, silently."""
    path = tmp_path / "run"
    shutil.copytree(run, path)
    own = (path / name).read_text()
    other = {"data.json": '"num_test": 1', "config.json": '"activation": "relu"'}[name]
    key = other.split(":")[0]
    (path / name).write_text(re.sub(f"{key}: [^,\\n]+", other, own))
    assert (path / name).read_text() != own
    assert main(["evaluate", str(path)]) == 2
    said = f"has the samples of another run, or {name} is another's"
    assert said in capsys.readouterr().err
    assert main(["sample", "--resume", str(path)]) == 2
    assert re.search("another|not read as it was", capsys.readouterr().err)
    header = path / "checkpoints" / "samples" / "samples.json"
    kept = json.loads(header.read_text())
    del kept["settings"]["origin"]  # as it was written before
    header.write_text(json.dumps(kept))
    (path / name).write_text(own)
    assert main(["sample", "--resume", str(path)]) == 0


def test_samples_of_paths_turn_the_dial(tmp_path: Path, capsys):
    """The same samples at another step, each with its own scale of the noise.

    Catches the step of the run, and samples at the mean of their scales.
    """
    path = tmp_path / "run"
    options = f"{TINY} --network sdebnn --path-modes 2 --dt 0.25 --learn-scale"
    assert main(["sample", *options.split(), "--out", str(path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    recipe, prepared, samples = by_hand(path)
    assert recipe.sampling.prior_scale == 1.0
    block = next(a for a in samples.network.layers if hasattr(a, "start_scale"))
    assert block.coordinates == orn.LevyCiesielski(2)
    assert block.integrator.stepsize == orn.sde.Fixed(0.25)
    own = scores_of(samples, prepared)
    assert result["nll"] == pytest.approx(own["nll"], rel=1e-4)
    finer = orn.with_solver(samples, stepsize=orn.sde.Fixed(0.125))
    wanted = scores_of(finer, prepared)
    assert abs(wanted["nll"] / own["nll"] - 1) > 1e-3
    code = main(
        ["evaluate", str(path), "--dt", "0.125", "--dial", "0.5", "0.125", "--json"]
    )
    found = capsys.readouterr()
    assert code == 0, found.err
    turned = json.loads(found.out)
    assert turned["nll"] == pytest.approx(wanted["nll"], rel=1e-4)
    dial = {row["dt"]: row for row in turned["dial"]}
    assert dial[0.125]["nll"] == pytest.approx(wanted["nll"], rel=1e-4)
    assert dial[0.5]["num_drift_evaluations"] == 2
    assert main(["evaluate", str(path), "--dt", "1"]) == 0


def scores_of(samples, prepared):
    key = Keys.of(prepared.recipe).test
    prediction = orn.predict(samples, prepared.data.test.x, key=key, num_draws=12)
    return orn.evaluate(prediction, prepared.data.test.y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--sigma 0.3", "--sigma does nothing for --network mlp"),
        ("--path-modes 2", "--path-modes does nothing for --network mlp"),
        ("--network sdebnn --prior-scale 2", "give --prior gaussian and --prior-scale"),
        (
            "--network sdebnn --prior fan-in",
            "--prior fan-in with --prior-scale 1 is an",
        ),
        ("--network sdebnn --path-modes 9", "from 1 to the 8 steps of --dt 0.125"),
        ("--network sdebnn --dt 0.3", "does not divide"),
        ("--network odenet", "--network"),
        ("--num-samples 0", "--num-samples must be positive"),
        ("--num-warmup -1", "--num-warmup must not be negative"),
        ("--kernel sghmc --momentum 1.0", "--momentum must be at least 0 and below 1"),
        ("--step-size -1", "--step-size must be positive, got -1.0"),
        ("--kernel gibbs", "--kernel"),
        ("--kernel constant-sgd --step-size 0.1", "finds its own"),
        ("--width 0", "--width"),
        ("--width none --expand-parameters", "--expand-parameters does nothing"),
        ("--cycles 2", "--cycles does nothing for --kernel hmc"),
        ("--kernel constant-sgd --cycles 2", "does nothing for --kernel constant-sgd"),
        ("--kernel sgld --cycles 251", "--cycles must be from 0 to --num-samples 250"),
    ],
)
def test_bad_options_are_one_sentence(options, said, capsys, tmp_path):
    path = tmp_path / "run"
    code = main(["sample", "--data", "toy/cos", *options.split(), "--out", str(path)])
    error = capsys.readouterr().err
    assert code == 2, error
    assert said in error
    assert not path.exists()


def test_a_step_size_that_diverges_fails_the_run(capsys, tmp_path):
    options = f"{SMALL} --kernel sgld --step-size 1e6 --out {tmp_path / 'run'}"
    assert main(["sample", *options.split()]) == 1
    assert "divide the step size by 10" in capsys.readouterr().err


def test_disagreement_is_said(tmp_path: Path, capsys: pytest.CaptureFixture):
    """By the note, with what to do; the table has the R-hat of its own rows, too."""
    options = "--data toy/cos --kernel sgld --step-size 1e-8 --width 3 --num-warmup 0"
    options += " --num-samples 6 --num-chains 2 --test-draws 12"
    assert main(["sample", *options.split(), "--out", str(tmp_path / "run")]) == 0
    captured = capsys.readouterr()
    said = " ".join((captured.out + captured.err).split())
    assert "do not agree" in said
    assert "`ornstein sample` with the same --data" in said
    assert "--num-chains" in said
    assert "ess bulk" in captured.out  # the table
    assert "r hat" in captured.out
    assert json.loads((tmp_path / "run" / "result.json").read_text())["r_hat"] > 1.05


def test_a_step_size_that_rejects_everything_fails_the_run(capsys, tmp_path):
    """What was sampled stays, and is readable."""
    options = f"{TINY} --num-warmup 0 --step-size 100 --out {tmp_path / 'run'}"
    assert main(["sample", *options.split()]) == 1
    assert "rejects everything" in capsys.readouterr().err.splitlines()[-1]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["acceptance_rate"] < 0.01


@pytest.mark.parametrize(
    ("step_size", "said", "num_divergent"),
    [("1e30", "Every step diverged: the step size of 1e+30 is too large", 12),
     ("1e-30", "The chains did not move: the step size of 1e-30 is too small", 0)],
)  # fmt: skip
def test_chains_without_a_test_that_never_moved_fail_the_run(
    step_size, said, num_divergent, capsys, tmp_path
):
    """Microcanonical ones accept every step, and have no acceptance to tell by; what
    was sampled stays. Catches (seen) a command that ends well with one function."""
    options = f"{SMALL} --kernel mclmc --num-warmup 0 --step-size {step_size}"
    run = tmp_path / "run"
    assert main(["sample", *options.split(), "--out", str(run)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert said in last
    assert "--step-size" in last
    assert f"What was sampled is in {run}." in last
    result = json.loads((run / "result.json").read_text())
    assert result["num_divergent"] == num_divergent
    _, _, samples = by_hand(run)
    for leaf in jax.tree.leaves(samples.positions):
        np.testing.assert_array_equal(leaf, np.broadcast_to(leaf[:, :1], leaf.shape))


def test_defaults_suit_the_data_and_the_kernel():
    assert preset_sampling("toy/cos").sampling.kernel == "hmc"
    assert preset_sampling("digits").sampling.kernel == "sghmc"
    assert preset_sampling("uci/yacht").likelihood.learn_scale
    # A path's gradient costs eleven of a plain network's.
    plain, path = [
        preset_sampling("uci/concrete", "hmc", network=name, num_data=927).sampling
        for name in ("mlp", "sdebnn")
    ]
    assert preset_sampling("uci/concrete", network="sdebnn").sampling.kernel == "mclmc"
    lengths = [o.num_integration_steps or 0 for o in (plain, path)]
    gradients = [
        (o.num_warmup + o.num_samples) * length
        for o, length in zip((plain, path), lengths, strict=True)
    ]
    assert gradients[1] > 0
    assert gradients[1] <= gradients[0] / 3
    # Kernels with short trajectories take more of them.
    short = preset_sampling("uci/concrete", "partial-hmc").sampling
    assert short.num_warmup > plain.num_warmup
    assert (short.num_integration_steps or 0) < lengths[0]
    assert path.num_samples * path.num_chains >= path.test_draws
    # A minibatch kernel takes more and cheaper steps.
    assert preset_sampling("toy/cos", "sgld").sampling.thin > 1
    saved = preset_sampling("digits").to_json()
    assert SampleRecipe.from_json(json.loads(json.dumps(saved))).to_json() == saved
    with pytest.raises(ValueError, match="`kernel` is 'gibbs'"):
        SampleRecipe.from_json(saved | {"sampling": {"kernel": "gibbs"}})
    with pytest.raises(ValueError, match="have the parts"):
        SampleRecipe.from_json({})


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "ensemble"
    options = "--data toy/cos --model ensemble --num-members 2 --width 3 --epochs 1"
    options += " --activation tanh --learn-scale --test-draws 2"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    return path


def test_chains_start_at_the_members_of_a_run(ensemble: Path, tmp_path: Path, capsys):
    """Where the chains began is where training ended; its folder may then go.

    Catches another run's file of starts, and starts that a resumed run looks for in
    the run that they came from.
    """
    path, options = tmp_path / "run", [*TINY.split(), "--learn-scale", "--num-warmup"]
    copy = tmp_path / "ensemble"
    shutil.copytree(ensemble, copy)
    options += ["0", "--step-size", "1e-6", "--start-from", str(copy)]
    assert main(["sample", *options, "--out", str(path)]) in (0, 1)
    capsys.readouterr()
    _, _, samples = by_hand(path)
    fitted = load_run(ensemble).fit
    assert f"one chain from each, of {copy}" in str(samples.starts)
    for number in range(2):
        own = eqx.filter(fitted.model.member(number), eqx.is_array)
        pairs = zip(
            jax.tree.leaves(samples.positions[0]), jax.tree.leaves(own), strict=True
        )
        for found, wanted in pairs:
            np.testing.assert_allclose(found[number, 0], wanted, atol=1e-3)
    result = json.loads((path / "result.json").read_text())
    assert result["chains_started"] == samples.starts
    shutil.rmtree(copy)
    assert main(["sample", "--resume", str(path), "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["nll"] == result["nll"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "--num-chains 3",
            "has 2 members, from each of which one chain starts, and --",
        ),
        (
            "--width 4",
            "was trained with --width 3, and the chains have 4: leave --width",
        ),
        ("--train-rows 20", "was trained on other rows"),
        ("--test-rows 5 --train-rows 20", "give both the same --data, --split"),
        ("--start-from nowhere", "nowhere"),
        ("--start-from members --start-steps 0", "--start-steps must be positive"),
    ],
)
def test_members_of_another_kind_are_refused(
    ensemble: Path, options, said, capsys, tmp_path
):
    path, common = tmp_path / "run", TINY.replace("--num-chains 2", "")
    args = [*common.split(), "--num-chains", "2", "--start-from", str(ensemble)]
    code = main(
        ["sample", *args, "--learn-scale", *options.split(), "--out", str(path)]
    )
    error = capsys.readouterr().err
    assert code == 2, error
    assert said in error
    assert not path.exists()


@pytest.fixture(scope="module")
def mode(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "mode"
    options = "--data digits --train-rows 64 --test-rows 16 --model map --epochs 1"
    options += " --network sdebnn --width 4 --blocks 1-1 --normalised --dt 0.5"
    options += " --solver euler --path-modes 2 --sigma 0.3 --prior-scale 4"
    options += " --stem patches --no-space-to-depth --no-image-augmentation"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    return path


def sampled_from(mode: Path, out: Path, options: str = "") -> int:
    args = "--data digits --train-rows 64 --test-rows 16 --num-chains 2 --kernel sghmc"
    args += " --batch-size 16 --num-warmup 0 --num-samples 3 --test-draws 4"
    args += f" --step-size 1e-6 --start-from {mode} --out {out} {options}"
    return main(["sample", *args.split()])


def test_chains_start_where_a_mode_was_found(mode: Path, tmp_path: Path):
    """Without an option of the network: they are the run's.

    Catches another scale of the noise, which moves no position and changes what each
    means, and a stem that is passed over.
    """
    path = tmp_path / "run"
    assert sampled_from(mode, path) == 0
    _, _, samples = by_hand(path)
    assert str(samples.starts).startswith("from one point")
    own = load_run(mode).fit.model
    pairs = zip(*map(jax.tree.leaves, (samples.positions[0], own.params)), strict=True)
    for found, wanted in pairs:
        for chain in range(2):
            np.testing.assert_allclose(found[chain, 0], wanted, atol=1e-3)
    x = jax.random.normal(jax.random.key(1), (16, 8, 8, 1))
    theirs, ours = (f.network_at(0, key=jax.random.key(0)) for f in (own, samples))
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-2)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("--sigma 0.2", "with --sigma 0.3, and the chains have 0.2: leave --sigma out"),
        ("--stem none", "with --stem patches, and the chains have none: leave --stem"),
        ("--start-scale 2", "and the chains have 2.0: leave --start-scale out"),
        ("--network mlp", "is of --network sdebnn, and the chains of --network mlp"),
    ],
)
def test_chains_of_another_network_do_not_start_there(
    mode: Path, tmp_path: Path, other, said, capsys
):
    assert sampled_from(mode, tmp_path / "run", other) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("trained", "said"),
    [
        (
            "--network sdebnn --no-absolute-sigma --time-layer ignore",
            "--time-layer ignore, and the chains have concat: train with concat, for",
        ),
        ("--network mlp --prior scale-mixture", "give both --prior and --prior-scale"),
    ],
)
def test_a_mode_of_what_chains_do_not_have(tmp_path: Path, trained, said, capsys):
    """Catches another prior in the place of one that chains do not have."""
    options = f"--data toy/cos --model map --width 3 --epochs 1 {trained}"
    out = ["--out", str(tmp_path / "mode")]
    assert main(["train", *options.split(), *out]) == 0
    args = ["--data", "toy/cos", "--start-from", str(tmp_path / "mode")]
    assert main(["sample", *args, "--out", str(tmp_path / "run")]) == 2
    assert said in capsys.readouterr().err


def test_prior_and_likelihood_are_those_of_the_mode(tmp_path: Path, capsys):
    """Catches the preset's noise where the mode was found with another."""
    mode, path = tmp_path / "mode", tmp_path / "run"
    options = "--data toy/cos --model map --network mlp --width 3 --epochs 1"
    options += " --prior laplace --weight-scale 0.7 --no-learn-scale --scale 0.2"
    assert main(["train", *options.split(), "--out", str(mode)]) == 0
    args = [*"--data toy/cos --kernel hmc --num-integration-steps 2".split()]
    args += [*"--num-samples 2 --num-warmup 0 --step-size 1e-6".split()]
    args += ["--start-from", str(mode), "--out", str(path)]
    assert main(["sample", *args]) in (0, 1)
    recipe = read_sample_recipe(RunFolder.open(path))
    assert (recipe.sampling.prior, recipe.sampling.prior_scale) == ("laplace", 0.7)
    assert (recipe.likelihood.scale, recipe.likelihood.learn_scale) == (0.2, False)
    other = tmp_path / "other"
    capsys.readouterr()
    args = [*args[:-1], str(other)]
    assert main(["sample", *args, "--prior", "gaussian"]) == 2
    assert "of other units than that of gaussian" in capsys.readouterr().err
    assert main(["sample", *args, "--likelihood", "student-t", "--learn-scale"]) == 2
    assert (
        "leave --likelihood, --scale and --learn-scale out" in capsys.readouterr().err
    )


def test_a_run_without_members_is_refused(run: Path, capsys, tmp_path):
    args = [*TINY.split(), "--start-from", str(run), "--out", str(tmp_path / "run")]
    assert main(["sample", *args, "--learn-scale"]) == 2
    assert "got `PosteriorSamples`" in capsys.readouterr().err


def test_a_run_optimises_its_own_members(tmp_path: Path, monkeypatch, capsys):
    """Interrupted among those steps, or killed after them, it goes on to the same bits.

    Catches starts that are made again from other keys, and an interruption that
    only the chains hear of.
    """
    options = [*TINY.split(), "--start-from", "members", "--start-steps", "50"]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert main(["sample", *options, "--out", str(whole)]) == 0
    advance = ChainProgress.advance

    def interrupt(self, step, record):
        assert record["phase"] == "members"
        raise KeyboardInterrupt

    monkeypatch.setattr(ChainProgress, "advance", interrupt)
    assert main(["sample", *options, "--out", str(stopped)]) == 130
    assert "ornstein sample --resume" in capsys.readouterr().out
    monkeypatch.setattr(ChainProgress, "advance", advance)
    assert main(["sample", "--resume", str(stopped)]) == 0
    results = [json.loads((p / "result.json").read_text()) for p in (whole, stopped)]
    assert results[0]["nll"] == results[1]["nll"]
    assert "50 steps of Adam" in results[0]["chains_started"]
    # Killed when its members were ready: they are read, and not optimised again.
    capsys.readouterr()
    shutil.rmtree(stopped / "checkpoints" / "samples")
    monkeypatch.setattr("ornstein.recipe._chain_starts.optimised_starts", None)
    assert main(["sample", "--resume", str(stopped), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["nll"] == results[0]["nll"]


@pytest.mark.parametrize("name", [k for k in KERNELS if is_minibatch(k)])
def test_cycles_of_every_minibatch_kernel(name):
    """As many samples of each cycle, out of its last fifth, in which noise is injected.

    Catches a cycle a fifth of as long as it takes, a kernel that keeps its step
    size, and a thermostat that meets a cold chain.
    """
    options = SamplingOptions(kernel=name, cycles=3, num_samples=10, thin=4)
    if name == "constant-sgd":
        with pytest.raises(OptionError, match="finds its own step size"):
            check_sampling(options)
        return
    check_sampling(options)
    kernel: Any = build_kernel(options, 100)
    plain: Any = build_kernel(dataclasses.replace(options, cycles=0), 100)
    steps = np.arange(160)
    sizes = np.asarray(jax.vmap(kernel.step_size)(steps))
    assert sizes[0] == pytest.approx(plain.step_size, rel=1e-5)
    np.testing.assert_allclose(sizes[80:], sizes[:80], rtol=1e-5)
    assert sizes[79] < 1e-3 * sizes[0]
    is_kept = np.asarray(jax.vmap(kernel.step_size.is_sampling)(steps))
    assert np.flatnonzero(is_kept[:80])[0] == 64
    if name != "sgnht":
        heat = np.asarray(jax.vmap(kernel.temperature)(steps))
        np.testing.assert_array_equal(heat, is_kept.astype(float))


def test_chains_go_round_in_cycles(tmp_path: Path):
    path = tmp_path / "run"
    options = f"{SMALL} --kernel sgld --cycles 2 --thin 3 --step-size 1e-6"
    assert main(["sample", *options.split(), "--out", str(path)]) == 0
    _, _, samples = by_hand(path)
    sizes = np.asarray(samples.info["step_size"])[0]
    # Three samples of each cycle of 45 steps: at its steps 36, 39 and 42.
    expected = 0.5 * (1 + np.cos(np.pi * np.array([36, 39, 42]) / 45)) * 1e-6
    np.testing.assert_allclose(sizes, np.tile(expected, 2), rtol=1e-3)


def test_products_of_matrices_are_sampled(tmp_path: Path, capsys):
    """A run is read back as what it sampled, and its prior is that of P, V and Q.

    Catches samples that are read as those of the plain network, and matrices whose
    prior is that of a weight.
    """
    path = tmp_path / "run"
    options = f"{TINY} --expand-parameters --prior laplace --out {path}"
    assert main(["sample", *options.split()]) == 0
    recipe, prepared, samples = by_hand(path)
    arguments = potential_arguments(recipe, prepared)
    matrices = [np.shape(a) for a in samples.network_at(0).left if a is not None]
    assert matrices == [(3, 3)]
    (left,) = [a for a in arguments["prior"].priors.left if a is not None]
    assert left.scale == pytest.approx(3**-0.5)  # the prior of W keeps its size
    assert isinstance(arguments["prior"].priors.network, orn.LaplacePrior)
    result = json.loads((path / "result.json").read_text())
    assert result["num_parameters"] == 3 * 2 + 3 + 1 + 2 * 9
    capsys.readouterr()
    assert main(["evaluate", str(path), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["nll"] == pytest.approx(result["nll"], rel=1e-5)


@pytest.mark.parametrize(("name", "factor"), [("sghmc", 3), ("sgnht", 3), ("sgld", 9)])
def test_products_take_smaller_steps_by_default(name, factor):
    """Catches (seen) the plain network's step, at which chains of yacht diverge."""
    make = lambda **options: build_kernel(SamplingOptions(kernel=name, **options), 277)
    plain, products = make(), make(expand_parameters=True)
    assert products.step_size == pytest.approx(plain.step_size / factor)
    given = make(expand_parameters=True, step_size=1e-3)
    assert given.step_size == 1e-3


def test_all_samples_are_judged_and_some_are_stored(tmp_path: Path):
    """Catches sums over the stored samples alone, and files that have all of them."""
    run = tmp_path / "run"
    line = "sample --data toy/cos --kernel hmc --num-integration-steps 2 --width 3"
    line += " --num-samples 12 --num-warmup 10 --num-chains 2 --test-draws 6"
    assert main([*line.split(), "--store-every", "4", "--out", str(run)]) == 0
    result = json.loads((run / "result.json").read_text())
    assert result["all_samples"]["num_draws"] == 24
    assert abs(result["all_samples"]["nll"]) < 1e3
    stored = np.load(run / "checkpoints" / "samples" / "0.npy")
    assert stored.shape[:2] == (2, 3)


def test_a_share_that_stores_nothing_is_refused(capsys):
    line = "sample --data toy/cos --num-samples 12 --store-every"
    assert main([*line.split(), "13"]) == 2
    said = capsys.readouterr().err
    assert "--store-every must be from 1 to --num-samples 12, got 13" in said
