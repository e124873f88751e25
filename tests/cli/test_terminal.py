"""Tables on a terminal: whole words, whichever way they fit."""

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

import ornstein_program
from ornstein.cli import main
from ornstein.cli._terminal import Terminal


def printed(rows, width):
    terminal = Terminal(is_json=False)
    file = io.StringIO()
    terminal.output = Console(file=file, width=width)
    terminal.grid("title", rows)
    return file.getvalue()


def rows_of(num_rows, num_columns):
    names = [f"score{j}" for j in range(num_columns)]
    return [
        {name: f"r{i}c{j}" for j, name in enumerate(names)} for i in range(num_rows)
    ]


@pytest.mark.parametrize(
    ("num_rows", "num_columns", "num_lines"),
    [(4, 3, 1 + 4), (2, 12, 12), (9, 9, 2 * (1 + 9))],
    ids=["lines", "columns", "parts"],
)
def test_grid_never_breaks_a_word(num_rows, num_columns, num_lines):
    rows = rows_of(num_rows, num_columns)
    text = printed(rows, 60)
    for row in rows:
        for value in row.values():
            assert value in text
    for j in range(num_columns):
        assert f"score{j}" in text
    assert sum("score" in s or "c0" in s for s in text.split("\n")) == num_lines


def test_long_text_stays_in_one_table():
    """Catches a box a row, which `ornstein info` printed (seen), and half a word."""
    about = "one series whose spread grows with its value at many irregular times"
    rows = [{"data": f"toy/{i}", "about": about, "where": None} for i in range(12)]
    text = printed(rows, 50)
    assert text.count("┏") == 1
    assert max(map(len, text.splitlines())) <= 50
    assert sum("toy/" in line for line in text.splitlines()) == 12
    words = {word for line in text.splitlines() for word in line.split()}
    assert set(about.split()) <= words


def test_parts_repeat_what_tells_rows_apart():
    """Catches parts whose rows cannot be told: two models of two seeds each."""
    rows = [
        {"model": m, "seed": s} | {f"score{j}": 0.123 for j in range(9)}
        for m in ("sde", "ode")
        for s in (0, 1)
    ]
    rows += [{"model": "gp", "seed": 2}]
    text = printed(rows, 44)
    assert text.count("┏") == text.count("model") == text.count("seed") == 3


def test_names_are_printed_as_they_are(monkeypatch, capsys):
    """Catches folders and columns read as markup: a traceback for `[/x]` (seen), and
    a picture for `:smile:`.
    """
    monkeypatch.setenv("COLUMNS", "80")
    name = "a[/x][b]:smile:"
    terminal = Terminal()
    terminal.say(name)
    terminal.table(name, {name: name})
    terminal.grid(name, [{name: name}])
    assert capsys.readouterr().out.count(name) == 7


@pytest.mark.parametrize(
    ("stream", "arguments"),
    [("stdout", ["info"]), ("stdout", ["info", "--json"]), ("stderr", ["trian"])],
)
def test_a_full_disk_behind_the_terminal(stream, arguments, monkeypatch, capsys):
    """Seen failing: "None: No space left on device", and a traceback."""
    file = open("/dev/full", "w")
    monkeypatch.setattr(sys, stream, file)
    assert main(arguments) == 2
    file.close()  # as Python's own end does, which meets nothing that is unwritten
    if stream == "stdout":
        said = capsys.readouterr().err.splitlines()[-1]
        assert said == "ornstein: standard output: No space left on device"


@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"]])
def test_readers_that_are_gone_do_not_end_the_work(arguments, monkeypatch, capfd):
    """Seen failing: standard output was closed too, and code 1 without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    name = "stderr" if "--json" in arguments else "stdout"
    monkeypatch.setattr(sys, name, open(writer, "w"))
    assert main(arguments) == 0
    getattr(sys, name).close()  # as Python's own end does
    monkeypatch.undo()
    out, err = capfd.readouterr()
    assert err == ""
    assert out == "" if name == "stdout" else "presets" in json.loads(out)


@pytest.mark.parametrize("option", ["--colour blue", "--solver rk9"])
def test_a_sentence_is_the_same_in_any_encoding(option, monkeypatch, capsys):
    """Seen failing: the dashes of a frame within it, where there is no UTF-8."""
    said = []
    for encoding in ("utf-8", "ascii"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["train", *option.split()]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]


def test_an_interruption_while_starting_is_one_line():
    """Seen failing: a traceback of whatever was being imported."""
    code = """
import signal, sys

class Interrupting:
    def find_spec(self, name, *rest):
        if name == "ornstein.cli":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:  # as libraries swallow it
                pass

sys.meta_path.insert(0, Interrupting())
import ornstein_program
assert "jax" not in sys.modules
sys.argv = ["ornstein", "info"]
sys.exit(ornstein_program.main())
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    child = subprocess.run(command, env=env, capture_output=True, text=True)
    assert child.returncode == 130
    assert child.stderr == "ornstein: interrupted while starting.\n"
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert project["scripts"]["ornstein"] == "ornstein_program:main"


def test_an_interruption_after_the_end_is_none():
    """Seen failing: a traceback of what Python's own end was doing."""
    code = """
import atexit, signal, sys, types
sys.modules["ornstein.cli"] = types.SimpleNamespace(main=lambda: 0)
atexit.register(signal.raise_signal, signal.SIGINT)
import ornstein_program
sys.argv = ["ornstein", "info"]
sys.exit(ornstein_program.main())
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    child = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (child.returncode, child.stderr) == (0, "")


def test_streams_that_are_closed_lead_nowhere(monkeypatch):
    """Seen failing: a traceback of `ornstein nosuch >&-`, and code 1."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    monkeypatch.setattr(sys, "argv", ["ornstein"])
    assert ornstein_program.main() == 2
    for stream in (sys.stdout, sys.stderr):
        stream.write("nothing")
        stream.close()


def test_a_result_is_said_in_any_encoding(monkeypatch):
    """Seen failing: `compare` ended with code 2 after all of its work."""

    def run(self, terminal, command):
        terminal.say("0.5 ± 0.1")
        return {}

    monkeypatch.setattr("ornstein.cli.commands._info.Info.run", run)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["info"]) == 0
    assert stream.buffer.getvalue() == b"0.5 ? 0.1\n"
