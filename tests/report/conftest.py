"""Small runs, made by the commands that users type."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ornstein.cli import main

HOSTILE = ["<script>alert(1)</script>", 'a "b" & c', "\N{RIGHT-TO-LEFT OVERRIDE}x"]
"""Names of columns, as nobody should have them."""

TINY = ["--epochs", "3", "--test-draws", "4", "--width", "4"]
CHAINS = "--num-samples 6 --num-warmup 30 --num-chains 2 --num-integration-steps 2"
CHAINS += " --width 3 --test-draws 4"


def table(folder: Path, *, target: str) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).round(3)
    grade = np.where(x[:, 0] > 0, "good", "<b>bad</b>")
    price = (3 * x[:, 0] + rng.normal(size=60)).round(3)
    names = ["id", *(f'"{n.replace(chr(34), chr(34) * 2)}"' for n in HOSTILE), target]
    y = grade if target == "grade" else price
    lines = [",".join(map(str, [f"p{i}", *x[i], y[i]])) for i in range(60)]
    path = folder / f"{target}.csv"
    path.write_text("\n".join([",".join(names), *lines, ""]), encoding="utf-8")
    return path


def made(folder: Path, command: str, target: str, name: str, *options: str) -> Path:
    data = folder / f"{target}.csv"
    if not data.exists():
        table(folder, target=target)
    run = folder / name
    args = ["--data", str(data), "--target", target, "--id-column", "id", *options]
    assert main([command, *args, "--out", str(run)]) in (0, 1)
    return run


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="session")
def classes(home: Path) -> Path:
    return made(home, "train", "grade", "classes", "--model", "mean-field", *TINY)


@pytest.fixture(scope="session")
def ensemble(home: Path) -> Path:
    options = ["--model", "ensemble", "--num-members", "2", *TINY]
    return made(home, "train", "grade", "ensemble", *options)


@pytest.fixture(scope="session")
def numbers(home: Path) -> Path:
    return made(home, "train", "price", "numbers", "--model", "mean-field", *TINY)


@pytest.fixture(scope="session")
def chains(home: Path) -> Path:
    return made(home, "sample", "price", "chains", *CHAINS.split())


@pytest.fixture(scope="session")
def images(home: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, level in (("dark", 40), ("light", 200)):
        (home / "images" / name).mkdir(parents=True)
        for i in range(12):
            pixels = (level + rng.integers(-30, 30, (6, 6))).astype(np.uint8)
            Image.fromarray(pixels).save(home / "images" / name / f"{name}-{i}.png")
    run = home / "of images"
    options = ["--data", str(home / "images"), "--model", "ensemble", *TINY]
    assert main(["train", *options, "--num-members", "2", "--out", str(run)]) == 0
    return run
