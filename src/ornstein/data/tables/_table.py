"""The user's own table: a row an example."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from ..._sentence import Sentence
from .._assemble import COLUMNS, assemble, check_inputs, check_scaling
from .._base import Data, Split
from .._columns import Column, TableEncoding, with_separator
from .._error import DataError, nearest
from .._hold_out import hold_out
from .._source import Source
from .._standardise import Standardisation, in_standard_units
from ..cells import decimal_mark
from ._frame import read_frame
from ._own_targets import own_labels, own_targets, with_targets

if TYPE_CHECKING:
    import pandas as pd


class TableOptions(NamedTuple):
    """How a user's own table is read.

    Attributes:
        target: column, or columns for a regression with several outputs.
        task: `"classification"` or `"regression"`, or `None` to see from the target.
        features: the columns to learn from; all but those below by default.
        drop: columns to leave out.
        id_column: which names the rows, and is no feature.
        separator: between the cells of a `.csv`; seen from its header by default.
        test: another file, whose rows are the test.
    """

    target: str | Sequence[str] | None = None
    task: str | None = None
    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    id_column: str | None = None
    separator: str | None = None
    test: Path | None = None

    @property
    def targets(self) -> list[str]:
        """The columns to predict."""
        if self.target is None:
            return []
        return [self.target] if isinstance(self.target, str) else list(self.target)


class LabelledFrame(NamedTuple):
    """A table whose cells are not numbers yet, and its targets.

    Attributes:
        x: the columns to learn from.
        y: class numbers (rows,), or numbers (rows, outputs).
        class_names: of class numbers; `None` for numbers.
        notes: what readers of figures must know.
    """

    x: "pd.DataFrame"
    y: Shaped[np.ndarray, "rows ..."]
    class_names: Sequence[str] | None
    notes: Sequence[str]


def labelled_frame(path: Path, options: TableOptions) -> LabelledFrame:
    """A table and its targets, nothing of it learned yet.

    Rows without a target are left out, and a note says how many.

    Args:
        path: `.csv` (a header, then rows) or `.parquet`.
        options: which columns, and how they are read.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used.
    """
    read = _read(path, options)
    notes = [*read.notes, *read.y.notes]
    x = read.frame[read.features]
    return LabelledFrame(x, read.y.y, read.y.class_names, notes)


class _Read(NamedTuple):
    """A table as its options say.

    Attributes:
        whole: all of it.
        frame: the rows that have a target.
        features: names of the columns to learn from.
        y: their targets.
        columns: what the targets' columns are.
        notes: on rows that are left out, and commas.
    """

    whole: "pd.DataFrame"
    frame: "pd.DataFrame"
    features: list[str]
    y: Any
    columns: tuple[Column, ...]
    notes: list[str]


def _read(path: Path, options: TableOptions) -> _Read:
    where, targets = str(path), options.targets
    whole = read_frame(path, options.separator)
    features = features_of(whole, options, where)
    # Features and targets of one table have one mark.
    read = (with_separator(whole, name) for name in (*targets, *features))
    decimal = decimal_mark(read)
    whole.attrs["decimal"] = decimal.mark
    frame, notes = with_targets(whole, targets, where)
    y, columns = own_targets(frame, targets, options.task, where)
    notes = [*notes, *_on_thousands(decimal.thousands, where)]
    return _Read(whole, frame, features, y, columns, notes)


def _on_thousands(names: Sequence[str], where: str) -> list[str]:
    if not names:
        return []
    return [
        f"{where}: commas in {', '.join(map(repr, names))} are taken for thousands', "
        "as in 1,234, because other columns have decimals after points: write points "
        "there, too, if they stand before decimals."
    ]


def table(
    path: Path, options: TableOptions, *, test_fraction: float, seed: int
) -> Data:
    """Learn the target columns from the others.

    What decides how cells become numbers is learned from the training rows: see
    `TableEncoding`. Rows without a target are left out, and a note says how many.

    Args:
        path: `.csv` (a header, then rows) or `.parquet`.
        options: which columns, and how they are read.
        test_fraction: of the rows, for the test, where no file of its own has it.
        seed: decides which rows.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used.
    """
    where, targets = str(path), options.targets
    whole, frame, features, y, columns, notes = _read(path, options)
    notes += y.notes
    kept = held = np.arange(len(frame))
    if options.test is None:
        kept, held = hold_out(
            len(frame),
            test_fraction,
            seed=seed,
            labels=None if y.class_names is None else y.y,
            class_names=y.class_names or (),
        )
    encoding, left_out = TableEncoding.learned(
        frame, features, kept, where, is_asked=bool(options.features)
    )
    encoding = dataclasses.replace(encoding, targets=columns)
    if not encoding.feature_names:
        reasons = " ".join(["", *left_out])
        raise DataError(
            f"{where} has no column beside {', '.join(targets)} to learn.{reasons}"
        )
    x, strange = encoding.apply(frame, where)
    _check_numbers(x, y.y, encoding, None if y.class_names else targets, where)
    paths, num_rows, test = [path], len(whole), (x[held], y.y[held])
    names = _names(frame, options.id_column, held)
    if options.test is not None:
        there = read_frame(options.test, options.separator)
        check_other(path, options.test)
        *test, strange = _labelled(there, encoding, y.class_names, str(options.test))
        labelled, _ = with_targets(there, targets, str(options.test))
        names = _names(labelled, options.id_column, np.arange(len(labelled)))
        paths, num_rows = [path, options.test], num_rows + len(there)
    data = assemble(
        where,
        (x[kept], y.y[kept]),
        (test[0], test[1]),
        class_names=y.class_names,
        feature_names=encoding.feature_names,
        target_names=targets,
        notes=[*notes, *left_out, *strange],
    )
    return dataclasses.replace(
        data,
        encoding=encoding,
        id_column=options.id_column,
        source=Source.of(paths, num_rows=num_rows, num_columns=len(whole.columns)),
        test_names=names,
    )


def _names(
    frame: "pd.DataFrame", id_column: str | None, rows: np.ndarray
) -> tuple[str, ...]:
    """What the id column calls these rows."""
    if id_column is None or id_column not in frame.columns:
        return ()
    return tuple(map(str, frame[id_column].iloc[rows]))


def labelled_rows(path: Path, data: Data, separator: str | None = None) -> Split:
    """Rows with their targets, in the units of data that were learned from.

    Args:
        path: a table with the columns of the training table.
        data: of a table; their rows are not looked at.
        separator: between cells of a `.csv`; seen from its header by default.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used.
    """
    assert data.encoding is not None
    names = data.class_names
    frame = read_frame(path, separator)
    x, y, _ = _labelled(frame, data.encoding, names or None, str(path))
    parts = x, y if names else in_standard_units(y, data.y_scaling)
    return Split(in_standard_units(parts[0], data.x_scaling), parts[1])


def _labelled(
    frame: "pd.DataFrame",
    encoding: TableEncoding,
    class_names: Sequence[str] | None,
    where: str,
) -> tuple[
    Float[np.ndarray, "rows features"], Shaped[np.ndarray, "rows ..."], list[str]
]:
    """Features and targets of other rows as the training rows', and notes."""
    targets = [column.name for column in encoding.targets]
    _check_target(frame, targets, where)
    frame, notes = with_targets(frame, targets, where)
    x, strange = encoding.apply(frame, where)
    y = own_labels(frame, encoding.targets, class_names, where)
    return x, y, notes + strange


def check_other(path: Path, test: Path) -> None:
    """Refuse test rows that are training rows.

    Args:
        path: a file, or a folder of them.
        test: another.

    Raises:
        DataError: if they have a file of the same bytes.
    """
    if Source.share_a_file(path, test):
        raise DataError(
            Sentence(
                "{test} {} has the same bytes as {}: rows that were learned from judge "
                "nothing; give another file, or leave {test} out.",
                test,
                path,
            )
        )


def _check_target(frame: "pd.DataFrame", targets: list[str], where: str) -> None:
    if not targets:
        raise DataError(
            Sentence(
                "{} needs a target: name the column to predict with {target}; the "
                "columns are {}.",
                where,
                ", ".join(frame.columns),
            )
        )
    _check_there(frame, targets, where, "{target}")


def _check_there(
    frame: "pd.DataFrame", names: Sequence[str], where: str, option: str
) -> None:
    for name in names:
        if name not in frame.columns:
            raise DataError(
                Sentence(
                    f"{{}} has no column {{}}{{}}, which {option} names: its columns "
                    "are {}.",
                    where,
                    repr(name),
                    nearest(name, frame.columns),
                    ", ".join(frame.columns),
                )
            )


def features_of(frame: "pd.DataFrame", options: TableOptions, where: str) -> list[str]:
    """The columns to learn from, in the table's order.

    Args:
        frame: with the table's columns.
        options: which of them are what.
        where: its name, for messages.

    Raises:
        DataError: without a target, or for columns that are not there or named twice.
    """
    _check_target(frame, options.targets, where)
    ids = [] if options.id_column is None else [options.id_column]
    _check_there(frame, options.features, where, "{features}")
    _check_there(frame, options.drop, where, "{drop}")
    _check_there(frame, ids, where, "{id_column}")
    left_out = {*options.targets, *options.drop, *ids}
    for name in options.targets:
        if name in (*options.features, *options.drop, *ids):
            raise DataError(
                Sentence(
                    "{} is the column to predict: {features}, {drop} and {id_column} "
                    "name others.",
                    repr(name),
                )
            )
    both = [name for name in options.features if name in left_out]
    if both:
        raise DataError(
            Sentence(
                "{features} names {}, which {drop} or {id_column} leaves out: name it "
                "once.",
                ", ".join(map(repr, both)),
            )
        )
    asked = set(options.features or frame.columns) - left_out
    return [name for name in frame.columns if name in asked]


def _check_numbers(
    x: Float[np.ndarray, "rows features"],
    y: Shaped[np.ndarray, "rows ..."],
    encoding: TableEncoding,
    targets: list[str] | None,
    where: str,
) -> None:
    """Here, by row of the file: `assemble` knows those of a part."""
    names = encoding.feature_names
    check_inputs(x, where, names)
    check_scaling(Standardisation.fit(x, COLUMNS), x, f"{where}: x", names)
    if targets is not None:
        what = f"{where}: the target"
        check_scaling(Standardisation.fit(y, COLUMNS), y, what, targets)
