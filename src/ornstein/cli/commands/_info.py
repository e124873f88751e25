"""`ornstein info`."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro

from ...data import list_data
from ...recipe import (
    MAX_CHAIN_ROWS,
    PRESETS,
    list_recipes,
    load_run,
    provenance,
    versions,
)
from ...studies import EXPERIMENTS
from ...train import RunFolder
from .._convolutions import list_convolutions
from .._run_folder import reading
from .._terminal import Terminal

_DOWNLOADED = ("mnist", "fashion_mnist", "cifar10", "cifar100")


@dataclasses.dataclass(frozen=True)
class Info:
    """Versions, device, data sets and where they are, presets, experiments.

    Of a run: its model, and the form that each convolution takes on this machine.

    Attributes:
        run_folder: what `ornstein train` wrote, to say which forms it takes.
        data_dir: the folder of downloaded sets; ORNSTEIN_DATA by default.
        recipes: the recipes of `ornstein reproduce table1` instead, by data set, model
            and scale, and how many numbers each trains.
        json: print the result as JSON, and nothing else, on standard output.
    """

    run_folder: Annotated[
        Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]")
    ] = None
    data_dir: Path | None = None
    recipes: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        if self.run_folder is not None:
            return self._of_run(self.run_folder, terminal, command)
        if self.recipes:
            rows = list_recipes()
            _show_recipes(rows, terminal)
            return {
                "recipes": rows,
                "provenance": provenance(command, seed=0, seconds=0.0),
            }
        given = self.data_dir or os.environ.get("ORNSTEIN_DATA")
        folder = None if not given else Path(given)
        data = {
            name: {"about": about, "where": _where(name, folder)}
            for name, about in list_data().items()
        }
        presets = sorted(
            f"--model {model} --data {data} --preset {name}"
            for model, data, name in PRESETS
        )
        experiments = {name: e.summary for name, e in EXPERIMENTS.items()}
        cache = jax.config.values["jax_compilation_cache_dir"]
        terminal.table("Versions", versions())
        rows = [{"data": name} | entry for name, entry in data.items()]
        terminal.grid(f"Data sets (data folder: {folder or 'none given'})", rows)
        terminal.say("Presets: " + "; ".join(presets))
        terminal.say(
            "Tables without --model: --model auto, chains for up to "
            f"{MAX_CHAIN_ROWS:,} training rows, an ensemble for more"
        )
        terminal.table("Experiments, for `ornstein reproduce`", experiments)
        origin = provenance(command, seed=0, seconds=0.0)
        kept = "are not kept" if cache is None else f"in {cache}"
        terminal.say(f"Device: {origin['device']}; compiled programs {kept}")
        return {
            "data": data,
            "data_dir": None if folder is None else str(folder),
            "presets": presets,
            "experiments": experiments,
            "cache": cache,
            "provenance": origin,
        }

    def _of_run(self, folder: Path, terminal: Terminal, command: str) -> dict[str, Any]:
        if self.recipes or self.data_dir is not None:
            raise ValueError(
                "A run is told about by itself: leave --recipes and --data-dir out."
            )
        with reading(RunFolder.open(folder).path):
            run = load_run(folder)
        data, kind = run.prepared.data, type(run.fit.model).__name__
        rows = list_convolutions(run)
        origin = provenance(
            command, seed=run.prepared.recipe.training.seed, seconds=0.0
        )
        terminal.say(f"{folder}: {kind}, of {data.name}; device: {origin['device']}")
        if rows:
            terminal.grid("Convolutions, and the forms they take here", rows)
        else:
            terminal.say("No convolutions: the data are no images.")
        return {
            "run": str(folder),
            "model": kind,
            "data": data.name,
            "convolutions": rows,
            "provenance": origin,
        }


def _show_recipes(rows: list[dict[str, Any]], terminal: Terminal) -> None:
    """What each is, and how many numbers it trains at each scale."""
    sizes: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        name = {"data": row["data"], "model": row["model"]}
        size = sizes.setdefault((row["data"], row["model"]), name)
        size[row["scale"]] = row["num_parameters"]
    terminal.table(
        "Recipes, for `ornstein reproduce table1 --models NAME,NAME`",
        {row["model"]: row["about"] for row in rows},
    )
    terminal.grid("Numbers that are trained, at each scale", list(sizes.values()))


def _where(name: str, folder: Path | None) -> str | None:
    """Where a set lies: `None` if it would have to be fetched."""
    if name == "digits" or name.startswith("toy/"):
        return "built in"
    if name == "uci/NAME":
        found = folder is not None and (folder / "uci").is_dir()
        return str(folder / "uci") if folder is not None and found else None
    if name == "mocap":
        found = folder is not None and (folder / "mocap" / "mocap35.mat").is_file()
        return str(folder / "mocap") if folder is not None and found else None
    if name in _DOWNLOADED:
        found = folder is not None and any((folder / name).rglob("train-*.parquet"))
        return str(folder / name) if folder is not None and found else None
    return "yours"
