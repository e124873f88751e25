"""Any kernel on any potential, several chains at once: `run_chains`."""

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Key

from .._files import LOCK, lock_folder
from .._gather import gathered
from .._kinds import check_kind
from .._mesh import (
    CHAINS,
    ROWS,
    check_divides,
    check_same,
    checked_mesh,
    cut,
    fingerprint,
    first_writes,
    put,
)
from .._types import Array, Params, PRNGKeyArray, PyTree
from ..data import Streamed
from ..mcmc import AbstractKernel, AbstractState, check_start
from ..potential import AbstractPotential, Potential
from ..train import CheckpointError, check_positive
from ._advance import Sampler
from ._burn_in import BurnIn, has_noise_ratio
from ._callback import SamplingCallback, SamplingPlan
from ._from_disk import FromDisk, check_enough, check_rows
from ._noise_limit import NoiseLimit, check_can_slow
from ._run import Run, by_name
from ._running import RunningPrediction
from ._store import (
    create_files,
    in_memory,
    is_unfinished,
    open_files,
    read_header,
    write_header,
)

_NO_CHAIN = 2**31 - 1
"""The number of no chain: its key is of the batches that starts are checked on."""
_ORDER = _NO_CHAIN - 1
"""Likewise: of the order of rows on disk."""


class Chains(eqx.Module):
    """What `run_chains` returns.

    Attributes:
        positions: chains and samples first in every leaf; numpy arrays, on disk if
            there is a folder.
        info: what the kernel says of the steps behind each sample, (chains, samples),
            by name: `is_divergent` if any step was, integers as sums, else of the
            last step.
        chain_info: numbers of each chain, (chains,): `num_warmup`, the steps of its
            warm-up, and for minibatch kernels `noise_ratio` at its end.
        states: of the chains at the end, from which any steps go on.
    """

    positions: PyTree
    info: dict[str, Any]
    chain_info: dict[str, Any]
    states: AbstractState


def run_chains(
    kernel: AbstractKernel,
    potential: AbstractPotential,
    starts: Params,
    *,
    key: PRNGKeyArray,
    num_samples: int = 1000,
    num_warmup: int = 1000,
    thin: int = 1,
    burn_in: BurnIn | None = None,
    noise_limit: NoiseLimit | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    save_every: float = 10.0,
    settings: dict[str, Any] | None = None,
    how_started: str | None = None,
    mesh: Mesh | None = None,
    rows: Streamed | None = None,
    running: RunningPrediction | None = None,
    callbacks: Sequence[SamplingCallback] = (),
) -> Chains:
    """Run a kernel's chains side by side, and keep every `thin`-th position.

    Chain c has the key `fold_in(key, c)`, split into one for `kernel.init` and one
    for its steps; step t, warm-up included, draws from `fold_in(., t)`. So neither the
    number of chains, nor `thin`, nor an interruption changes what a step draws; but of
    `rows` on disk each step reads a batch for all chains, of which each has a part.

    Args:
        kernel: of every chain.
        potential: what is sampled.
        starts: positions, chains first in every leaf.
        key: of all randomness.
        num_samples: kept of each chain.
        num_warmup: steps of the warm-up, which are thrown away.
        thin: steps from one kept sample to the next.
        burn_in: ends the warm-up of a minibatch kernel before `num_warmup` steps.
        noise_limit: lowers the step size of such a kernel in the warm-up.
        folder: write samples here as the chains run, so that they need fit in memory
            nowhere; in host memory without one. Of several processes that share
            `mesh` the first alone writes, and the others read it at the end.
        resume: go on with the chains of that folder, bit for bit as if they had never
            stopped.
        save_every: seconds from one state to resume from to the next.
        settings: more that a resumed run must agree on, as JSON.
        how_started: where `starts` are, in words, for those who read the folder.
        mesh: several devices: along its `chains` each has some of them, along its
            `data` some rows of the potential's, if these were put there.
        rows: of a network's `Potential` that has a sample of them (its `num_data` is
            their number), where the others stay on disk: see `sample`. Not with `mesh`.
        running: of a network's `Potential`: sums up what all samples predict, and has
            some of them stored.
        callbacks: hear about the run; `ChainProgress(console)` for instance.

    Raises:
        ValueError: for counts or starts that cannot work, or what the kernel refuses.
        DataError: when it comes to `rows` that cannot be read; with a `folder` the
            chains go on from there.
        NonFiniteError: if a chain leaves the finite numbers.
        FileExistsError: if the folder has samples and `resume` is false.
        CheckpointError: if what the folder has is of another run, or damaged.
        BlockingIOError: if another process or thread is at work in the folder.
    """
    check_positive(num_samples=num_samples, thin=thin)
    if num_warmup < 0:
        raise ValueError(f"`num_warmup` must not be negative, got {num_warmup}.")
    if resume and folder is None:
        raise ValueError("`resume` needs the `folder` whose chains to go on with.")
    if burn_in is not None and not has_noise_ratio(kernel):
        why = "has no `noise_weight`" if kernel.is_minibatch else "sees all data"
        raise ValueError(
            f"`burn_in` compares gradient noise with injected noise, but "
            f"`{type(kernel).__name__}` {why}: give `num_warmup` alone."
        )
    if noise_limit is not None:
        check_can_slow(noise_limit, kernel)
    starts = jax.tree.map(jnp.asarray, starts)
    mesh = checked_mesh(mesh, (CHAINS, *ROWS), "sample")
    check_rows(rows, kernel, potential, mesh)
    num_chains = _check_starts(kernel, potential, starts, key=key)
    if rows is not None:
        check_enough(rows, potential, num_chains)
    check_divides(mesh, (CHAINS,), "num_chains", num_chains)
    said = lambda: {
        "num_samples": num_samples,
        "num_warmup": num_warmup,
        "thin": thin,
        "key": fingerprint(key),
        "kernel": eqx.tree_pformat(kernel),
        "starts": fingerprint(starts),
        "folder": None if folder is None else ("to resume" if resume else "new"),
        **(settings or {}),
    }
    check_same(mesh, "sample", said)
    init_keys, step_keys = _chain_keys(key, num_chains)
    if mesh is not None:
        apart = (starts, init_keys, step_keys)
        starts, init_keys, step_keys = put(apart, cut(mesh, (CHAINS,)))
    sampler = Sampler(kernel, potential, step_keys, mesh)
    with _in_one_sentence():
        states = sampler.init(starts, init_keys)
    plan = SamplingPlan(
        num_warmup=num_warmup,
        num_samples=num_samples,
        num_chains=num_chains,
        thin=thin,
        num_parameters=sum(a[0].size for a in jax.tree.leaves(starts)),
        first_step=0,
    )
    num_stored = num_samples
    if running is not None:
        num_stored = _begin_running(
            running, potential, gathered(starts, mesh), num_samples, mesh
        )
    like = _like(sampler, states, num_stored)
    settings = {
        "num_samples": num_samples,
        "num_warmup": num_warmup,
        "num_chains": num_chains,
        "thin": thin,
        "burn_in": None if burn_in is None else eqx.tree_pformat(burn_in),
        "noise_limit": None if noise_limit is None else eqx.tree_pformat(noise_limit),
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "kernel": eqx.tree_pformat(kernel, short_arrays=False),
        **(settings or {}),
        "running": None if running is None else running.described,
        **({} if rows is None else {"order": rows.order}),
        "checksum of data and starts": _checksum(gathered((potential, starts), mesh)),
    }
    path = None if folder is None else Path(folder)
    arrays = in_memory(like) if path is None else None
    with contextlib.ExitStack() as stack:

        def open_folder() -> bytes:
            nonlocal arrays
            assert path is not None
            stack.enter_context(_alone_in(path, resume))
            if resume and not is_unfinished(path):
                _check_settings(path, settings)
                arrays = open_files(path, like, mode="r+")
            else:
                arrays = create_files(path, like)
                write_header(path, like, settings, starts=how_started)
            return b""

        if path is not None:
            first_writes(mesh, open_folder)
        steps = sampler
        if rows is not None:
            steps = FromDisk(sampler, rows, key=jax.random.fold_in(key, _ORDER))
            stack.callback(steps.close)
        run = Run(
            sampler=sampler,
            steps=steps,
            states=states,
            arrays=arrays,
            plan=plan,
            burn_in=burn_in,
            noise_limit=noise_limit,
            folder=path,
            save_every=save_every,
            running=running,
            callbacks=callbacks,
        )
        if resume:
            run.resume()
        with _in_one_sentence():
            run.go()
    states = gathered(run.states, mesh)
    if path is not None:
        first_writes(mesh, bytes)  # has written all by now
    positions, info = run.arrays or _written_by_first(path, like)
    return Chains(positions, info, run.chain_info, states)


def _begin_running(
    running: RunningPrediction,
    potential: AbstractPotential,
    starts: Params,
    num_samples: int,
    mesh: Mesh | None,
) -> int:
    """Start the sums; give the number of samples that each chain stores."""
    check_kind("running", running, RunningPrediction, "RunningPrediction(x, y)")
    if not isinstance(potential, Potential):
        raise TypeError(
            f"`running` predicts by a network, and `{type(potential).__name__}` has "
            "none: leave it out."
        )
    if running.store_every > num_samples:
        raise ValueError(
            f"`store_every` of {running.store_every} stores none of {num_samples} "
            "samples: give at most their number."
        )
    sampled = gathered((potential.network, potential.likelihood), mesh)
    running.begin(*sampled, jax.tree.map(lambda a: a[0], starts))
    return num_samples // running.store_every


def _written_by_first(path: Path | None, like: PyTree) -> PyTree:
    """What another process wrote, read where it did."""
    assert path is not None
    try:
        return open_files(path, like)
    except CheckpointError as error:
        raise CheckpointError(
            f"Process {jax.process_index()} cannot read the samples that process 0 "
            f"wrote ({error}): give a `folder` on a file system that all processes "
            "share."
        ) from error


@contextlib.contextmanager
def _alone_in(path: Path, resume: bool) -> Iterator[None]:
    """A folder, made if it is not there, that no other process works in."""
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} exists and is a file: choose another folder.")
    path.mkdir(parents=True, exist_ok=True)
    _refuse_used(path, resume=resume)  # before a lock is left in it
    with lock_folder(path):
        _refuse_used(path, resume=resume)
        yield


def _refuse_used(path: Path, *, resume: bool) -> None:
    if resume and not is_unfinished(path):
        read_header(path)
    if not resume and any(file.name != LOCK for file in path.iterdir()):
        raise FileExistsError(
            f"{path} exists: pass resume=True to go on with its chains, or choose "
            "another folder."
        )


@contextlib.contextmanager
def _in_one_sentence() -> Iterator[None]:
    """What a compiled program refuses, without the stacks Equinox puts around it."""
    try:
        yield
    except eqx.EquinoxRuntimeError as error:
        _, _, message = str(error).rpartition("EquinoxRuntimeError: ")
        raise ValueError(message.partition("\n")[0]) from error


def _check_starts(
    kernel: AbstractKernel, potential: AbstractPotential, starts: Params, *, key
) -> int:
    """Refuse starts from which no chain can move; give the number of chains."""
    lengths = {a.shape[0] if a.ndim else 0 for a in jax.tree.leaves(starts)}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"`starts` have {sorted(lengths)} chains in their leaves, but every leaf "
            "needs the same number in front: stack positions, one for each chain."
        )
    num_chains = lengths.pop()
    keys = jax.random.split(jax.random.fold_in(key, _NO_CHAIN), num_chains)
    # A full pass over large data is what minibatch kernels are there to avoid.
    finite = np.asarray(_finite_starts(potential, starts, keys, kernel.is_minibatch))
    for chain in np.flatnonzero(~finite):
        check_start(potential, jax.tree.map(lambda a, c=chain: a[c], starts))
    return num_chains


@eqx.filter_jit
def _finite_starts(potential, starts, keys, is_minibatch: bool):
    def is_finite(start_and_key):
        start, key = start_and_key
        estimate = lambda q: potential.estimate(q, key=key)
        energy_fn = estimate if is_minibatch else potential
        parts = jax.tree.leaves(jax.value_and_grad(energy_fn)(start))
        return jnp.all(jnp.stack([jnp.all(jnp.isfinite(a)) for a in parts]))

    return jax.lax.map(is_finite, (starts, keys))


def _chain_keys(
    key: PRNGKeyArray, num_chains: int
) -> tuple[Key[Array, " chains"], Key[Array, " chains"]]:
    """For `kernel.init`, and for the steps of each chain."""
    chain_keys = jax.vmap(lambda c: jax.random.fold_in(key, c))(jnp.arange(num_chains))
    keys = jax.vmap(jax.random.split)(chain_keys)
    return keys[:, 0], keys[:, 1]


def _like(sampler: Sampler, states: AbstractState, num_samples: int) -> PyTree:
    """Shapes and types of (positions, info), chains and samples first."""
    _, info = eqx.filter_eval_shape(sampler.step, states, jnp.zeros((), jnp.int32))

    def with_samples(a):
        shape = (a.shape[0], num_samples, *a.shape[1:])
        return jax.ShapeDtypeStruct(shape, a.dtype)

    return jax.tree.map(with_samples, (states.position, by_name(info)))


# What folders of before did not keep.
_NEW_SETTINGS = ("network", "noise_limit", "running", "origin")
_MOST_SHOWN = 200


def _check_settings(folder: Path, settings: dict[str, Any]) -> None:
    found = read_header(folder)["settings"]
    if found is None:
        raise CheckpointError(
            f"{folder} holds samples but no chains to go on with: choose another "
            "folder."
        )
    for name, value in settings.items():
        before = found.get(name, value if name in _NEW_SETTINGS else None)
        if before != value:
            how = f"{before}, not {value}"
            how = how if len(how) < _MOST_SHOWN else "another"
            raise CheckpointError(
                f"{folder} is of another run: its {name} is {how}; pass the same "
                "arguments, or choose another folder."
            )


def _checksum(tree: PyTree) -> int:
    total = 0
    for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array)):
        total = zlib.crc32(np.ascontiguousarray(leaf).tobytes(), total)
    return total
