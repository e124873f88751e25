"""`ornstein train` on tables without a model: chains, or an ensemble of many rows."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from ornstein.cli import main
from ornstein.cli._main import COMMANDS
from ornstein.cli._parse import parse
from ornstein.cli.commands import _sample
from ornstein.recipe import (
    Recipe,
    SampleRecipe,
    _hand_over,
    hand_over,
    load_data,
    prepare,
    preset_recipe,
    preset_sampling,
)
from ornstein.recipe._kernels import build_kernel

TINY = {"num_integration_steps": 2, "width": "3", "num_samples": 5, "num_warmup": 12}
TINY |= {"num_chains": 2, "test_draws": 10}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2))
    lines = [f"{a:.4f},{b:.4f},{a - b:.4f}" for a, b in rows]
    path.write_text("\n".join(["a,b,y", *lines]))
    return path


def test_a_table_is_sampled_as_by_sample(table: Path, tmp_path, monkeypatch, capsys):
    """Bit for bit as by `ornstein sample`. Catches another's seed, noise or rows."""
    small = lambda *args, **rest: preset_sampling(*args, **rest).changed(**TINY)
    monkeypatch.setattr(_hand_over, "preset_sampling", small)
    chosen = ["--data", str(table), "--target", "y", "--seed", "3", "--scale", "0.2"]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert main(["train", *chosen, "--out", str(ours), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    code = main(["sample", *chosen, *options, "--out", str(theirs), "--json"])
    assert code == 0
    wanted = json.loads(capsys.readouterr().out)
    assert (found["nll"], found["r_hat"]) == (wanted["nll"], wanted["r_hat"])
    assert found["model"] == "samples"
    config = [json.loads((p / "config.json").read_text()) for p in (ours, theirs)]
    assert config[0]["sampling"] == config[1]["sampling"]
    assert main(["evaluate", str(ours), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nll"] == pytest.approx(found["nll"])


def test_both_commands_have_trajectories_of_one_length(
    table: Path, tmp_path: Path, monkeypatch
):
    """Seen failing: 200 steps of every trajectory of `sample`, where `train`, whose
    chains are said to be the same, has 1,000 on these rows.
    """
    kept: list[dict] = []

    def keep(path: Path, config: dict, *, data: str, overwrite: bool):
        del path, data, overwrite
        kept.append(config)
        raise ValueError("nothing is sampled here")

    monkeypatch.setattr(_sample, "new_run", keep)

    def recorded(command: str, *options: str) -> int:
        data = ["--data", str(table), "--target", "y", "--out", str(tmp_path / "run")]
        assert main([command, *data, *options]) == 2
        return kept[-1]["sampling"]["sampling"]["num_integration_steps"]

    assert recorded("train") == recorded("sample") == 1000
    assert recorded("sample", "--num-integration-steps", "200") == 200
    assert recorded("sample", "--network", "sdebnn", "--kernel", "hmc") == 100


def test_more_rows_get_shorter_trajectories_and_then_an_ensemble(
    table: Path, monkeypatch
):
    """Catches a fallback that loses what the user said of the data and the noise."""
    args = ["--data", str(table), "--target", "y", "--seed", "4"]
    recipe = parse(["train", *args, "--likelihood", "laplace"], COMMANDS).recipe
    assert recipe.model.model == "auto"
    data = load_data(recipe)
    chains = hand_over(recipe, data)
    assert isinstance(chains, SampleRecipe)
    num_data = len(data.train)
    by_default = preset_sampling(str(table), num_data=num_data).changed(seed=4)
    kept = {"data": recipe.data, "likelihood": recipe.likelihood}
    assert chains == dataclasses.replace(by_default, **kept)
    num_steps = [
        preset_sampling("uci/yacht", num_data=n).sampling.num_integration_steps
        for n in (len(data.train), 300, 1000, 7000, 10_000)
    ]
    assert num_steps == [1000, 1000, 400, 57, 50]
    open_length = preset_sampling("uci/yacht")
    assert open_length.sampling.num_integration_steps is None
    assert open_length.for_rows(7000).sampling.num_integration_steps == 57
    assert build_kernel(open_length.sampling, 7000).num_integration_steps == 57
    monkeypatch.setattr(_hand_over, "MAX_CHAIN_ROWS", len(data.train) - 1)
    ensemble = hand_over(recipe, data)
    assert isinstance(ensemble, Recipe)
    assert (ensemble.model.model, ensemble.training.seed) == ("ensemble", 4)
    assert (ensemble.data, ensemble.likelihood) == (recipe.data, recipe.likelihood)
    prepare(ensemble, data)
    asked = hand_over(recipe.changed(model="chains"), data)
    assert isinstance(asked, SampleRecipe)


def test_defaults_by_the_name_of_the_data():
    """Tables alone are sampled: a .npz file may hold images."""
    model = lambda *args: parse(["train", *args], COMMANDS).recipe.model.model
    assert model("--data", "uci/yacht") == "auto"
    assert model("--data", "a.parquet") == "auto"
    assert model("--data", "a.csv", "--time", "t") == "latent-sde"
    assert model("--data", "a.npz") == model("--data", "digits") == "sdebnn"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--epochs 3", "--epochs does nothing for --model auto: leave it out, give it"),
        ("--sigma 0.1 --model chains", "--sigma does nothing for --model chains"),
        ("--network sdebnn", "--network does nothing for --model auto"),
        ("--tune lr", "--tune does nothing for --model auto"),
        ("--time a --model chains", "--time does nothing for --model chains"),
        ("--preset paper", "There is no preset 'paper'"),
    ],
)
def test_options_that_chains_do_not_read(table: Path, options, said, capsys, tmp_path):
    path = tmp_path / "run"
    args = ["--data", str(table), *options.split(), "--out", str(path)]
    assert main(["train", *args]) == 2
    assert said in capsys.readouterr().err
    assert not path.exists()


def test_a_model_that_is_none_yet():
    with pytest.raises(ValueError, match="`model` auto is chosen once the data are"):
        prepare(preset_recipe("uci/yacht", model="auto"))
    data = load_data(preset_recipe("toy/two-points", model="latent-sde"))
    series = preset_recipe("toy/two-points", model="chains")
    with pytest.raises(ValueError, match="holds sequences, which `model` chains"):
        hand_over(series, data)
