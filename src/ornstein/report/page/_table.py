"""Tables whose headers say what they head."""

from collections.abc import Mapping, Sequence
from typing import Any

from ._elements import Html, joined, tag


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    is_text: Sequence[int] = (),
) -> Html:
    """A table; the first cell of each row heads it.

    Args:
        caption: what it shows.
        columns: their headers.
        rows: cells.
        is_text: columns of words, set to the left; others are numbers.
    """
    kinds = ["text" if i in (0, *is_text) else "num" for i in range(len(columns))]
    head = tag(
        "tr",
        *(
            tag("th", name, scope="col", class_=kind)
            for name, kind in zip(columns, kinds, strict=True)
        ),
    )
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", class_="text"),
            *(
                tag("td", cell, class_=kind)
                for cell, kind in zip(row[1:], kinds[1:], strict=True)
            ),
        )
        for row in rows
    ]
    content = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *body),
    )
    return _scrolled(content, caption)


def key_values(caption: str, rows: Mapping[str, Any]) -> Html:
    """A table of two columns: names, and what belongs to them.

    Args:
        caption: what it shows.
        rows: by name.
    """
    body = [
        tag("tr", tag("th", name, scope="row", class_="text"), tag("td", value))
        for name, value in rows.items()
    ]
    content = tag("table", tag("caption", caption), tag("tbody", *body), class_="card")
    return _scrolled(content, caption)


def _scrolled(content: Html, caption: str) -> Html:
    """Wider than a small screen, it scrolls by itself, with the arrow keys too."""
    return tag(
        "div",
        joined([content]),
        class_="scroll",
        role="region",
        aria_label=f"Table: {caption}",
        tabindex="0",
    )
