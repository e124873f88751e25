"""Files of `results` as templates ask for them: by name, and strict about names."""

import datetime
import json
import math
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scipy.special import stdtrit


class Values(tuple):
    """Numbers of several rows."""

    @property
    def mean(self) -> float:
        return statistics.fmean(self) if self else math.nan

    @property
    def sd(self) -> float:
        """The standard deviation; one value has none."""
        return statistics.stdev(self) if len(self) > 1 else math.nan

    @property
    def t95(self) -> float:
        """Half of the mean's 95 % interval by the t statistic."""
        if len(self) < 2:
            return math.nan
        return float(stdtrit(len(self) - 1, 0.975)) * self.sd / len(self) ** 0.5

    @property
    def least(self) -> float:
        return min(self, default=math.nan)

    @property
    def most(self) -> float:
        return max(self, default=math.nan)

    def times(self, factor: float) -> "Values":
        return Values(factor * value for value in self)

    def minus(self, others: "Values") -> "Values":
        return Values(a - b for a, b in zip(self, others, strict=True))


class Entry:
    """What a JSON object holds, by name: null is not a number."""

    def __init__(self, held: Mapping[str, Any], where: str):
        self._held, self._where = held, where

    def __getattr__(self, name: str) -> Any:
        if name not in self._held:
            raise LookupError(f"{self._where} has no {name!r}")
        return self.maybe(name)

    def maybe(self, name: str) -> Any:
        """The same, and not a number where it is missing: files of before lack keys."""
        value, where = self._held.get(name), f"{self._where}, {name}"
        if isinstance(value, Mapping):
            return Entry(value, where)
        if isinstance(value, list):
            is_table = bool(value) and isinstance(value[0], Mapping)
            return Rows(Entry(v, where) for v in value) if is_table else Values(value)
        return math.nan if value is None else value

    def has(self, name: str) -> bool:
        return self._held.get(name) is not None

    def at(self, *names: str) -> Any:
        """Further down, by names that are no identifiers."""
        found: Any = self
        for name in names:
            found = getattr(found, name)
        return found


class Rows(tuple):
    """Rows of a table, narrowed down by what they say."""

    def where(self, **wanted: Any) -> "Rows":
        """Those with all of these values."""
        return Rows(
            row
            for row in self
            if all(row.has(n) and row.maybe(n) == value for n, value in wanted.items())
        )

    def having(self, name: str) -> "Rows":
        """Those with that value."""
        return Rows(row for row in self if row.has(name))

    def lacking(self, name: str) -> "Rows":
        """Those without that value."""
        return Rows(row for row in self if not row.has(name))

    def naming(self, part: str, *, by: str) -> "Rows":
        """Those whose text `by` has a part."""
        return Rows(row for row in self if part in row.maybe(by))

    def not_naming(self, part: str, *, by: str) -> "Rows":
        """Those whose text `by` has no such part."""
        return Rows(row for row in self if part not in row.maybe(by))

    def one(self, **wanted: Any) -> Entry:
        """The only one with these values."""
        found = self.where(**wanted)
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows have {wanted}, not one")
        return found[0]

    def all(self, name: str) -> Values:
        """A number of every row."""
        return Values(getattr(row, name) for row in self)

    def given(self, name: str) -> Values:
        """A number of the rows that have it."""
        return Values(row.maybe(name) for row in self if row.has(name))


def read(path: Path) -> Entry:
    """A file of results."""
    return Entry(json.loads(path.read_text(encoding="utf-8")), path.name)


def newest(entries: Rows) -> Entry:
    """By the time of their making."""
    when = lambda entry: datetime.datetime.fromisoformat(entry.provenance.time)
    return max(entries, key=when)


class Folder:
    """The files of a folder: NAME.json, or NAME-PROCESSOR.json for each processor."""

    def __init__(self, path: Path):
        self._path = path

    def __getattr__(self, name: str) -> Entry:
        """The file of that name, or the newest of its processors."""
        path = self._path / f"{name}.json"
        if not path.is_file():
            return newest(self.every(name))
        if any(self._path.glob(f"{name}-*.json")):
            raise LookupError(f"{path.name} and those of processors: which is meant?")
        return read(path)

    def at(self, name: str) -> Entry:
        """A file by a name that is no identifier."""
        return getattr(self, name)

    def every(self, name: str) -> Rows:
        """Those of all processors."""
        paths = sorted(self._path.glob(f"{name}-*.json"))
        if not paths:
            raise LookupError(f"{self._path.name} has no {name}.json")
        return Rows(read(path) for path in paths)


class Files(dict):
    """The files and folders of `results` by name, read when they are named.

    Args:
        folder: of the files.
        known: what names stand for beside them.
    """

    def __init__(self, folder: Path, known: Mapping[str, Any]):
        super().__init__(known)
        self._folder = folder

    def __missing__(self, name: str) -> Any:
        path = self._folder / name
        if path.is_dir():
            self[name] = Folder(path)
        elif path.with_suffix(".json").is_file():
            self[name] = read(path.with_suffix(".json"))
        else:
            raise KeyError(f"results has no {name}.json")
        return self[name]


def shown(value: Any, form: str = "") -> str:
    """A value as readers meet it, "–" where there is none.

    Args:
        value: text, a number or several.
        form: Python's format for a number; after "±", for a mean and its deviation.
    """
    if form.startswith("±"):
        form = form.removeprefix("±").strip()
        both = [shown(value.mean, form), shown(value.sd, form)]
        return " ± ".join(both[: len(value)])
    if isinstance(value, Values):
        return ", ".join(shown(one, form) for one in value)
    if isinstance(value, float) and math.isnan(value):
        return "–"
    text = format(value, form)
    is_zero = isinstance(value, float) and not re.search("[1-9]", text)
    return text.lstrip("-") if is_zero else text.replace("-", "−") if form else text
