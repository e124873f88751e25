"""The file or folder that data came from, so that a change is noticed."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from ._error import DataError, DataNotFoundError

_BLOCK = 2**20
_TABLES = (".csv", ".parquet", ".npz")
LEFT_BY_OTHERS = ("thumbs.db", "desktop.ini")
"""Names, in small letters, of files that systems leave in folders."""


def expanded(name: str | Path) -> Path:
    """A path, with the home folder that a `~` at its beginning stands for.

    Raises:
        DataNotFoundError: if there is none.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError:
        user = Path(name).parts[0]
        raise DataNotFoundError(
            f"{name}: there is no home folder {user}: give the path without it."
        ) from None


@dataclasses.dataclass(frozen=True)
class Source:
    """A fingerprint of the user's own files.

    Attributes:
        paths: as they were given: one, or those of training and test rows.
        sha256: of their bytes; of a folder also of its files' places in it, without
            what other programs leave there.
        num_rows: in all of them.
        num_columns: of a table, those that are no features among them; else `None`.
    """

    paths: tuple[str, ...]
    sha256: str
    num_rows: int
    num_columns: int | None = None

    @classmethod
    def of(
        cls, paths: Sequence[Path], *, num_rows: int, num_columns: int | None = None
    ) -> "Source":
        """The fingerprint of files, or of a folder of them, as they are now.

        Args:
            paths: to regular files or folders.
            num_rows: that were read from them.
            num_columns: of a table.
        """
        names = tuple(map(str, paths))
        return cls(names, _digest(paths), num_rows, num_columns)

    @staticmethod
    def share_a_file(one: Path, other: Path) -> bool:
        """Whether two files, or folders of tables, have a file of the same bytes.

        Args:
            one: a file or folder.
            other: another.
        """
        ours, its = _tables_in(one), _tables_in(other)
        size = lambda file: file.stat().st_size
        alike = {size(file) for file in ours} & {size(file) for file in its}
        known = {_digest([file]) for file in ours if size(file) in alike}
        return any(_digest([file]) in known for file in its if size(file) in alike)

    def check_unchanged(self) -> None:
        """Refuse files that are not what they were.

        Raises:
            DataNotFoundError: if one is gone.
            DataError: if one has changed.
        """
        if not self._is_of(self.check_there()):
            raise self.has_changed()

    def check_there(self) -> list[Path]:
        """Where files are, as seen from here.

        Raises:
            DataNotFoundError: if one is gone.
        """
        paths = [expanded(name) for name in self.paths]
        for path in paths:
            if not path.exists():
                raise DataNotFoundError(
                    f"{path}, from which this run learned, is not there"
                    f"{_seen_from(path)}: put it back to go on with its rows "
                    "(predictions do not need it)."
                )
        return paths

    def is_same(self, other: "Source") -> bool:
        """Whether files read again are what they were.

        Args:
            other: of the same files, perhaps at another place, as they are now.
        """
        return self.sha256 == other.sha256 or self._is_of([*map(Path, other.paths)])

    def _is_of(self, paths: Sequence[Path]) -> bool:
        # Fingerprints of earlier versions are of all files.
        return any(_digest(paths, whole) == self.sha256 for whole in (False, True))

    def has_changed(self) -> DataError:
        """What is said of files that are not what they were."""
        return DataError(
            f"{' or '.join(self.paths)} has changed since this run read it "
            f"({self.num_rows:,} rows then), and what are its test rows now may be "
            "rows that the run learned from: put the file back as it was, or train "
            "again (predictions do not need it)."
        )


def _tables_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    # Marks of other programs, such as _SUCCESS, are no tables, and say nothing.
    found = [file for file in path.rglob("[!._]*") if file.is_file()]
    if not all(file.suffix.lower() in _TABLES for file in found):
        return []  # of images, say
    return found


def _seen_from(path: Path) -> str:
    return "" if path.is_absolute() else f" (in {Path.cwd()})"


def _digest(paths: Sequence[Path], whole: bool = False) -> str:
    found = hashlib.sha256()
    for path in paths:
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file())
            files = files if whole else _without_others(files, path)
        for file in files:
            if path.is_dir():
                found.update(os.fsencode(file.relative_to(path).as_posix()) + b"\n")
            with file.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    found.update(block)
    return found.hexdigest()


def _without_others(files: Sequence[Path], folder: Path) -> list[Path]:
    """Without what other programs leave in a folder, and readers pass over."""
    marked = lambda file, marks: any(
        part.startswith(marks) for part in file.relative_to(folder).parts
    )
    seen = [
        file
        for file in files
        if not marked(file, ".") and file.name.lower() not in LEFT_BY_OTHERS
    ]
    rows = [file for file in seen if not marked(file, "_")]  # _SUCCESS is none
    is_of_tables = rows and all(file.suffix.lower() in _TABLES for file in rows)
    return rows if is_of_tables else seen
