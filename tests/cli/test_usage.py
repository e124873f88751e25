"""Arguments that no command takes: one sentence, with the nearest that one does."""

import dataclasses

import pytest

from ornstein.cli import main
from ornstein.cli._flags import flags_of
from ornstein.cli._main import COMMANDS
from ornstein.recipe import Recipe, SampleRecipe

CASES = {
    "option": ("train --widht 5", "`ornstein train` has no option --widht (did you "),
    "its nearest": ("train --batch_sise=5", "(did you mean --batch-size?)"),
    "its negation": ("train --no-learn-scal", "(did you mean --no-learn-scale?)"),
    "after a right one": ("train --kl-weight 1 --zz 3", "train` has no option --zz: "),
    "far from any": ("info --foo", "`ornstein info` has no option --foo: "),
    "of another command": (
        "train --corruptions",
        "--corruptions is an option of `ornstein evaluate`, not of `ornstein train`",
    ),
    "value": (
        "train --model menfield",
        "--model takes no 'menfield' (did you mean mean-field?): give one of sdebnn, ",
    ),
    "value far from any": ("train --preset zzz", "takes no 'zzz': give one of cpu, "),
    "kernel": ("sample --kernel hcm", "(did you mean hmc?): give one of adaptive-sgld"),
    "experiment": ("reproduce fig33", "NAME takes no 'fig33' (did you mean fig3?)"),
    "command": ("trian", "there is no command 'trian' (did you mean train?)"),
    "a command elsewhere": ("diagnose x", "'diagnose' (`ornstein evaluate RUN` ends"),
    "no command": ("--verison", "no option --verison (did you mean --version?)"),
    "no number": ("train --sigma wide", "--sigma takes a number, not 'wide': "),
    "no whole number": ("train --split 1.5", "--split takes a whole number, not '1.5'"),
    "neither": ("train --epochs five", "--epochs takes a whole number or None, not '"),
    "no value": ("train --width", "--width needs a value: `ornstein train --help`"),
    "one too many": ("evaluate a b", "`ornstein evaluate` has no place for 'b': "),
    "one too few": ("evaluate", "`ornstein evaluate` needs RUN: "),
    "two too few": ("predict", "needs RUN and INPUT and -o PATH"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_names_the_nearest(case: str, capsys):
    """Catches a frame of tyro's that is read wrongly, as after a release of it."""
    line, expected = CASES[case]
    assert main(line.split()) == 2
    out, said = capsys.readouterr()
    assert expected in said
    assert said.startswith("ornstein: ")
    assert said.count("\n") == 1
    assert not out


def test_flags_of_a_command_are_those_of_all_its_options():
    """Catches parts of a recipe, and negations, that are never meant."""
    train, sample = flags_of(COMMANDS["train"]), flags_of(COMMANDS["sample"])
    for part in dataclasses.fields(Recipe):
        for field in dataclasses.fields(getattr(Recipe(), part.name)):
            assert f"--{field.name.replace('_', '-')}" in train
    for field in dataclasses.fields(SampleRecipe().sampling):
        assert f"--{field.name.replace('_', '-')}" in sample
    assert {"--no-learn-scale", "--json", "--resume"} <= set(train)
    assert not {"--no-json", "--run-folder", "--recipe"} & set(train)
    assert "--run-folder" not in flags_of(COMMANDS["predict"])
