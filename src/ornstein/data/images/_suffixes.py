"""Which files are images, by their suffixes, and what else is in folders of them."""

import collections
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .._source import LEFT_BY_OTHERS

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".webp")
_MOST_SAID = 5


def unread_notes(folder: Path, within: Iterable[Path]) -> list[str]:
    """A note on files that are left out for their kind, if there are any.

    Hidden ones, and what other programs leave in folders, are none of these.

    Args:
        folder: of images, for the note.
        within: folders of images in it, each looked through to its depths.
    """
    kinds = collections.Counter(kind for path in within for kind in _unread(path))
    number = kinds.total()
    if number == 0:
        return []
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    said = [f"{kind} ({count:,})" for kind, count in ordered[:_MOST_SAID]]
    others = len(ordered) - len(said)
    more = f" and {others} other kinds" if others else ""
    what = "1 file is" if number == 1 else f"{number:,} files are"
    return [
        f"{folder}: {what} left out, of kinds that are not read: {', '.join(said)}"
        f"{more}; images are {', '.join(SUFFIXES)}."
    ]


def _unread(folder: Path) -> Iterator[str]:
    """The suffix of each such file."""
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            suffix = Path(name).suffix.lower()
            is_passed_over = name.startswith(".") or name.lower() in LEFT_BY_OTHERS
            if suffix not in SUFFIXES and not is_passed_over:
                is_usual = suffix[1:].isalnum() and suffix.isascii()
                yield suffix if is_usual else "without a suffix"
