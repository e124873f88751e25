"""What a section is made of, and what it is."""

import dataclasses
from typing import NamedTuple

from .._run_record import RunRecord
from ..page import Html, Ids, tag
from ..rows import JudgedRows


class Section(NamedTuple):
    """A part of a report.

    Attributes:
        title: its heading.
        content: what is below it.
    """

    title: str
    content: Html


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A run, and where in a page it is told.

    Attributes:
        record: of the run.
        ids: of the page.
        level: of the headings of its sections: 2 for a run alone.
    """

    record: RunRecord
    ids: Ids
    level: int = 2

    @property
    def rows(self) -> JudgedRows | None:
        """Its test rows, where they are known."""
        return None if self.record.kept is None else self.record.kept.rows

    def heading(self, text: str, depth: int = 1) -> Html:
        """A heading inside a section.

        Args:
            text: of it.
            depth: 1 below the section's own.
        """
        return tag(f"h{self.level + depth}", text)

    @property
    def of_rows(self) -> str:
        """Which test rows figures show, for captions."""
        rows, what = self.rows, self.record.rows
        assert rows is not None
        if len(rows.index) == rows.num_rows:
            return f"{rows.num_rows:,} test {what}"
        return f"{len(rows.index):,} of {rows.num_rows:,} test {what}, evenly spaced"


def note(text: str) -> Html:
    """A remark below what it is about.

    Args:
        text: of it.
    """
    return tag("p", text, class_="note")
