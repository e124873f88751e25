"""Predictive entropy over noise in the images: figure 8 of Trinh et al. (2020)."""

from typing import Any

import jax

from ...data import Split
from ...evaluation import noise_sweep
from ...plot import method_curves
from ...recipe import ScaleName
from ...report import save_figure
from .._experiment import Experiment, Study
from ._trained_networks import CASES, is_implicit, load_case, num_components, trained

_ROWS: dict[ScaleName, int] = {"quick": 500, "gpu": 10_000, "full": 10_000}


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []
    for case in CASES[study.scale]:
        data = load_case(case)
        num_rows = min(_ROWS[study.scale], len(data.test))
        split = Split(data.test.x[:num_rows], data.test.y[:num_rows])
        curves: dict[str, dict[str, list[float]]] = {}
        for method in case.methods:
            num_draws = 1 if method == "sgd" else 16
            if is_implicit(method):
                num_draws = 2 * num_components(method)

            def compute(
                case=case, method=method, data=data, split=split, num_draws=num_draws
            ) -> list[dict[str, Any]]:
                fit, _ = trained(study, case, method, data)
                key = jax.random.key(study.seed + 2)
                return noise_sweep(fit, split, key=key, num_draws=num_draws)

            settings = case.settings(method, study.seed)
            settings |= {"num_rows": num_rows, "num_draws": num_draws}
            name = f"noise-{case.name}-{method}"
            sweep = study.piece(name, settings, compute)
            named = {"network": case.name, "data": case.data, "method": method}
            rows += [named | row for row in sweep]
            for row in sweep:
                for part in ("aleatoric", "epistemic"):
                    title = f"{row['noise']}, {part}"
                    curve = curves.setdefault(title, {}).setdefault(method, [])
                    curve.append(row[part])
        for title, by_method in curves.items():
            kind = title.split(",")[0]
            first = [r for r in rows if r["network"] == case.name]
            xs = sorted({r["intensity"] for r in first if r["noise"] == kind})
            figure = method_curves(
                by_method,
                xs=xs,
                xlabel="intensity",
                ylabel="mean entropy (nats)",
                title=f"{case.name}: {title}",
            )
            stem = title.replace(", ", "_").replace("-", "_")
            path = study.folder / f"noise_{case.name}_{stem}.png"
            study.say(f"Wrote {save_figure(path, figure)}")
    return rows


IBNN_FIG8 = Experiment(
    "aleatoric and epistemic entropy as images turn into noise",
    "Trinh et al. (2020), figure 8: entropy rises with the noise; implicit BNNs give "
    "more of it to the epistemic part than MC dropout does.",
    _run,
)
