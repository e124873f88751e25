"""`ornstein report`, with right arguments and wrong ones."""

import json
import re
import shutil
from pathlib import Path

import pytest
from report.conftest import TINY, made
from report.page import Page

from ornstein.cli import main
from ornstein.cli.commands import _report
from ornstein.report import write_report


def test_a_run_leaves_its_report_and_the_command_writes_the_same(classes, capsys):
    """Catches a report that only `train` can write."""
    page = classes / "report.html"
    first = page.read_bytes()
    page.unlink()
    assert main(["report", str(classes), "--json"]) == 0
    assert page.read_bytes() == first
    result = json.loads(capsys.readouterr().out)
    assert result["report"] == str(page)
    assert result["num_bytes"] == len(first)


def test_several_runs_go_where_one_stands(classes, ensemble, tmp_path, monkeypatch):
    """Catches a comparison that replaces one of its runs' own reports, and (seen) one
    that does not say which run to take."""
    monkeypatch.chdir(tmp_path)
    before = (classes / "report.html").read_bytes()
    assert main(["report", str(classes), str(ensemble)]) == 0
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Side by side" in page.text("main")
    assert "Which to take" in page.text("dt")
    assert (classes / "report.html").read_bytes() == before
    assert main(["report", str(classes), str(ensemble)]) == 2
    assert main(["report", str(classes), str(ensemble), "--overwrite"]) == 0


WRONG = [
    ("{run} {run}", "given twice: give each run once"),
    ("{home}/nowhere", "is not a run: it has no config.json"),
    ("{run} -o {home}/nowhere/page.html", "There is no folder"),
    ("{run} -o {run}/result.json", "keeps its own files"),
    ("{run} {other} -o {run}/report.html", "keeps its own files"),
    ("", "RUN"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_wrong_arguments_end_in_a_sentence(arguments, said, classes, ensemble, capsys):
    text = arguments.format(run=classes, other=ensemble, home=classes.parent)
    assert main(["report", *text.split()]) == 2
    error = capsys.readouterr().err
    assert re.search(said, error)
    assert len(error.strip().splitlines()) == 1


def test_an_unfinished_run_is_refused_in_a_sentence(classes, tmp_path, capsys):
    """Catches a report of scores that are not there."""
    run = tmp_path / "run"
    shutil.copytree(classes, run)
    (run / "result.json").unlink()
    assert main(["report", str(run)]) == 2
    error = capsys.readouterr().err
    assert "has no result.json yet: finish the run with `ornstein train --res" in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["result.json", "evaluation.json", "test_rows.npz"])
@pytest.mark.parametrize("content", [b"", b"[1", b"[]", b'{"corruptions": 3}'])
def test_damaged_files_end_in_a_sentence(name, content, classes, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(classes, run)
    (run / name).write_bytes(content)
    code = main(["report", str(run)])
    error = capsys.readouterr().err
    if (name, content) == ("result.json", b'{"corruptions": 3}'):
        assert code == 0  # an object, of which nothing is known
        return
    assert code == 2
    assert "damaged" in error or "holds no JSON object" in error
    assert len(error.strip().splitlines()) == 1


def test_a_report_that_fails_loses_no_run(home: Path, monkeypatch, capsys):
    """Catches an error of the report that ends `train` before its result is told."""

    def fail(*args, **kwargs):
        raise RuntimeError("planted")

    monkeypatch.setattr(_report, "write_report", fail)
    options = ["--model", "ensemble", "--num-members", "2", *TINY]
    run = made(home, "train", "grade", "lost", *options)
    assert (run / "result.json").is_file()
    assert not (run / "report.html").exists()
    assert "there is no report (RuntimeError: planted)" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["report", str(run)]) == 0


def test_no_runs_are_none():
    with pytest.raises(ValueError, match="no run to report"):
        write_report([], "page.html")
