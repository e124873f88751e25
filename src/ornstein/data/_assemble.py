"""From raw arrays to `Data`: every source's last step, and where arrays are checked."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from ._base import Data, Split
from ._error import DataError
from ._hold_out import hold_out
from ._standardise import Standardisation

COLUMNS = (0,)
CHANNELS = (0, 1, 2)


def assemble(
    name: str,
    train: tuple[Shaped[np.ndarray, "rows ..."], Shaped[np.ndarray, "rows ..."]],
    test: tuple[Shaped[np.ndarray, "held ..."], Shaped[np.ndarray, "held ..."]],
    *,
    class_names: Sequence[str] | None = None,
    x_scaling: Standardisation | None = None,
    y_scaling: Standardisation | None = None,
    feature_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Data:
    """Check raw splits, standardise them by the training rows, and name them.

    Args:
        name: as `load` takes it.
        train: inputs (rows, features) or (rows, height, width, channels), and targets:
            class numbers (rows,) or numbers (rows, outputs).
        test: inputs and targets of the test rows, in the same form.
        class_names: for classification, the name of each class number; `None` means
            regression.
        x_scaling: instead of one fitted on the training inputs: a column's own, or a
            colour channel's for images.
        y_scaling: instead of one fitted on the training targets of a regression.
        feature_names: of the columns of the inputs.
        target_names: of the columns of the targets.
        notes: what readers of figures must know.

    Raises:
        DataError: for arrays that cannot be used.
    """
    for part, (x, y) in (("training", train), ("test", test)):
        where = f"{name} ({part} rows)"
        check_inputs(x, where, feature_names)
        check_lengths(x, y, where)
        if class_names is None:
            check_finite(y, f"{where}: the target", target_names)
        else:
            _check_labels(y, len(class_names), where)
    if train[0].shape[1:] != test[0].shape[1:]:
        raise DataError(
            f"{name}: training examples have shape {train[0].shape[1:]} and test "
            f"examples {test[0].shape[1:]}; they must be alike."
        )
    if x_scaling is None:
        axes = CHANNELS if train[0].ndim == 4 else COLUMNS
        x_scaling = Standardisation.fit(train[0], axes)
        where = f"{name} (training rows): x"
        check_scaling(x_scaling, train[0], where, feature_names)
    if class_names is None and y_scaling is None:
        y_scaling = Standardisation.fit(train[1], COLUMNS)
        where = f"{name} (training rows): the target"
        check_scaling(y_scaling, train[1], where, target_names)

    def split(part: str, x: np.ndarray, y: np.ndarray) -> Split:
        where = f"{name} ({part} rows)"
        if y_scaling is None:
            y = y.astype(np.int32)
        else:
            y = standardised(y_scaling, y, f"{where}: the target", target_names)
        return Split(standardised(x_scaling, x, f"{where}: x", feature_names), y)

    return Data(
        name=name,
        task="regression" if class_names is None else "classification",
        train=split("training", *train),
        test=split("test", *test),
        num_classes=None if class_names is None else len(class_names),
        class_names=() if class_names is None else tuple(class_names),
        x_scaling=x_scaling,
        y_scaling=y_scaling,
        feature_names=tuple(feature_names),
        target_names=tuple(target_names),
        notes=tuple(notes),
    )


def split_and_assemble(
    name: str,
    x: Shaped[np.ndarray, "rows ..."],
    y: Shaped[np.ndarray, "..."],
    *,
    test_fraction: float,
    seed: int,
    class_names: Sequence[str] | None = None,
    feature_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Data:
    """`assemble` after a random test split, stratified for classes.

    Args:
        name: as `load` takes it.
        x: all inputs.
        y: all targets.
        test_fraction: of the rows, for the test split.
        seed: decides which rows.
        class_names: as in `assemble`.
        feature_names: as in `assemble`.
        target_names: as in `assemble`.
        notes: as in `assemble`.

    Raises:
        DataError: for arrays that cannot be used or split.
    """
    check_inputs(x, name, feature_names)
    check_lengths(x, y, name)
    # Also `assemble` checks, but by row of a part.
    if x.dtype.kind == "f":
        axes = CHANNELS if x.ndim == 4 else COLUMNS
        check_scaling(Standardisation.fit(x, axes), x, f"{name}: x", feature_names)
    if class_names is None:
        what = f"{name}: the target"
        check_scaling(Standardisation.fit(y, COLUMNS), y, what, target_names)
    kept, held = hold_out(
        len(x),
        test_fraction,
        seed=seed,
        labels=None if class_names is None else y,
        class_names=class_names or (),
    )
    return assemble(
        name,
        (x[kept], y[kept]),
        (x[held], y[held]),
        class_names=class_names,
        feature_names=feature_names,
        target_names=target_names,
        notes=notes,
    )


def check_inputs(
    x: Shaped[np.ndarray, "..."], where: str, feature_names: Sequence[str] = ()
) -> None:
    """Refuse inputs of a wrong shape, none at all, text, or numbers that are none."""
    if x.dtype.kind in "US":
        raise DataError(f"{where}: x has type {x.dtype}, which is text; give numbers.")
    if x.ndim not in (2, 4) or 0 in x.shape[1:]:
        raise DataError(
            f"{where}: x has shape {x.shape}; give (rows, features), or (rows, height, "
            "width, channels) for images (with 1 channel for grey ones)."
        )
    if len(x) == 0:
        raise DataError(f"{where}: there are no rows; give at least one.")
    check_finite(x, f"{where}: x", feature_names)


def check_lengths(
    x: Shaped[np.ndarray, "..."], y: Shaped[np.ndarray, "..."], where: str
) -> None:
    """Refuse targets that are not one an example."""
    if len(x) != len(y):
        raise DataError(
            f"{where}: x has {len(x)} rows and y has {len(y)}; give one target for "
            "each example."
        )


def check_finite(
    values: Shaped[np.ndarray, "rows ..."], what: str, names: Sequence[str] = ()
) -> None:
    """Refuse NaN and infinite values: which column, how many, and the first row."""
    if values.dtype.kind != "f":
        return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    raise DataError(
        f"{what} has {bad.sum()} NaN or infinite values, the first in "
        f"{place_of(np.argwhere(bad)[0], names)}, counting from 0: fill them in or "
        "leave those rows out."
    )


def check_scaling(
    scaling: Standardisation,
    raw: Shaped[np.ndarray, "rows ..."],
    what: str,
    names: Sequence[str] = (),
) -> None:
    """Refuse a column whose spread double precision cannot hold.

    Args:
        scaling: fitted on `raw`.
        raw: the training rows.
        what: its name in messages.
        names: of the columns.

    Raises:
        DataError: which column, and its largest number.
    """
    bad = ~scaling.is_possible
    if not bad.any():
        return
    sizes = np.where(bad, np.abs(raw), 0)
    place = np.unravel_index(np.argmax(sizes), sizes.shape)
    raise DataError(
        f"{what} has {raw[place]:g} in {place_of(place, names)}, counting from 0: the "
        "squares of such numbers are beyond double precision; correct it, or give the "
        "column in another unit."
    )


def standardised(
    scaling: Standardisation,
    raw: Shaped[np.ndarray, "rows ..."],
    what: str,
    names: Sequence[str] = (),
) -> Float[np.ndarray, "rows ..."]:
    """`scaling.apply(raw)`, where single precision can hold it.

    Args:
        scaling: fitted on training rows.
        raw: finite numbers.
        what: their name in messages.
        names: of the columns.

    Raises:
        DataError: which number of `raw` is too far from the training rows.
    """
    values = scaling.apply(raw)
    is_bad = ~np.isfinite(values) & (raw.dtype.kind == "f")
    if is_bad.any():
        bad = np.argwhere(is_bad)
        raise DataError(
            f"{what} has {raw[tuple(bad[0])]:g} in {place_of(bad[0], names)}, counting "
            "from 0: in units of the training rows it is beyond single precision; "
            "correct it, or leave that row out."
        )
    return values


def place_of(index: Iterable[Any], names: Sequence[str]) -> str:
    """The row and, of a table or series, the column: words for a message."""
    places = [int(place) for place in index]
    row, rest = places[0], places[1:]
    if len(rest) == 2:  # of series
        return f"series {row} at its time number {rest[0]} ({_name(rest[1], names)})"
    if len(rest) != 1:
        return f"row {row}"
    return f"row {row} ({_name(rest[0], names)})"


def _name(column: int, names: Sequence[str]) -> str:
    return f"column {names[column] if names else column}"


def _check_labels(
    labels: Shaped[np.ndarray, "..."], num_classes: int, where: str
) -> None:
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(
            f"{where}: labels have shape {labels.shape} and type {labels.dtype}; give "
            "one whole number for each example."
        )
    bad = (labels < 0) | (labels >= num_classes)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{where}: {bad.sum()} of the labels out of range, the first {labels[row]} "
            f"in row {row}; they must lie in 0 … {num_classes - 1} (-1 often marks a "
            "split whose labels are withheld: use another)."
        )
