"""Pieces of a long experiment in one file, small enough to be committed."""

import json
from pathlib import Path
from typing import Any

from ..train._atomic import write_atomically


class Shelf:
    """A file of pieces by name, from which an experiment goes on in any checkout.

    Pieces of one origin share its entry: command, commit and versions stand there once.

    Args:
        path: of the file, made with the first piece.

    Raises:
        ValueError: for a file that is damaged, or is of something else.
    """

    def __init__(self, path: Path):
        self._path = path
        self._pieces: dict[str, dict[str, Any]] = {}
        if not path.is_file():
            return
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            for name, kept in content["pieces"].items():
                origin = content["origins"][kept.pop("origin")]
                seconds = {"seconds": kept.pop("seconds")}
                kept["provenance"] = None if origin is None else origin | seconds
                self._pieces[name] = kept
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} is no file of pieces, or is damaged: take it back from git, "
                "or remove it."
            ) from error

    def get(self, name: str) -> dict[str, Any] | None:
        """A piece with its settings, value and provenance, if it is there."""
        return self._pieces.get(name)

    def put(self, name: str, kept: dict[str, Any]) -> None:
        """Keep a piece, in the place of one of the same name."""
        if self._pieces.get(name) == kept:
            return
        self._pieces[name] = kept
        self._write()

    def _write(self) -> None:
        origins: list[Any] = []
        lines = []
        for name, kept in sorted(self._pieces.items()):
            origin = kept.get("provenance")
            rest = {key: value for key, value in kept.items() if key != "provenance"}
            rest["seconds"] = None if origin is None else origin["seconds"]
            if origin is not None:
                origin = {k: v for k, v in origin.items() if k != "seconds"}
            if origin not in origins:
                origins.append(origin)
            rest["origin"] = origins.index(origin)
            lines.append(f"{json.dumps(name)}: {json.dumps(rest)}")
        head = json.dumps(origins, indent=1)
        body = ",\n".join(lines)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = f'{{"origins": {head},\n"pieces": {{\n{body}\n}}}}\n'
        write_atomically(self._path, content.encode())
