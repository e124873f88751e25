"""Speed against precision, and calibration: figure 6 of Xu et al. (2022).

The networks are those of table 1 in its own folder, trained if they are not there yet.
"""

from typing import Any

import jax

from ...metrics import reliability
from ...plot import method_curves, reliability_diagram
from ...prediction import predict
from ...report import save_figure
from .._experiment import Experiment, Study
from ._table1_dial import over_steps, over_tolerances, table_study
from ._table1_runs import trained_row

_BESIDE = ("odenet", "sdebnn")
_NUM_DRAWS = 8
_LABELS = {"nll": "NLL, nats", "ece": "ECE", "accuracy": "accuracy"}


def _run(study: Study) -> list[dict[str, Any]]:
    steps = over_steps(study, "sdebnn", study.seed)
    rows = steps + over_tolerances(study, "sdebnn", study.seed)
    for score, label in _LABELS.items():
        figure = method_curves(
            {"sdebnn": [row[score] for row in steps]},
            xs=[row["num_drift_evaluations"] for row in steps],
            xlabel="drift evaluations",
            ylabel=label,
            title=study.data,
            has_log_x=True,
        )
        study.say(f"Wrote {save_figure(study.folder / f'dial_{score}.png', figure)}")
    for model in _BESIDE:
        prepared, fit, record = trained_row(
            table_study(study), study.data, model, study.seed
        )
        test = prepared.data.test
        key = jax.random.key(study.seed + 12)
        prediction = predict(fit, test.x, key=key, num_draws=_NUM_DRAWS)
        figure = reliability_diagram(reliability(prediction.probs, test.y), title=model)
        path = study.folder / f"reliability_{model}.png"
        study.say(f"Wrote {save_figure(path, figure)}")
        kept = {name: record[name] for name in ("accuracy", "nll", "ece", "notes")}
        rows.append({"model": model, "seed": study.seed} | kept)
    return rows


FIG6 = Experiment(
    "scores over steps and tolerances of the solver; reliability beside an ODE network",
    "Xu et al. (2022), figure 6: NLL and ECE grow as drift evaluations shrink; the "
    "neural ODE is over-confident, the SDE-BNN near the diagonal.",
    _run,
    options=("data",),
)
