"""Training with and without sticking the landing: C.3 of Xu et al. (2022).

The networks are those of table 1 in its own folder, trained if they are not there yet.
"""

from pathlib import Path
from typing import Any

from ..._files import UnreadableError, parse_json
from ...plot import method_curves
from ...recipe import load_recipe
from ...report import save_figure
from ...train import RunFolder
from .._experiment import Experiment, Study
from ._table1_dial import table_study
from ._table1_runs import trained_row

_MODELS = {"sdebnn": "without", "sdebnn-stl": "with"}
_CURVES = {"loss": "loss, nats per example", "elbo": "ELBO, nats per data set"}
_CURVES |= {"accuracy": "training accuracy"}
_KEPT = ("accuracy", "nll", "ece", "elbo", "kl_path", "kl_initial", "notes")


def _run(study: Study) -> list[dict[str, Any]]:
    rows, curves = [], {}
    ours = table_study(study)
    for model, what in _MODELS.items():
        for seed in study.seeds_of(load_recipe(study.data, model, study.scale)[0]):
            _, _, record = trained_row(ours, study.data, model, seed)
            run = RunFolder.open(ours.folder / "runs" / f"{model}-{seed}")
            lines = run.metrics.read_text(encoding="utf-8").splitlines()
            records = [_record(line, run.metrics) for line in lines]
            history = {name: [r.get(name) for r in records] for name in _CURVES}
            snr = [r["gradient_snr"] for r in records if r.get("gradient_snr")]
            curves[f"{what}, seed {seed}"] = history
            kept = {name: record[name] for name in _KEPT}
            row = {"sticking_the_landing": what, "seed": seed} | kept
            row["gradient_snr_at_end"] = snr[-1] if snr else None
            rows.append(row | history)
    for name, label in _CURVES.items():
        figure = method_curves(
            {who: history[name] for who, history in curves.items()},
            xlabel="epoch",
            ylabel=label,
            title=study.data,
        )
        study.say(f"Wrote {save_figure(study.folder / f'{name}.png', figure)}")
    return rows


def _record(line: str, path: Path) -> dict[str, Any]:
    try:
        record = parse_json(line.encode())
    except UnreadableError as error:
        raise ValueError(
            f"{path} is damaged ({error}): train that run again."
        ) from error
    if not isinstance(record, dict):
        raise ValueError(f"{path} is damaged, as a line is no object: train it again.")
    return record


STL_TRAINING = Experiment(
    "learning curves with and without sticking the landing",
    "Xu et al. (2022), C.3: on CIFAR-10 it improves accuracy, NLL and ELBO over "
    "training time (the numbers of its table 4 are lost). Table 1: 89.10 % and ECE "
    "7.97e-2 with, 89.84 % and 7.19e-2 without.",
    _run,
    options=("data",),
)
