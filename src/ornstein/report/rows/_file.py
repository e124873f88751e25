"""The file in which a run keeps what a report says of its test rows."""

import base64
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._files import UnreadableError, parse_json, read_npz, write_atomically
from ._chains import ChainRecord
from ._example import Example
from ._judged import JudgedRows

_FILE = "test_rows.npz"
_VERSION = 1
_HEADER = "header"
_OF_ROWS = ("kind", "num_rows", "errors", "constants")
_OF_CHAINS = ("labels", "every", "by_chain", "starts")
_CLASSES = {"y", "guess", "confidence", "entropy", "aleatoric", "epistemic"}
_COLUMNS = {
    "classes": {"log_prob", *_CLASSES},
    "numbers": {"log_prob", "squared_error", "width"},
    "other": {"log_prob"},
}
_ARRAYS_OF_CHAINS = ("traces", "r_hat", "ess_bulk", "ess_tail", "energy")


class KeptRows(NamedTuple):
    """Test rows, and chains where there are any.

    Attributes:
        rows: each with what was said of it.
        chains: their diagnostics, or `None`.
    """

    rows: JudgedRows
    chains: ChainRecord | None = None


def rows_path(run: Path) -> Path:
    """Where a run keeps them.

    Args:
        run: its folder.
    """
    return run / _FILE


def save_rows(run: Path, kept: KeptRows) -> Path:
    """Write them, whole or not at all, and say where.

    Args:
        run: its folder.
        kept: of its test rows.
    """
    rows, chains = kept
    header: dict[str, Any] = {"version": _VERSION}
    header |= {name: getattr(rows, name) for name in _OF_ROWS}
    header["examples"] = [
        {**one._asdict(), "image": base64.b64encode(one.image).decode()}
        for one in rows.examples
    ]
    arrays = {"index": rows.index.astype(np.int64), "cdf": rows.cdf}
    arrays |= {f"row {name}": column for name, column in rows.columns.items()}
    if chains is not None:
        header["chains"] = {name: getattr(chains, name) for name in _OF_CHAINS}
        arrays |= {
            f"chain {name}": np.asarray(getattr(chains, name), np.float32)
            for name in _ARRAYS_OF_CHAINS
        }
    text = json.dumps(header).encode()
    file = io.BytesIO()
    np.savez_compressed(
        file, allow_pickle=False, **{_HEADER: np.frombuffer(text, np.uint8)}, **arrays
    )
    path = rows_path(run)
    write_atomically(path, file.getvalue())
    return path


def load_rows(run: Path) -> KeptRows | None:
    """What `save_rows` wrote; `None` for a run of before.

    Args:
        run: its folder.

    Raises:
        ValueError: if the file is damaged.
    """
    path = rows_path(run)
    if not path.exists():
        return None
    try:
        arrays = read_npz(path).arrays
        return _read(parse_json(arrays[_HEADER].tobytes()), arrays)
    except (UnreadableError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): put it back, or delete it, and a report "
            "reads the test rows again."
        ) from error


def _read(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> KeptRows:
    if header["version"] != _VERSION:
        raise ValueError(f"it is of version {header['version']!r}, not {_VERSION}")
    columns = {
        name.removeprefix("row "): np.asarray(a)
        for name, a in arrays.items()
        if name.startswith("row ")
    }
    rows = JudgedRows(
        index=arrays["index"],
        columns=columns,
        cdf=arrays["cdf"],
        examples=tuple(map(_example, header["examples"])),
        **{name: header[name] for name in _OF_ROWS},
    )
    _check_rows(rows)
    if "chains" not in header:
        return KeptRows(rows)
    told: dict[str, Any] = {name: header["chains"][name] for name in _OF_CHAINS}
    told["labels"] = tuple(map(str, told["labels"]))
    told |= {name: arrays[f"chain {name}"] for name in _ARRAYS_OF_CHAINS}
    chains = ChainRecord(**told)
    _check_chains(chains)
    return KeptRows(rows, chains)


def _example(saved: dict[str, Any]) -> Example:
    one = Example(
        **{
            **saved,
            "features": tuple((str(n), str(v)) for n, v in saved["features"]),
            "image": base64.b64decode(saved["image"], validate=True),
        }
    )
    if any(not isinstance(text, str) for text in (one.name, one.truth, one.guess)):
        raise TypeError("what is said of rows is text")
    return one


def _check_rows(rows: JudgedRows) -> None:
    """Columns of one length that the kind has, and numbers where numbers belong."""
    wanted = _COLUMNS[rows.kind]
    length = rows.index.shape[0]
    lengths = {a.shape for a in rows.columns.values()}
    if not wanted <= set(rows.columns) or lengths != {(length,)} or not length:
        raise ValueError("its columns are not those of test rows")
    if type(rows.num_rows) is not int or rows.num_rows < length:
        raise ValueError("it has more rows than there are")
    numbers = [*rows.errors.values(), *rows.constants.values()]
    arrays = [rows.cdf, *rows.columns.values()]
    is_plain = all(isinstance(number, int | float) for number in numbers)
    if not is_plain or any(a.dtype.kind not in "if" for a in arrays):
        raise TypeError("what is no number stands for one")
    if rows.cdf.ndim != 1:
        raise ValueError("its distribution functions are not in a row")


def _check_chains(chains: ChainRecord) -> None:
    is_flat = all(a.ndim == 1 for a in (chains.r_hat, chains.ess_bulk, chains.ess_tail))
    traces, energy = chains.traces, chains.energy
    if not is_flat or traces.ndim != 3 or energy.ndim != 2:
        raise ValueError("its chains are of another shape")
    if len(chains.labels) != len(traces) or 0 in traces.shape:
        raise ValueError("its traces are not those that it names")
    if type(chains.every) is not int or chains.every < 1:
        raise ValueError("samples are counted")
    for values in chains.by_chain.values():
        if len(list(map(float, values))) != traces.shape[1]:
            raise ValueError("it does not say the same of each chain")
    if not isinstance(chains.starts, str):
        raise TypeError("where chains started is said in words")
