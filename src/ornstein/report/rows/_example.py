"""Single test rows to look at: the most certain, and the least."""

import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ..._types import Float
from ...data import Column, Data, TableEncoding, in_raw_units

_NUM_EACH = 12
_MOST_PIXELS = 96
_NUM_FEATURES = 4
_WHITES = (1, 16, 255)
_SAMPLED_ROWS = 256
_DUST = 1e-6
_HALF = 0.5  # of what is 0 or 1


class Example(NamedTuple):
    """A test row.

    Attributes:
        row: its number among the test rows, from 0.
        name: that its table or file gives it; empty where there is none.
        is_certain: whether it is among the most certain, not the least.
        truth: its target, in words.
        guess: what was said of it, in words.
        is_right: whether the guess is the class; `None` for numbers.
        features: of a table, the columns in which it is furthest from the training
            rows' mean, and their values.
        image: as a PNG file; empty where it is none.
    """

    row: int
    name: str
    is_certain: bool
    truth: str
    guess: str
    is_right: bool | None
    features: tuple[tuple[str, str], ...] = ()
    image: bytes = b""


def examples_of(
    uncertainty: Float[np.ndarray, " rows"],
    data: Data,
    columns: Mapping[str, np.ndarray],
) -> tuple[Example, ...]:
    """The test rows at both ends of an uncertainty.

    Args:
        uncertainty: of each test row; NaN where it is not known.
        data: whose test rows they are.
        columns: of `JudgedRows`, of all test rows.
    """
    order = np.argsort(uncertainty, kind="stable")
    order = order[~np.isnan(uncertainty[order])]
    num_each = min(_NUM_EACH, len(order) // 2)
    if num_each == 0:
        return ()
    rows = np.concatenate([order[:num_each], order[::-1][:num_each]])
    images = _images(data, rows)
    names = data.test_names if len(data.test_names) == len(uncertainty) else ()
    found = []
    for place, row in enumerate(map(int, rows)):
        truth, guess, is_right = _said(data, columns, row)
        found.append(
            Example(
                row,
                names[row] if names else "",
                place < num_each,
                truth,
                guess,
                is_right,
                _features(data, row),
                images[place] if images else b"",
            )
        )
    return tuple(found)


def _said(
    data: Data, columns: Mapping[str, np.ndarray], row: int
) -> tuple[str, str, bool | None]:
    if "guess" in columns:
        truth, guess = int(columns["y"][row]), int(columns["guess"][row])
        share = f"{100 * columns['confidence'][row]:.0f}\N{NO-BREAK SPACE}%"
        said = f"{data.class_names[guess]}, {share}"
        return str(data.class_names[truth]), said, truth == guess
    low, mid, high = (columns[name][row] for name in ("lower", "median", "upper"))
    said = f"{_written(mid)} ({_written(low)} to {_written(high)})"
    return _written(columns["y"][row]), said, None


def _written(value: float) -> str:
    """As people write numbers: no power of ten up to some billions."""
    large = 9999.5 <= abs(value) < 1e10  # what four digits would round up to 1e+04
    return f"{value:,.0f}" if large else f"{value:.4g}"


def _features(data: Data, row: int) -> tuple[tuple[str, str], ...]:
    """The furthest from 0 in standard units first; numbers before categories."""
    x = np.asarray(data.test.x[row])
    if x.ndim != 1:
        return ()
    raw = np.ravel(in_raw_units(x[None], data.x_scaling))
    if data.encoding is not None:
        return _cells(data.encoding, x, raw)
    furthest = np.argsort(-np.abs(x), kind="stable")[:_NUM_FEATURES]
    names = list(data.feature_names) or [f"column {i}" for i in range(x.size)]
    return tuple((str(names[i]), _written(_snapped(raw[i]))) for i in furthest)


def _snapped(value: Any) -> float:
    """Without the dust of single precision."""
    return 0.0 if abs(value) < _DUST else float(value)


def _cells(
    encoding: TableEncoding, x: np.ndarray, raw: np.ndarray
) -> tuple[tuple[str, str], ...]:
    """A row's cells as its table has them."""
    numbers = [c for c in encoding.columns if c.kind != "category"]
    gaps = [c.name for c in numbers if c.has_gaps]
    texts = [c for c in encoding.columns if c.kind == "category"]
    is_empty = dict(zip(gaps, raw[len(numbers) :] > _HALF, strict=False))
    found = []
    for place, column in enumerate(numbers):
        cell = "empty" if is_empty.get(column.name) else _cell(column, raw[place])
        found.append((abs(float(x[place])), column.name, cell))
    found.sort(key=lambda each: -each[0])
    place = len(numbers) + len(gaps)
    for column in texts:
        shown = raw[place : place + len(column.categories)]
        place += len(column.categories)
        is_known = shown.size > 0 and shown.max() > _HALF
        cell = column.categories[int(shown.argmax())] if is_known else "another"
        found.append((0.0, column.name, cell))
    return tuple((name, cell) for _, name, cell in found[:_NUM_FEATURES])


def _cell(column: Column, value: float) -> str:
    if column.kind == "boolean":
        return "true" if value > _HALF else "false"
    if column.kind == "date":
        # To ten minutes: single precision is seconds off, at midnight into another day.
        minutes = np.datetime64(10 * round(float(value) * 144), "m")
        return str(minutes.astype("datetime64[D]"))
    return _written(_snapped(value))


def _images(data: Data, rows: np.ndarray) -> list[bytes]:
    x = data.test.x
    if len(data.example_shape) != 3 or data.example_shape[-1] not in (1, 3):
        return []
    some = np.asarray(x[np.union1d(rows, np.arange(min(len(x), _SAMPLED_ROWS)))])
    raw = in_raw_units(some, data.x_scaling)
    white = next((w for w in _WHITES if raw.max() <= w * 1.001), float(raw.max()))
    black = min(0.0, float(raw.min()))
    if black > -1e-3 * white:
        black = 0.0
    found = []
    for row in rows:
        pixels = in_raw_units(np.asarray(x[row : row + 1]), data.x_scaling)[0]
        share = np.clip((pixels - black) / (white - black), 0, 1)
        found.append(_png(np.round(255 * share).astype(np.uint8)))
    return found


def _png(pixels: np.ndarray) -> bytes:
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    if max(image.size) > _MOST_PIXELS:
        image.thumbnail((_MOST_PIXELS, _MOST_PIXELS))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
