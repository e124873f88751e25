"""The LeNet that figures of implicit BNNs look into, and data in place of absent ones.

Trinh, Kaski & Heinonen (2020) train LeNet on Fashion-MNIST (section 3.2).
"""

from .. import nn
from ..data import Data, DataNotFoundError
from ._ibnn_cases import Case, load_case
from ._study import ScaleName

_LENET = Case(
    "lenet",
    lambda num_classes, key: nn.LeNet(num_classes, key=key),
    "fashion_mnist",
    ("ibnn-8",),
    epochs=300,
    is_augmented=False,
    learning_rate=0.02,
)
LENET: dict[ScaleName, Case] = {
    "quick": _LENET._replace(epochs=20, train_rows=10_000, test_rows=2000, num_draws=1),
    "gpu": _LENET._replace(epochs=40),
    "full": _LENET,
}
"""With eight components; `ibnn-fig2` and `ibnn-fig3` in the same folder (`--out`) look
at the same network."""


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
