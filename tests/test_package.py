import ast
import importlib
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import ornstein
import ornstein_program
from ornstein.cli._main import COMMANDS

# Of what `import ornstein` took seconds for.
HEAVY = ("blackjax", "diffrax", "equinox", "jax", "numpyro", "optax", "orbax", "scipy")
LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def loaded(program: str) -> set[str]:
    """The top modules that a fresh process has after a program."""
    line = [sys.executable, "-c", f"{program}\n{LOADED}"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return {name.split(".")[0] for name in json.loads(said.splitlines()[-1])}


def test_version_is_the_installed_one():
    assert ornstein.__version__ == version("ornstein")


def test_every_public_name_is_what_its_module_has():
    """Catches a name that is imported from elsewhere than type checkers see it."""
    source = Path(ornstein.__file__).read_text(encoding="utf-8")
    imports = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom)]
    seen = {"__version__"}
    for node in imports:
        for alias in node.names:
            if alias.name.startswith("_") or alias.name == "lazy_names":
                continue
            seen.add(alias.name)
            where = ".".join(filter(None, ["ornstein", node.module]))
            if node.module is None:
                expected = importlib.import_module(f"{where}.{alias.name}")
            else:
                expected = getattr(importlib.import_module(where), alias.name)
            assert getattr(ornstein, alias.name) is expected
    assert seen == set(ornstein.__all__)
    assert seen <= set(dir(ornstein))


def test_a_name_that_is_not_there_is_an_attribute_error():
    """Catches `hasattr` that raises, or a name that is imported as `None`."""
    with pytest.raises(AttributeError, match="'ornstein' has no attribute 'fitt'"):
        getattr(ornstein, "fitt")  # noqa: B009
    assert not hasattr(ornstein, "_nothing")


def test_importing_takes_no_time():
    """Catches an import at the top that costs what nobody asked for yet."""
    assert not loaded("import ornstein") & {*HEAVY, "numpy"}
    assert "jax" in loaded("import ornstein; ornstein.sde")


@pytest.mark.parametrize("line", ["--help", "--version", "-h", ""])
def test_first_words_take_no_time(line: str):
    """Catches a program that imports JAX to say its version."""
    program = (
        "import contextlib, io, sys, ornstein_program\n"
        f"sys.argv = ['ornstein', *{line.split()}]\n"
        "with contextlib.redirect_stdout(io.StringIO()), "
        "contextlib.redirect_stderr(io.StringIO()): ornstein_program.main()"
    )
    assert not loaded(program) & {*HEAVY, "numpy", "tyro"}


def test_help_lists_every_command_by_its_first_line():
    """Catches a command that is new, or says another thing, beside the list."""
    firsts = {
        name: (kind.__doc__ or "").splitlines()[0] for name, kind in COMMANDS.items()
    }
    assert firsts == ornstein_program.COMMANDS


def test_help_and_version_are_said(capsys, monkeypatch):
    """Catches a list that nobody sees, or another exit code."""
    monkeypatch.setattr(sys, "argv", ["ornstein", "--version"])
    assert ornstein_program.main() == 0
    assert capsys.readouterr().out == f"ornstein {version('ornstein')}\n"
    monkeypatch.setattr(sys, "argv", ["ornstein", "--help"])
    assert ornstein_program.main() == 0
    assert "  reproduce   Make a figure" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["ornstein"])
    assert ornstein_program.main() == 2
    assert "a command is missing" in capsys.readouterr().err


def test_the_package_runs_as_the_program():
    """`python -m ornstein`. Catches one that imports what its answer does not need."""
    line = [sys.executable, "-m", "ornstein", "--version"]
    found = subprocess.run(line, capture_output=True, text=True, check=True)
    assert found.stdout == f"ornstein {ornstein.__version__}\n"
    line[-1:] = ["trian"]
    found = subprocess.run(line, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stderr.startswith("ornstein: there is no command 'trian' (did you")
    program = (
        "import contextlib, io, runpy, sys\n"
        "sys.argv = ['ornstein', '--version']\n"
        "with contextlib.suppress(SystemExit), "
        "contextlib.redirect_stdout(io.StringIO()):\n"
        "    runpy.run_module('ornstein', run_name='__main__')"
    )
    assert not loaded(program) & {*HEAVY, "numpy"}
