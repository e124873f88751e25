"""Several devices: what each axis of a mesh cuts.

One program whatever the mesh: arrays say which devices they lie on, and JAX's
partitioner does the rest, so that results are those of one device but for the order of
sums. A mesh is `jax.make_mesh(shape, names)` with some of these names:

- `data`: rows of a batch, or of all data where every step sees them;
- `fsdp`: rows too, and parameters with all that optimisers keep of them;
- `draws`: draws of a prediction;
- `chains`: Markov chains.
"""

import contextlib
import contextvars
import logging
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from ._kinds import check_kind
from ._processes import agree, first_does, is_first, numbers_of_first, pack, unpack
from ._sentence import Option, OptionError
from ._types import Array, PyTree

logger = logging.getLogger("ornstein")

ROWS = ("data", "fsdp")
"""Axes that cut rows."""
CHAINS, DRAWS = "chains", "draws"
_LEAST_CUT = 2**10
"""Numbers of an array below which cutting it saves nothing."""
_SHARED: contextvars.ContextVar[Mesh | None] = contextvars.ContextVar(
    "mesh", default=None
)
_NUM_PARTS: contextvars.ContextVar[int] = contextvars.ContextVar("parts", default=1)


def checked_mesh(mesh: Mesh | None, axes: tuple[str, ...], door: str) -> Mesh | None:
    """The mesh, with axes that JAX's partitioner may use as it likes.

    Args:
        mesh: as it was given; `None` for that of `shared_mesh`, or one device.
        axes: that mean something here.
        door: the function that it was given to.

    Raises:
        TypeError: if it is no mesh.
        ValueError: for an axis that does nothing here.
    """
    if mesh is None:
        shared = _SHARED.get()
        for name, size in {} if shared is None else shared.shape.items():
            # What is trained or sampled is predicted afterwards, draw by draw.
            if name not in (*axes, DRAWS) and size > 1 and door in ("fit", "sample"):
                logger.warning(
                    "The %d devices along %r of the mesh do the same here: `%s` can "
                    "use %s.",
                    size,
                    name,
                    door,
                    _listed(axes),
                )
        return shared if num_along(shared, axes) > 1 else None
    check_kind("mesh", mesh, Mesh, "mesh=jax.make_mesh((4,), ('data',))")
    for name, size in mesh.shape.items():
        if name not in axes and size > 1:
            raise ValueError(
                f"`mesh` has an axis {name!r} of {size} devices, which does nothing in "
                f"`{door}`: name its axes {_listed(axes)}, or leave it out."
            )
    return _free(mesh)


def _free(mesh: Mesh) -> Mesh:
    """The mesh without axes of which every operation would have to spell its use.

    `jax.make_mesh` gives such axes.
    """
    return Mesh(mesh.devices, mesh.axis_names)


@contextlib.contextmanager
def shared_mesh(mesh: Mesh | None) -> Iterator[None]:
    """A mesh for all that is given none, each taking the axes that it can use."""
    token = _SHARED.set(None if mesh is None else _free(mesh))
    try:
        yield
    finally:
        _SHARED.reset(token)


def without(mesh: Mesh | None, axis: str) -> Mesh | None:
    """The same devices, of which those along an axis all do the same."""
    if mesh is None:
        return None
    names = [f"no {name}" if name == axis else name for name in mesh.axis_names]
    return Mesh(mesh.devices, names)


def check_divides(
    mesh: Mesh | None,
    axes: tuple[str, ...],
    name: str,
    count: int,
    *,
    times: int = 1,
    most: float | int = math.inf,
) -> None:
    """Refuse a number that the devices along some axes do not divide.

    Args:
        mesh: `None` divides everything.
        axes: whose devices share the work.
        name: of the number.
        count: how many there are to share.
        times: parts in which they are shared, one after the other.
        most: how many there can be.

    Raises:
        ValueError: if some device would have more than another.
    """
    size = num_along(mesh, axes) * times
    if count % size:
        below, above = count - count % size, count + size - count % size
        near = " or ".join(f"{n}" for n in (below, above) if 0 < n <= most)
        named = [axis for axis in axes if mesh is not None and axis in mesh.shape]
        raise OptionError(
            "{} of {}{} cannot be shared equally by the {} devices along {} of {mesh}: "
            "take {}fewer devices there.",
            Option(name),
            count,
            f", in {times} parts," if times > 1 else "",
            size // times,
            _listed(named),
            f"{near}, or " if near else "",
        )


def num_along(mesh: Mesh | None, axes: tuple[str, ...]) -> int:
    """How many devices share what these axes cut."""
    if mesh is None:
        return 1
    return math.prod(mesh.shape.get(axis, 1) for axis in axes)


def cut(mesh: Mesh, axes: tuple[str, ...]) -> NamedSharding:
    """Arrays whose leading axis is shared by the devices along some axes."""
    there = tuple(axis for axis in axes if axis in mesh.shape)
    return NamedSharding(mesh, PartitionSpec(there or None))


def everywhere(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """The arrays of a tree, whole on every device."""
    return tree if mesh is None else put(tree, NamedSharding(mesh, PartitionSpec()))


def over_rows(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """Within a program: a batch, its rows shared out."""
    if mesh is None:
        return tree
    sharding = cut(mesh, ROWS)
    at = lambda leaf: jax.lax.with_sharding_constraint(leaf, sharding)
    return jax.tree.map(lambda leaf: at(leaf) if eqx.is_array(leaf) else leaf, tree)


@contextlib.contextmanager
def rows_in_parts(mesh: Mesh | None) -> Iterator[None]:
    """While a program is traced: the rows that it meets lie on so many devices.

    For loops over some rows after others, which the partitioner does not cut.
    """
    token = _NUM_PARTS.set(num_along(mesh, ROWS))
    try:
        yield
    finally:
        _NUM_PARTS.reset(token)


def num_row_parts() -> int:
    """In how many parts rows lie, within `rows_in_parts`."""
    return _NUM_PARTS.get()


def put_rows(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """Rows on devices that each have their own; whole ones if they do not divide."""
    if mesh is None:
        return jax.tree.map(jnp.asarray, tree)
    size = num_along(mesh, ROWS)
    is_shared = all(leaf.shape[0] % size == 0 for leaf in jax.tree.leaves(tree))
    return put(tree, cut(mesh, ROWS)) if is_shared else everywhere(tree, mesh)


def put_batches(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """Batches one after the other, of whose rows every process gives its own part."""
    if mesh is None:
        return jax.tree.map(jnp.asarray, tree)
    sharding = NamedSharding(mesh, PartitionSpec(None, *cut(mesh, ROWS).spec))
    place = jax.make_array_from_process_local_data
    return jax.tree.map(lambda leaf: place(sharding, leaf), tree)


def part_of(mesh: Mesh | None) -> tuple[int, int]:
    """This process's number among those that share a mesh, and how many they are."""
    if mesh is None or not mesh.is_multi_process:
        return 0, 1
    along = [i for i, name in enumerate(mesh.axis_names) if name in ROWS]
    devices = np.moveaxis(mesh.devices, along, range(len(along)))
    for replicas in devices.reshape(num_along(mesh, ROWS), -1):
        if len({device.process_index for device in replicas}) > 1:
            raise ValueError(
                f"Processes that read rows from disk share them along {_listed(ROWS)} "
                "alone, and on this mesh several have the same rows: leave its other "
                "axes out, or the streaming."
            )
    return jax.process_index(), jax.process_count()


def put_parameters(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """Parameters, and what is kept of each, cut along `fsdp` (else everywhere).

    Of each large array the longest axis that the devices divide.
    """
    if mesh is None:
        return tree
    place = lambda leaf: put(leaf, _of_parameter(leaf, mesh))
    return jax.tree.map(lambda a: place(a) if eqx.is_array(a) else a, tree)


def cut_here(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """`put_parameters`, before a state is made of them: in one process.

    Of what lies in several nothing is made outside of a program.
    """
    if mesh is not None and mesh.is_multi_process:
        return tree
    return put_parameters(tree, mesh)


def as_parameters(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """Within a program: what `put_parameters` does."""
    if mesh is None:
        return tree
    at = lambda a: jax.lax.with_sharding_constraint(a, _of_parameter(a, mesh))
    return jax.tree.map(lambda a: at(a) if eqx.is_array(a) else a, tree)


def _of_parameter(leaf: Array | np.ndarray, mesh: Mesh) -> NamedSharding:
    size = mesh.shape.get("fsdp", 1)
    spec: list[str | None] = [None] * leaf.ndim
    fitting = [i for i in range(leaf.ndim) if leaf.shape[i] % size == 0]
    if size > 1 and fitting and leaf.size >= _LEAST_CUT:
        spec[max(fitting, key=lambda i: leaf.shape[i])] = "fsdp"
    return NamedSharding(mesh, PartitionSpec(*spec))


def each_apart(
    fn: Callable, mesh: Mesh | None, axis: str, *, leading: Any = 0
) -> Callable:
    """`fn` of trees that lead with `axis`, run by each device on its own part.

    Devices do not wait for each other's steps.

    Args:
        fn: of a tree that every part sees, and of any number of those that are cut.
        mesh: `None`, or one without the axis: `fn` as it is.
        axis: of the mesh.
        leading: the number of the axis that is cut in what `fn` returns, or a tree of
            them; `None` for what all devices have alike.
    """
    if mesh is None or axis not in mesh.shape:
        return fn

    def spec(number: int | None) -> PartitionSpec:
        before = [] if number is None else [*number * [None], axis]
        return PartitionSpec(*before)

    def run(whole: PyTree, *apart: PyTree) -> PyTree:
        arrays, rest = eqx.partition(whole, eqx.is_array)
        return jax.shard_map(
            lambda arrays, *apart: fn(eqx.combine(arrays, rest), *apart),
            mesh=mesh,
            in_specs=(spec(None), *len(apart) * [spec(0)]),
            out_specs=jax.tree.map(spec, leading, is_leaf=lambda n: n is None),
            axis_names={axis},
            check_vma=False,
        )(arrays, *apart)

    return run


def agreed(mesh: Mesh | None, *numbers: int) -> list[int]:
    """The first process's numbers, in all that share a mesh: what a clock decides."""
    if mesh is None or not mesh.is_multi_process:
        return list(numbers)
    return numbers_of_first(*numbers)


def agreed_here(*numbers: int) -> list[int]:
    """The same, of what has no mesh of its own but that of `shared_mesh`."""
    return agreed(_SHARED.get(), *numbers)


def writes(mesh: Mesh | None) -> bool:
    """Whether this process is the one that has the files of what a mesh computes."""
    return mesh is None or not mesh.is_multi_process or is_first()


def first_writes(mesh: Mesh | None, work: Callable[[], bytes]) -> bytes:
    """Work with files: of several processes the first does it, and all have the result.

    Args:
        mesh: that they share.
        work: which the others wait for.

    Raises:
        FirstProcessError: in the others, if it fails in the first.
    """
    is_shared = mesh is not None and mesh.is_multi_process
    return first_does(work) if is_shared else work()


def first_reads(
    mesh: Mesh | None, read: Callable[[], tuple[dict[str, np.ndarray], Any] | None]
) -> tuple[dict[str, np.ndarray], Any] | None:
    """Arrays by name, and JSON, that the first process of several reads for all.

    Args:
        mesh: that they share.
        read: them, or `None` where there is nothing.

    Raises:
        FirstProcessError: in the others, if it fails in the first.
    """
    if mesh is None or not mesh.is_multi_process:
        return read()
    content = first_does(lambda: b"" if (found := read()) is None else pack(*found))
    return unpack(content) if content else None


def check_same(
    mesh: Mesh | None, door: str, said: Callable[[], dict[str, Any]]
) -> None:
    """Refuse processes that share a mesh and were given different arguments.

    Args:
        mesh: that they share.
        door: the function that they called.
        said: gives what they were given, as JSON; of arrays, keys and other trees
            their `fingerprint`.

    Raises:
        ValueError: in all of them, saying what differs.
    """
    if mesh is None or not mesh.is_multi_process:
        return
    named = {f"`{name}`": value for name, value in said().items()}
    agree(named, remedy=f"give `{door}` the same in all of them")


def fingerprint(tree: PyTree) -> list[Any]:
    """The shape and checksum of every array of a tree."""
    found = []
    for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array_like)):
        is_key = eqx.is_array(leaf) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
        total = zlib.crc32(np.ascontiguousarray(array).data.cast("B"))
        found.append([list(array.shape), f"{total:08x}"])
    return found


def put(tree: PyTree, sharding: Sharding) -> PyTree:
    """The arrays of a tree, NumPy's too, as they lie on devices."""
    is_array = lambda leaf: eqx.is_array(leaf) or isinstance(leaf, np.ndarray)
    at = jax.device_put if sharding.is_fully_addressable else _across_processes
    return jax.tree.map(lambda a: at(a, sharding) if is_array(a) else a, tree)


def _across_processes(leaf: Array | np.ndarray, sharding: Sharding) -> Array:
    """What every process has, each keeping what its devices are to have."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return jax.jit(lambda a: a, out_shardings=sharding)(leaf)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data = _across_processes(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, sharding, lambda at: whole[at])


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names)
