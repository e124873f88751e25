"""A whole page."""

from collections.abc import Sequence

from ._elements import Html, tag
from ._style import STYLE

# Nothing is fetched and nothing runs, whatever a table's names hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(
    title: str, header: Html, contents: Sequence[tuple[str, str]], main: Html
) -> str:
    """A page that needs no network.

    Args:
        title: of the window.
        header: first in the page: its heading, and what one must know.
        contents: ids and titles of its sections.
        main: the sections.
    """
    links = [tag("li", tag("a", name, href=f"#{id_}")) for id_, name in contents]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(STYLE)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", class_="skip", href="#main"),
        tag("header", header),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", main, id="main", tabindex="-1"),
        tag(
            "footer",
            tag("p", "Written by ornstein. This page loads nothing and runs no code."),
        ),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
