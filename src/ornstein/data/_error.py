"""What is said of data that cannot be used."""

import difflib
import unicodedata
from collections.abc import Iterable


class DataError(ValueError):
    """Data that cannot be used: one sentence that says what is wrong and what to do."""


class DataNotFoundError(DataError, FileNotFoundError):
    """A file, folder or data set that is not there."""


def nearest(name: str, choices: Iterable[str], *, is_given: bool = False) -> str:
    """`" (did you mean …?)"`, or nothing where no choice resembles `name`.

    Args:
        name: that is no choice.
        choices: what there is.
        is_given: whether the name is what can be corrected, and not the choices.
    """
    choices = list(choices)
    composed = lambda text: unicodedata.normalize("NFC", text)
    alike = [choice for choice in choices if composed(choice) == composed(name)]
    if alike:  # nobody sees how they differ
        wanted = alike[0] if is_given else name
        form = "NFC" if unicodedata.is_normalized("NFC", wanted) else "NFD"
        return f" (one looks the same in another Unicode form: bring it to {form})"
    found = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""
