"""What training rows showed of one column of a table."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from .cells import Cells, Reading

if TYPE_CHECKING:
    import pandas as pd

ColumnKind = Literal["number", "boolean", "date", "category"]

_LEAST_SHARE = 0.01  # of the training rows: rarer categories count as others
_LEAST_ROWS = 2
_MOST_CATEGORIES = 50
PANDAS_INDEX = "__index_level_"
"""How pandas begins what it calls, in Parquet, an index without a name."""


@dataclasses.dataclass(frozen=True)
class Column:
    """What training rows showed of a column.

    Attributes:
        name: in the table's header.
        kind: of its cells; a date is days since 1970, a boolean 0 or 1.
        fill: what an empty cell counts as: the training rows' median.
        has_gaps: whether training rows had empty cells: then there is a feature that
            says so.
        categories: the common ones among the training rows, most common first; any
            other cell has none of their features.
        decimal: what stands before a number's decimals in text, `"."` or `","`.
        date_format: of dates in text, as `strptime` takes it; `None` for ISO's.
        has_zone: whether dates have a time zone; `None` if some have, and in runs of
            before, which are equal all the same.
        is_constant: whether the training rows' cells, but empty ones, have one value;
            not known in runs of before, likewise.
    """

    name: str
    kind: ColumnKind
    fill: float = 0.0
    has_gaps: bool = False
    categories: tuple[str, ...] = ()
    decimal: str = "."
    date_format: str | None = None
    has_zone: bool | None = dataclasses.field(default=None, compare=False)
    is_constant: bool = dataclasses.field(default=False, compare=False)

    @property
    def reading(self) -> Reading:
        """How its text is read."""
        return Reading(self.decimal, self.date_format, self.has_zone)

    def said(self, value: float | str) -> str:
        """A cell in words, as a table has it and not as a model does.

        Args:
            value: a number, which dates and truths are too, or a category.
        """
        if isinstance(value, str):
            return repr(value)
        if self.kind == "boolean" and value in (0, 1):
            return "true" if value else "false"
        if self.kind == "date":
            passed = np.timedelta64(round(86_400 * float(value)), "s")
            day, _, time = str(np.datetime64("1970-01-01", "s") + passed).partition("T")
            return day if time == "00:00:00" else f"{day} {time.removesuffix(':00')}"
        return f"{value:.10g}"


def column_of(
    name: str,
    cells: Cells,
    rows: np.ndarray,
    own: dict[str, Any],
    weights: Float[np.ndarray, " rows"] | None,
) -> Column:
    """What training rows show of a column.

    Args:
        name: of the column.
        cells: of all rows.
        rows: numbers of the training rows.
        own: its kind, and how its text is read.
        weights: of the training rows; by default each is 1.
    """
    if own["kind"] == "category":
        texts = cells.categories().iloc[rows]
        counts, num_rows = texts.value_counts(), float(len(rows))
        does_repeat = counts >= _LEAST_ROWS
        if weights is not None:
            of_rows = texts.to_frame("text").assign(weight=weights)
            sums = of_rows.groupby("text", sort=False)["weight"].sum()
            # Two rows repeat whatever the unit of weights; so does one that counts two.
            does_repeat |= sums[counts.index] >= _LEAST_ROWS
            counts = sums[counts.index]
            num_rows = float(weights.sum())
        categories = common_categories(counts[does_repeat], num_rows)
        return Column(name, categories=categories, is_constant=len(counts) == 1, **own)
    reading = Reading(own["decimal"], own["date_format"])
    values = cells.values(own["kind"], reading)[rows]
    has_gaps = bool(np.isnan(values).any())
    given = values[~np.isnan(values)]
    fill = _median(values, weights) if given.size else 0.0
    is_constant = bool(given.size and given.min() == given.max())
    return Column(name, fill=fill, has_gaps=has_gaps, is_constant=is_constant, **own)


def common_categories(counts: "pd.Series", num_rows: float) -> tuple[str, ...]:
    """Texts that many training rows have, most common first.

    Args:
        counts: of each text that repeats, in the order in which they were met.
        num_rows: of the training.
    """
    counts = counts.sort_values(ascending=False, kind="stable")
    common = counts[counts >= _LEAST_SHARE * num_rows].index[:_MOST_CATEGORIES]
    return tuple(map(str, common))


def _median(
    values: Float[np.ndarray, " rows"], weights: Float[np.ndarray, " rows"] | None
) -> float:
    """Of the values that are given, each as often as its weight says."""
    if weights is None:
        return float(np.nanmedian(values))
    given = ~np.isnan(values)
    order = np.argsort(values[given], kind="stable")
    ordered, below = values[given][order], np.cumsum(weights[given][order])
    # Between two values where exactly half of the weight is below, up to rounding.
    half = below[-1] / 2 * (1 + np.array([-1e-9, 1e-9]))
    both = np.searchsorted(below, half, side="left")
    return float(np.mean(ordered[np.minimum(both, len(ordered) - 1)]))


def count_of(number: int, what: str) -> str:
    """`1 row`, `2 rows`.

    Args:
        number: how many.
        what: of these, one.
    """
    return f"{number} {what}" + "s" * (number != 1)


def read_column(saved: Mapping[str, Any]) -> Column:
    """From what `dataclasses.asdict` gives, by way of JSON."""
    found: dict[str, Any] = {**saved, "categories": tuple(saved["categories"])}
    return Column(**found)
