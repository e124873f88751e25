"""A run is a folder."""

import json
import shutil
from pathlib import Path
from typing import Any

import equinox as eqx

from .._files import UnreadableError, read_json
from ._atomic import write_atomically


class RunFolder(eqx.Module):
    """A folder with all that a run reads and writes.

    `config.json`, `metrics.jsonl`, `checkpoints/`, `events/`, `figures/`, and once it
    is done `result.json`.

    Make one with `RunFolder.create`, or look at one with `RunFolder.open`.

    Attributes:
        path: of the folder.
    """

    path: Path

    @classmethod
    def create(
        cls, path: str | Path, config: dict[str, Any], *, overwrite: bool = False
    ) -> "RunFolder":
        """Make the folder and write the configuration.

        Args:
            path: of the folder; its parents are made too.
            config: everything that decides the run, as JSON.
            overwrite: remove a run that is there already.

        Raises:
            FileExistsError: if something is there already.
        """
        path = Path(path)
        text = json.dumps(config, indent=2)  # before anything is removed
        is_run = (path / "config.json").exists()
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            if not (overwrite and is_run):
                raise FileExistsError(
                    f"{path} exists{' and is a run' if is_run else ''}: resume it, "
                    "choose another folder, or (for a run) overwrite it."
                )
            shutil.rmtree(path)
        for folder in ("checkpoints", "events", "figures"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        write_atomically(path / "config.json", text.encode())
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """A run that exists.

        Raises:
            FileNotFoundError: if there is no run there.
        """
        path = Path(path)
        if not (path / "config.json").is_file():
            raise FileNotFoundError(
                f"{path} is not a run: it has no config.json. Give the folder that "
                "`ornstein train` wrote."
            )
        return cls(path)

    @property
    def config(self) -> dict[str, Any]:
        """What decided the run.

        Raises:
            ValueError: if the file is damaged.
        """
        return _read_object(self.path / "config.json", "train the run again")

    @property
    def metrics(self) -> Path:
        """The file with one line of JSON for each epoch."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def events(self) -> Path:
        """The folder of TensorBoard's events."""
        return self.path / "events"

    @property
    def figures(self) -> Path:
        """The folder of figures."""
        return self.path / "figures"

    def write_result(self, result: dict[str, Any]) -> Path:
        """Write `result.json`, whole or not at all, and say where."""
        path = self.path / "result.json"
        write_atomically(path, json.dumps(result, indent=2).encode())
        return path

    def read_result(self) -> dict[str, Any]:
        """What `write_result` wrote.

        Raises:
            FileNotFoundError: if the run has no result yet.
            ValueError: if the file is damaged.
        """
        path = self.path / "result.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{self.path} has no result.json yet: finish the run with "
                "`ornstein train --resume`, or judge it with `ornstein evaluate`."
            )
        return _read_object(path, "judge the run again with `ornstein evaluate`")


def _read_object(path: Path, remedy: str) -> dict[str, Any]:
    try:
        content = read_json(path)
    except UnreadableError as error:
        raise ValueError(
            f"{path} is truncated or damaged ({error}): {remedy}."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object: {remedy}.")
    return content
