"""One pass over Parquet files: all that is to be known of their rows."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from ..._sentence import Sentence
from .._base import Data
from .._columns import TableEncoding
from .._constant import on_constant
from .._error import DataError
from .._source import Source
from .._split import Split
from .._standardise import Standardisation
from ..stream import Streamed
from ..tables import TableOptions, check_other, features_of, labelled_rows
from ._deal import Dealt, inside
from ._moments import Moments
from ._parquet import NO_KIND, ParquetFiles, open_parquet
from ._seen_columns import MOST_LOOKED_AT, AbstractSeen, seen_column
from ._seen_targets import SeenTargets, TargetCodec
from ._table_rows import TableRows

_KINDS = ("number", "boolean", "date", "category", NO_KIND)


def load_table(
    path: Path,
    paths: Sequence[Path],
    options: TableOptions,
    deal: Callable[[int], Dealt],
) -> Data:
    """Learn the target columns of Parquet files from the others.

    Args:
        path: as it was given.
        paths: of the files.
        options: which columns.
        deal: draws test and validation rows from a number of rows.

    Raises:
        DataNotFoundError: if a file is gone.
        DataError: for files that cannot be used.
    """
    where = str(path)
    if options.separator is not None:
        raise DataError(
            Sentence("{} has no {separator}: leave it out, or give a .csv.", path)
        )
    files = open_parquet(paths)
    features = _features(files, options, where)
    seen = _pass(files, features, options, deal(files.num_rows), where)
    codec = seen.targets.codec()
    encoding, moments, left_out = _encoding(seen.columns, codec, options, where)
    notes = [*_without_target(seen, options, where), *codec.notes, *left_out]
    x_scaling = _stacked(moments).scaling()
    _check_possible(x_scaling, encoding.feature_names, where)
    y_scaling = None
    if not codec.class_names:
        y_scaling = seen.targets.moments.scaling()
        _check_possible(y_scaling, [f"target {n}" for n in options.targets], where)
    rows = TableRows(
        files=files,
        encoding=encoding,
        codec=codec,
        x_scaling=x_scaling,
        y_scaling=y_scaling,
        left_out=seen.left_out,
        block_rows=seen.block_rows,
    )
    kept = {
        name: _joined([rows.encoded(table, where) for table in tables])
        for name, tables in seen.kept.items()
    }
    data = Data(
        name=where,
        task="classification" if codec.class_names else "regression",
        train=Streamed(rows, kept["sample"]),
        test=kept["test"],
        validation=kept["validation"] if len(kept["validation"]) else None,
        num_classes=len(codec.class_names) or None,
        class_names=codec.class_names,
        x_scaling=x_scaling,
        y_scaling=y_scaling,
        feature_names=encoding.feature_names,
        target_names=tuple(options.targets),
        notes=notes,
        encoding=encoding,
        id_column=options.id_column,
        test_names=_names(seen.kept["test"], options.id_column),
    )
    read = [path]
    if options.test is not None:
        check_other(path, options.test)
        data = dataclasses.replace(data, test=_other(options.test, data), test_names=())
        read.append(options.test)
    num_rows = files.num_rows + (0 if options.test is None else len(data.test))
    source = Source.of(read, num_rows=num_rows, num_columns=len(files.kinds))
    return dataclasses.replace(data, source=source)


class _Seen(NamedTuple):
    """What the pass found.

    Attributes:
        columns: those to learn from.
        targets: those to predict.
        kept: test and validation rows, and a sample of the training rows, as they are,
            in tables of one schema each.
        left_out: sorted numbers of the rows that are no training rows.
        block_rows: training rows of each row group.
        num_without: rows without a target.
    """

    columns: list[AbstractSeen]
    targets: SeenTargets
    kept: Mapping[str, Sequence[pa.Table]]
    left_out: Int[np.ndarray, " others"]
    block_rows: Int[np.ndarray, " blocks"]
    num_without: int


def _features(files: ParquetFiles, options: TableOptions, where: str) -> list[str]:
    import pandas as pd

    features = features_of(pd.DataFrame(columns=list(files.kinds)), options, where)
    for name in features:
        if files.kinds[name] not in _KINDS:
            raise DataError(
                Sentence(
                    "{}: column {!r} holds {}, which is neither numbers, truths, dates "
                    "nor texts: leave it out with {drop} {}.",
                    *(where, name, files.kinds[name], name),
                )
            )
    return features


def _pass(
    files: ParquetFiles,
    features: Sequence[str],
    options: TableOptions,
    dealt: Dealt,
    where: str,
) -> _Seen:
    """Look at every row once, a row group at a time."""
    every = math.ceil(files.num_rows / MOST_LOOKED_AT)
    how = {"every": every}
    columns = [
        seen_column(n, files.kinds[n], is_whole=n in files.whole, **how)
        for n in features
    ]
    targets = SeenTargets(options.targets, files, options.task, where)
    ids = [options.id_column] if options.id_column else []
    names = list(dict.fromkeys([*features, *options.targets, *ids]))
    kept: dict[str, list[pa.Table]] = {name: [] for name in dealt._fields}
    left_out, block_rows, num_without = [], [], 0
    for number, group in enumerate(files.groups):
        found = files.read(number, names)
        given = targets.given(found, group)
        num_without += int((~given).sum())
        for name, rows in dealt._asdict().items():
            own = inside(rows, group.first, group.num_rows)
            kept[name].append(found.take(pa.array(own[given[own]])))
        is_training = given & dealt.kept(group.first, group.num_rows)
        rows = np.flatnonzero(is_training)
        left_out.append(group.first + np.flatnonzero(~is_training))
        block_rows.append(len(rows))
        try:
            for column, name in zip(columns, features, strict=True):
                column.add(found.column(name), group, rows)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        is_whole = len(rows) == found.num_rows
        targets.add(found if is_whole else found.filter(pa.array(is_training)))
    if not sum(block_rows):
        asked = " or ".join(options.targets)
        raise DataError(f"{where}: no training row has a {asked}: give values.")
    return _Seen(
        columns,
        targets,
        {name: _of_one_schema(tables) for name, tables in kept.items()},
        np.concatenate(left_out),
        np.array(block_rows),
        num_without,
    )


def _of_one_schema(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Neighbours joined where their columns have the same types.

    Others stay apart: dates and times, or whole numbers and decimals, are of one kind,
    and what each is as a number need not be what both are in one of Arrow's types.
    """
    plain = [table.replace_schema_metadata(None) for table in tables]
    each = itertools.groupby(plain, key=lambda table: table.schema)
    return [pa.concat_tables(alike) for _, alike in each]


def _joined(splits: Sequence[Split]) -> Split:
    """As one, in their order."""
    parts = zip(*((split.x, split.y) for split in splits), strict=True)
    return Split(*map(np.concatenate, parts))


def _encoding(
    columns: Sequence[AbstractSeen],
    codec: TargetCodec,
    options: TableOptions,
    where: str,
) -> tuple[TableEncoding, list[Moments], list[str]]:
    """Columns that are of use, the moments of their features, and notes on others."""
    numbers, gaps, categories = [], [], []
    found, notes = [], []
    for seen in columns:
        reason = seen.reason_to_leave_out
        column = None if reason and seen.is_empty else seen.column()
        is_of_use = column is not None and (
            column.kind != "category" or len(column.categories) > 0
        )
        if reason is not None and not (options.features and is_of_use):
            text = (
                "{}: column {!r} is left out: {}; {features} names the columns to use."
            )
            notes.append(Sentence(text, where, seen.name, reason))
            continue
        assert column is not None
        found.append(column)
        moments = seen.moments(column)
        if column.kind == "category":
            categories += moments
        else:
            numbers.append(moments[0])
            gaps += moments[1:]
    encoding = TableEncoding(tuple(found), codec.columns)
    if not encoding.feature_names:
        reasons = " ".join(["", *notes])
        raise DataError(
            f"{where} has no column beside {', '.join(options.targets)} to learn."
            f"{reasons}"
        )
    notes += on_constant(found, where)
    return encoding, [*numbers, *gaps, *categories], notes


def _stacked(moments: Sequence[Moments]) -> Moments:
    """Of several features, as of an array with a column for each."""
    return Moments(*(np.stack(parts) for parts in zip(*moments, strict=True)))


def _check_possible(scaling: Standardisation, names: Sequence[str], where: str) -> None:
    bad = np.flatnonzero(~scaling.is_possible)
    if bad.size:
        raise DataError(
            f"{where}: column {names[bad[0]]} has numbers whose squares are beyond "
            "double precision: correct them, or give the column in another unit."
        )


def _without_target(seen: _Seen, options: TableOptions, where: str) -> list[str]:
    if seen.num_without == 0:
        return []
    what = "1 row has" if seen.num_without == 1 else f"{seen.num_without:,} rows have"
    verb = "is" if seen.num_without == 1 else "are"
    names = " or ".join(options.targets)
    return [f"{where}: {what} no {names}, and {verb} left out."]


def _names(tests: Sequence[pa.Table], id_column: str | None) -> tuple[str, ...]:
    if id_column is None:
        return ()
    each = (test.column(id_column).to_pylist() for test in tests)
    return tuple(map(str, itertools.chain.from_iterable(each)))


def _other(path: Path, data: Data) -> Split:
    """The rows of a test file, which is read whole."""
    return labelled_rows(path, data)
