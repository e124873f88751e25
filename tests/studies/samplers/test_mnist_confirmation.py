"""`reproduce mnist-confirmation`: errors of differences over rows and over seeds."""

import json

import numpy as np
import pytest

from ornstein.cli import main
from ornstein.data import Data, Split
from ornstein.studies.samplers import _mnist_confirmation


def test_errors_of_differences():
    """Catches (seen) rows of all seeds counted as so many rows."""
    rng = np.random.default_rng(0)
    of_rows, of_seeds = rng.normal(size=4000), rng.normal(size=400)
    found = _mnist_confirmation.errors(1 + of_rows + 0 * of_seeds[:5, None])
    assert found["minus"] == pytest.approx(1 + of_rows.mean())
    assert found["minus_rows"] == pytest.approx(4000**-0.5, rel=0.05)
    assert found["minus_seeds"] == pytest.approx(0, abs=1e-9)
    found = _mnist_confirmation.errors(0 * of_rows + of_seeds[:, None])
    assert found["minus_seeds"] == pytest.approx(400**-0.5, rel=0.1)
    assert found["minus_rows"] == pytest.approx(0, abs=1e-9)
    assert found["minus_both"] == pytest.approx(found["minus_seeds"])


def test_rows_are_of_the_last_test_rows(tmp_path, monkeypatch, capsys):
    """Catches rows that had a say, and a difference of another method."""
    monkeypatch.chdir(tmp_path)
    x, y = np.random.default_rng(0).random((60, 2, 2, 1)), np.arange(60) % 2
    names = ("top", "bottom")
    split = Split(x.astype("f4"), y.astype("i4"))
    data = Data("mnist", "classification", split, split, None, 2, names)
    monkeypatch.setattr(_mnist_confirmation, "load", lambda name: data)
    monkeypatch.setattr(_mnist_confirmation, "NUM_TEST", 12)
    monkeypatch.setattr(_mnist_confirmation, "_NUM_ROWS", 40)
    seen = []

    def scores(method, train, test, num_steps, *, key):
        seen.append(test)
        losses = np.arange(12.0) + len(method)
        return {"nll": float(losses.mean())}, losses

    monkeypatch.setattr(_mnist_confirmation, "scores", scores)
    assert main(["reproduce", "mnist-confirmation", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    np.testing.assert_array_equal(seen[0].x, split.x[-12:])
    assert len({row["method"] for row in rows}) == 6
    for row in rows:
        wanted = len("variational paths") - len(row["method"])
        assert row["minus"] == pytest.approx(wanted)
        assert row["num_seeds"] == 2
