"""Values in time, some of them missing: what a latent model of sequences learns from.

Several series are the rows of one `Series`. They may have times of their own; a shorter
one is padded with later times at which nothing is observed.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from .._types import Array, ArrayLike, Bool, Float
from ._error import DataError


class Series(eqx.Module):
    """Series in time, rows first.

    `Series.of` builds one from a user's arrays and checks them. A time at which
    nothing is observed is to be predicted.

    Attributes:
        ts: times, increasing within a series; the first is where its latent path
            begins.
        values: what was observed; anything (0 from `of`) where it is missing.
        mask: true where a value was observed.
    """

    ts: Float[Array | np.ndarray, "*rows times"]
    values: Float[Array | np.ndarray, "*rows times features"]
    mask: Bool[Array | np.ndarray, "*rows times features"]

    def __check_init__(self):
        ts, values, mask = self.ts.shape, self.values.shape, self.mask.shape
        if not ts or values[:-1] != ts or mask != values:
            raise DataError(
                f"A `Series` got times of shape {ts}, values of shape {values} and a "
                f"mask of shape {mask}: give (rows, times), and (rows, times, "
                "features) twice; `Series.of` repeats times for all rows."
            )

    @staticmethod
    def of(
        ts: ArrayLike | Sequence[Any],
        values: ArrayLike | Sequence[Any],
        mask: ArrayLike | Sequence[Any] | None = None,
    ) -> "Series":
        """Series from a user's arrays, checked.

        Args:
            ts: (times,), repeated for all rows; or (rows, times).
            values: (rows, times, features), or (times, features) for one series.
            mask: true where a value was observed, in the shape of `values`, or
                (times,) or (rows, times) for all features at once. Without one, NaN
                in `values` means missing.

        Returns:
            The series in float32 (float64 stays where 64 bits are enabled), with
            zeros where a value is missing.

        Raises:
            DataError: for times that are no numbers, repeat or do not increase, a
                series of one point or without any observed value, an observed value
                that is no finite number, or shapes that do not fit.
        """
        times = _numbers(ts, "times")
        given = _numbers(values, "values")
        if given.ndim not in (2, 3) or 0 in given.shape:
            raise DataError(
                f"`values` has shape {given.shape}: give (rows, times, features), or "
                "(times, features) for one series; values[..., None] for one feature."
            )
        shape = given.shape
        given = given[None] if given.ndim == 2 else given
        rows, num_times, _ = given.shape
        if times.shape not in ((num_times,), (rows, num_times)):
            raise DataError(
                f"`ts` has shape {times.shape} for values of shape {given.shape}: give "
                f"({num_times},), or ({rows}, {num_times})."
            )
        _check_times(np.atleast_2d(times))
        times = np.array(np.broadcast_to(times, (rows, num_times)))
        observed = _mask(mask, given, shape)
        _check_observed(given, observed)
        return Series(times, np.where(observed, given, 0).astype(given.dtype), observed)

    @staticmethod
    def padded(series: Sequence["Series"]) -> "Series":
        """Series of different lengths as the rows of one.

        A shorter one is followed by later times at which nothing is observed, as far
        apart as its last two, or as its times are at the median where that is less. A
        model pays for their steps, and nothing else; but a `LatentSDE` that
        extrapolates its posterior pays that one's KL there too.

        Args:
            series: with the same features.

        Raises:
            DataError: for no series, or features that differ.
        """
        if not series:
            raise DataError("`Series.padded` got no series: give at least one.")
        features = sorted({one.num_features for one in series})
        if len(features) > 1:
            raise DataError(
                f"`Series.padded` got series of {features} features: give series of "
                "the same features, masked where one was not measured."
            )
        longest = max(one.num_times for one in series)
        parts = [_padded_to(one, longest) for one in series]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def __len__(self) -> int:
        return self.ts.shape[0]

    def __getitem__(self, rows: Any) -> "Series":
        """Some of the series: whatever picks rows of an array."""
        return jax.tree.map(lambda leaf: leaf[rows], self)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the values: rows, times, features."""
        return self.values.shape

    @property
    def num_times(self) -> int:
        """Times in each series, those without observations among them."""
        return self.values.shape[-2]

    @property
    def num_features(self) -> int:
        """Values at each time."""
        return self.values.shape[-1]

    def extended(self, ts: Float[ArrayLike, "..."] | Sequence[float]) -> "Series":
        """The same series with later times at which nothing is observed.

        What `predict` gives there is the future.

        Args:
            ts: (times,) for all rows, or (rows, times); after the last time of each.

        Raises:
            DataError: for times that do not follow.
        """
        known = np.asarray(self.ts)
        later = _numbers(ts, "times").astype(known.dtype)
        if later.ndim not in (1, 2) or (later.ndim == 2 and len(later) != len(self)):
            raise DataError(
                f"`extended` got times of shape {later.shape} for {len(self)} series: "
                "give (times,), or a row of times for each series."
            )
        later = np.broadcast_to(later, (len(self), later.shape[-1]))
        times = np.concatenate([known, later], axis=-1)
        _check_times(times)
        empty = (len(self), later.shape[-1], self.num_features)
        values = np.asarray(self.values)
        return Series(
            times,
            np.concatenate([values, np.zeros(empty, values.dtype)], axis=1),
            np.concatenate([np.asarray(self.mask), np.zeros(empty, bool)], axis=1),
        )

    def first(self, num_times: int) -> "Series":
        """The same times, with what came after the first `num_times` masked out.

        Args:
            num_times: how many times keep their observations, at least 1.

        Raises:
            DataError: if no observation is left in some series.
        """
        mask = np.array(self.mask)
        mask[:, num_times:] = False
        _check_observed(np.asarray(self.values), mask)
        return Series(self.ts, self.values, mask)


class Span(eqx.Module):
    """When the training series were observed, on the model's time.

    Attributes:
        first: the time at which all of them begin; `None` where they differ.
        last: the last time at which one of them was observed.
        gap: the longest from one time to the next, up to a series' last observation;
            `None` where only first times were observed.
    """

    first: float | None
    last: float
    gap: float | None

    @staticmethod
    def of(series: Series) -> "Span":
        """That of some series.

        Args:
            series: rows of them.
        """
        ts, starts = np.asarray(series.ts, np.float64), np.unique(series.ts[:, 0])
        gaps = observed_gaps(series)
        return Span(
            float(starts[0]) if len(starts) == 1 else None,
            float(ts[np.asarray(series.mask).any(-1)].max()),
            float(gaps.max()) if gaps.size else None,
        )


def observed_gaps(series: Series) -> Float[np.ndarray, " gaps"]:
    """From one time to the next, of all series: up to the last observation of each.

    Padding repeats a gap, and is no measurement.

    Args:
        series: rows of them.
    """
    observed = np.asarray(series.mask).any(-1)
    is_known = np.flip(np.cumsum(np.flip(observed, 1), axis=1), 1) > 0
    return np.diff(np.asarray(series.ts, np.float64), axis=1)[is_known[:, 1:]]


def _numbers(given: Any, name: str) -> np.ndarray:
    """A real floating-point array; 64 bits only where JAX has them."""
    if isinstance(given, Tracer):
        raise DataError(
            f"`Series.of` got traced {name}, which it cannot check: build the series "
            "outside `jit`, or call `Series(ts, values, mask)`."
        )
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise DataError(
            f"The {name} are rows of different lengths: join them by "
            "`Series.padded([Series.of(...), ...])`."
        ) from error
    if array.dtype == object and array.size:
        kinds = sorted({type(value).__name__ for value in array.ravel()})
        raise DataError(
            f"The {name} are of mixed type ({', '.join(kinds)}): give numbers, with "
            "times as seconds, days or years from some beginning."
        )
    if array.dtype.kind not in "iuf":
        raise DataError(
            f"The {name} are of type {array.dtype}, not numbers: give numbers, with "
            "times as seconds, days or years from some beginning."
        )
    with np.errstate(over="ignore"):
        cast = array.astype(jax.dtypes.canonicalize_dtype(np.float64))
    too_large = np.isfinite(array) & ~np.isfinite(cast)
    if too_large.any():
        first = np.argwhere(too_large)[0].tolist()
        raise DataError(
            f"The {name} have {array[tuple(first)]:g} at {first}, counting from 0, "
            f"which is beyond {cast.dtype}: give them in another unit, or standardised."
        )
    return cast


def _mask(mask: Any, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The mask in the shape of `values`, which the user gave in `shape`."""
    if mask is None:
        return ~np.isnan(values)
    given = np.asarray(mask)
    if given.dtype != bool:
        raise DataError(
            f"`mask` is of type {given.dtype}: give booleans, true where a value was "
            "observed."
        )
    if given.shape != shape:
        if given.shape not in (values.shape[:2], values.shape[1:2]):
            raise DataError(
                f"`mask` has shape {given.shape} for values of shape {shape}: give one "
                "boolean for each value, or one for each time."
            )
        given = given[..., None]
    return np.array(np.broadcast_to(given, values.shape))


def _check_times(ts: np.ndarray):
    if ts.shape[-1] < 2:
        raise DataError(
            "A series of one point has no path: give at least two times, the later "
            "one masked if nothing was observed there."
        )
    if not np.all(np.isfinite(ts)):
        raise DataError(
            f"{np.sum(~np.isfinite(ts))} times are NaN or infinite: give a number for "
            "every point; what is missing is said by `mask`."
        )
    bad = np.argwhere(np.diff(ts, axis=-1) <= 0)
    if bad.size:
        row, at = bad[0]
        before, after = ts[row, at], ts[row, at + 1]
        what = "repeat" if before == after else "are unsorted"
        raise DataError(
            f"The times of series {row} {what} ({before:g} is followed by {after:g}): "
            "sort the points by time and merge those of one time."
        )


def _check_observed(values: np.ndarray, mask: np.ndarray):
    empty = np.flatnonzero(~mask.any(axis=(1, 2)))
    if empty.size:
        raise DataError(
            f"{empty.size} of {len(mask)} series have no observed value, first series "
            f"{empty[0]}: drop them."
        )
    bad = np.argwhere(mask & ~np.isfinite(values))
    if bad.size:
        row, at, feature = bad[0]
        raise DataError(
            f"{len(bad)} observed values are NaN or infinite, first feature {feature} "
            f"at point {at} of series {row}: mask them out, or drop those points."
        )


def _padded_to(series: Series, num_times: int) -> Series:
    missing = num_times - series.num_times
    if missing == 0:
        return series
    return series.extended(
        np.stack([later_times(row, missing) for row in np.asarray(series.ts)])
    )


def later_times(
    ts: Float[np.ndarray, " times"], number: int
) -> Float[np.ndarray, " later"]:
    """Times that go on where a series ends: see `Series.padded`.

    Args:
        ts: of the series.
        number: how many.
    """
    gaps = np.diff(ts)
    # Single precision tells them apart.
    gap = min(gaps[-1], max(np.median(gaps), 1e-6 * abs(ts[-1])))
    return ts[-1] + gap * np.arange(1, number + 1, dtype=ts.dtype)
