"""The README and `docs/results` say what the files in `results` say."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs import figures, render
from docs.records import Files
from docs.tables import calls

README = (render.ROOT / "README.md").read_text(encoding="utf-8")
PAGES = dict(render.pages())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_is_what_its_template_makes(path: Path):
    """Catches a number of an earlier run (a digit changed by hand was seen)."""
    assert path.read_text(encoding="utf-8") == PAGES[path], "run `make pages`"


@pytest.mark.parametrize("name", figures.FIGURES)
def test_figure_shows_the_numbers_of_its_file(name: str):
    """Catches a figure of an earlier run."""
    data = figures.FIGURES[name](render.RESULTS)
    drawn = figures.sum_in(figures.FOLDER / f"{name}.png")
    assert drawn == figures.checksum(data), "run `make pages`"


def test_bands_are_those_of_their_file():
    """Catches a picture of another run than `results/fig2.json`."""
    widths = figures.band_widths(render.RESULTS / "fig2.json")
    assert figures.sum_in(figures.FOLDER / "bands.png") == figures.checksum(widths)


def test_every_page_of_results_is_there():
    """Catches a page written by hand beside the templates."""
    folder = render.ROOT / "docs" / "results"
    names = {"agreement", "depth", "images", "sequences", "implicit", "samplers"}
    names |= {"scaling", "speed", "tables"}
    assert {path.stem for path in folder.glob("*.md")} == names
    assert {path.stem for path in PAGES} == names | {"README"}


def changed(results: Path, file: str, change: Callable[[Any], None]) -> dict[Path, str]:
    """Every page, where one of the files is another one."""
    shutil.copytree(render.RESULTS, results)
    path = results / file
    held = json.loads(path.read_text(encoding="utf-8"))
    change(held)
    path.write_text(json.dumps(held), encoding="utf-8")
    return dict(render.pages(results))


def test_another_result_is_another_page(tmp_path: Path):
    """Catches a number that a template holds itself."""
    page = render.ROOT / "docs" / "results" / "depth.md"
    pages = changed(tmp_path / "r", "mnist.json", lambda held: held.update(nll=0.123))
    assert "0.123" in pages[page]
    assert "0.123" not in PAGES[page]


def test_sentence_whose_ground_is_gone_is_refused(tmp_path: Path):
    """Catches prose that compares what has changed places."""
    with pytest.raises(ValueError, match=r"depth.*drift_gain.* holds no more"):
        changed(tmp_path / "r", "digits.json", lambda held: held.update(drift_gain=2.0))


def test_key_of_a_later_file_is_a_dash():
    """Old files lack keys that a template may ask for; others are misspelt."""
    names = {"row": Files(render.RESULTS, {})["digits"]}
    assert render.render("{{ row.maybe('later') | .2f }}", names) == "–"
    with pytest.raises(ValueError, match="has no 'ne_nll'"):
        render.render("{{ row.ne_nll | .2f }}", names)


def test_numbers_as_readers_meet_them():
    """Catches a hyphen for a minus, "-0.00", and a deviation of one run."""
    runs = Files(render.RESULTS, calls(render.RESULTS))["runs"]
    names = {
        "x": -0.001,
        "three": runs("mnist", "sdebnn"),
        "one": runs("mnist", "odenet"),
    }
    text = render.render("{{ x | .3f }} {{ x | .2f }} {{ 1234567 | ,d }}", names)
    assert text == "−0.001 0.00 1,234,567"
    assert " ± " in render.render("{{ three.all('nll') | ± .4f }}", names)
    assert " ± " not in render.render("{{ one.all('nll') | ± .4f }}", names)


def test_readme_is_a_door():
    """Short, and with a picture that is there and small."""
    assert len(README.splitlines()) <= 135
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert len(pictures) == 1
    assert (render.ROOT / pictures[0]).stat().st_size < 60_000


def test_links_of_the_readme_lead_somewhere():
    """Catches a page that has moved."""
    links = re.findall(r"\]\(([^)#]+?)(?:#.*?)?\)", README)
    missing = [link for link in links if not (render.ROOT / link).exists()]
    assert len(links) > 8
    assert not missing
