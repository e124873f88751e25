"""Errors of LeNet as it widens: figure 4 of Trinh, Kaski & Heinonen (2020).

Hidden layers of 1, 2, 4 and 8 times the width have about 1, 4, 16 and 64 times the
parameters. The source has Fashion-MNIST, and does not show SGD.
"""

import functools
from typing import Any

import equinox as eqx
import jax

from ... import nn
from ...plot import method_curves
from ...recipe import ScaleName
from ...report import save_figure
from .._experiment import Experiment, Study
from ._lenet import load_or_instead, tested
from ._trained_networks import Case

WIDTHS = (1, 2, 4, 8)
_METHODS = ("sgd", "bnn-vi", "ibnn-8")
_SCORES = {"error_percent": "test error (%)", "nll": "test NLL (nats)"}
_SIZES: dict[ScaleName, dict[str, Any]] = {
    "quick": {"epochs": 8, "train_rows": 5000, "test_rows": 2000, "num_draws": 1},
    "gpu": {"epochs": 30},
    "full": {"epochs": 300},
}


def _case(width: int, scale: ScaleName) -> Case:
    return Case(
        f"lenet-{width**2}x",
        functools.partial(nn.LeNet, width=width),
        "fashion_mnist",
        _METHODS,
        is_augmented=False,
        learning_rate=0.02,
        noise_rate=0.00125,
        **_SIZES[scale],
    )


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []
    for width in WIDTHS:
        case, data, notes = load_or_instead(_case(width, study.scale), "mnist")
        for note in notes:
            study.say(note)
        of_network = {
            "network": case.name,
            "num_network_parameters": _num_parameters(case, data.num_outputs),
            "data": case.data,
        }
        for method in case.methods:
            found = tested(study, case, method, data)
            rows.append(of_network | {"method": method} | found | {"notes": notes})
    sizes = sorted({float(row["num_network_parameters"]) for row in rows})
    for score, label in _SCORES.items():
        curves = {
            method: [row[score] for row in rows if row["method"] == method]
            for method in _METHODS
        }
        figure = method_curves(
            curves, xs=sizes, xlabel="parameters", ylabel=label, has_log_x=True
        )
        study.say(f"Wrote {save_figure(study.folder / f'width_{score}.png', figure)}")
    return rows


def _num_parameters(case: Case, num_classes: int) -> int:
    """Weights and biases of the network, whatever the method adds."""
    make = functools.partial(case.make_network, num_classes)
    return nn.num_parameters(eqx.filter_eval_shape(make, key=jax.random.key(0)))


IBNN_FIG4 = Experiment(
    "errors of SGD, mean field and implicit BNN as LeNet widens to 64x parameters",
    "Trinh et al. (2020), figure 4, on Fashion-MNIST: the implicit BNN improves as the "
    "network grows; mean field degrades beyond 165 thousand parameters.",
    _run,
)
"""`ornstein reproduce ibnn-fig4`."""
