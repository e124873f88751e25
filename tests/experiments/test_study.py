"""Experiments on the smallest scale, and the pieces that they keep."""

import json
import typing
from pathlib import Path

import pytest

from ornstein.cli import main
from ornstein.cli._reproduce import ExperimentName
from ornstein.experiments import EXPERIMENTS, Study, _fig8, _study


def test_names_of_the_command_line():
    assert set(typing.get_args(ExperimentName)) == set(EXPERIMENTS)


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig8"])
def test_reproduce(name: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setitem(_study.TOY_EPOCHS, "quick", 2)
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
