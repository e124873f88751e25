"""Presets under another optimiser than their own."""

from typing import Any

from ...train import IVON, VECTORS_RATE
from .._recipe import Recipe
from ..options import OptimiserName

_ADAM_ALONE = {"init_scale", "kl_warmup", "random_weights"}
"""What IVON has no use for."""

_OF_OPTIMISER = {"optimiser", "learning_rate", "noise_learning_rate", "weight_decay"}
"""What SGD and Adam have each of their own: its rates are tens of times Adam's."""
_SGD_RATE = 0.02


def for_optimiser(
    found: dict[str, Any], optimiser: OptimiserName | None
) -> dict[str, Any]:
    """A preset with the rates of another optimiser than its own.

    Args:
        found: its options.
        optimiser: that was asked for, if one was.
    """
    default = Recipe().training
    was = found.get("optimiser", default.optimiser)
    if optimiser is None or optimiser == was:
        return found
    if optimiser == "ivon":
        kept = {n: v for n, v in found.items() if n not in _ADAM_ALONE}
        return kept | {"optimiser": "ivon", "learning_rate": IVON().learning_rate}
    if "nesterov" in (optimiser, was):
        found = {n: v for n, v in found.items() if n not in _OF_OPTIMISER}
    rate = found.get("learning_rate", default.learning_rate)
    if optimiser == "nesterov":
        rate = _SGD_RATE
    if optimiser == "muon":
        rate /= VECTORS_RATE
    return found | {"optimiser": optimiser, "learning_rate": rate}
