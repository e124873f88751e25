"""The LeNet that figures of implicit BNNs look into, and data in place of absent ones.

Trinh, Kaski & Heinonen (2020) train LeNet on Fashion-MNIST (section 3.2).
"""

from typing import Any

import jax

from ... import nn
from ...data import Data, DataNotFoundError
from ...evaluation import evaluate
from ...prediction import predict
from ...recipe import ScaleName
from .._experiment import Study
from ._trained_networks import Case, load_case, num_test_draws, trained

_LENET = Case(
    "lenet",
    lambda num_classes, key: nn.LeNet(num_classes, key=key),
    "fashion_mnist",
    ("ibnn-8",),
    epochs=300,
    is_augmented=False,
    learning_rate=0.02,
    noise_rate=0.00125,
)
LENET: dict[ScaleName, Case] = {
    "quick": _LENET._replace(epochs=20, train_rows=10_000, test_rows=2000, num_draws=1),
    "gpu": _LENET._replace(epochs=40),
    "full": _LENET,
}
"""With eight components. `ibnn-fig2` and `ibnn-fig3` train the same network, each in
its own folder; copies there of the other's `runs` and `pieces` spare it that."""


def load_or_instead(case: Case, instead: str) -> tuple[Case, Data, list[str]]:
    """A case and its data, or the case on other data where the user lacks its own.

    Args:
        case: with the data that it should have.
        instead: a data set that comes in their place.

    Returns:
        The case, its data, and notes on them, the replacement among them.

    Raises:
        DataNotFoundError: if there are neither.
    """
    try:
        data = load_case(case)
    except DataNotFoundError:
        wanted = case.data
        case = case._replace(data=instead)
        data = load_case(case)
        notes = [f"on {instead}, for {wanted} was not found", *data.notes]
        return case, data, notes
    return case, data, list(data.notes)


def tested(study: Study, case: Case, method: str, data: Data) -> dict[str, Any]:
    """A method's training record and scores of the test rows, kept as a piece.

    Unlike `scored`, without a bound over training rows, which for wide networks takes
    longer than their training.
    """
    num_draws = num_test_draws(method)

    def compute() -> dict[str, Any]:
        fit, record = trained(study, case, method, data)
        key = jax.random.key(study.seed + 3)
        prediction = predict(fit, data.test.x, key=key, num_draws=num_draws)
        scores = evaluate(prediction, data.test.y)
        error = 100 * (1 - scores["accuracy"])
        return record | {"num_draws": num_draws, "error_percent": error} | scores

    settings = case.settings(method, study.seed) | {"num_draws": num_draws}
    return study.piece(f"test-{case.name}-{method}", settings, compute)
