import math

import numpy as np
import pytest

from ornstein.data import load
from ornstein.experiments._judge import in_target_units


def test_scores_in_the_targets_own_units(tmp_path):
    """Densities scale by 1 / s, so that the NLL gains log s; the names are DESIGN's."""
    ys = np.random.default_rng(0).normal(3.0, 50.0, 60)
    rows = [f"{x},{y}" for x, y in enumerate(ys)]
    (tmp_path / "table.csv").write_text("\n".join(["x,y", *rows]))
    data = load(str(tmp_path / "table.csv"), target=("y",), task="regression")
    scale = float(np.squeeze(data.y_scaling.scale))
    assert 30 < scale < 70
    assert in_target_units({"rmse": 2.0, "nll": 1.0}, data) == {
        "rmse_in_target_units": pytest.approx(2 * scale),
        "nll_in_target_units": pytest.approx(1 + math.log(scale)),
    }
