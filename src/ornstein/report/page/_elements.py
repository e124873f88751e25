"""Elements of HTML and SVG."""

import html
import unicodedata
from collections.abc import Iterable
from typing import Any

_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_VOID = {"meta", "link", "img", "br", "hr"}


class Html(str):
    """Markup: what is put into it as plain text was escaped."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """One element.

    Args:
        name: of the element.
        children: `Html` as it is; all else as text, escaped; `None` is nothing.
        attributes: `aria_label` is `aria-label`, `class_` is `class`; `None` and
            `False` are left out, `True` is the name alone.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[Any]) -> Html:
    """Several pieces one after the other; see `tag`.

    Args:
        parts: as the children of an element.
    """
    return Html("".join(_escaped(part) for part in parts if part is not None))


def _escaped(part: Any) -> str:
    if isinstance(part, Html):
        return part
    text = "".join("\ufffd" if _is_banned(c) else c for c in str(part))
    return html.escape(text, quote=True)


def _is_banned(c: str) -> bool:
    """What HTML has no place for, and what turns the direction of text around it."""
    if unicodedata.category(c) in ("Cc", "Cs"):
        return c not in "\n\t"
    return c in _TURNING or (ord(c) & 0xFFFE) == 0xFFFE


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f' {name}=""'
    return f' {name}="{_escaped(str(value))}"'
