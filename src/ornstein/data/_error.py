"""What is said of data that cannot be used."""

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """Data that cannot be used: one sentence that says what is wrong and what to do."""


class DataNotFoundError(DataError, FileNotFoundError):
    """A file, folder or data set that is not there."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """`" (did you mean …?)"`, or nothing where no choice resembles `name`."""
    found = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""
