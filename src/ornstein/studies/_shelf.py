"""Pieces of a long experiment in one file, small enough to be committed."""

import json
from pathlib import Path
from typing import Any

from .._files import read_json, write_atomically


def is_piece(kept: Any) -> bool:
    """Whether JSON is a piece: settings, a value, and origins where they are known."""
    if not isinstance(kept, dict) or not {"settings", "value"} <= set(kept):
        return False
    parts = kept.get("parts") or {}
    return isinstance(parts, dict) and all(
        map(_is_origin, [kept.get("provenance"), *parts.values()])
    )


def _is_origin(origin: Any) -> bool:
    if origin is None:
        return True
    return isinstance(origin, dict) and isinstance(
        origin.get("seconds"), int | float | None
    )


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
            content = read_json(path)
            for name, kept in content["pieces"].items():
                origin = content["origins"][kept.pop("origin")]
                seconds = {"seconds": kept.pop("seconds")}
                kept["provenance"] = None if origin is None else origin | seconds
                if not is_piece(kept):
                    raise ValueError(f"{name!r} is no piece")
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
            rest["seconds"] = None if origin is None else origin.get("seconds")
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
