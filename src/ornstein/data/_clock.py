"""How the times of a table become those of a model."""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Shaped


class Clock(eqx.Module):
    """Raw times, and `(raw - start) / unit`, which a model sees.

    Attributes:
        name: what raw times are, for axes: a column, or "days since 2024-01-31".
        origin: the date that is raw time 0; `None` where times were numbers.
        start: the raw time that is the model's 0.
        unit: the model's unit of time, in raw ones.
        column: of the table that the times are in.
        seconds: how long a raw unit is; `None` where times were numbers, and in runs
            of before.
        has_zone: whether dates had a time zone; `None` likewise.
    """

    name: str
    origin: str | None = None
    start: float = 0.0
    unit: float = 1.0
    column: str = "time"
    seconds: float | None = None
    has_zone: bool | None = None

    def __check_init__(self):
        if not (np.isfinite(self.unit) and self.unit > 0):
            raise ValueError(
                f"A model's unit of time must be positive, got {self.unit}: give how "
                "long it is in units of the times."
            )

    def turned(self, *, start: float, unit: float) -> "Clock":
        """The same raw times for a model with this start and unit."""
        return dataclasses.replace(self, start=start, unit=unit)

    def is_close(self, other: "Clock") -> bool:
        """Whether a model sees the same times by both.

        Args:
            other: of the same raw times.
        """
        apart = abs(self.start - other.start) / self.unit
        return apart < 1e-3 and bool(np.isclose(self.unit, other.unit, rtol=1e-6))

    @property
    def has_dates(self) -> bool:
        """Whether `dates` knows what raw times are."""
        return self.origin is not None and self.seconds is not None

    def dates(
        self, raw: Float[np.ndarray, "*rows times"]
    ) -> Shaped[np.ndarray, "*rows times"]:
        """Raw times as `datetime64`, to the microsecond.

        Args:
            raw: as `undo` gives them, of a clock that has dates.
        """
        assert self.origin is not None
        assert self.seconds is not None
        passed = np.round(np.asarray(raw, np.float64) * self.seconds * 1e6)
        return np.datetime64(self.origin, "us") + passed.astype("timedelta64[us]")

    def apply(
        self, raw: Float[np.ndarray | Array, "*rows times"]
    ) -> Float[np.ndarray, "*rows times"]:
        """Raw times to the model's, in double precision."""
        return (np.asarray(raw, np.float64) - self.start) / self.unit

    def undo(
        self, ts: Float[np.ndarray | Array, "*rows times"]
    ) -> Float[np.ndarray, "*rows times"]:
        """The model's times to raw ones, in double precision."""
        return np.asarray(ts, np.float64) * self.unit + self.start
