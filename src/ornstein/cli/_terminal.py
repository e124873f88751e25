"""What a command says, and to whom: people, or a program that reads JSON."""

import json
import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


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
        self.output.print(text, markup=False, soft_wrap=True)

    def table(self, title: str, rows: Mapping[str, Any]) -> None:
        """Names and numbers."""
        self.say(title)  # a table's own title is wrapped to its width
        table = Table(show_header=False)
        for name, value in rows.items():
            table.add_row(name.replace("_", " "), shown(value))
        self.output.print(table)

    def grid(self, title: str, rows: list[dict[str, Any]]) -> None:
        """One line for each row; the first row's names head the columns."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        self.say(title)
        table = Table()
        for name in names:
            table.add_column(name.replace("_", " "), overflow="fold")
        for row in rows:
            table.add_row(*(shown(row.get(name)) for name in names))
        self.output.print(table)

    def result(self, result: Mapping[str, Any]) -> None:
        """The result itself, if it is wanted as JSON."""
        if self.is_json:
            text = json.dumps(as_json(result), indent=2, allow_nan=False)
            print(text, flush=True)


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def as_json(value: Any) -> Any:
    """`value` with `None` for NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {str(name): as_json(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
