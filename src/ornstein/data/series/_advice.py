"""What to do about a long table, for the ends of sentences."""

from collections.abc import Sequence
from typing import NamedTuple

from ..._sentence import Sentence
from .._error import nearest


class Advice(NamedTuple):
    """What its reader can do about a long table.

    Who trains names columns by options; who asks a model to go on has no such options,
    and needs the columns that it learned from.

    Attributes:
        is_asked: whether a model that learned from another table is to continue it.
        has_names: whether a column tells series apart.
    """

    is_asked: bool
    has_names: bool

    def on_column(self, name: str, role: str, columns: Sequence[str]) -> str:
        """What is said of a column that is not there.

        Args:
            name: of it.
            role: `"time"`, `"series"` or `"value"`.
            columns: that there are.
        """
        hint, there = nearest(name, columns), ", ".join(columns)
        if self.is_asked and role == "value":
            return (
                f"has no column {name!r}, whose values the model learned{hint}: add "
                f"it, with empty cells where nothing was measured; its columns are "
                f"{there}."
            )
        needs = ", and the model needs one of that name" if self.is_asked else ""
        return (
            f"has no column {name!r} for {role}{hint}: its columns are {there}{needs}."
        )

    @property
    def on_order(self) -> str:
        """How rows are to be sorted."""
        by = "series and time" if self.has_names or not self.is_asked else "time"
        return f"sort the file by {by}"

    @property
    def on_other_series(self) -> str:
        """What else to do, where rows may be of several series."""
        if self.has_names:
            return ""
        if self.is_asked:
            return "; the file is read as one series, as the model's was"
        return Sentence(", or name the column that tells series apart with {series}")

    @property
    def on_one_point(self) -> str:
        """What to do about a series of a single time."""
        if self.is_asked:
            leave = "leave it out, or " if self.has_names else ""
            return f"{leave}ask for another time with an empty cell"
        if self.has_names:
            return "leave it out, or check which column names the series"
        return "add a later row"

    @property
    def on_nothing_observed(self) -> str:
        """What to do about a series without any value."""
        leave = "leave that series out, or " if self.has_names else ""
        other = "fill in one that is known"
        return f"{leave}{other if self.is_asked else 'name another value column'}"
