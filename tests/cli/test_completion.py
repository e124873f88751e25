"""Completion, in the shell that it is for."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ornstein.cli import main

ASK = """
source "$1"; shift
function=$(complete -p ornstein | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
$function
echo "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ornstein tr", "train"),
        ("ornstein compl", "completion"),
        ("ornstein train --wid", "--width"),
        ("ornstein train --model mean", "mean-field"),
        ("ornstein sample --kernel sg", "sghmc sgld sgnht"),
    ],
)
def test_bash_completes(line, expected, tmp_path: Path):
    """Catches a script that bash cannot read, or that misses commands or values."""
    script = tmp_path / "ornstein"
    assert main(["completion", "bash", "-o", str(script)]) == 0
    asked = ["bash", "-c", ASK, "bash", str(script), *line.split()]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected, done.stderr


def test_it_is_installed_where_shells_look(tmp_path: Path, monkeypatch, capsys):
    """Catches another folder than bash-completion's, and a file of nothing."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "share" / "bash-completion" / "completions" / "ornstein"
    assert "complete -F" in path.read_text()
    assert main(["completion", "zsh"]) == 0
    assert (tmp_path / ".zfunc" / "_ornstein").read_text().startswith("#compdef")
    assert main(["completion", "fish"]) == 2
    assert "SHELL takes no 'fish': give one of bash, zsh." in capsys.readouterr().err
