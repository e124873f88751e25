"""The dial of table 1's networks: figures 6a, 11 and 12 of Xu et al. (2022)."""

from pathlib import Path
from typing import Any

import jax

from ...data import Split
from ...evaluation import dial
from ...recipe import ScaleName
from .._experiment import Study
from ._table1 import TABLE1
from ._table1_runs import trained_row

DTS = (1.0, 0.5, 1 / 3, 0.25, 0.2, 0.1, 0.05)
RTOLS = (0.3, 0.1, 0.03, 0.01)

_ADAPTIVE_ROWS: dict[ScaleName, int | None] = {"quick": 500, "gpu": None, "full": None}
"""A virtual Brownian tree is slow: on two cores adaptive steps see the first rows."""

_NUM_DRAWS = 8


def table_study(study: Study) -> Study:
    """The study of table 1 at the same scale, whose trained networks are used."""
    name = {"name": "table1", "scale": study.scale, "data": study.data}
    folder = Path(TABLE1.folder.format(**name))
    return study.beside(folder)


def over_steps(study: Study, model: str, seed: int) -> list[dict[str, Any]]:
    """Scores of a row of table 1 over `DTS`, along one path."""
    return _turned(study, model, seed, "steps", {"dts": DTS}, num_rows=None)


def over_tolerances(study: Study, model: str, seed: int) -> list[dict[str, Any]]:
    """Scores of a row of table 1 over `RTOLS`."""
    rows = []
    for rtol in RTOLS:
        num_rows = _ADAPTIVE_ROWS[study.scale]
        choice = {"rtols": (rtol,)}
        rows += _turned(study, model, seed, f"rtol_{rtol:g}", choice, num_rows=num_rows)
    return rows


def _turned(
    study: Study,
    model: str,
    seed: int,
    name: str,
    choice: dict[str, Any],
    *,
    num_rows: int | None,
) -> list[dict[str, Any]]:
    prepared, fit, record = trained_row(table_study(study), study.data, model, seed)

    def compute() -> list[dict[str, Any]]:
        test = prepared.data.test
        split = Split(test.x[:num_rows], test.y[:num_rows])
        key = jax.random.key(study.seed + 11)
        found = dial(fit, split, key=key, num_draws=_NUM_DRAWS, say=study.say, **choice)
        return [{"test_rows": len(split)} | row for row in found]

    settings = {"choice": choice, "rows": num_rows, "draws": _NUM_DRAWS}
    settings["trained"] = record["provenance"]  # another training is another piece
    found = study.piece(f"{study.data}_{model}_{seed}_{name}", settings, compute)
    return [{"model": model, "seed": seed} | row for row in found]
