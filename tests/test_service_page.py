"""The code of `docs/guide/my_service.md` runs as it stands."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ornstein.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "my_service.md"
SERVICE, PROGRAM = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With the run that the page has."""
    path = tmp_path_factory.mktemp("service")
    rng = np.random.default_rng(0)
    area = np.where(rng.random(60) < 0.1, np.nan, rng.normal(100, 20, 60))
    rooms, city = rng.integers(1, 6, 60), rng.choice(["Wien", "Graz"], 60)
    price = 1000.0 * rooms
    frame = {"area": area, "rooms": rooms, "city": city, "price": price}
    pd.DataFrame(frame).to_csv(path / "houses.csv", index=False)
    line = f"train --data {path / 'houses.csv'} --target price --model mean-field"
    line += f" --width 4 --steps 5 --test-draws 4 --out {path / 'runs' / 'houses'}"
    (path / "runs").mkdir()
    assert main(line.split()) == 0
    return path


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
    assert main("export runs/houses -o houses.hlo --overwrite".split()) == 0
    exec(compile(PROGRAM, "my_service.md", "exec"), {})
    assert "[[" in capsys.readouterr().out
