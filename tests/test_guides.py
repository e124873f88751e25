"""The guides' own code, run from top to bottom with budgets cut.

It catches a name that a page forgot to import, an option that is gone, and a network
that a method refuses.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ornstein.cli import main
from ornstein.studies import EXPERIMENTS

DOCS = Path(__file__).parents[1] / "docs"
GUIDE = DOCS / "guide"
BUDGETS = r"\b(num_epochs|num_warmup|num_samples|num_draws)=\d+"
QUICK_RUN = "--model mean-field --width 4 --steps 5 --test-draws 4"
QUICK_SERIES = "--latent-size 1 --hidden-size 3 --context-size 2 --drift-widths 3 "
QUICK_SERIES += "--substeps 1 --epochs 2 --test-draws 3"


def blocks_of(page: str, language: str) -> list[str]:
    text = (GUIDE / f"{page}.md").read_text(encoding="utf-8")
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, text, flags=re.DOTALL | re.MULTILINE)


def shell(page: str, options: str) -> None:
    """The page's own commands, with more options for `train`, and few samples."""
    for line in "".join(blocks_of(page, "bash")).splitlines():
        program, command, *words = shlex.split(line)
        assert program == "ornstein", line
        added = shlex.split(options) if command == "train" else []
        if command == "sample":
            added = ["--num-samples", "10", "--num-warmup", "10"]
        assert main([command, *words, *added]) == 0, line


def table_of_houses() -> pd.DataFrame:
    """What *My table* has: semicolons, decimal commas, empty cells, dates."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "house id": [f"H{i:05d}" for i in range(60)],
            "area": np.where(rng.random(60) < 0.1, np.nan, rng.normal(100, 20, 60)),
            "rooms": rng.integers(1, 6, 60),
            "city": rng.choice(["Wien", "Graz"], 60),
            "garage": rng.choice(["ja", "nein"], 60),
            "sold on": [f"{1 + i % 28:02d}.02.2021" for i in range(60)],
            "price": rng.normal(300_000, 50_000, 60).round(2),
        }
    )
    table.to_csv("houses.csv", sep=";", decimal=",", index=False)
    return table


def houses() -> None:
    table = table_of_houses()
    new = table.drop(columns="price").head(5)
    new.to_csv("new.csv", sep=";", decimal=",", index=False)
    line = "train --data houses.csv --target price --out runs/houses"
    assert main([*line.split(), "--id-column", "house id", *QUICK_RUN.split()]) == 0


def customers() -> None:
    """Shards of Parquet, new rows, and photographs; the page's own commands."""
    rng = np.random.default_rng(0)
    age, plan = rng.integers(18, 90, 600), rng.choice(["basic", "pro"], 600)
    table = pd.DataFrame({"age": age, "plan": plan})
    table.head(5).to_csv("new.csv", index=False)
    table["churned"] = np.where(rng.random(600) < age / 100, "yes", "no")
    Path("customers").mkdir()
    for number in range(3):
        part = table.iloc[200 * number : 200 * (number + 1)]
        part.to_parquet(f"customers/{number}.parquet", index=False)
    write_photographs()
    shell("larger_than_memory", "--width 4 --num-members 2 --steps 5 --test-draws 2")


def two_runs() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "y"])
    table.to_csv("own.csv", index=False)
    for name in ("a", "b"):
        line = f"train --data own.csv --target y --out runs/{name} {QUICK_RUN}"
        assert main(line.split()) == 0


def write_photographs() -> None:
    """Three classes of two sizes, and new ones."""
    rng = np.random.default_rng(0)
    places = [f"photos/{c}/{i}.jpg" for c in ("beech", "oak", "pine") for i in range(6)]
    for number, place in enumerate([*places, "new_photos/walk/0.jpg"]):
        shape = (40 + number % 2, 50, 3)
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(place)


def photographs() -> None:
    """Classes and new photographs, as the page has them."""
    write_photographs()
    shell("my_photographs", "--image-size 32 --width 4 --num-members 2 --epochs 1")


def stations() -> None:
    """Series with gaps; three of them are asked for three more days."""
    rng = np.random.default_rng(0)
    rows = [
        (f"s{n}", f"2024-01-{t + 1:02d}", None if (t + n) % 5 == 0 else rng.normal(9))
        for n in range(6)
        for t in range(12)
    ]
    table = pd.DataFrame(rows, columns=["station", "day", "temperature"])
    table.to_csv("stations.csv", index=False)
    asked = table[table.station < "s3"].copy()
    asked.loc[asked.day > "2024-01-09", "temperature"] = None
    asked.to_csv("asked.csv", index=False)
    shell("my_series", QUICK_SERIES)


class Page(NamedTuple):
    """How a page is run.

    Attributes:
        num_blocks: of Python, so that one whose fence is broken is missed.
        prepare: what its reader has before: files, and runs made by its commands.
        cut: what is replaced, beside budgets, to cost less; each must be there.
        budget: of what `BUDGETS` names, at most.
        leaves: files that are there afterwards.
    """

    num_blocks: int
    prepare: Callable[[], None] = lambda: None
    cut: tuple[tuple[str, str], ...] = ()
    budget: int = 3
    leaves: tuple[str, ...] = ()


QUICK_REGRESSOR = 'BayesianRegressor("laplace", options={"steps": 20}, '
PAGES = {
    "choosing": Page(3, cut=(("HMC(100,", "HMC(3,"), ("HMC(20)", "HMC(3)"))),
    "coming_from": Page(
        8,
        cut=(('"num_samples": 50', '"num_samples": 3'), (": 200,", ": 3,")),
        budget=20,  # or there is no best temperature
    ),
    "larger_than_memory": Page(1, customers, leaves=("predicted.csv", "named.csv")),
    "long_runs": Page(
        1, cut=(("store_every=10", "store_every=1"), ("HMC(20)", "HMC(3)"))
    ),
    "my_network": Page(7, leaves=("network.npz",)),
    "my_photographs": Page(1, photographs, leaves=("named.csv",)),
    "my_series": Page(1, stations, leaves=("forecast.csv", "forecast.png")),
    "my_table": Page(1, houses),
    "report": Page(1, two_runs, leaves=("runs.html",)),
    "scikit_learn": Page(
        2,
        cut=(
            ("BayesianRegressor(random", QUICK_REGRESSOR + "random"),
            ('"steps": 1000', '"steps": 20'),
        ),
    ),
    "which_method": Page(1, cut=(("effort=0.1", "effort=0.02"),)),
}
ELSEWHERE = {
    "my_service": "tests/test_service_page.py",
    "pytorch": "tests/torch_bridge/test_guide.py",
    "several_devices": "tests/mesh/test_mesh.py",
    "sweep": "tests/sweep/test_table.py",
}
NOT_RUN = {
    "pretrained": "needs the weights of a ResNet-50, 100 MB from the network",
}


def test_every_page_with_code_is_run():
    """Catches a page whose code nobody runs, and a list that is no longer true."""
    found = {path.stem for path in GUIDE.glob("*.md") if blocks_of(path.stem, "python")}
    assert found == {*PAGES, *ELSEWHERE, *NOT_RUN}
    assert all((DOCS.parent / test).is_file() for test in ELSEWHERE.values())


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PAGES)
def test_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Catches a line of a page that its reader cannot run."""
    monkeypatch.chdir(tmp_path)
    page, blocks = PAGES[name], blocks_of(name, "python")
    assert len(blocks) == page.num_blocks
    text = "".join(blocks)
    assert all(old in text for old, _ in page.cut)
    names: dict = {"__name__": "guide"}
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        page.prepare()
        for block in blocks:
            code = re.sub(BUDGETS, rf"\g<1>={page.budget}", block)
            for old, new in page.cut:
                code = code.replace(old, new)
            exec(compile(code, f"{name}.md", "exec"), names)
    assert all((tmp_path / file).stat().st_size > 0 for file in page.leaves)


def test_first_report_is_what_ci_runs():
    """`.ci/run` takes the page's blocks, and cuts what this line has."""
    text = "".join(blocks_of("first_report", "bash"))
    assert re.search(r"^ornstein train --data mine\.csv .*--out runs/mine$", text, re.M)
    assert "first_report.md" in (DOCS.parent / ".ci" / "run").read_text("utf-8")


def test_gallery_has_every_picture_and_every_study():
    """Catches a picture that nobody finds, and a study that the page forgot."""
    text = (GUIDE / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[.+?\]\(\.\./results/(.+?)\)", text)
    assert sorted(shown) == sorted(p.name for p in DOCS.glob("results/*.png"))
    drawn = re.findall(r"^\$ ornstein reproduce (\S+)", text, flags=re.MULTILINE)
    assert len(drawn) == len(shown)
    listed = re.findall(r"`([a-z0-9-]+)`", text.split("## Pictures that are not")[1])
    assert sorted([*drawn, *listed]) == sorted(EXPERIMENTS)
