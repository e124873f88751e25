"""A random part of the rows, with the same share of every class."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from ._error import DataError


def hold_out(
    num_rows: int,
    fraction: float,
    *,
    seed: int,
    labels: Int[np.ndarray, " rows"] | None = None,
    class_names: Sequence[str] = (),
) -> tuple[Int[np.ndarray, " kept"], Int[np.ndarray, " held"]]:
    """Deal row numbers into those kept and those held out, by scikit-learn's split.

    Args:
        num_rows: how many rows there are.
        fraction: of the rows to hold out, between 0 and 1.
        seed: decides which; scikit-learn's `random_state`.
        labels: class numbers to stratify by, or `None`.
        class_names: for messages.

    Returns:
        The row numbers kept, and those held out.

    Raises:
        DataError: where this cannot be done, before anything is.
    """
    if not 0 < fraction < 1:
        raise DataError(
            f"The fraction of rows to hold out must lie between 0 and 1, got "
            f"{fraction}: 0.1 is usual for validation and 0.2 for a test."
        )
    num_held = int(np.ceil(fraction * num_rows))
    if num_held >= num_rows:
        raise DataError(
            f"There is no holding out {fraction:.0%} of {num_rows} rows and keeping "
            "one: give more rows or a smaller fraction."
        )
    if labels is not None:
        _check_classes(labels, num_held, class_names)
    from sklearn.model_selection import train_test_split

    kept, held = train_test_split(
        np.arange(num_rows), test_size=fraction, random_state=seed, stratify=labels
    )
    return np.asarray(kept), np.asarray(held)


def _check_classes(
    labels: Int[np.ndarray, " rows"], num_held: int, class_names: Sequence[str]
) -> None:
    present, counts = np.unique(labels, return_counts=True)
    if counts.min() < 2:
        lonely = int(present[counts.argmin()])
        name = class_names[lonely] if class_names else str(lonely)
        raise DataError(
            f"Class {name!r} has one example, so it cannot be both learned and tested: "
            "add examples of it or leave it out."
        )
    if min(num_held, len(labels) - num_held) < len(present):
        raise DataError(
            f"Splitting {len(labels)} rows into {len(labels) - num_held} and "
            f"{num_held} leaves one part with fewer rows than the {len(present)} "
            "classes: give more rows or another fraction."
        )
