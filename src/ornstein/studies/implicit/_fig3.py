"""Softmax samples of the surest and the least sure inputs: figure 3 of Trinh et al.

Trinh, Kaski & Heinonen (2020): LeNet with eight components on Fashion-MNIST, the first
four classes. Of each class's test inputs, those of lowest and of highest entropy of the
averaged probabilities; every draw of the network gives one sample.
"""

from typing import Any

import jax
import numpy as np

from ..._types import Array, Float
from ...plot import softmax_samples
from ...prediction import predict
from ...report import save_figure
from .._experiment import Experiment, Study
from ._lenet import LENET, load_or_instead
from ._trained_networks import num_test_draws, trained

_METHOD = "ibnn-8"
_NUM_CLASSES = 4


def extremes(
    entropy: Float[Array | np.ndarray, " rows"], y: np.ndarray, num_classes: int
) -> dict[str, list[int]]:
    """The rows of lowest and of highest entropy of each of the first classes.

    Args:
        entropy: of the rows.
        y: their class numbers.
        num_classes: how many classes; each has a row.
    """
    entropy = np.asarray(entropy)
    found: dict[str, list[int]] = {"lowest": [], "highest": []}
    for number in range(num_classes):
        rows = np.flatnonzero(y == number)
        found["lowest"].append(int(rows[np.argmin(entropy[rows])]))
        found["highest"].append(int(rows[np.argmax(entropy[rows])]))
    return found


def _run(study: Study) -> list[dict[str, Any]]:
    case, data, notes = load_or_instead(LENET[study.scale], "mnist")
    for note in notes:
        study.say(note)
    num_draws = num_test_draws(_METHOD)

    def compute() -> list[dict[str, Any]]:
        fit, _ = trained(study, case, _METHOD, data)
        key = jax.random.key(study.seed + 3)
        prediction = predict(fit, data.test.x, key=key, num_draws=num_draws)
        entropy = np.asarray(prediction.entropy)
        epistemic = np.asarray(prediction.epistemic)
        by_end = extremes(entropy, np.asarray(data.test.y), _NUM_CLASSES)
        outputs = np.asarray(prediction.outputs)
        samples = np.asarray(jax.nn.softmax(outputs))
        return [
            {
                "end": end,
                "class": data.class_names[number],
                "row": row,
                "entropy": float(entropy[row]),
                "epistemic": float(epistemic[row]),
                "samples": samples[:, row].round(4).tolist(),
            }
            for end, rows in by_end.items()
            for number, row in enumerate(rows)
        ]

    settings = case.settings(_METHOD, study.seed) | {"num_draws": num_draws}
    found = study.piece("samples", settings, compute)
    panels: dict[str, list] = {}
    rows = []
    for one in found:
        samples = np.array(one.pop("samples"))
        title = f"{one['class']}: entropy {one['entropy']:.2f} nats"
        image = np.asarray(data.test.x[one["row"]])
        panels.setdefault(f"{one['end']} entropy", []).append((image, samples, title))
        answers = len(np.unique(samples.argmax(axis=1)))
        rows.append(one | {"answers": answers, "data": case.data, "notes": notes})
    figure = softmax_samples(panels, class_names=data.class_names)
    study.say(f"Wrote {save_figure(study.folder / 'softmax_samples.png', figure)}")
    return rows


IBNN_FIG3 = Experiment(
    "class probabilities of an implicit BNN's draws for sure and unsure inputs",
    "Trinh et al. (2020), figure 3: draws agree where the entropy is lowest, and "
    "differ where it is highest.",
    _run,
)
"""`ornstein reproduce ibnn-fig3`."""
