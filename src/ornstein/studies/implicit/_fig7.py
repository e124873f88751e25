"""Confidence less accuracy over confidence: figure 7 of Trinh et al. (2020)."""

from typing import Any

import numpy as np

from ...plot import method_curves
from ...report import save_figure
from .._experiment import Experiment, Study
from ._trained_networks import CASES, load_case, scored

_FEWEST = 10
"""Rows in a bin, below which its gap is noise and is left out of the figure."""


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []
    for case in CASES[study.scale]:
        data = load_case(case)
        curves, xs = {}, np.zeros(0)
        for method in case.methods:
            found = scored(study, case, method, data)
            bins = found["reliability"]
            counts = np.asarray(bins["counts"])
            edges = np.asarray(bins["edges"])
            xs = (edges[:-1] + edges[1:]) / 2
            gap = np.asarray(bins["confidence"], float) - np.asarray(
                bins["accuracy"], float
            )
            curves[method] = np.where(counts >= _FEWEST, gap, np.nan)
            name = {"network": case.name, "data": case.data, "method": method}
            rows.append(
                name
                | {"ece": found["ece"]}
                | {
                    "mean_gap": float(np.nansum(counts * gap) / counts.sum()),
                    "gaps": [None if np.isnan(g) else float(g) for g in gap],
                    "counts": counts.tolist(),
                }
            )
        figure = method_curves(
            curves,
            xs=xs.tolist(),
            xlabel="confidence",
            ylabel="confidence less accuracy",
            title=case.name,
        )
        path = study.folder / f"reliability_{case.name}.png"
        study.say(f"Wrote {save_figure(path, figure)}")
    return rows


IBNN_FIG7 = Experiment(
    "confidence less accuracy over confidence, by method",
    "Trinh et al. (2020), figure 7: implicit BNNs lie nearest to 0; SGD is too sure.",
    _run,
)
