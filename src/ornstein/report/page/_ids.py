"""Names of places in a page, each once."""


class Ids:
    """Deals ids: a name, or with a number behind it where it is taken."""

    def __init__(self) -> None:
        self._dealt: set[str] = set()

    def __call__(self, name: str) -> str:
        """An id like a name.

        Args:
            name: any text.
        """
        kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower())
        stem = "-".join(part for part in kept.split("-") if part) or "part"
        found, number = stem, 1
        while found in self._dealt:
            number += 1
            found = f"{stem}-{number}"
        self._dealt.add(found)
        return found
