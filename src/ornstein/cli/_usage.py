"""What is wrong with arguments, as one sentence."""

import contextlib
import io
import re
from typing import Any

import tyro

# tyro tells what is wrong in a frame that it prints, and nowhere else that may be
# relied on: its errors with fields are in a private module, whose first lines say that
# any release may change it. So the frame is read: what stands around a line, and
# instead of one; of ASCII where standard output is not UTF-8.
_FRAME = re.compile(r"^\s*[╭╰│|+]|[╮╯│|+]\s*$")
_RULE = re.compile(r"[\s─-]*")


class UsageError(ValueError):
    """Arguments that no command takes."""


def speak(kind: Any, **kwargs: Any) -> Any:
    """`tyro.cli` with its errors as one sentence rather than a frame of lines."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(kind, **kwargs)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise UsageError(_sentence(errors.getvalue())) from None


def _sentence(frame: str) -> str:
    """What a frame of tyro's says, without its title, drawing and advice."""
    said = []
    for line in frame.splitlines()[1:]:
        text = _FRAME.sub("", line).strip()
        text = "" if _RULE.fullmatch(text) else text
        if said and (not text or text.startswith(("Got errors", "For full"))):
            break
        said.append(text)
    sentence = re.sub(r"\s+", " ", " ".join(said)).strip().rstrip(".")
    return f"{sentence}: `ornstein COMMAND --help` lists what each option takes."
