"""A page as a parser sees it."""

from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"meta", "link", "img", "br", "hr"}


class Element(NamedTuple):
    name: str
    attributes: dict[str, str]
    parents: tuple[str, ...]


class Page(HTMLParser):
    """All elements, their texts, and what is not well formed."""

    def __init__(self, text: str):
        HTMLParser.__init__(self, convert_charrefs=True)
        self.elements: list[Element] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"{name} is not closed" for name in self._open]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"{tag} has an attribute twice: {names}")
        there = {name: value or "" for name, value in attrs}
        self.elements.append(Element(tag, there, tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.texts.append((tuple(self._open), data))

    def all(self, name: str) -> list[Element]:
        return [e for e in self.elements if e.name == name]

    def text(self, inside: str | None = None) -> str:
        return "".join(t for at, t in self.texts if inside is None or inside in at)
