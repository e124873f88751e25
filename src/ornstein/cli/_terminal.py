"""What a command says, and to whom: people, or a program that reads JSON."""

import json
import math
import os
from collections.abc import Iterable, Mapping
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
        is_quiet: nothing is said, as where another process says the same.
    """

    def __init__(self, *, is_json: bool = False, is_quiet: bool = False):
        self.is_json, self.is_quiet = is_json, is_quiet
        self.errors = _plain(stderr=True, quiet=is_quiet)
        self.output = self.errors if is_json else _plain(quiet=is_quiet)

    def say(self, text: str) -> None:
        """A line for people."""
        self._write(flagged(text), soft_wrap=True)

    def table(self, title: str, rows: Mapping[str, Any]) -> None:
        """Names and numbers."""
        self.say(title)  # a table's own title is wrapped to its width
        table = Table(show_header=False)
        for name, value in rows.items():
            table.add_row(name.replace("_", " "), shown(value))
        self._write(table)

    def grid(self, title: str, rows: list[dict[str, Any]]) -> None:
        """One line for each row, or one column where lines would be too long.

        Where neither fits, text is broken between its words; where that does not help,
        the table comes in parts, each with the columns that tell the rows apart.
        """
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines = [[name.replace("_", " ") for name in names]]
        lines += [[shown(row.get(name)) for name in names] for row in rows]
        columns = [list(column) for column in zip(*lines, strict=True)]
        self.say(title)
        if self._fits(map(_width, columns)):
            self._print(columns)
        elif self._fits(map(_width, lines)):
            self._print(lines)
        else:
            for part in self._parts(columns):
                self._print(part)

    def _fits(self, widths: Iterable[int]) -> bool:
        widths = list(widths)
        return sum(widths) + 3 * len(widths) + 1 <= self.output.width

    def _parts(self, columns: list[list[str]]) -> list[list[list[str]]]:
        """Columns side by side as far as they fit with their longest words."""
        first = _num_telling_apart(columns)
        key, parts = columns[:first], [columns[:first]]
        for column in columns[first:]:
            wider = [*parts[-1], column]
            if parts[-1] == key or self._fits(map(_longest_word, wider)):
                parts[-1] = wider
            else:
                parts.append([*key, column])
        return parts

    def _print(self, columns: list[list[str]]) -> None:
        """The first cell heads its column; the widest text is broken first."""
        widths = [_width(column) for column in columns]
        least = [_longest_word(column) for column in columns]
        while not self._fits(widths):
            spare = [(w, n) for n, w in enumerate(widths) if w > least[n]]
            if not spare:
                break
            widths[max(spare)[1]] -= 1
        table = Table()
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column[0], width=width, overflow="fold")
        for cells in zip(*(column[1:] for column in columns), strict=True):
            table.add_row(*cells)
        self._write(table)

    def _write(self, what: Any, **kwargs: Any) -> None:
        with naming(_STDERR if self.is_json else _STDOUT):
            self.output.print(what, **kwargs)

    def result(self, result: Mapping[str, Any]) -> None:
        """The result itself, if it is wanted as JSON."""
        if self.is_json and not self.is_quiet:
            text = json.dumps(as_json(result), indent=2, allow_nan=False)
            with naming(_STDOUT):
                print(text, flush=True)


class _Console(Console):
    """What nobody reads any more is left unsaid, and the work goes on."""

    def on_broken_pipe(self) -> None:
        """As where a pipe's reader, such as `head`, has ended."""
        self.quiet = True
        # Of its own stream: Python's end meets what is still unwritten there.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self.file.fileno())


def _plain(**kwargs: Any) -> Console:
    """Names of files and columns are said as they are, `[b]` and `:smile:` too."""
    return _Console(highlight=False, markup=False, emoji=False, **kwargs)


def _width(cells: list[str]) -> int:
    return max(map(len, cells))


def _longest_word(cells: list[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=1)


def _num_telling_apart(columns: list[list[str]]) -> int:
    """How many of the first columns differ from row to row, together; 1 if none do."""
    rows = len(columns[0])
    for number in (1, 2, 3):
        if len(set(zip(*columns[:number], strict=True))) == rows:
            return number
    return 1


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
