"""Steps' records added up to epochs'."""

import math
from typing import Any

import numpy as np

from ._calibration import accuracy_and_ece

LAST_OF_EPOCH = ("learning_rate", "kl_weight", "gradient_snr")
"""Records (with any suffix) of which an epoch keeps the last; of others, the mean."""


class History:
    """Every epoch's record, and the sums of the epoch under way.

    Sums are taken step by step, so that they do not depend on how many steps were
    compiled into one call.

    Args:
        names: of a step's records.
        num_bins: calibration bins that follow them, or 0.
        steps_per_epoch: how many steps make an epoch.
    """

    def __init__(self, names: tuple[str, ...], num_bins: int, steps_per_epoch: int):
        self.names = names
        self.num_bins = num_bins
        self.steps_per_epoch = steps_per_epoch
        self.records: list[dict[str, Any]] = []
        self._sums = np.zeros(len(names) + 3 * num_bins)
        self._count = 0

    @property
    def num_steps(self) -> int:
        """Steps seen so far."""
        return len(self.records) * self.steps_per_epoch + self._count

    def add(self, rows: np.ndarray, seconds: float) -> list[dict[str, Any]]:
        """Add steps; return the records of the epochs that they completed.

        Args:
            rows: one row of records for each step.
            seconds: of training, until now.
        """
        completed = []
        for row in rows:
            self._sums += row
            self._count += 1
            if self._count == self.steps_per_epoch:
                record = self._record(row)
                epoch = len(self.records) + 1
                step = epoch * self.steps_per_epoch
                record = {"epoch": epoch, "step": step, "seconds": seconds} | record
                self.records.append(record)
                completed.append(record)
                self._sums = np.zeros_like(self._sums)
                self._count = 0
        return completed

    def so_far(self, row: np.ndarray) -> dict[str, Any]:
        """The record of the epoch under way (or just ended), for a progress bar.

        Args:
            row: the last step's records.
        """
        return self._record(row) if self._count else dict(self.records[-1])

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

    def _record(self, row: np.ndarray) -> dict[str, float]:
        num_names = len(self.names)
        record = {}
        for name, total, last in zip(self.names, self._sums, row, strict=False):
            keep_last = name.startswith(LAST_OF_EPOCH)
            record[name] = float(last if keep_last else total / self._count)
        if self.num_bins:
            record |= accuracy_and_ece(self._sums[num_names:].reshape(3, -1))
        return record


def json_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record that JSON can hold: `None` for NaN and infinity."""
    return {name: _json_number(value) for name, value in record.items()}


def _json_number(value):
    if isinstance(value, int):
        return value
    return float(value) if math.isfinite(value) else None
