"""What `ornstein sample` fills in, what it refuses to pass over, and where it ends."""

import contextlib
import json
import signal
from pathlib import Path

import pytest

from ornstein.cli import main
from ornstein.cli._main import COMMANDS
from ornstein.cli._parse import parse
from ornstein.cli._signals import Interruption
from ornstein.sampling import ChainProgress


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "ensemble"
    options = "--data toy/cos --model ensemble --num-members 3 --width 5 --epochs 1"
    options += " --activation silu --learn-scale --test-draws 3"
    assert main(["train", *options.split(), "--out", str(path)]) == 0
    return path


def test_chains_take_number_and_network_from_the_members_run(ensemble: Path):
    """Catches presets that a user has to undo by hand before chains can start there."""
    args = ["sample", "--data", "toy/cos", "--start-from", str(ensemble)]
    own = parse(args, COMMANDS).recipe.sampling
    assert (own.num_chains, own.width, own.activation) == (3, "5", "silu")
    typed = parse([*args, "--num-chains", "2"], COMMANDS).recipe.sampling
    assert (typed.num_chains, typed.width) == (2, "5")
    for other in ("prior", "members", "nowhere"):
        found = parse([*args[:-1], other], COMMANDS).recipe.sampling
        plain = parse(args[:3], COMMANDS).recipe.sampling
        assert (found.num_chains, found.width) == (plain.num_chains, plain.width)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--kernel nuts --momentum 0.5", "--momentum does nothing for --kernel nuts"),
        ("--kernel mclmc --batch-size 7", "--batch-size does nothing for --kernel"),
        (
            "--kernel sgld --num-integration-steps 7",
            "--num-integration-steps does nothing for --kernel sgld",
        ),
        (
            "--start-from prior --start-steps 7",
            "--start-steps does nothing for --start-from prior",
        ),
    ],
)
def test_what_nothing_reads_is_refused(options: str, said: str, capsys):
    assert main(["sample", "--data", "toy/cos", *options.split()]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    ["--kernel sghmc --momentum 0.5 --batch-size 7", "--kernel partial-hmc"],
)
def test_what_is_read_is_taken(options: str):
    parse(["sample", "--data", "toy/cos", *options.split()], COMMANDS)


def test_a_kernel_for_train_is_pointed_to_sample(capsys):
    assert main(["train", "--data", "digits", "--kernel", "hmc"]) == 2
    assert "--kernel is of `ornstein sample`" in capsys.readouterr().err


@pytest.mark.parametrize("phase", ["members", "warm-up"])
def test_a_run_without_samples_yet_says_how_it_goes_on(
    phase: str, tmp_path: Path, monkeypatch, capsys
):
    """Catches a sentence of the library's, or a damaged run, where one was ended."""
    path, advance = tmp_path / "run", ChainProgress.advance
    options = "--data toy/cos --width 3 --kernel hmc --num-integration-steps 2"
    options += " --start-from members --start-steps 20 --num-warmup 20 --num-samples 4"

    def interrupt(self, step, record):
        if record["phase"] == phase:
            raise KeyboardInterrupt
        advance(self, step, record)

    monkeypatch.setattr(ChainProgress, "advance", interrupt)
    assert main(["sample", *options.split(), "--out", str(path)]) == 130
    monkeypatch.setattr(ChainProgress, "advance", advance)
    capsys.readouterr()
    said = f"has no samples yet: go on with `ornstein sample --resume {path}`"
    assert main(["evaluate", str(path)]) != 0
    assert said in capsys.readouterr().err
    assert main(["sample", "--resume", str(path), "--json"]) == 0
    assert "nll" in json.loads(capsys.readouterr().out)


def test_a_signal_that_was_swallowed_is_raised_again():
    """Seen: Ctrl-C within JAX's callback of the garbage collector was lost."""
    interruption = Interruption()
    with contextlib.suppress(KeyboardInterrupt):
        interruption.meet(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        interruption.raise_if_met()


def test_what_ends_a_sweep_is_not_waited_for_twice():
    """Seen: a second Ctrl-C was swallowed while the runs of a sweep ended."""
    interruption = Interruption()
    interruption.hold()
    interruption.meet(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        interruption.raise_last()
    with pytest.raises(KeyboardInterrupt):
        interruption.meet(signal.SIGINT, None)
