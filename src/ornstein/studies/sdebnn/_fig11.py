"""Calibration over the solver's step and tolerance: figures 11 and 12.

Of Xu et al. (2022), whose text says that ECE stays near its value in training.
"""

from collections.abc import Callable
from typing import Any

from ...plot import method_curves
from ...report import save_figure
from .._experiment import Experiment, Study
from ._table1_dial import over_steps, over_tolerances

_MODELS = ("odenet", "sdebnn")


def _over(
    turn: Callable[..., list[dict[str, Any]]], axis: str, label: str
) -> Callable[[Study], list[dict[str, Any]]]:
    def run(study: Study) -> list[dict[str, Any]]:
        found = {m: turn(study, m, study.seed) for m in study.models or _MODELS}
        curves = {model: [row["ece"] for row in rows] for model, rows in found.items()}
        xs = [row[axis] for row in next(iter(found.values()))]
        figure = method_curves(
            curves,
            xs=xs,
            xlabel=label,
            ylabel="ECE",
            title=study.data,
            has_log_x=True,
        )
        study.say(f"Wrote {save_figure(study.folder / f'ece_{axis}.png', figure)}")
        return [row for rows in found.values() for row in rows]

    return run


FIG11 = Experiment(
    "calibration over the solver's step, without training again",
    "Xu et al. (2022), figure 11: ECE stays near its value at the step of training.",
    _over(over_steps, "dt", "step of the solver"),
    options=("data", "models"),
)
FIG12 = Experiment(
    "calibration over the solver's tolerance, without training again",
    "Xu et al. (2022), figure 12: ECE stays near its value at the tolerance of "
    "training.",
    _over(over_tolerances, "rtol", "relative tolerance"),
    options=("data", "models"),
)
