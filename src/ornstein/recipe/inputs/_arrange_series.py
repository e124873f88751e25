"""Sequences as a recipe learns them: again from elsewhere, and half hidden."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ..._sentence import OptionError
from ..._types import Bool
from ...data import Data, Series, Span, Split, at_tempos, of_lengths, windows
from .._recipe import Recipe
from ..models import BY_FRAMES, recognition_kind

_WHOLE_NOTE = "The test series are judged by values that the model was shown."


def arrange_series(recipe: Recipe, data: Data) -> Data:
    """Sequences as a recipe learns them, and cut into what is shown and what is asked.

    Args:
        recipe: how.
        data: whole sequences.

    Raises:
        ValueError: for starts, tempos, lengths or a share that cannot be.
    """
    data = with_later_starts(data, recipe.series.start_every)
    data = with_tempos(data, recipe.series.tempos)
    data = with_lengths(data, recipe.series.lengths)
    data = dataclasses.replace(data, span=Span.of(data.train.in_memory().x))
    kind = recognition_kind(recipe.latent, data)
    num_frames = recipe.latent.frames if kind in BY_FRAMES else None
    fraction = recipe.series.test_seen
    return ask_for_the_rest(data, fraction=fraction, num_frames=num_frames)


def with_later_starts(data: Data, every: int) -> Data:
    """Each training series again from later points, up to two thirds of it.

    Args:
        data: sequences.
        every: points from one start to the next; 0 leaves the data as they are.

    Raises:
        ValueError: for a number that is negative, or past two thirds of the points.
    """
    if every == 0:
        return data
    furthest = 2 * data.train.x.num_times // 3
    if not 0 < every <= furthest:
        raise OptionError(
            "{start_every} {} is not among the points where a series of {} begins "
            "again: give a number from 1 to {}, or 0 for its first alone.",
            every,
            data.train.x.num_times,
            furthest,
        )
    starts = range(0, furthest + 1, every)
    note = (
        f"Each training series is learned from {len(starts)} of its points on, every "
        f"{every}."
    )
    return _learned_as(data, lambda series: windows(series, starts), note)


def with_tempos(data: Data, tempos: Sequence[float]) -> Data:
    """Each training series again, faster and slower.

    Args:
        data: sequences.
        tempos: as `at_tempos` takes them; none leaves the data as they are.

    Raises:
        ValueError: for one that is not positive.
    """
    if not tempos:
        return data
    listed = ", ".join(f"{tempo:g}" for tempo in tempos)
    note = f"Each training series is learned at the tempos {listed}."
    return _learned_as(data, lambda series: at_tempos(series, tempos), note)


def with_lengths(data: Data, lengths: Sequence[int]) -> Data:
    """Each training series again, cut short.

    Args:
        data: sequences.
        lengths: as `of_lengths` takes them; none leaves the data as they are.

    Raises:
        ValueError: for one that no series has.
    """
    if not lengths:
        return data
    listed = ", ".join(map(str, lengths))
    note = f"Each training series is learned up to its points {listed}."
    return _learned_as(data, lambda series: of_lengths(series, lengths), note)


def _learned_as(data: Data, again: Callable[[Series], Series], note: str) -> Data:
    """Sequences with more training rows, and a note that says so."""
    train = Split(again(data.train.x), again(data.train.y))
    return dataclasses.replace(data, train=train, notes=(*data.notes, note))


def ask_for_the_rest(data: Data, *, fraction: float, num_frames: int | None) -> Data:
    """Show a model the beginning of each test series, and judge it by the rest.

    Rows that are asked for other values than they show stay as they are, as do those
    of a split with a series too short to be cut. So do validation rows.

    Args:
        data: sequences.
        fraction: of each series' observed times, to show; 1 shows, and asks for, all.
        num_frames: this many first points instead, which is all that the model reads.

    Raises:
        ValueError: for a fraction that cannot be.
    """
    if not 0 < fraction <= 1:
        raise OptionError(
            "{test_seen} must lie above 0 and be at most 1, got {}: 0.5 shows half of "
            "each test series, and asks for the other half.",
            fraction,
        )
    test = _cut(data.test, fraction, num_frames)
    held = data.validation
    held = None if held is None else _cut(held, fraction, num_frames) or held
    if test is None:
        is_shown = np.array_equal(data.test.x.mask, data.test.y.mask)
        notes = (*data.notes, _WHOLE_NOTE) if is_shown else data.notes
        return dataclasses.replace(data, validation=held, notes=notes)
    shown = f"first {num_frames} points" if num_frames else f"first {fraction:.0%}"
    note = (
        f"Of each test series the {shown} of what was observed is shown to the model, "
        "and it is judged by the rest."
    )
    if num_frames:
        note = note.replace(" of what was observed is", " are")
    return dataclasses.replace(
        data, test=test, validation=held, notes=(*data.notes, note)
    )


def _cut(split: Split, fraction: float, num_frames: int | None) -> Split | None:
    """`None` where there is nothing to cut, or no way to."""
    x, y = split.x, split.y
    if fraction == 1 or not np.array_equal(x.mask, y.mask):
        return None
    is_shown = _first_points(x.mask.any(-1), fraction, num_frames)[..., None]
    seen, asked = x.mask & is_shown, y.mask & ~is_shown
    if not (seen.any((1, 2)) & asked.any((1, 2))).all():
        return None
    hide = lambda values, mask: np.where(mask, values, np.float32(0))
    return Split(
        Series(x.ts, hide(x.values, seen), seen),
        Series(y.ts, hide(y.values, asked), asked),
    )


def _first_points(
    is_observed: Bool[np.ndarray, "rows times"], fraction: float, num_frames: int | None
) -> Bool[np.ndarray, "rows times"]:
    if num_frames is not None:
        at = np.arange(is_observed.shape[1])
        return np.broadcast_to(at < num_frames, is_observed.shape)
    number = np.cumsum(is_observed, axis=1)
    return number <= np.ceil(fraction * number[:, -1:])
