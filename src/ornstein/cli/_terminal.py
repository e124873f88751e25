"""What a command says, and to whom: people, or a program that reads JSON."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .._files import naming
from ._flags import flagged

# As the system's errors name files.
_STDOUT, _STDERR = Path("standard output"), Path("standard error")


class Terminal:
    """Standard output for the result, standard error for everything else.

    Args:
        is_json: the result is JSON, and standard output has nothing else.
    """

    def __init__(self, *, is_json: bool = False):
        self.is_json = is_json
        self.errors = Console(stderr=True, highlight=False)
        self.output = self.errors if is_json else Console(highlight=False)

    def say(self, text: str) -> None:
        """A line for people."""
        self._write(flagged(text), markup=False, soft_wrap=True)

    def table(self, title: str, rows: Mapping[str, Any]) -> None:
        """Names and numbers."""
        self.say(title)  # a table's own title is wrapped to its width
        table = Table(show_header=False)
        for name, value in rows.items():
            table.add_row(name.replace("_", " "), shown(value))
        self._write(table)

    def grid(self, title: str, rows: list[dict[str, Any]]) -> None:
        """One line for each row, or one column where lines would be too long.

        Rows that fit neither way come one below the other, a line for each number.
        """
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines = [[name.replace("_", " ") for name in names]]
        lines += [[shown(row.get(name)) for name in names] for row in rows]
        columns = [list(column) for column in zip(*lines, strict=True)]
        self.say(title)
        if self._fits(lines):
            self._print(lines)
        elif self._fits(columns):
            self._print(columns)
        else:
            for row in rows:
                given = {
                    name: value for name, value in row.items() if value is not None
                }
                self.table("", given)

    def _fits(self, lines: list[list[str]]) -> bool:
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return sum(widths) + 3 * len(widths) + 1 <= self.output.width

    def _print(self, lines: list[list[str]]) -> None:
        """The first line heads the others."""
        head, *body = lines
        table = Table(*head)
        for line in body:
            table.add_row(*line)
        self._write(table)

    def _write(self, what: Any, **kwargs: Any) -> None:
        with naming(_STDERR if self.is_json else _STDOUT):
            self.output.print(what, **kwargs)

    def result(self, result: Mapping[str, Any]) -> None:
        """The result itself, if it is wanted as JSON."""
        if self.is_json:
            text = json.dumps(as_json(result), indent=2, allow_nan=False)
            with naming(_STDOUT):
                print(text, flush=True)


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return flagged(value) if isinstance(value, str) else str(value)


def as_json(value: Any) -> Any:
    """`value` with `None` for NaN and infinity, which JSON does not have.

    Texts name options as --flags: the result is the command line's.
    """
    if isinstance(value, Mapping):
        return {str(name): as_json(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return flagged(value) if isinstance(value, str) else value
