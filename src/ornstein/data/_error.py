"""What is said of data that cannot be used."""

import difflib
import unicodedata
from collections.abc import Iterable


class DataError(ValueError):
    """Data that cannot be used: one sentence that says what is wrong and what to do."""


class DataNotFoundError(DataError, FileNotFoundError):
    """A file, folder or data set that is not there."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """`" (did you mean …?)"`, or nothing where no choice resembles `name`."""
    choices = list(choices)
    composed = lambda text: unicodedata.normalize("NFC", text)
    if composed(name) in map(composed, choices):  # nobody sees how they differ
        form = "NFC" if unicodedata.is_normalized("NFC", name) else "NFD"
        return f" (one looks the same in another Unicode form: bring it to {form})"
    found = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""
