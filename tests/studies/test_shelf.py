"""Pieces that lie in a folder and on a shelf."""

import json
from pathlib import Path

from ornstein.studies import Shelf, Study


def _study(folder: Path, seed: int = 0) -> Study:
    shelf = Shelf(folder / "shelf.json")
    return Study(folder / "runs", "full", seed=seed, say=lambda text: None, shelf=shelf)


def test_the_shelf_wins_over_the_folder(tmp_path: Path):
    """Seen failing: a value mended in git was replaced by the checkout's older one."""
    _study(tmp_path).piece("a", {"seed": 0}, lambda: 9.9)
    file = tmp_path / "shelf.json"
    mended = file.read_text().replace("9.9", "0.32")
    file.write_text(mended)
    assert _study(tmp_path).find("a", {"seed": 0}) == 0.32
    assert file.read_text() == mended
    file.unlink()
    assert _study(tmp_path).find("a", {"seed": 0}) == 9.9
    assert json.loads(file.read_text())["pieces"]["a"]["value"] == 9.9


def test_another_seed_leaves_the_shelf_as_it_was(tmp_path: Path):
    """Seen failing: three splits of seed 1 took the place of three of seed 0."""
    for seed in (0, 1):
        piece = _study(tmp_path, seed).piece("a_2", {"seed": seed}, lambda s=seed: s)
        assert piece == seed
    for seed in (0, 1):
        assert _study(tmp_path, seed).find("a_2", {"seed": seed}) == seed
    # Names that have the seed already, as a call of seed 0 wrote them.
    _study(tmp_path).piece("b_1", {"seed": 1}, lambda: "b")
    assert _study(tmp_path, 1).find("b_1", {"seed": 1}) == "b"
