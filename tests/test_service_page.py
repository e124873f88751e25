"""The code of `docs/guide/my_service.md` runs as it stands."""

import asyncio
import contextlib
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from test_guides import QUICK_RUN, table_of_houses

import ornstein as orn
from ornstein.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "my_service.md"
TEXT = PAGE.read_text("utf-8")
SERVICE, PROGRAM = re.findall(r"```python\n(.*?)```", TEXT, re.S)
TRAIN, EXPORT = re.findall(r"```console\n\$ ornstein (.*?)```", TEXT, re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With the run that the page makes of the table of *My table*."""
    path = tmp_path_factory.mktemp("service")
    with contextlib.chdir(path):
        table_of_houses()
        assert main([*words(TRAIN), *QUICK_RUN.split()]) == 0
    return path


def words(line: str) -> list[str]:
    """Of a command of the page."""
    return shlex.split(line.replace("\\\n", " "))


def test_the_first_question_is_one_that_the_run_takes(folder: Path, monkeypatch):
    """Without FastAPI. Seen failing of a run of all columns: there is no 'garage'."""
    monkeypatch.chdir(folder)
    (line,) = re.findall(r"^run\.predict\(.*\)$", SERVICE, re.M)
    exec(line, {"pd": pd, "run": orn.load_run("runs/houses")})


def test_the_service_answers(folder: Path, monkeypatch):
    """Catches a page that no release runs."""
    pytest.importorskip("fastapi", reason="FastAPI is no dependency of ours")
    httpx = pytest.importorskip("httpx", reason="asks FastAPI without a server")
    monkeypatch.chdir(folder)
    names: dict = {"__name__": "service"}
    exec(compile(SERVICE, "my_service.md", "exec"), names)

    async def ask(houses: list[dict]):
        transport = httpx.ASGITransport(app=names["app"])
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.post("http://here/price", json=houses)

    house = {"area": None, "rooms": 4, "city": "Wien"}
    said = asyncio.run(ask([house, house | {"area": 90.5}]))
    assert said.status_code == 200, said.text
    first, second = said.json()
    assert first["low"] < first["mean"] < first["high"]
    assert first != second
    assert asyncio.run(ask([])).status_code == 422


def test_the_program_runs(folder: Path, monkeypatch, capsys):
    """Catches another name, shape or place of a category than the page has."""
    monkeypatch.chdir(folder)
    assert main([*words(EXPORT), "--overwrite"]) == 0
    exec(compile(PROGRAM, "my_service.md", "exec"), {})
    assert "[[" in capsys.readouterr().out
