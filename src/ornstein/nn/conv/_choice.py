"""Which form of a convolution a CPU takes: what was fastest where it was measured.

`measured.json` has, for each kind of processor, the speed of every form on the shapes
of the networks in `nn`, in a scan; `python -m benchmarks.conv --choose` writes it. A
shape takes the form that was fastest on the nearest shape measured, of those that exist
for it. On a processor that was not measured: what one with the same vector instructions
takes. A device that has one core alone takes what was fastest on one, of the shapes
that were measured there.
"""

import contextlib
import contextvars
import functools
import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
from jax.typing import DTypeLike

from ..._types import Array
from ._geometry import Geometry

Face: TypeAlias = Literal["conv", "input gradient", "kernel gradient"]

TABLE = "measured.json"

# A form has to be this much faster than one before it in its dictionary: those are
# simpler, and compile faster.
_GAIN = 1.1

_preferred: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "_preferred", default=None
)


Suits: TypeAlias = Callable[[Geometry, int, int, DTypeLike], bool]


class Form(NamedTuple):
    """A way to compute a face.

    Attributes:
        run: of the geometry and the two operands.
        suits: of geometry, channels in and out, and dtype: whether the form exists.
    """

    run: Callable[[Geometry, Array, Array], Array]
    suits: Suits


Forms: TypeAlias = Mapping[str, Form]


def choose(
    face: Face,
    forms: Forms,
    geometry: Geometry,
    num_in: int,
    num_out: int,
    dtype: DTypeLike,
) -> str:
    """The name of the form to take."""
    suitable = [
        name
        for name, form in forms.items()
        if form.suits(geometry, num_in, num_out, dtype)
    ]
    if _preferred.get() in suitable:
        return str(_preferred.get())
    speeds = _nearest(face, geometry, num_in, num_out)
    best = max(speeds.get(name, 0.0) for name in suitable)
    return next(name for name in suitable if _GAIN * speeds.get(name, 0.0) >= best)


def preferred_form() -> str | None:
    """The form that `conv_form` asks for."""
    return _preferred.get()


@contextlib.contextmanager
def conv_form(name: str) -> Iterator[None]:
    """Within the context, convolutions on a CPU take a form wherever it exists.

    It acts while a program is traced: a function that `jax.jit` has compiled before
    keeps the forms that it has. Where a shape has no such form, it takes its own.

    Args:
        name: `"direct"`, `"extra row"`, `"row phases"`, `"filled"`, `"band"`,
            `"flipped band"`, `"shifts"`, `"flipped shifts"`, `"split taps"`, `"sums"`,
            `"winograd"`, `"winograd 4"`, `"wide winograd"`, `"wide winograd 4"` or
            `"phases"`.

    Raises:
        ValueError: for another name.
    """
    known = ("direct", "extra row", "row phases", "filled", "band", "flipped band")
    known += ("shifts", "flipped shifts", "split taps", "sums", "winograd", "phases")
    # Tiles of 4 by 4 outputs are of kernel gradients; wide is many images at a time.
    known += ("winograd 4", "wide winograd", "wide winograd 4")
    if name not in known:
        raise ValueError(f"`name` must be one of {', '.join(known)}, got {name!r}.")
    token = _preferred.set(name)
    try:
        yield
    finally:
        _preferred.reset(token)


@functools.cache
def processor() -> str:
    """This machine's kind, as far as forms depend on it: `"amd avx512"`."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.machine().lower()
    facts: dict[str, str] = {}
    for line in info.read_text().splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    vendors = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
    vendor = vendors.get(facts.get("vendor_id", ""), platform.machine().lower())
    flags = facts.get("flags", "").split()
    sets = [name for avx, name in _INSTRUCTIONS.items() if avx in flags]
    return " ".join([vendor, *sets[:1]])


_INSTRUCTIONS = {"avx512f": "avx512", "avx2": "avx2"}

_ONE_CORE = ", one core"


def machine() -> str:
    """The processor, and whether each of this process's devices has one core of it.

    Forms that XLA runs on one thread lose nothing there.
    """
    return processor() + (_ONE_CORE if _has_one_core() else "")


@functools.cache
def _has_one_core() -> bool:
    try:
        num_devices = jax.local_device_count("cpu")
    except RuntimeError:  # JAX_PLATFORMS=cuda: traced for a CPU, and never run on one
        num_devices = 1
    return num_cores() <= num_devices


def num_cores() -> int:
    """That this process may use: fewer under `taskset`."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _table() -> list[dict[str, Any]]:
    """The shapes of this processor, or of the most similar one.

    On one core, shapes that were measured on one come first: the nearest of equally
    near shapes is the first.
    """
    text = Path(__file__).with_name(TABLE).read_text()
    measured = json.loads(text)
    rows: list[dict[str, Any]] = []
    for is_one in [True, False] if _has_one_core() else [False]:
        names = [name for name in measured if name.endswith(_ONE_CORE) == is_one]
        shapes = measured[max(names, key=_alike)]["shapes"] if names else []
        rows += shapes if is_one == _has_one_core() else map(_on_one, shapes)
    return rows


def _on_one(row: dict[str, Any]) -> dict[str, Any]:
    """A shape measured on several cores, without the forms that are for several."""
    kept = {k: v for k, v in row["gflops"].items() if not k.startswith("wide")}
    return row | {"gflops": kept}


def _alike(name: str) -> tuple[bool, bool]:
    here, name = processor(), name.removesuffix(_ONE_CORE)
    return name == here, name.split()[1:] == here.split()[1:]


@functools.cache
def _nearest(
    face: Face, geometry: Geometry, num_in: int, num_out: int
) -> dict[str, float]:
    """GFLOP/s of each form on the nearest shape that was measured."""
    point = _point(geometry, num_in, num_out)

    def distance(shape: Mapping[str, Any]) -> float:
        other = shape["stride"], shape["taps"], shape["image"], shape["channels"]
        return math.dist(point, _coordinates(*other))

    of_face = [shape for shape in _table() if shape["face"] == face]
    return min(of_face, key=distance)["gflops"] if of_face else {}


def _point(geometry: Geometry, num_in: int, num_out: int) -> tuple[float, ...]:
    channels = (num_in, num_out)
    return _coordinates(
        geometry.stride, geometry.kernel_shape, geometry.image_shape, channels
    )


def _coordinates(stride, taps, image, channels) -> tuple[float, ...]:
    """In octaves; a stride of two is as far from one as four times the channels."""
    octaves = [math.log2(math.prod(image)) / 2, *map(math.log2, channels)]
    return (*octaves, math.log2(math.prod(taps)), 2 * math.log2(stride))
