"""All that is known of data but their rows: what predicting takes, as JSON."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_atomically
from .._sentence import Sentence
from ._base import Data, Split
from ._clock import Clock
from ._columns import TableEncoding
from ._error import DataError
from ._series import Series, Span
from ._source import Source
from ._standardise import Standardisation

_VERSION = 1
_PLAIN = ("name", "task", "num_classes", "id_column", "image_size")
_LATER = {"image_fit": "crop"}
"""What earlier files do not have, and what was so then."""

_TEXTS = ("class_names", "feature_names", "target_names")


def save_schema(path: Path, data: Data) -> None:
    """Write what is known of data, without their rows.

    Args:
        path: of the JSON file.
        data: loaded, split and standardised.
    """
    saved: dict[str, Any] = {"version": _VERSION}
    saved |= {name: getattr(data, name) for name in _PLAIN}
    saved |= {name: getattr(data, name) for name in _LATER}
    saved |= {name: list(map(str, getattr(data, name))) for name in _TEXTS}
    saved["notes"] = [_written_note(note) for note in data.notes]
    for name in ("x_scaling", "y_scaling"):
        saved[name] = _optional(getattr(data, name), _written_scaling)
    saved["clock"] = _optional(data.clock, dataclasses.asdict)
    saved["encoding"] = _optional(data.encoding, dataclasses.asdict)
    saved["source"] = _optional(data.source, dataclasses.asdict)
    saved["span"] = _optional(data.span, dataclasses.asdict)
    saved["num_train"] = len(data.train)
    saved["num_test"] = len(data.test)
    saved["x_shape"] = list(data.example_shape)
    saved["y_shape"] = None if data.task == "series" else list(data.train.y.shape[1:])
    write_atomically(path, json.dumps(saved, indent=1).encode())


def load_schema(path: Path) -> Data:
    """Data without their rows: numbers of rows and shapes are true, no value is.

    Args:
        path: of a file that `save_schema` wrote.

    Returns:
        Data whose inputs are NaN and whose targets are 0; series are 0.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        saved = json.loads(path.read_bytes())
        version = saved["version"]
        if version != _VERSION:
            raise DataError(
                f"{path} is of version {version!r}, and this ornstein reads "
                f"{_VERSION}: use the version that wrote it."
            )
        return _read(saved)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path} is damaged ({type(error).__name__}: {error}): put back the file "
            "that training wrote, or train again."
        ) from error


def _read(saved: Mapping[str, Any]) -> Data:
    def optional(name: str, read: Callable[[Any], Any]) -> Any:
        return _optional(saved[name], read)

    clock = optional("clock", lambda found: Clock(**found))
    source = optional("source", lambda found: Source(**found | _tupled(found, "paths")))
    known: dict[str, Any] = {name: saved[name] for name in _PLAIN}
    known |= {name: saved.get(name, then) for name, then in _LATER.items()}
    known |= {name: tuple(saved[name]) for name in _TEXTS}
    return Data(
        **known,
        notes=tuple(map(_read_note, saved["notes"])),
        x_scaling=optional("x_scaling", _read_scaling),
        y_scaling=optional("y_scaling", _read_scaling),
        clock=clock,
        encoding=optional("encoding", TableEncoding.from_json),
        source=source,
        span=_optional(saved.get("span"), lambda found: Span(**found)),
        train=_rows(saved, "num_train"),
        test=_rows(saved, "num_test"),
    )


def _tupled(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: tuple(found[name])}


def _optional(value: Any, change: Callable[[Any], Any]) -> Any:
    return None if value is None else change(value)


def _rows(saved: Mapping[str, Any], of: str) -> Split:
    """Rows that are not there, in the memory of one number."""
    shape = (saved[of], *saved["x_shape"])
    if saved["y_shape"] is None:
        ts = np.broadcast_to(np.arange(shape[1], dtype=np.float32), shape[:2])
        values = np.broadcast_to(np.float32(0), shape)
        series = Series(ts, values, np.broadcast_to(np.True_, shape))
        return Split(series, series)
    dtype = np.float32 if saved["num_classes"] is None else np.int32
    y = np.broadcast_to(dtype(0), (saved[of], *saved["y_shape"]))
    return Split(np.broadcast_to(np.float32(np.nan), shape), y)


def _written_scaling(scaling: Standardisation) -> dict[str, Any]:
    # JSON's numbers are double precision, and so are mean and scale: nothing is lost.
    parts = {"mean": scaling.mean, "scale": scaling.scale}
    arrays = {name: np.asarray(part) for name, part in parts.items()}
    written: dict[str, Any] = {
        name: {"dtype": str(part.dtype), "values": part.tolist()}
        for name, part in arrays.items()
    }
    written["axes"] = None if scaling.axes is None else list(scaling.axes)
    return written


def _read_scaling(saved: Mapping[str, Any]) -> Standardisation:
    mean, scale = (
        np.array(saved[name]["values"], saved[name]["dtype"])
        for name in ("mean", "scale")
    )
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        raise ValueError("a scaling is not finite")
    axes = saved["axes"]
    return Standardisation(mean, scale, None if axes is None else tuple(axes))


def _written_note(note: Any) -> Any:
    """A sentence with its options, which each door spells in its own way."""
    if not isinstance(note, Sentence):
        return note
    return {"template": note.template, "values": list(map(_written_note, note.values))}


def _read_note(saved: Any) -> Any:
    if not isinstance(saved, Mapping):
        return saved
    return Sentence(saved["template"], *map(_read_note, saved["values"]))
