"""How many components: figure 6 and table 6 of Trinh, Kaski & Heinonen (2020).

The noise rate is in proportion to K, for each component meets a K-th of every batch.
"""

from typing import Any

from ... import nn
from ...plot import method_curves
from ...recipe import ScaleName
from ...report import save_figure
from .._experiment import Experiment, Study
from ._lenet import LENET, load_or_instead, tested
from ._trained_networks import Case, num_components

_METHODS = tuple(f"ibnn-{num}" for num in (4, 8, 16, 24, 32))
_SCORES = {
    "error_percent": "test error (%)",
    "nll": "test NLL (nats)",
    "ece": "test ECE",
}
_VGG = Case(
    "vgg16",
    nn.VGG16,
    "cifar100",
    _METHODS,
    epochs=300,
    learning_rate=0.05,
    noise_rate=0.1,
    weight_decay=3e-4,
    init_spread=0.75,
)
_CASES: dict[ScaleName, Case] = {
    "quick": LENET["quick"]._replace(
        data="mnist", methods=_METHODS, epochs=10, train_rows=5000
    ),
    "gpu": _VGG._replace(epochs=30),
    "full": _VGG,
}


def _run(study: Study) -> list[dict[str, Any]]:
    case, data, notes = load_or_instead(_CASES[study.scale], "cifar10")
    for note in notes:
        study.say(note)
    rows = []
    for method in case.methods:
        found = tested(study, case, method, data)
        named = {"num_components": num_components(method), "network": case.name}
        rows.append(named | found | {"data": case.data, "notes": notes})
    for score, label in _SCORES.items():
        figure = method_curves(
            {case.name: [row[score] for row in rows]},
            xs=[float(row["num_components"]) for row in rows],
            xlabel="components K",
            ylabel=label,
        )
        path = study.folder / f"components_{score}.png"
        study.say(f"Wrote {save_figure(path, figure)}")
    return rows


IBNN_COMPONENTS = Experiment(
    "scores of implicit BNNs with 4 to 32 components",
    "Trinh et al. (2020), table 6, VGG-16 on CIFAR-100, error %, NLL, ECE: K = 4 "
    "26.22, 1.1249, .0807; K = 8 25.89, 1.0612, .0755; K = 16 25.72, 1.0325, .0713; "
    "K = 24 25.53, 1.0467, .0755; K = 32 25.67, 1.0758, .0828.",
    _run,
)
"""`ornstein reproduce ibnn-components`."""
