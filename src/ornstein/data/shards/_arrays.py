"""Rows of `.npz` files with x and y: a block is a file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, Shaped

from ..._files import UnreadableError, npz_shapes, read_npz
from ..._sentence import Option, Sentence
from .._assemble import CHANNELS, COLUMNS, check_finite
from .._base import Data
from .._error import DataError, DataNotFoundError
from .._source import Source
from .._split import Split
from .._standardise import Standardisation
from ..stream import AbstractShards, Streamed
from ..tables import MOST_CLASSES, TableOptions, read_target
from ._deal import Dealt, digest_of, inside
from ._moments import Moments


class ArrayFile(NamedTuple):
    """A file of x and y.

    Attributes:
        path: of it.
        first: the number of its first row, over all files.
        num_rows: in it.
        x_shape: of one input.
        y_shape: of one target.
    """

    path: Path
    first: int
    num_rows: int
    x_shape: tuple[int, ...]
    y_shape: tuple[int, ...]

    def read(self) -> tuple[Shaped[np.ndarray, "..."], Shaped[np.ndarray, "..."]]:
        """Both arrays.

        Raises:
            DataNotFoundError: if the file is gone.
            DataError: if it is damaged, or another one than it was.
        """
        try:
            arrays = read_npz(self.path, {"x", "y"}).arrays
        except FileNotFoundError:
            raise DataNotFoundError(
                f"{self.path} is gone, which was there when rows were counted: put it "
                "back, and go on from the last checkpoint."
            ) from None
        except UnreadableError as error:
            raise _unreadable(self.path, error) from error
        shapes = tuple(arrays[n].shape if n in arrays else None for n in ("x", "y"))
        expected = ((self.num_rows, *self.x_shape), (self.num_rows, *self.y_shape))
        if shapes != expected:
            raise DataError(
                f"{self.path} is not what it was when rows were counted (x, y of shape "
                f"{expected[0]}, {expected[1]}): put it back, and go on from the last "
                "checkpoint."
            )
        return arrays["x"], arrays["y"]


class ArrayRows(AbstractShards):
    """Training rows of `.npz` files; a block is a file.

    Attributes:
        files: with these rows among theirs.
        numbers: of each class by its value; empty for numbers.
        x_scaling: of the inputs.
        y_scaling: of the targets; `None` of classes.
        left_out: sorted numbers of the rows that are no training rows.
        block_rows: training rows of each file.
    """

    files: tuple[ArrayFile, ...]
    numbers: Mapping[Any, int]
    x_scaling: Standardisation
    y_scaling: Standardisation | None
    left_out: Int[np.ndarray, " others"]
    block_rows: Int[np.ndarray, " blocks"]

    @property
    def x_like(self) -> jax.ShapeDtypeStruct:
        """See `AbstractShards`."""
        return jax.ShapeDtypeStruct(self.files[0].x_shape, np.float32)

    @property
    def y_like(self) -> jax.ShapeDtypeStruct:
        """See `AbstractShards`."""
        if self.y_scaling is None:
            return jax.ShapeDtypeStruct((), np.int32)
        return jax.ShapeDtypeStruct(self.files[0].y_shape or (1,), np.float32)

    @property
    def digest(self) -> str:
        """See `AbstractShards`."""
        return digest_of(self.block_rows, self.left_out)

    def read(
        self, block: int
    ) -> tuple[Float[np.ndarray, "rows ..."], Shaped[np.ndarray, "rows ..."]]:
        """See `AbstractShards.read`."""
        file = self.files[block]
        x, y = file.read()
        kept = np.ones(file.num_rows, bool)
        kept[inside(self.left_out, file.first, file.num_rows)] = False
        rows = self.encoded(x[kept], y[kept], str(file.path))
        return rows.x, rows.y

    def encoded(
        self,
        x: Shaped[np.ndarray, "rows ..."],
        y: Shaped[np.ndarray, "rows ..."],
        where: str,
    ) -> Split:
        """Rows of the files as a model takes them.

        Args:
            x: inputs.
            y: targets.
            where: they are from, for messages.

        Raises:
            DataError: for a class that was not there before.
        """
        check_finite(x, f"{where}: x")
        if self.y_scaling is not None:
            check_finite(y, f"{where}: y")
            y = self.y_scaling.apply(
                y.astype(np.float64).reshape(len(y), *self.y_like.shape)
            )
            return Split(self.x_scaling.apply(x), y)
        values, codes = np.unique(y, return_inverse=True)
        unknown = [v for v in values.tolist() if v not in self.numbers]
        if unknown:
            raise DataError(
                f"{where}: y has {unknown[0]!r}, which was not among its classes when "
                f"these were counted ({', '.join(map(str, self.numbers))}): give it "
                "rows enough that some are for training, or put changed files back as "
                "they were."
            )
        numbers = np.array([self.numbers[v] for v in values.tolist()], np.int32)
        return Split(self.x_scaling.apply(x), numbers[codes.reshape(-1)])


def load_arrays(
    path: Path,
    paths: Sequence[Path],
    options: TableOptions,
    deal: Callable[[int], Dealt],
) -> Data:
    """Learn y from x, of `.npz` files.

    Args:
        path: as it was given.
        paths: of the files.
        options: of which only the task is for arrays.
        deal: draws test and validation rows from a number of rows.

    Raises:
        DataNotFoundError: if a file is gone.
        DataError: for files that cannot be used.
    """
    where = str(path)
    for name in ("target", "features", "drop", "id_column", "separator", "test"):
        if getattr(options, name):
            text = "{} is for tables, and {} has arrays x and y: leave it out."
            raise DataError(Sentence(text, Option(name), where))
    files = _open(paths)
    num_rows = sum(file.num_rows for file in files)
    seen = _pass(files, deal(num_rows), options.task, where)
    values = np.array(sorted(seen.values)) if seen.values is not None else seen.shown
    target = read_target(values, f"{where}: y", options.task)
    is_class = target.class_names is not None
    if is_class and len(values) > MOST_CLASSES:
        raise DataError(
            f"{where}: y has more than {MOST_CLASSES:,} different values, which are "
            "no classes: give task='regression' if they are numbers."
        )
    axes = CHANNELS if len(files[0].x_shape) == 3 else COLUMNS
    x_scaling = seen.x.scaling(axes)
    y_scaling = None if is_class else seen.y.scaling()
    for scaling, name in ((x_scaling, "x"), (y_scaling, "y")):
        if scaling is not None and not scaling.is_possible.all():
            raise DataError(
                f"{where}: {name} has numbers whose squares are beyond double "
                "precision: give them in another unit."
            )
    rows = ArrayRows(
        files=files,
        numbers=_numbers(values, target.y) if is_class else {},
        x_scaling=x_scaling,
        y_scaling=y_scaling,
        left_out=seen.left_out,
        block_rows=seen.block_rows,
    )
    kept = {name: rows.encoded(*parts, where) for name, parts in seen.kept.items()}
    return Data(
        name=where,
        task="classification" if is_class else "regression",
        train=Streamed(rows, kept["sample"]),
        test=kept["test"],
        validation=kept["validation"] if len(kept["validation"]) else None,
        num_classes=len(target.class_names) if target.class_names else None,
        class_names=tuple(target.class_names or ()),
        x_scaling=x_scaling,
        y_scaling=y_scaling,
        notes=tuple(target.notes),
        source=Source.of([path], num_rows=num_rows),
    )


class _Seen(NamedTuple):
    """What the pass found.

    Attributes:
        x: moments of the inputs.
        y: moments of the targets, where these are numbers.
        values: different targets, where these may be classes; else `None`.
        shown: some targets.
        kept: test and validation rows, and a sample of the training rows, as they are.
        left_out: sorted numbers of the rows that are no training rows.
        block_rows: training rows of each file.
    """

    x: Moments
    y: Moments
    values: set[Any] | None
    shown: Shaped[np.ndarray, "..."]
    kept: dict[str, list[np.ndarray]]
    left_out: Int[np.ndarray, " others"]
    block_rows: Int[np.ndarray, " blocks"]


def _pass(
    files: Sequence[ArrayFile], dealt: Dealt, task: str | None, where: str
) -> _Seen:
    """Look at every row once, a file at a time."""
    first = files[0]
    is_image = len(first.x_shape) == 3
    axes = CHANNELS if is_image else COLUMNS
    x_moments = Moments.none(first.x_shape[-1:])
    y_moments = Moments.none(first.y_shape or (1,))
    values: set[Any] | None = None
    kept: dict[str, list[list[np.ndarray]]] = {name: [[], []] for name in dealt._fields}
    left_out, block_rows, kind = [], [], ""
    for file in files:
        x, y = file.read()
        for name, array in (("x", x), ("y", y)):
            if array.dtype.kind not in ("biuf" if name == "x" else "biufU"):
                raise DataError(
                    f"{file.path}: {name} has type {array.dtype}; give numbers."
                )
            check_finite(array, f"{file.path}: {name}")
        may_be_class = task == "classification" or y.dtype.kind in "biuU"
        if file is first:
            kind = y.dtype.kind
            is_one = not file.y_shape or file.y_shape == (1,)
            values = set() if may_be_class and is_one else None
        elif y.dtype.kind != kind:
            raise DataError(
                f"{file.path}: y has type {y.dtype}, and {first.path} another kind: "
                "write them alike."
            )
        for name, rows in dealt._asdict().items():
            own = inside(rows, file.first, file.num_rows)
            for part, array in zip(kept[name], (x, y), strict=True):
                part.append(array[own])
        is_training = dealt.kept(file.first, file.num_rows)
        left_out.append(file.first + np.flatnonzero(~is_training))
        block_rows.append(int(is_training.sum()))
        if not is_training.all():
            x, y = x[is_training], y[is_training]
        x_moments = x_moments.with_more(Moments.of(x, axes))
        if values is not None and len(values) <= MOST_CLASSES:
            values.update(np.unique(y).tolist())
        if kind != "U":
            numbers = y.reshape(len(y), *(first.y_shape or (1,)))
            y_moments = y_moments.with_more(Moments.of(numbers))
    joined = {n: [np.concatenate(a) for a in parts] for n, parts in kept.items()}
    return _Seen(
        x_moments,
        y_moments,
        values,
        joined["sample"][1],
        joined,
        np.concatenate(left_out),
        np.array(block_rows),
    )


def _open(paths: Sequence[Path]) -> tuple[ArrayFile, ...]:
    """Count the rows of files, and see that their examples are of one shape."""
    found: list[ArrayFile] = []
    num_rows = 0
    for path in paths:
        try:
            shapes = npz_shapes(path)
        except UnreadableError as error:
            raise _unreadable(path, error) from error
        absent = [name for name in ("x", "y") if not shapes.get(name)]
        if absent:
            raise DataError(
                f"{path} has no array {absent[0]!r} of rows, only "
                f"{', '.join(shapes)}: write it with numpy.savez(path, x=..., y=...)."
            )
        x, y = shapes["x"], shapes["y"]
        if x[0] != y[0]:
            raise DataError(
                f"{path}: x has {x[0]} rows and y has {y[0]}; give one target for each "
                "example."
            )
        if len(x) not in (2, 4) or 0 in x[1:]:
            raise DataError(
                f"{path}: x has shape {x}; give (rows, features), or (rows, height, "
                "width, channels) for images."
            )
        file = ArrayFile(path, num_rows, x[0], x[1:], y[1:])
        first = found[0] if found else file
        if (file.x_shape, file.y_shape) != (first.x_shape, first.y_shape):
            raise DataError(
                f"{path} has examples of shape {file.x_shape} and targets of shape "
                f"{file.y_shape}, and {first.path} of {first.x_shape} and "
                f"{first.y_shape}: write it again as the others are, or take it away."
            )
        found.append(file)
        num_rows += x[0]
    if num_rows == 0:
        raise DataError(f"{paths[0]} has no rows: give at least one.")
    return tuple(found)


def _numbers(values: np.ndarray, numbers: np.ndarray) -> dict[Any, int]:
    return dict(zip(values.tolist(), np.asarray(numbers).tolist(), strict=True))


def _unreadable(path: Path, error: UnreadableError) -> DataError:
    return DataError(
        f"{path} cannot be read as .npz: {error}; write it again with "
        "numpy.savez(path, x=..., y=...)."
    )
