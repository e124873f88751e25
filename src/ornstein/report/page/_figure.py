"""Figures: a picture, what it shows in words, and its numbers."""

from collections.abc import Sequence

from ._elements import Html, tag
from ._table import table


def figure(
    title: str,
    picture: Html,
    caption: str,
    *,
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
) -> Html:
    """One figure.

    Args:
        title: what it shows, in a few words.
        picture: an SVG, with a title of its own for those who do not see it.
        caption: how it is read.
        columns: of the table of its numbers.
        rows: of that table; without any there is none.
    """
    numbers = None
    if rows:
        numbers = tag(
            "details",
            tag("summary", f"Numbers of \u201c{title}\u201d"),
            table(title, columns, rows),
        )
    words = tag("figcaption", tag("strong", f"{title}. "), caption)
    return tag("figure", picture, words, numbers)


def figures(*parts: Html | None) -> Html:
    """Figures side by side where there is room, at most two in a row.

    Args:
        parts: figures; `None` is left out.
    """
    return tag("div", *parts, class_="figures")
