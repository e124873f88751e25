"""Pieces that lie in a folder and on a shelf, of several seeds."""

import json
from pathlib import Path

import pytest

from ornstein.studies import Shelf, Study
from ornstein.train import RunFolder


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


def _bare(folder: Path, seed: int) -> Study:
    return Study(folder, "quick", seed=seed, say=lambda text: None)


def test_another_seed_leaves_the_folder_as_it_was(tmp_path: Path):
    """Seen failing: hours of seed 0 replaced by a look at seed 1, and back again."""
    for seed in (0, 1):
        _bare(tmp_path, seed).piece("a", {"seed": seed}, lambda s=seed: s)
    for seed in (0, 1):
        assert _bare(tmp_path, seed).find("a", {"seed": seed}) == seed


def test_a_piece_whose_settings_have_a_seed_serves_every_call(tmp_path: Path):
    """As of a recipe's seed 2, typed or not. Seen failing: computed again."""
    settings = {"training": {"seed": 2}}
    assert _bare(tmp_path, 2).piece("a_2", settings, lambda: "once") == "once"
    for seed in (0, 1):
        never = lambda: pytest.fail("was computed again")
        assert _bare(tmp_path, seed).piece("a_2", settings, never) == "once"
        assert _bare(tmp_path, seed).find("a_2", {"training": {"seed": 3}}) is None


def test_pieces_of_a_seed_that_lie_under_the_plain_name_are_kept(tmp_path: Path):
    """As earlier versions wrote them. Catches them computed again."""
    kept = {"settings": {"seed": 1}, "value": "of before"}
    (tmp_path / "pieces").mkdir()
    (tmp_path / "pieces" / "a.json").write_text(json.dumps(kept))
    never = lambda: pytest.fail("was computed again")
    assert _bare(tmp_path, 1).piece("a", {"seed": 1}, never) == "of before"
    assert _bare(tmp_path, 0).find("a", {"seed": 0}) is None


def test_each_seed_has_its_own_run_folder(tmp_path: Path):
    """Catches scores of one seed beside the model of another; and a run of before,
    which lies under the plain name, that is begun again.
    """
    settings = [{"seed": seed} for seed in (0, 1, 2)]
    place = lambda seed: _bare(tmp_path, seed).run_folder("runs/a", settings[seed])
    RunFolder.create(place(0), settings[0])
    assert place(0) == tmp_path / "runs" / "a"
    assert place(1) == tmp_path / "runs" / "a_seed1"
    RunFolder.create(place(0), settings[1], overwrite=True)  # as an earlier version
    assert place(1) == place(0) == tmp_path / "runs" / "a"
    RunFolder.create(place(2), settings[2])
    RunFolder.create(place(0), settings[2], overwrite=True)
    assert place(2) == tmp_path / "runs" / "a_seed2"
    (place(0) / "config.json").write_text("{")  # and seed 0's damage is its own
    assert place(1) == tmp_path / "runs" / "a_seed1"
