"""`--help` shows what these data and this model read, and `--help-all` the rest."""

import dataclasses
import re
import typing
from typing import Any

import pytest

from ornstein.cli import main
from ornstein.cli._flags import flag, flags_of
from ornstein.cli._main import COMMANDS
from ornstein.recipe import (
    KERNELS,
    MODELS,
    Recipe,
    check_read,
    check_recipe,
    preset_recipe,
    preset_sampling,
    unread_options,
)

LATENT = ("latent-sde", "latent-ode")


def help_of(line: str, capsys) -> str:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 0
    return capsys.readouterr().out


def other_than(value: Any, hint: Any) -> Any:
    """A value of an option that is not this one."""
    if typing.get_origin(hint) is typing.Literal:
        return next(v for v in reversed(typing.get_args(hint)) if v != value)
    kinds = {bool: lambda: not value, int: lambda: value + 1, str: lambda: f"{value}0"}
    kinds |= {float: lambda: value + 0.25, tuple: lambda: ("a",)}
    if value is None:
        kind = next(k for k in typing.get_args(hint) if k is not type(None))
        return kind("3") if kind in (int, float, str) else typing.get_args(kind)[0]
    return kinds[type(value)]()


def refused(recipe: Recipe) -> set[str]:
    """Options whose every change is refused because nothing reads them."""
    names = set()
    for part in dataclasses.fields(recipe):
        options = getattr(recipe, part.name)
        hints = typing.get_type_hints(type(options))
        for field in dataclasses.fields(options):
            value = other_than(getattr(options, field.name), hints[field.name])
            try:
                check_recipe(recipe.changed(**{field.name: value}))
            except ValueError as error:
                if str(error).startswith(f"`{field.name}` does nothing for `"):
                    names.add(field.name)
    return names


@pytest.mark.parametrize("model", [*MODELS])
def test_what_is_refused_is_not_shown(model: str):
    """And what is hidden of the model's own options is refused. Catches an option of
    another family in the help (seen: 126 of them for each), and one that is read and
    not there.
    """
    data = "toy/gbm" if model in LATENT else "digits"
    recipe = preset_recipe(data, model=model)
    hidden, nothing = unread_options(recipe), refused(recipe)
    assert nothing <= hidden
    of_model = {field.name for field in dataclasses.fields(recipe.model)}
    if model not in ("sdebnn", *LATENT):  # whose data decide, too
        assert hidden & of_model <= nothing


@pytest.mark.parametrize("kernel", [*KERNELS])
def test_what_chains_refuse_is_not_shown(kernel: str):
    """Catches options of another kernel in the help, and the like."""
    options = preset_sampling("digits", kernel).sampling
    hints = typing.get_type_hints(type(options))
    hidden = unread_options(preset_sampling("digits", kernel))
    for field in dataclasses.fields(options):
        if field.name in ("kernel", "network", "start_from"):
            continue
        value = other_than(getattr(options, field.name), hints[field.name])
        changed = dataclasses.replace(options, **{field.name: value})
        try:
            check_read(changed, options)
        except ValueError:
            assert field.name in hidden
        else:
            assert field.name not in {"batch_size", "momentum"} & hidden


CASES = {
    "own table": (
        "train --data my.csv --model mean-field",
        "target features separator time weight-scale kl-weight",
        "split image-size series sigma num-components noise-window blocks df",
    ),
    "sequences": (
        "train --data my.csv --time t",
        "time series time-unit latent-size recognition",
        "target features width num-members image-size",
    ),
    "uci": ("train --data uci/yacht --model ensemble", "split num-members", "target"),
    "images": (
        "train --data cifar10 --network resnet-20 --model ensemble",
        "image-augmentation norm network-width num-members",
        "width pretrained target time split",
    ),
    "points": (
        "train --data my.csv --model map --network mlp",
        "prior weight-scale kl-weight test-draws",
        "num-draws importance-weighted weight-noise",
    ),
    "what is given": (
        "train --data my.csv --model mean-field --likelihood student-t --prior laplace",
        "df weight-scale",
        "narrow-scale mixture init-hessian",
    ),
    "chosen later": ("train --data my.csv", "target scale seed model", "width epochs"),
    "chains": (
        "sample --data my.csv --kernel hmc",
        "target num-integration-steps num-warmup prior-scale",
        "momentum batch-size cycles sigma blocks split",
    ),
    "paths": (
        "sample --kernel sghmc --network sdebnn --data digits",
        "sigma momentum cycles",
        "num-integration-steps target",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_help_is_of_the_data_and_the_model(case: str, capsys):
    """Catches options that are shown where they do nothing, or hidden where they do."""
    line, there, absent = CASES[case]
    text = help_of(f"{line} --help", capsys)
    for name in there.split():
        assert re.search(rf"(?m)^\W{{1,2}}--{name}[ ,]", text), name
    for name in absent.split():
        assert not re.search(rf"(?m)^\W{{1,2}}--{name}[ ,]", text), name
    shown, of_all = re.search(r"Shown are the (\d+) of (\d+)", text).groups()
    assert len(re.findall(r"(?m)^\W{1,2}--[a-z]", text)) == int(shown) < int(of_all)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_all_has_every_flag(command: str, capsys):
    """Catches a command that does not know it, or hides an option all the same."""
    text = help_of(f"{command} --help-all", capsys)
    for name in flags_of(COMMANDS[command]):
        assert name in text


def test_options_that_are_not_shown_are_still_known(capsys):
    """Catches `no option` for one that other models read."""
    line = "train --data digits --model mean-field --sigma 0.3"
    assert main(line.split()) == 2
    assert f"{flag('sigma')} does nothing for --network mlp" in capsys.readouterr().err


def test_groups_have_names_that_people_read(capsys):
    """Catches (seen) the name of a field before each: `recipe.data options`."""
    assert "recipe." not in help_of("train --help", capsys)
    assert "recipe." not in help_of("sample --help-all", capsys)
