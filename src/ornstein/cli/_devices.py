"""`--mesh`: the devices that a command uses, and what each axis of them shares."""

import math
from typing import Any

import jax
from jax.sharding import Mesh

from .._mesh import CHAINS, DRAWS, ROWS
from ._several import check_all_used, mesh_of_all

_AXES = (*ROWS, DRAWS, CHAINS)


def mesh_of(command: Any) -> Mesh | None:
    """The mesh of a command, such as that of `--mesh data=4,chains=2`.

    Args:
        command: any; one without a mesh, and alone, has one device.

    Raises:
        ValueError: for axes that nothing uses, numbers that are none, or more devices
            than there are, or, of several processes, fewer.
    """
    text, name = getattr(command, "mesh", None), type(command).__name__.lower()
    if text is not None:
        mesh = _of_text(text, name)
        check_all_used(mesh, text)
        return mesh
    several = getattr(command, "several", None)
    if several is None or not several.distributed:
        return None
    return mesh_of_all(command, name)


def _of_text(text: str, command: str) -> Mesh:
    sizes: dict[str, int] = {}
    for part in text.split(","):
        axis, _, number = (word.strip() for word in part.partition("="))
        if axis not in _AXES or axis in sizes or not number.isdecimal():
            raise ValueError(
                f"--mesh takes axes ({', '.join(_AXES)}), each once and with a number "
                f"of devices, such as --mesh data=4,chains=2; got {text!r}."
            )
        if axis == CHAINS and command in ("predict", "evaluate"):
            raise ValueError(
                f"--mesh {text}: `ornstein {command}` runs no chains; give data or "
                "draws."
            )
        sizes[axis] = int(number)
    needed, there = math.prod(sizes.values()), jax.devices()
    if not 1 <= needed <= len(there):
        kind = there[0].platform
        also = ""
        if kind == "cpu":
            also = (
                "; XLA_FLAGS=--xla_force_host_platform_device_count=N in the "
                "environment cuts a CPU into N"
            )
        raise ValueError(
            f"--mesh {text} is {needed} devices, and there are {len(there)} ({kind})"
            f": take no more than these{also}."
        )
    shape, names = tuple(sizes.values()), tuple(sizes)
    return jax.make_mesh(shape, names, devices=there[:needed])
