"""UCI's table with a tiny method: what chooses, what is kept, what is shown."""

import json
import math
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein import Deterministic, Gaussian
from ornstein.cli import main
from ornstein.evaluation import evaluate
from ornstein.nn import MLP
from ornstein.prediction import FittedModel, predict
from ornstein.studies import Shelf, Study
from ornstein.studies.samplers import _uci
from ornstein.studies.samplers._uci_methods import METHODS, Length, Method

NUM_ROWS, NUM_SPLITS = 30, 3


def write_table(folder: Path, *, spoiled: int | None = None) -> None:
    """30 rows whose test parts are thirds; those of a split may get other targets."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=NUM_ROWS)
    y = 2 * x + rng.normal(size=NUM_ROWS)
    tests = np.split(np.arange(NUM_ROWS), NUM_SPLITS)
    if spoiled is not None:
        y[tests[spoiled]] = -20 * x[tests[spoiled]] + 5
    folder = folder / "uci" / "yacht"
    folder.mkdir(parents=True, exist_ok=True)
    np.savetxt(folder / "data.txt", np.stack([x, y], axis=1))
    (folder / "index_features.txt").write_text("0\n")
    (folder / "index_target.txt").write_text("1\n")
    for split, test in enumerate(tests):
        train = np.setdiff1d(np.arange(NUM_ROWS), test)
        np.savetxt(folder / f"index_train_{split}.txt", train, fmt="%d")
        np.savetxt(folder / f"index_test_{split}.txt", test, fmt="%d")


def train_line(split, slope: float, *, budget: float = 1.0, key) -> FittedModel:
    """`slope` times the line of least squares; part of the budget flattens it."""
    network = MLP(1, 1, [], key=key)
    best = float(np.mean(split.x * split.y) / np.mean(split.x**2))
    (layer,) = network.layers
    weight = jnp.full_like(layer.weight, budget * slope * best)
    where = lambda n: (n.layers[0].weight, n.layers[0].bias)
    network = eqx.tree_at(where, network, (weight, jnp.zeros_like(layer.bias)))
    return FittedModel(Deterministic(network), Gaussian(0.5))


@pytest.fixture
def table(tmp_path: Path, monkeypatch) -> Path:
    """A checkout with one data set of three splits, one method, two settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORNSTEIN_DATA", str(tmp_path))
    monkeypatch.setattr(_uci, "PUBLISHED", {"yacht": (100.0, -100.0)})
    monkeypatch.setattr(_uci, "_NUM_SPLITS", {"quick": NUM_SPLITS})
    monkeypatch.setattr(_uci, "_NUM_FEATURES", {"yacht": 1})
    monkeypatch.setattr(_uci, "_NUM_DRAWS", 1)
    settings = [{"slope": 1.0}, {"slope": 1.7}]
    methods = {"line": Method(settings, train_line, 0.75)}
    monkeypatch.setattr(_uci, "METHODS", methods)
    monkeypatch.setattr(_uci.jax, "clear_caches", lambda: None)
    write_table(tmp_path)
    return tmp_path


def chosen(folder: Path, split: int):
    """What was tried for a split, and what was chosen."""
    kept = json.loads((folder / f"pieces/yacht_line_{split}_setting.json").read_text())
    return kept["value"]


@pytest.mark.parametrize("split", range(NUM_SPLITS))
def test_test_rows_do_not_choose(table: Path, split: int):
    """Catches a setting chosen on split 0, whose training rows others are tested on."""
    write_table(table, spoiled=split)
    spoiled = Study(table / "b", "quick", seed=0, say=lambda text: None)
    after = _uci.UCI.run(spoiled)
    write_table(table)
    whole = Study(table / "a", "quick", seed=0, say=lambda text: None)
    before = _uci.UCI.run(whole)
    assert before[0]["splits"][split] != after[0]["splits"][split]
    assert chosen(table / "a", split) == chosen(table / "b", split)
    other = (split + 1) % NUM_SPLITS
    assert chosen(table / "a", other) != chosen(table / "b", other)


def test_rows_say_what_they_stand_on(table: Path):
    """Catches a mean of some splits shown as that of all, and scores of a choice."""
    study = Study(table / "a", "quick", seed=0, say=lambda text: None)
    row, gap = _uci.UCI.run(study)
    assert gap["num_splits"] == 1
    assert "published_rmse" not in gap
    assert row["num_splits"] == NUM_SPLITS
    assert row["at_or_better"] is True
    # By hand: the slope of least squares, times the setting, on all training rows.
    numbers = np.loadtxt(table / "uci/yacht/data.txt")
    for split in range(NUM_SPLITS):
        read = lambda part, k=split: np.loadtxt(
            table / f"uci/yacht/index_{part}_{k}.txt", dtype=int
        )
        train, test = numbers[read("train")], numbers[read("test")]
        mean, scale = train.mean(axis=0), train.std(axis=0)
        x, y = ((train - mean) / scale).T
        slope = chosen(table / "a", split)["best"]["slope"] * np.mean(x * y)
        x, y = ((test - mean) / scale).T
        rmse = scale[1] * np.sqrt(np.mean((y - slope * x) ** 2))
        assert row["splits"][split][0] == pytest.approx(rmse, rel=1e-4)
    (table / "a/pieces/yacht_line_1.json").unlink()
    partial = Study(table / "a", "quick", seed=0, say=lambda text: None)
    found = _uci._rows(partial)
    assert found[0]["num_splits"] == NUM_SPLITS - 1
    assert found[0]["splits"] == [row["splits"][0], row["splits"][2]]
    assert found[0]["at_or_better"] is None


def test_differences_from_hmc_are_of_the_same_splits(table: Path, monkeypatch):
    """Catches the difference of two means whose splits differ (seen)."""
    line = _uci.METHODS["line"]
    other = Method([{"slope": 0.3}], train_line, 0.75)
    monkeypatch.setattr(_uci, "METHODS", {"line": line, "hmc": other})
    study = Study(table / "a", "quick", seed=0, say=lambda text: None)
    found = {r["method"]: r for r in _uci.UCI.run(study) if r["data"] == "yacht"}
    (table / "a/pieces/yacht_hmc_1.json").unlink()
    row, hmc, *_ = _uci._rows(study)
    assert row["split_numbers"] == [0, 1, 2]
    assert hmc["split_numbers"] == [0, 2]
    assert "rmse_minus_hmc" not in hmc
    splits = [np.array(found[name]["splits"]) for name in ("line", "hmc")]
    differences = (splits[0] - splits[1])[[0, 2]]
    assert row["num_splits_beside_hmc"] == 2
    assert row["rmse_minus_hmc"] == pytest.approx(differences[:, 0].mean())
    error = abs(differences[0, 1] - differences[1, 1]) / 2
    assert row["log_likelihood_minus_hmc_se"] == pytest.approx(error)


def test_splits_are_computed_before_methods(table: Path, monkeypatch):
    """Catches methods of a stopped study that have no split in common (seen)."""
    methods = {name: _uci.METHODS["line"] for name in ("line", "other")}
    monkeypatch.setattr(_uci, "METHODS", methods)
    computed = []
    study = Study(table / "a", "quick", seed=0, say=computed.append)
    monkeypatch.setattr(_uci, "_one", lambda _, *cell: computed.append(cell))
    _uci.UCI.run(study)
    assert computed[:4] == [
        ("yacht", "line", 0),
        ("yacht", "other", 0),
        ("yacht-gap", "line", 0),
        ("yacht-gap", "other", 0),
    ]


def test_pieces_of_other_lengths_are_not_shown(table: Path, monkeypatch):
    """Catches the mean of splits whose chains were not as long as the row says."""
    study = Study(table / "a", "quick", seed=0, say=lambda text: None)
    assert _uci.UCI.run(study)
    longer = _uci.METHODS["line"]._replace(lengths=(Length(math.inf, 4, 0, 10, 10),))
    monkeypatch.setattr(_uci, "METHODS", {"line": longer})
    assert not _uci._rows(study)


def test_lengths_follow_the_rows():
    """Catches long trajectories of many rows, which take hours."""
    for method in METHODS.values():
        if not method.lengths:
            continue
        assert math.isinf(method.lengths[-1].max_rows)
        work = []
        for length in method.lengths:
            assert Length.of(method.lengths, min(length.max_rows, 10_000)) == length
            num_steps = length.thin * (length.num_warmup + length.num_samples)
            work.append(num_steps * length.num_integration_steps)
        assert work == sorted(work, reverse=True)


def test_goes_on_from_the_committed_pieces(table: Path, capsys, monkeypatch):
    """In a checkout without `runs`. Catches pieces that only one machine has."""
    assert main(["reproduce", "uci", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    (shelf,) = Path("results/pieces").iterdir()
    assert shelf.name == "uci-quick.json"
    for path in Path("runs/uci-quick").rglob("*.json"):
        path.unlink()
    monkeypatch.setattr(_uci, "_score", None)  # nothing is computed
    assert main(["reproduce", "uci", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["rows"] == first["rows"]
    assert again["provenance"]["pieces"] == first["provenance"]["pieces"]
    assert main(["reproduce", "uci", "--models", "ship"]) != 0
    assert "--models ship is no row" in capsys.readouterr().err


def test_shelf(tmp_path: Path):
    """Origins are shared, and come back apart. Catches one piece's seconds for all."""
    path = tmp_path / "sub" / "pieces.json"
    origin = {"commit": "a", "versions": {"jax": "1"}}
    kept = [
        {"settings": n, "value": [n], "provenance": origin | {"seconds": n + 0.5}}
        for n in range(3)
    ]
    unknown = {"settings": 0, "value": 1, "provenance": None}
    for name, piece in zip("abcd", [*kept, unknown], strict=True):
        Shelf(path).put(name, piece)
    assert [Shelf(path).get(name) for name in "abcd"] == [*kept, unknown]
    assert Shelf(path).get("e") is None
    assert json.loads(path.read_text())["origins"] == [origin, None]
    no_settings = '{"pieces": {"a": {"origin": 0, "seconds": 1}}, "origins": [null]}'
    no_origin = '{"pieces": {"a": {"origin": 3}}, "origins": []}'
    for damage in (no_origin, no_settings, "[" * 3000):  # each seen failing
        path.write_text(damage)
        with pytest.raises(ValueError, match=r"pieces.json is no file of pieces"):
            Shelf(path)


def test_a_gap_is_the_middle_third_of_one_feature(table: Path):
    """Its rows are for the test, and the outer ones say what a unit is. Catches (seen)
    rows that are not standardised again."""
    data = _uci._load("yacht-gap", 0)
    inner, outer = np.ravel(data.test.x), np.ravel(data.train.x)
    assert len(inner) == NUM_ROWS // 3
    assert inner.min() > np.sort(outer)[NUM_ROWS // 3 - 1]
    assert inner.max() < np.sort(outer)[NUM_ROWS // 3]
    assert abs(outer.mean()) < 1e-6
    assert outer.std() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_each_method_fits_a_line(table: Path, name: str):
    """Not worse than the spread of the targets, at a fiftieth of its budget."""
    data = _uci._load("yacht", 0)
    method = METHODS[name]
    fitted = method.train(
        data.train, **method.settings[0], budget=0.02, key=jax.random.key(0)
    )
    prediction = predict(fitted, data.test.x, key=jax.random.key(1), num_draws=8)
    assert float(evaluate(prediction, data.test.y)["rmse"]) < 1.2
