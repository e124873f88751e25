"""From raw sequences to `Data`: the last step of every source of series."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._assemble import check_scaling, place_of
from .._base import Data, Split
from .._clock import Clock
from .._error import DataError
from .._series import Series
from .._source import Source
from .._standardise import Standardisation


class Sequences(NamedTuple):
    """One part of a set of sequences, in double precision.

    Attributes:
        ts: times, increasing within a row.
        seen: what a model is given; NaN where it is not told.
        asked: what it is judged by, NaN where it is not; `None` means `seen`.
    """

    ts: Float[np.ndarray, "rows times"]
    seen: Float[np.ndarray, "rows times features"]
    asked: Float[np.ndarray, "rows times features"] | None = None


def assemble_series(
    name: str,
    train: Sequences,
    test: Sequences,
    *,
    validation: Sequences | None = None,
    scaling: Standardisation | None = None,
    standardise: bool = False,
    feature_names: Sequence[str] = (),
    notes: Sequence[str] = (),
    clock: Clock | None = None,
    source: Source | None = None,
    test_names: Sequence[str] = (),
) -> Data:
    """Scale sequences by the training rows, where asked to, and name them.

    Times are never scaled.

    Args:
        name: as `load` takes it.
        train: to learn from.
        test: for the final judgement.
        validation: for choosing, or `None`.
        scaling: done to every value, where the source fixes it.
        standardise: scale each feature to mean 0 and standard deviation 1 over the
            observed training values instead.
        feature_names: of the features.
        notes: what readers of figures must know.
        clock: what the times count.
        source: the user's own file, where they are from one.
        test_names: of the test rows, where something names them.

    Returns:
        Data of the task `"series"`, whose splits hold `Series` for x and for y.

    Raises:
        DataError: for values that are infinite, or sequences that cannot be used.
    """
    for part in (train, test, validation):
        if part is not None and np.isinf(part.seen).any():
            rows = np.argwhere(np.isinf(part.seen))
            raise DataError(
                f"{name} has {len(rows)} infinite values, the first in series "
                f"{rows[0, 0]} at its time number {rows[0, 1]}, counting from 0: leave "
                "the cell empty where nothing was observed."
            )
    if standardise:
        scaling = Standardisation.fit_observed(train.seen)
        check_scaling(
            scaling, np.nan_to_num(train.seen), f"{name}: the series", feature_names
        )

    def split(part: Sequences) -> Split:
        for values in (part.seen, part.asked):
            if values is not None:
                _check_single(name, values, scaling, feature_names)
        seen = scaled_series(part.ts, part.seen, scaling)
        if part.asked is None:
            return Split(seen, seen)
        return Split(seen, scaled_series(part.ts, part.asked, scaling))

    return Data(
        name=name,
        task="series",
        train=split(train),
        test=split(test),
        validation=None if validation is None else split(validation),
        x_scaling=scaling,
        y_scaling=scaling,
        feature_names=tuple(feature_names),
        target_names=tuple(feature_names),
        notes=tuple(notes),
        clock=clock,
        source=source,
        test_names=tuple(test_names),
    )


def _check_single(
    name: str,
    values: Float[np.ndarray, "rows times features"],
    scaling: Standardisation | None,
    feature_names: Sequence[str],
) -> None:
    """Refuse what is beyond single precision in a model's units."""
    bad = np.argwhere(np.abs(_scaled(values, scaling)) > np.finfo(np.float32).max)
    if len(bad):
        raise DataError(
            f"{name}: {place_of(bad[0], feature_names)} has {values[tuple(bad[0])]:g}, "
            "counting from 0, which is beyond single precision in units of the "
            "training series: correct it, or leave the cell empty."
        )


def _scaled(
    values: Float[np.ndarray, "rows times features"], scaling: Standardisation | None
) -> Float[np.ndarray, "rows times features"]:
    if scaling is None:
        return values
    return scaling.apply_in(np.float64, values)


def scaled_series(
    ts: Float[np.ndarray, "rows times"],
    values: Float[np.ndarray, "rows times features"],
    scaling: Standardisation | None,
) -> Series:
    """Raw sequences for a model, scaled in double precision.

    Args:
        ts: times, increasing within a row.
        values: NaN where nothing was observed.
        scaling: done to every value, or `None`.

    Raises:
        DataError: see `Series.of`.
    """
    return Series.of(ts, _scaled(values, scaling))
