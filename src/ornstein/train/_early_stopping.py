"""Stop when held-out examples are no longer predicted better."""

import math
from typing import Any

import equinox as eqx

from .._tree import copied
from .._types import PyTree


class EarlyStopping(eqx.Module):
    """Stop after `patience` validations without progress, and return the best epoch.

    Judged by what will be used: with a running mean of the weights by the mean's
    validation NLL, `val_ema_nll`, else by `val_nll`.

    Epochs of the KL weight's warm-up are neither chosen nor counted: their objective is
    another one. Of a run that is all warm-up the last epoch is returned.

    With a patience of the whole run it only selects the best epoch.

    Attributes:
        patience: how many validations in a row may bring nothing, after the warm-up.
        min_delta: by how much the validation NLL must fall to count, nats per example
            (of series: per observed value).
    """

    patience: int = 10
    min_delta: float = 0.0

    def __check_init__(self) -> None:
        if self.patience < 1 or self.min_delta < 0:
            raise ValueError(
                f"`EarlyStopping` needs a patience of at least 1 and a `min_delta` "
                f"that is not negative, got {self.patience} and {self.min_delta}."
            )


class Best:
    """The best epoch so far, by validation NLL.

    Args:
        rule: when to stop.
        params: a tree like the one to keep: parameters, batch statistics, and the
            running mean.

    Attributes:
        epoch: the best one's number from 1; 0 before there is any.
    """

    def __init__(self, rule: EarlyStopping, params: PyTree):
        self.rule = rule
        self.params = copied(params)
        self.nll = math.inf
        self.num_waited = self.epoch = 0

    def update(self, epoch: int, nll: float, params: PyTree) -> bool:
        """Hear of a validation; say whether it is time to stop."""
        if nll < self.nll - self.rule.min_delta:
            self.nll, self.num_waited, self.params = nll, 0, copied(params)
            self.epoch = epoch
        else:
            self.num_waited += 1
        return self.num_waited >= self.rule.patience

    @property
    def found(self) -> bool:
        """Whether there was any validation with a finite NLL."""
        return math.isfinite(self.nll)

    def to_json(self) -> dict[str, Any]:
        """Everything but the parameters."""
        nll = self.nll if self.found else None
        return {"nll": nll, "num_waited": self.num_waited, "epoch": self.epoch}

    def load_json(self, saved: dict[str, Any], params: PyTree) -> None:
        """Become what `to_json` described."""
        self.nll = math.inf if saved["nll"] is None else saved["nll"]
        self.num_waited, self.params = saved["num_waited"], params
        self.epoch = saved.get("epoch", 0)
