"""Implicit BNNs beside SGD, MC dropout and mean field: tables 3 to 5.

Trinh, Kaski & Heinonen (2020): error, NLL and ECE (15 bins) of VGG-16 and
WideResNet-28x10 on CIFAR-10 and CIFAR-100. `quick` has LeNet on MNIST, and two small
networks on the first 5,000 images of CIFAR-10. `ibnn-fig7` and `ibnn-fig8` train the
same networks in folders of their own; copies there of this one's `runs` and `pieces`
spare them that.
"""

from typing import Any

from .._experiment import Experiment, Study
from ._trained_networks import CASES, load_case, scored


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []
    for case in CASES[study.scale]:
        data = load_case(case)
        for note in data.notes:
            study.say(f"{case.data}: {note}")
        for method in case.methods:
            found = dict(scored(study, case, method, data))
            del found["reliability"]
            name = {"network": case.name, "data": case.data, "method": method}
            rows.append(name | found | {"notes": list(data.notes)})
    return rows


IBNN_BENCHMARK = Experiment(
    "implicit BNNs beside SGD, MC dropout and mean field on images",
    "CIFAR-10, error %, NLL, ECE. VGG-16: SGD 6.72, .3255, .0476; MC dropout 6.71, "
    ".2887, .0421; BNN-VI 9.63, .6601, .0656; iBNN-4 6.33, .2147, .0173; iBNN-16 6.19, "
    ".1983, .0149. WRN-28x10: SGD 3.53, .1280, .0165; MC dropout 4.86, .1645, .0149; "
    "BNN-VI 5.96, .2685, .0290; iBNN-4 3.29, .1122, .0093; iBNN-16 3.34, .1073, .0048. "
    "CIFAR-100: VGG-16 SGD 26.74, 1.7232, .1869, iBNN-16 25.72, 1.0325, .0713; "
    "WRN-28x10 SGD 18.80, .7730, .0466, iBNN-16 17.27, .6440, .0287.",
    _run,
)
