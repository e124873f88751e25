"""An experiment, and one under way whose finished pieces are kept."""

import copy
import glob
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._files import UnreadableError, read_json, write_atomically
from ..recipe import Recipe, SampleRecipe, ScaleName
from ..train import RunFolder
from ._ledger import Ledger
from ._shelf import Shelf, is_piece

KEPT = "kept"
"""In place of rows: what is there already is shown, and nothing computed."""


class Study:
    """One experiment under way.

    Every finished piece is a JSON file, so that an interrupted experiment goes on from
    there.

    Args:
        folder: of pieces, figures and the result.
        scale: `quick` for minutes to hours on two cores, `hours` for hours, `gpu` for
            25 minutes on one accelerator, `full` for the paper's own budget.
        seed: of everything random, and the only one of a recipe that has several;
            `None` for all of a recipe's, with 0 for what else is random.
        say: hears a line for each piece and figure.
        data: the data set, of experiments that have several.
        models: rows of a table to work on; none stands for all.
        command: as it was typed.
        shelf: a file for pieces beside the folder's own, to go on from elsewhere.

    Attributes:
        ledger: where the pieces come from.
        seed: of everything random: a number.
    """

    def __init__(
        self,
        folder: Path,
        scale: ScaleName,
        *,
        seed: int | None,
        say: Callable[[str], None],
        data: str = "mnist",
        models: tuple[str, ...] = (),
        command: str = "",
        shelf: Shelf | None = None,
    ):
        self.folder = folder
        self.data, self.models = data, models
        self.scale: ScaleName = scale
        self.seed, self.say = seed or 0, say
        self._has_one_seed = seed is not None
        self.ledger = Ledger(command, seed=self.seed)
        self._shelf = shelf

    @property
    def shows_kept(self) -> bool:
        """Whether nothing is computed, and what is there already shown."""
        return self.models == (KEPT,)

    def seeds_of(self, recipe_seeds: Sequence[int]) -> tuple[int, ...]:
        """Which seeds to run: the one that was asked for alone, else a recipe's.

        Args:
            recipe_seeds: those of the recipe.
        """
        return (self.seed,) if self._has_one_seed else tuple(recipe_seeds)

    def beside(self, folder: Path) -> "Study":
        """This study with its pieces in another folder; all are parts of its result.

        Args:
            folder: of the other pieces.
        """
        other = copy.copy(self)
        other.folder, other.models = folder, ()
        return other

    def own(self, name: str) -> str:
        """A name of each seed's own, that none takes the place of seed 0's hours.

        Args:
            name: that of seed 0.
        """
        return f"{name}_seed{self.seed}" if self.seed else name

    def run_folder(self, name: str, config: dict[str, Any]) -> Path:
        """The folder of a training of this seed: that of before, or its own.

        Args:
            name: of the folder of seed 0, below the study's.
            config: of the run. One under that name is gone on with: a run of before
                each seed had its own.
        """
        plain, own = self.folder / name, self.folder / self.own(name)
        if own.exists() or not (plain / "config.json").is_file():
            return own
        try:
            return plain if RunFolder.open(plain).config == config else own
        except ValueError:  # damaged, and perhaps another seed's
            return own

    def piece(
        self,
        name: str,
        settings: Any,
        compute: Callable[[], Any],
        *,
        needs: Path | None = None,
    ) -> Any:
        """What `compute` returns, from the folder if it was computed before.

        A piece keeps the command, commit, versions, device, seed and seconds that it
        was computed with, and brings them into the result. One of another commit is
        used, and the result says so. Under `begun` are the calls that were interrupted
        in it, from whose checkpoints it may have gone on; their seconds are not known.

        Args:
            name: of the piece.
            settings: as JSON; a piece of other settings is computed again. Options
                that a kept recipe lacks have their defaults.
            compute: makes the piece, as JSON.
            needs: a file that `compute` leaves behind, such as a trained model; without
                it the piece is computed again.
        """
        if needs is None or needs.is_file():
            found = self.find(name, settings)
            if found is not None:
                self.say(f"{name}: kept from before")
                return found
        self.say(f"{name}: computing")
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = path.with_suffix(".begun")
        before = _read_begun(begun)
        write_atomically(begun, json.dumps([*before, self.ledger.origin]).encode())
        value, origin, parts = self.ledger.compute(compute)
        origin |= {"begun": before} if before else {}
        self.ledger.take(name, origin)
        settings = _as_json(settings)
        kept = {"settings": settings, "value": value, "provenance": origin}
        kept |= {"parts": parts} if parts else {}
        write_atomically(path, json.dumps(kept).encode())
        begun.unlink(missing_ok=True)
        if self._shelf is not None:
            self._shelf.put(self.own(name), _as_json(kept))
        return value

    def find(self, name: str, settings: Any) -> Any | None:
        """A piece of before, which is then a part of the result; or `None`.

        Args:
            name: of the piece.
            settings: as of `piece`.
        """
        settings = _as_json(settings)
        kept = self._on_shelf(name, settings)
        if kept is None:
            kept = self._in_folder(name, settings)
            if kept is None:
                return None
            if self._shelf is not None:
                self._shelf.put(self.own(name), kept)
        self.ledger.take(name, kept.get("provenance"), kept.get("parts"))
        return kept["value"]

    def _path(self, name: str) -> Path:
        return self.folder / "pieces" / f"{self.own(name)}.json"

    def _in_folder(self, name: str, settings: Any) -> dict[str, Any] | None:
        folder = self.folder / "pieces"
        paths = [folder / f"{own}.json" for own in self._names(name)]
        if _has_seed(settings):  # then a call of any seed may have made it
            paths += sorted(folder.glob(f"{glob.escape(name)}_seed*.json"))
        for path in paths:
            kept = _read_piece(path) if path.exists() else None
            if kept is not None and _is_same(kept["settings"], settings):
                return kept
        return None

    def _on_shelf(self, name: str, settings: Any) -> dict[str, Any] | None:
        """Of the shelf, which wins over a folder: it may have been mended since."""
        if self._shelf is None:
            return None
        for own in self._names(name):
            kept = self._shelf.get(own)
            if kept is not None and _is_same(kept["settings"], settings):
                return kept
        return None

    def _names(self, name: str) -> tuple[str, ...]:
        # Under the plain name are pieces that have the seed in it, and those of before
        # each seed had its own.
        return tuple(dict.fromkeys((self.own(name), name)))


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _is_same(kept: Any, settings: Any) -> bool:
    """Whether settings are those of before, when recipes may have had fewer options."""
    return kept == settings or _read_back(kept) == _read_back(settings)


def _has_seed(settings: Any) -> bool:
    """Whether settings name the seed, such as a recipe's."""
    if isinstance(settings, list):
        return any(map(_has_seed, settings))
    if not isinstance(settings, dict):
        return False
    return settings.get("seed") is not None or any(map(_has_seed, settings.values()))


def _read_back(settings: Any) -> Any:
    """Settings as JSON, with the recipes in them as objects."""
    if isinstance(settings, list):
        return [_read_back(entry) for entry in settings]
    if not isinstance(settings, dict):
        return settings
    for kind in (Recipe, SampleRecipe):
        try:
            return kind.from_json(settings)
        except ValueError:  # no recipe, or one of another version
            continue
    return {name: _read_back(entry) for name, entry in settings.items()}


def _read_begun(path: Path) -> list[dict[str, Any]]:
    """The calls that were interrupted in a piece; of a damaged file, none."""
    try:
        found = read_json(path)
    except (FileNotFoundError, UnreadableError):
        return []
    is_list = isinstance(found, list)
    return found if is_list and all(isinstance(call, dict) for call in found) else []


def _read_piece(path: Path) -> dict[str, Any]:
    """A piece as it was kept: its settings and its value."""
    remedy = "take it away, and it is computed again"
    try:
        kept = read_json(path)
    except UnreadableError as error:
        raise ValueError(f"{path} cannot be read: {error}; {remedy}.") from error
    if not is_piece(kept):
        raise ValueError(f"{path} is no piece of `ornstein reproduce`: {remedy}.")
    return kept


class Experiment(NamedTuple):
    """A figure or table.

    Attributes:
        summary: one line.
        paper: what the paper prints, to compare with.
        run: from a study to the rows of the result.
        options: of `--data` and `--models`, those that it reads.
        folder: where it writes by default, with {name}, {scale} and {data} filled in.
        shelf: a file in which it keeps its pieces too, when it writes to that folder;
            for what takes hours, so that any checkout goes on from there.
        scales: those that it has.
    """

    summary: str
    paper: Any
    run: Callable[[Study], list[dict[str, Any]]]
    options: tuple[str, ...] = ()
    folder: str = "runs/{name}-{scale}"
    shelf: str | None = None
    scales: tuple[ScaleName, ...] = ("quick", "gpu", "full")
