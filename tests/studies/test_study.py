"""Experiments on the smallest scale, and the pieces that they keep."""

import json
import subprocess
import sys
import types
import typing
from pathlib import Path

import numpy as np
import pytest

from ornstein.cli import main
from ornstein.cli.commands._reproduce import ExperimentName
from ornstein.recipe import _provenance, preset_recipe, preset_sampling
from ornstein.studies import EXPERIMENTS, Experiment, Study, _ledger, _train_and_judge
from ornstein.studies._shelf import Shelf
from ornstein.studies.sdebnn import _fig8


def test_every_name_has_a_study():
    for name, experiment in EXPERIMENTS.items():
        assert experiment.summary, name
    assert set(typing.get_args(ExperimentName)) == set(EXPERIMENTS)


def test_a_program_that_runs_no_study_loads_none():
    """Catches a study at the top of the command line, or of the package."""
    program = """
import sys
import ornstein.cli
rooms = ("sdebnn", "implicit", "latent", "samplers")
studies = tuple(f"ornstein.studies.{room}" for room in rooms)
print([m for m in sys.modules if m.startswith((*studies, "ornstein.exactness"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.stdout.decode().strip() == "[]", done


def test_pieces_are_kept_until_their_settings_change(tmp_path: Path):
    """Catches a piece that is computed again, or kept though it is another."""
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    computed = []

    def compute(value):
        computed.append(value)
        return {"value": value}

    for settings, value in [({"a": (1, 2)}, 1), ({"a": (1, 2)}, 2), ({"a": (1,)}, 3)]:
        found = study.piece("p", settings, lambda v=value: compute(v))
        assert found["value"] in computed
    assert computed == [1, 3]


@pytest.mark.parametrize(
    "wrap", [lambda r: r, lambda r: {"recipe": r, "fold": 1}, lambda r: [r, 2]]
)
@pytest.mark.parametrize(
    ("recipe", "part", "option", "other"),
    [
        (preset_recipe("toy/cos"), "training", "on_nonfinite", "skip"),
        (preset_sampling("digits"), "sampling", "store_every", 2),
    ],
)
def test_a_piece_of_before_an_option_came_is_kept(
    recipe, part: str, option: str, other, wrap, tmp_path: Path
):
    """And one of another value is not. Seen failing: hours computed again, and pieces
    that were committed not found, since an option came whose default is what they had.
    """
    shelf = Shelf(tmp_path / "shelf.json")
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None, shelf=shelf)
    before = recipe.to_json()
    del before[part][option]
    assert study.piece("p", wrap(before), lambda: "before") == "before"
    assert study.find("p", wrap(recipe.to_json())) == "before"
    changed = recipe.changed(**{option: other}).to_json()
    assert study.find("p", wrap(changed)) is None
    (tmp_path / "pieces" / "p.json").unlink()
    assert study.find("p", wrap(recipe.to_json())) == "before"
    assert study.find("p", wrap(changed)) is None
    unknown = recipe.to_json()
    unknown[part]["of a later version"] = 1
    assert study.find("p", wrap(unknown)) is None


def test_a_piece_without_its_file_is_computed_again(tmp_path: Path):
    """Catches the score of a model trained anew under the origin of the lost one."""
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    model, found = tmp_path / "final.npz", []
    for is_there in (True, False):
        if not is_there:
            model.unlink()
        compute = lambda i=is_there: model.touch() or ("first" if i else "again")
        found.append(study.piece("train", 0, compute, needs=model))
    found.append(study.piece("train", 0, lambda: "third", needs=model))
    assert found == ["first", "again", "again"]


class _Calls:
    """`ornstein reproduce fig1` with pieces of known seconds, call after call."""

    def __init__(self, folder: Path, monkeypatch, capsys):
        self.folder, self.patch, self.capsys = folder, monkeypatch, capsys
        self.now = 0.0
        clock = types.SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(_ledger, "time", clock)

    def __call__(self, commit: str, run) -> dict:
        """The provenance of the result of a call at `commit`."""
        self.patch.setattr(_provenance, "commit", lambda: commit)
        experiment = Experiment("", "", lambda study: run(study) or [{"row": 1}])
        self.patch.setitem(EXPERIMENTS.taken, "fig1", experiment)
        assert main(["reproduce", "fig1", "--out", str(self.folder), "--json"]) == 0
        return json.loads(self.capsys.readouterr().out)["provenance"]

    def spend(self, seconds: float) -> float:
        self.now += seconds
        return seconds


@pytest.fixture
def calls(tmp_path: Path, monkeypatch, capsys) -> _Calls:
    return _Calls(tmp_path, monkeypatch, capsys)


def test_a_result_lists_the_commits_of_its_pieces(calls: _Calls):
    """Catches a result that gives the last call's commit and seconds to all of it."""

    def first(study: Study):
        study.piece("a", 1, lambda: calls.spend(30))
        study.beside(calls.folder / "other").piece("b", 1, lambda: calls.spend(5))
        calls.spend(2)

    def second(study: Study):
        first(study)
        study.piece("c", 1, lambda: calls.spend(100))

    assert calls("aaa", first)["seconds"] == 37
    found = calls("bbb", second)
    assert found["commit"] == "bbb"
    assert {p["commit"]: p["seconds"] for p in found["pieces"]} == {
        "aaa": {"a": 30, "b": 5},
        "bbb": {"c": 100},
    }
    keys = {"command", "commit", "versions", "device", "processor", "cores"}
    keys |= {"seed", "seconds"}
    assert all(set(piece) == keys for piece in found["pieces"])
    # The pieces' 135 and the 2 that this call did beside them.
    assert (found["seconds"], found["call_seconds"]) == (137, 102)


def test_seconds_of_a_piece_within_a_piece_count_once(calls: _Calls):
    """Catches seconds counted twice, and a training left out of its kept score."""

    def run(study: Study):
        def scored():
            return calls.spend(3) + study.piece("train", 1, lambda: calls.spend(40))

        assert study.piece("score", 1, scored) == 43

    for commit in ("aaa", "bbb"):
        found = calls(commit, run)
        assert [p["commit"] for p in found["pieces"]] == ["aaa"]
        assert found["pieces"][0]["seconds"] == {"train": 40, "score": 3}
        assert found["seconds"] == 43


def test_the_commit_of_a_piece_is_that_of_its_start(calls: _Calls):
    """Catches the commit that a checkout has moved on to while the code ran."""

    def run(study: Study):
        calls.patch.setattr(_provenance, "commit", lambda: "later")
        study.piece("a", 1, lambda: calls.spend(1))

    found = calls("aaa", run)
    assert found["commit"] == found["pieces"][0]["commit"] == "aaa"


def test_a_piece_names_the_calls_that_were_interrupted_in_it(calls: _Calls):
    """Catches a training resumed at another commit as the work of the last call."""

    def stopped(study: Study):
        study.piece("a", 1, lambda: (_ for _ in ()).throw(ValueError("full disk")))

    calls.patch.setattr(_provenance, "commit", lambda: "aaa")
    with pytest.raises(ValueError, match="full disk"):
        stopped(Study(calls.folder, "quick", seed=0, say=lambda text: None))
    for commit in ("bbb", "ccc"):
        found = calls(
            commit, lambda s: s.piece("a", 1, lambda: calls.spend(2)) and None
        )
        (piece,) = found["pieces"]
        assert (piece["commit"], piece["seconds"]) == ("bbb", {"a": 2})
        assert [before["commit"] for before in piece["begun"]] == ["aaa"]


@pytest.mark.parametrize("damage", ["3", "{", '{"a": 1}', "[1]", "[" * 3000, "\xff"])
def test_damaged_notes_of_an_interruption_count_as_none(damage: str, calls: _Calls):
    """Seen failing: tracebacks, or Python's words, from a file of one byte."""
    begun = calls.folder / "pieces" / "a.begun"
    begun.parent.mkdir()
    begun.write_bytes(damage.encode("latin-1"))
    found = calls("aaa", lambda s: s.piece("a", 1, lambda: calls.spend(2)) and None)
    assert "begun" not in found["pieces"][0]
    assert not begun.exists()


def test_notes_that_are_gone_lose_no_work(tmp_path: Path):
    """Seen failing: of two calls in one folder the second one to end lost its piece."""
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    take_away = lambda: (tmp_path / "pieces" / "a.begun").unlink() or 2
    assert study.piece("a", 1, take_away) == 2
    assert study.find("a", 1) == 2


def test_a_folder_without_pieces_is_not_left_behind(tmp_path: Path, monkeypatch):
    """Catches the folders of refused calls, made to be locked."""
    refuse = lambda study: (_ for _ in ()).throw(ValueError("no such row"))
    monkeypatch.setitem(EXPERIMENTS.taken, "fig1", Experiment("", "", refuse))
    assert main(["reproduce", "fig1", "--out", str(tmp_path / "runs" / "a")]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["provenance", "parts", "seconds"])
def test_a_piece_of_damaged_origins_is_refused(damage: str, calls: _Calls):
    """Seen failing: the words of Python, after all of the work was done."""
    piece: dict = {"settings": 1, "value": 2, "provenance": {"seconds": 3.0}}
    change = {"seconds": ("provenance", {"seconds": "3"})}
    piece |= dict([change.get(damage, (damage, 3))])
    (calls.folder / "pieces").mkdir()
    (calls.folder / "pieces" / "a.json").write_text(json.dumps(piece))
    study = Study(calls.folder, "quick", seed=0, say=lambda text: None)
    with pytest.raises(ValueError, match=r"a\.json is no piece of .*take it away"):
        study.piece("a", 1, lambda: 2)


def test_pieces_of_before_are_of_unknown_origin(calls: _Calls):
    """Catches today's commit, or no seconds, for what nobody wrote down."""

    def run(study: Study):
        study.piece("old", 1, lambda: calls.spend(9))
        study.piece("new", 1, lambda: calls.spend(4))

    (calls.folder / "pieces").mkdir(parents=True)
    old = json.dumps({"settings": 1, "value": 9})
    (calls.folder / "pieces" / "old.json").write_text(old)
    found = calls("aaa", run)
    assert found["pieces"][0] == {"provenance": None, "seconds": {"old": None}}
    assert found["pieces"][1]["seconds"] == {"new": 4}
    assert (found["seconds"], found["call_seconds"]) == (None, 4)


def test_figures_that_are_drawn_with_a_piece_are_its_seeds(tmp_path: Path, monkeypatch):
    """Seen failing: seed 0's rows beside a figure of seed 1, drawn in its place."""
    scores = dict.fromkeys(("rmse", "nll", "elbo", "kl_path"), 0.0)
    nothing = types.SimpleNamespace(x=None, y=None)
    prepared = types.SimpleNamespace(data=types.SimpleNamespace(train=nothing))
    drawn = lambda *args, **options: types.SimpleNamespace(outputs=np.zeros((2, 3, 1)))
    monkeypatch.setattr(_fig8, "fit_and_judge", lambda r: (prepared, None, scores, 0))
    monkeypatch.setattr(_fig8, "predict", drawn)
    monkeypatch.setattr(_fig8, "predictive_bands", lambda *args, **options: None)
    monkeypatch.setattr(_fig8, "save_figure", lambda path, figure: path.touch() or path)
    for seed in (0, 1):
        _fig8.FIG8.run(Study(tmp_path, "quick", seed=seed, say=lambda text: None))
    names = [f"augment_{n}{own}.png" for n in range(3) for own in ("", "_seed1")]
    assert sorted(path.name for path in tmp_path.glob("*.png")) == sorted(names)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig8"])
def test_reproduce(name: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setitem(_train_and_judge.TOY_EPOCHS, "quick", 2)
    make = _fig8.preset_recipe
    tiny = {"width": "2", "drift_widths": "2", "num_inducing": 0, "dt": 0.5}
    tiny |= {"num_draws": 1, "test_draws": 2}
    monkeypatch.setattr(_fig8, "preset_recipe", lambda d: make(d).changed(**tiny))
    out = tmp_path / "out"
    assert main(["reproduce", name, "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {"name", "rows", "paper", "provenance"}
    assert [row["augment"] for row in result["rows"]] == [0, 1, 2]
    # A function of one number without augmentation is monotonic.
    assert result["rows"][0]["share_of_monotonic_draws"] == 1.0
    assert result == json.loads((out / "result.json").read_text())
    assert main(["reproduce", name, "--out", str(out)]) == 0
    assert "kept from before" in capsys.readouterr().out
