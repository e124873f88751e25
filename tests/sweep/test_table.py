"""The table of a sweep, against means that are made by hand."""

import csv
import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from ornstein.sweep import Grid, SweepFolder, at_work, read_table

OVER = ["width=16,32", "seed=0..2", "split=0,1"]


def sweep_with(path: Path, results: dict[str, dict[str, Any]]) -> SweepFolder:
    """A sweep whose runs have these results, by their names."""
    with at_work(path, ["train"], Grid.parse(OVER), "ornstein sweep") as sweep:
        for cell in sweep.cells:
            if cell.name in results:
                folder = sweep.run(cell)
                folder.mkdir(exist_ok=True)
                text = json.dumps(results[cell.name])
                (folder / "result.json").write_text(text)
    return sweep


def result(nll: float | None, **more: Any) -> dict[str, Any]:
    where = {"data": "/home/me/rows.csv", "notes": ["a"], "seed": 9}
    spent = {"train_seconds": 3.5, "provenance": {"seconds": 2.0, "device": "1 x cpu"}}
    return {"nll": nll, **where, **spent, **more}


def names() -> list[str]:
    return [cell.name for cell in Grid.parse(OVER)]


def test_means_and_standard_errors_are_those_by_hand(tmp_path: Path):
    """Catches a deviation for a standard error, n for n - 1, seeds as settings, and
    (seen) seeds of one split that count as if they were other splits.
    """
    nll = {name: math.sin(i) for i, name in enumerate(names())}
    sweep = sweep_with(tmp_path, {name: result(v) for name, v in nll.items()})
    summary = read_table(sweep).summary()
    assert [entry["settings"] for entry in summary] == [{"width": 16}, {"width": 32}]
    for entry, width in zip(summary, (16, 32), strict=True):
        own = [v for name, v in nll.items() if name.startswith(f"width={width}_")]
        assert entry["runs"] == len(own) == 6
        of_split = [
            statistics.mean(v for name, v in nll.items() if name in own_names)
            for own_names in (
                {n for n in nll if f"width={width}_" in n and n.endswith(f"split={k}")}
                for k in (0, 1)
            )
        ]
        error = statistics.stdev(of_split) / math.sqrt(2)
        assert entry["mean"]["nll"] == pytest.approx(statistics.mean(own), rel=1e-12)
        assert entry["standard_error"]["nll"] == pytest.approx(error, rel=1e-12)


def test_the_table_has_numbers_and_no_time_or_place(tmp_path: Path):
    """Catches what differs between two sweeps of the same runs."""
    sweep = sweep_with(tmp_path, {name: result(1 / 3, elbo=-2.0) for name in names()})
    table = read_table(tmp_path)
    written = table.write(tmp_path, "ornstein sweep --table")
    assert [path.name for path in written] == ["table.csv", "table.json"]
    rows = list(csv.DictReader(written[0].read_text().splitlines()))
    assert list(rows[0]) == ["run", "width", "seed", "split", "nll", "elbo"]
    assert [row["run"] for row in rows] == [cell.name for cell in sweep.cells]
    assert rows[7]["seed"] == "0"
    assert rows[7]["split"] == "1"
    assert float(rows[0]["nll"]) == 1 / 3  # every digit
    content = json.loads(written[1].read_text())
    assert content["rows"][0]["width"] == 16
    assert content["provenance"]["run_seconds"] == 24.0
    assert content["provenance"]["devices"] == ["1 x cpu"]
    assert content["missing"] == []


def test_runs_without_a_result_or_a_number_are_not_passed_over(tmp_path: Path):
    """Catches a mean that leaves out the runs that diverged."""
    known = dict.fromkeys(names()[1:], result(1.0, elbo=-3.0))
    known[names()[2]] = result(None, elbo=-3.0)
    sweep = sweep_with(tmp_path, known)
    failed = sweep.cells[-1]
    sweep.end(failed).write_text('{"code": 1, "said": "stuck"}')
    table = read_table(sweep)
    assert table.missing == [names()[0], failed.name]
    first, second = table.summary()
    assert first["runs"] == second["runs"] == 5
    assert first["mean"] == {"nll": None, "elbo": -3.0}
    assert first["standard_error"] == {"nll": None, "elbo": 0.0}
    assert second["mean"]["nll"] == 1.0


def test_one_run_has_no_standard_error_and_none_no_table(tmp_path: Path):
    """Catches an error of zero for what was seen once."""
    sweep = sweep_with(tmp_path, {})
    assert read_table(sweep).summary() == []
    assert len(read_table(sweep).frame()) == 0
    (entry,) = read_table(sweep_with(tmp_path, {names()[0]: result(2.0)})).summary()
    assert entry["mean"] == {"nll": 2.0}
    assert entry["standard_error"] == {"nll": None}


def test_folders_of_something_else_are_refused(tmp_path: Path):
    """Catches a sweep among other files, of another command, or that lost values."""
    grid = Grid.parse(OVER)

    def enter(path: Path, words=("train",), grid: Grid | None = grid) -> SweepFolder:
        with at_work(path, words, grid, "ornstein sweep") as sweep:
            return sweep

    sweep_with(tmp_path / "own", {names()[0]: result(2.0)})
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(FileExistsError, match="file is a file"):
        enter(tmp_path / "file")
    with pytest.raises(FileExistsError, match="has files, and is not a sweep"):
        enter(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match="not a sweep to go on with"):
        enter(tmp_path / "new", (), None)
    with pytest.raises(
        ValueError, match="a sweep of `train`, not of `train --steps 3`"
    ):
        enter(tmp_path / "own", ("train", "--steps", "3"))
    with pytest.raises(ValueError, match="`over` lacks some of it"):
        enter(tmp_path / "own", grid=Grid.parse([*OVER[:2], "split=0,2"]))
    more = Grid.parse([*OVER[:2], "split=0..2"])
    assert enter(tmp_path / "own", (), None).grid == grid
    assert enter(tmp_path / "own", grid=more).grid == more
    assert SweepFolder.open(tmp_path / "own").grid == more
    assert not (tmp_path / "new").exists()
    with pytest.raises(FileNotFoundError, match="is not a sweep"):
        read_table(tmp_path / "other")
    for text in ("", "[]", '{"command": [], "grid": {}}', '{"command": ["a"]}'):
        (tmp_path / "own" / "sweep.json").write_text(text)
        with pytest.raises(ValueError, match="is damaged"):
            read_table(tmp_path / "own")


def test_a_sweep_of_which_no_run_has_begun_may_be_of_anything(tmp_path: Path):
    """Catches (seen) a folder that a mistyped command keeps, and a run that is lost."""
    path, grid = tmp_path / "sweep", Grid.parse(["seed=0,1"])
    with at_work(path, ["train", "--stepz"], Grid.parse(OVER), "ornstein sweep") as was:
        for cell in was.cells:
            was.log(cell).write_text("no option --stepz")
            was.end(cell).write_text("{}")
    with at_work(path, ["train", "--steps"], grid, "ornstein sweep") as sweep:
        assert not any((path / "logs").iterdir())
        sweep.run(sweep.cells[0]).mkdir()
    found = SweepFolder.open(path)
    assert (found.words, found.grid) == (("train", "--steps"), grid)
    with (
        pytest.raises(ValueError, match="not of `train --stepz`"),
        at_work(path, ["train", "--stepz"], grid, "ornstein sweep"),
    ):
        pass
    assert sweep.run(sweep.cells[0]).exists()
    sweep.run(sweep.cells[0]).rename(tmp_path / "elsewhere")
    assert not sweep.has_begun
    sweep.end(sweep.cells[1]).write_text('{"code": 0}')
    assert sweep.has_begun  # and its runs were put elsewhere


DAMAGE = [
    {"provenance": None},
    {"provenance": "x"},
    {"provenance": {"seconds": 10**400}},
    {"provenance": {"seconds": "x"}},
    {"provenance": {"device": None}},
    {"nll_se": -(10**400)},
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_damaged_result_is_named(damage, tmp_path: Path):
    """Seen failing: a traceback, or only once the table was summed up."""
    first, *others = names()
    results = {first: result(0.5, **damage)}
    sweep_with(tmp_path, results | {name: result(0.5) for name in others})
    with pytest.raises(ValueError, match=r"width=16.*result\.json is damaged"):
        read_table(tmp_path)
