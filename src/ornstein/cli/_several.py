"""`--distributed`: one command in several processes, which share its devices.

All carry out the same command. The first writes the run, and speaks; the others have a
folder of their own for what the same code writes in them, which goes with them.
"""

import dataclasses
import math
import os
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import tyro
from jax.sharding import Mesh

from .._mesh import CHAINS
from .._processes import (
    agree,
    first_does,
    from_first,
    is_first,
    num_processes,
    pack,
    unpack,
)
from ..recipe import versions
from ..train import RunFolder
from ._flags import flag
from ._usage import UsageError

_SMALL = (
    "config.json",
    "data.json",
    "calls.json",
    "result.json",
    "checkpoints/starts.npz",
)
"""What a run that goes on reads of its folder, but for checkpoints and samples."""
_OWN = ("process", "given")
"""Options that each process has its own of."""


@dataclasses.dataclass(frozen=True)
class Several:
    """One process of several.

    Attributes:
        distributed: this is one of several processes, on one machine or more, that
            share the work: start the same command in each. On SLURM and most clouds
            nothing else is needed; else give the next three, too.
        coordinator: HOST:PORT of process 0, where it listens and the others find it.
        processes: how many there are.
        process: the number of this one, from 0.
        coordinator_timeout: seconds for which they wait for each other to begin; 300 by
            default.
    """

    distributed: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    coordinator: str | None = None
    processes: int | None = None
    process: int | None = None
    coordinator_timeout: float | None = None

    def check(self) -> None:
        """Refuse what says where a process stands, of one that is alone.

        Raises:
            UsageError: naming the option.
        """
        for field in dataclasses.fields(self):
            given = getattr(self, field.name) is not None
            if field.name != "distributed" and given and not self.distributed:
                raise UsageError(
                    f"{flag(field.name)} is of --distributed: give that, too, or leave "
                    "it out."
                )
        if self.distributed and not jax.distributed.is_initialized():
            raise UsageError(
                "--distributed is for the program `ornstein` in a shell, which joins "
                "the others first: leave it out here, or call "
                "`jax.distributed.initialize` yourself."
            )


ALONE = Several()
"""What a command is by default."""


def joined(command: Any) -> Any:
    """A command as this process carries it out, once all are seen to have the same.

    Args:
        command: as it was parsed.

    Raises:
        ValueError: for processes whose options or versions differ, or what several
            cannot do.
    """
    several = getattr(command, "several", None)
    if several is None:
        return command
    several.check()
    if not several.distributed:
        return command
    if getattr(command, "audit", False):
        raise UsageError(
            "--audit trains its twins in the run's folder, by one process: leave "
            "--distributed out, or --audit."
        )
    said = {f"version of {name}": number for name, number in versions().items()}
    said |= {"number of devices": jax.local_device_count()}
    agree(said, remedy="have the same in all of them")
    same = "start all with the same options"
    agree({"command": type(command).__name__.lower()}, remedy=same)
    agree(_options(command), remedy=same)
    return _elsewhere(command)


def _options(command: Any) -> dict[str, Any]:
    """Every option of a command by its flag, but for those that are a process's own."""
    found = {}
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        if dataclasses.is_dataclass(value):
            found |= _options(value)
        elif field.name not in _OWN:
            found[flag(field.name)] = str(value)
    return found


def _elsewhere(command: Any) -> Any:
    """In all processes but the first, a command that writes to a folder of its own."""
    resumed: Path | None = getattr(command, "resume", None)
    content = b""
    if resumed is not None:
        content = first_does(lambda: _small_files(resumed))
    if is_first():
        return command
    place = Path(os.environ["ORNSTEIN_PROCESS_FOLDER"])
    names = {field.name for field in dataclasses.fields(command)}
    if resumed is not None:
        _write_small_files(place / "run", content)
        return dataclasses.replace(command, resume=place / "run")
    if "output" in names:
        output, figure = place / "output.csv", command.figure
        if figure is not None:
            figure = place / f"figure{figure.suffix}"
        return dataclasses.replace(command, output=output, figure=figure)
    if "out" in names:
        return dataclasses.replace(command, out=place / "run")
    return command


def _small_files(path: Path) -> bytes:
    run = RunFolder.open(path)
    files = {name: run.path / name for name in _SMALL}
    there = {
        name: np.frombuffer(file.read_bytes(), np.uint8)
        for name, file in files.items()
        if file.is_file()
    }
    return pack(there, None)


def _write_small_files(run: Path, content: bytes) -> None:
    for folder in ("checkpoints", "events", "figures"):
        (run / folder).mkdir(parents=True)
    for name, array in unpack(content)[0].items():
        (run / name).write_bytes(array.tobytes())


def where_first_has(path: Path) -> Path:
    """The path that the first process has, which all are to read.

    Args:
        path: of this process.
    """
    if num_processes() == 1:
        return path
    return Path(from_first(str(path.absolute()).encode()).decode())


def mesh_of_all(command: Any, name: str) -> Mesh:
    """The mesh of processes that were given none: all devices along one axis.

    Args:
        command: that is carried out.
        name: of the command.
    """
    model = None if name != "train" else command.recipe.model.model
    axis = CHAINS if name == "sample" or model == "chains" else "data"
    return jax.make_mesh((jax.device_count(),), (axis,))


def check_all_used(mesh: Mesh, text: str) -> None:
    """Refuse a mesh that leaves some process without work.

    Args:
        mesh: of --mesh.
        text: as it was given.

    Raises:
        ValueError: if it is of fewer devices than there are.
    """
    used, there = math.prod(mesh.shape.values()), jax.device_count()
    if num_processes() > 1 and used != there:
        raise ValueError(
            f"--mesh {text} is {used} devices, and the {num_processes()} processes "
            f"have {there}: with --distributed a mesh is of all of them."
        )
