"""Steps' records added up to epochs'."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ._calibration import accuracy_and_ece
from ._step_record import StepRecord

LAST_OF_EPOCH = ("learning_rate", "kl_weight", "gradient_snr")
"""Records (with any suffix) of which an epoch keeps the last; of others, the mean."""


class History:
    """Every epoch's record, and the sums of the epoch under way.

    Sums are taken step by step, so that they do not depend on how many steps were
    compiled into one call.

    Args:
        like: a step's record, for its structure.
        steps_per_epoch: how many steps make an epoch.
        counts_skipped: record `num_skipped`, steps that were not finite, and leave them
            out of means.
    """

    def __init__(
        self, like: StepRecord, steps_per_epoch: int, *, counts_skipped: bool = False
    ):
        self.names = tuple(like.by_name())
        self.is_calibrated = like.calibration is not None
        self.steps_per_epoch = steps_per_epoch
        self.records: list[dict[str, Any]] = []
        # As checkpoints keep them: numbers in the order of names, calibration behind.
        self._sums = np.zeros(sum(np.size(leaf) for leaf in jax.tree.leaves(like)))
        self._count = 0
        self._num_skipped = 0
        self.counts_skipped = counts_skipped

    @property
    def num_steps(self) -> int:
        """Steps seen so far."""
        return len(self.records) * self.steps_per_epoch + self._count

    @property
    def num_skipped(self) -> int:
        """Steps seen so far that were not finite."""
        before = sum(record.get("num_skipped", 0) for record in self.records)
        return before + self._num_skipped

    def add(self, steps: StepRecord, seconds: float) -> list[dict[str, Any]]:
        """Add steps; return the records of the epochs that they completed.

        Args:
            steps: what they recorded, the steps leading.
            seconds: of training, until now.
        """
        completed = []
        rows = np.column_stack(list(steps.by_name().values()))
        if steps.calibration is not None:
            sums = np.reshape(steps.calibration, (len(rows), -1))
            rows = np.concatenate([rows, sums], axis=1)
        is_skipped = ~steps.is_finite(np)
        for row, skipped in zip(rows, is_skipped, strict=True):
            self._count += 1
            self._num_skipped += int(skipped)
            if not (skipped and self.counts_skipped):
                self._sums += row
            if self._count == self.steps_per_epoch:
                record = self._record(dict(zip(self.names, row, strict=False)))
                epoch = len(self.records) + 1
                step = epoch * self.steps_per_epoch
                record = {"epoch": epoch, "step": step, "seconds": seconds} | record
                self.records.append(record)
                completed.append(record)
                self._sums = np.zeros_like(self._sums)
                self._count = self._num_skipped = 0
        return completed

    def so_far(self, last: StepRecord) -> dict[str, Any]:
        """The record of the epoch under way (or just ended), for a progress bar.

        Args:
            last: what the last step recorded.
        """
        return self._record(last.by_name()) if self._count else dict(self.records[-1])

    def arrays(self) -> dict[str, np.ndarray]:
        """One array over epochs for each record; NaN where an epoch has none."""
        names = dict.fromkeys(name for record in self.records for name in record)
        return {
            name: np.array([record.get(name, math.nan) for record in self.records])
            for name in names
        }

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON without NaN, which JSON does not have."""
        return {
            "records": [json_record(record) for record in self.records],
            "sums": [_json_number(value) for value in self._sums],
            "count": self._count,
            "num_skipped": self._num_skipped,
        }

    def load_json(self, saved: dict[str, Any]) -> None:
        """Become what `to_json` described."""
        self.records = [
            {name: math.nan if v is None else v for name, v in record.items()}
            for record in saved["records"]
        ]
        sums = [math.nan if value is None else value for value in saved["sums"]]
        self._sums = np.array(sums)
        self._count = saved["count"]
        self._num_skipped = saved.get("num_skipped", 0)

    def _record(self, last: Mapping[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = {}
        count = self._count
        if self.counts_skipped:
            count -= self._num_skipped
            record["num_skipped"] = self._num_skipped
        for name, total in zip(self.names, self._sums, strict=False):
            keep_last = name.startswith(LAST_OF_EPOCH)
            mean = total / count if count else math.nan
            record[name] = float(last[name] if keep_last else mean)
        if self.is_calibrated:
            record |= accuracy_and_ece(self._sums[len(self.names) :].reshape(3, -1))
        return record


def json_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record that JSON can hold: `None` for NaN and infinity."""
    return {name: _json_number(value) for name, value in record.items()}


def _json_number(value):
    if isinstance(value, int):
        return value
    return float(value) if math.isfinite(value) else None
