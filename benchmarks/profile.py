"""Where the time of a step goes, of those that miss their aims.

    taskset -c 0 python -m benchmarks.profile [--json PATH]

The steps of `networks` beside PyTorch's and of `image_step` beside torchsde's, the
toy's of `sde`, and HMC's of `samplers` with one chain and four. XLA's events come from
`jax.profiler`, each less those inside it, and what they do from the compiled programs;
PyTorch's from `torch.profiler`. On one core: with more, convolutions go on after their
events have ended. Watching costs some microseconds an operation, so that shares of
short steps say which kinds grow, and hardly how much they are.
"""

import atexit
import os
import shutil
import tempfile

_PROGRAMS = tempfile.mkdtemp(prefix="hlo-")
atexit.register(shutil.rmtree, _PROGRAMS, ignore_errors=True)
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={_PROGRAMS} "
    "--xla_dump_hlo_as_text"
)  # before JAX is imported
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # it keeps no names

import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import torch
import tyro

from . import image_step, networks, samplers, sde
from ._timing import print_table, write_json
from .peers import networks_torch, toy, toy_ornstein
from .peers._torch import use_best_num_threads

CONV, INPUT, KERNEL = "convolutions", "input_gradients", "kernel_gradients"
BOTH = "conv_gradients"  # of inputs and kernels
NORMALS, PRODUCTS, SUMS = "normals", "products", "sums"
MOVES, ELEMENTWISE = "copies", "elementwise"
OPTIMISER = "optimiser"

_INSTRUCTION = re.compile(r"\s*(?:ROOT )?%?([\w.\-]+) = [^=]*?\s([\w\-]+)\(")
_SCOPES = {
    "conv_kernel_gradient": KERNEL,
    "conv_input_gradient": INPUT,
    "(conv)": CONV,
    "/conv/": CONV,  # in a loop
}
_MOVES = re.compile(
    "slice|concatenate|pad|copy|broadcast|transpose|stack|reshape|gather|rev$|tile"
)
_OF_TORCH = {
    r"convolution_backward": BOTH,
    r"convolution": CONV,
    r"batch_norm": SUMS,
    r"_foreach|optim": OPTIMISER,
    r"copy|contiguous|clone|to_copy|fill|zero": MOVES,
}


def _kinds() -> dict[str, dict[str, str]]:
    """What each instruction does, by its program's name and its own.

    Of programs compiled since the last call: others have the same names.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in Path(_PROGRAMS).glob("*after_optimizations.txt"):
        text = path.read_text()
        path.unlink()
        module = re.search(r"HloModule ([\w.\-]+)", text)
        assert module is not None
        bodies: dict[str, str] = {}
        for body in re.split(r"\n\n+", text):
            head = re.match(r"(?:ENTRY )?%?([\w.\-]+) ", body)
            if head is not None:
                bodies[head[1]] = body
        for line in text.splitlines():
            match = _INSTRUCTION.match(line)
            if match is not None:
                kind = _kind(line, *match.groups(), bodies)
                found[module[1]][match[1]] = kind
    return found


def _kind(line: str, name: str, opcode: str, bodies: dict[str, str]) -> str:
    scope = re.search(r'op_name="([^"]*)"', line)
    operation = "" if scope is None else scope[1]
    for mark, kind in _SCOPES.items():
        if mark in operation:
            return kind
    called = re.search(r"calls=%?([\w.\-]+)", line)
    inside = "" if called is None else bodies.get(called[1], "")
    last = operation.rpartition("/")[2]
    if " xor(" in inside or "erf_inv" in inside or opcode == "xor":
        return NORMALS
    if opcode == "dot" or " dot(" in inside or "dot_general" in last:
        return PRODUCTS
    if opcode == "reduce" or " reduce(" in inside or "reduce" in last:
        return SUMS
    if _MOVES.search(last or name):
        return MOVES
    return ELEMENTWISE


def watch(run: Callable[[], Any], num_steps: int) -> tuple[float, dict[str, float]]:
    """Milliseconds of a step, and of its kinds, of calls that take `num_steps` each."""
    jax.block_until_ready(run())
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - begin)
    num_calls = 5
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(num_calls):
                jax.block_until_ready(run())
        (path,) = Path(folder).rglob("*.xplane.pb")
        spent = _own_times(jax.profiler.ProfileData.from_file(str(path)))
    kinds, by_kind = _kinds(), defaultdict[str, float](float)
    for (module, name), nanoseconds in spent.items():
        kind = kinds.get(module, {}).get(name)
        if kind is not None:
            by_kind[kind] += nanoseconds / 1e6 / num_calls / num_steps
    return 1e3 * statistics.median(seconds) / num_steps, by_kind


def _own_times(data: Any) -> Counter[tuple[str, str]]:
    """Nanoseconds by program and instruction, without those of events inside."""
    spent: Counter[tuple[str, str]] = Counter()
    for plane in data.planes:
        for line in plane.lines:
            events = sorted(line.events, key=lambda e: (e.start_ns, -e.duration_ns))
            around: list[tuple[float, tuple[str, str]]] = []
            for event in events:
                stats = dict(event.stats)
                which = (str(stats.get("hlo_module", "")), event.name)
                while around and around[-1][0] <= event.start_ns:
                    around.pop()
                if around:
                    spent[around[-1][1]] -= event.duration_ns
                spent[which] += event.duration_ns
                around.append((event.start_ns + event.duration_ns, which))
    return spent


def watch_torch(run: Callable[[], Any]) -> tuple[float, dict[str, float]]:
    """The same of a step of PyTorch's."""
    run()
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    with torch.profiler.profile() as profile:
        for _ in range(5):
            run()
    by_kind = defaultdict[str, float](float)
    for event in profile.key_averages():
        kinds = (kind for mark, kind in _OF_TORCH.items() if re.search(mark, event.key))
        by_kind[next(kinds, ELEMENTWISE)] += event.self_cpu_time_total / 1e3 / 5
    return 1e3 * statistics.median(seconds), by_kind


def _networks(name: str) -> dict[str, tuple[float, dict[str, float]]]:
    rng = np.random.default_rng(0)
    size = (networks.BATCH_SIZE, 32, 32, 3)
    x = jnp.asarray(rng.standard_normal(size, np.float32))
    y = jnp.asarray(rng.integers(networks.NUM_CLASSES, size=networks.BATCH_SIZE))
    make, make_peer = networks.NETWORKS[name]
    network, module = make(key=jr.key(0)), make_peer()
    networks_torch.copy_weights(network, module)
    _, ours = networks._ours(network, x, y)
    theirs = networks._torch(module, x, y)
    use_best_num_threads(theirs, num_repeats=1)
    return {
        f"{name}, ornstein": watch(ours, 1),
        f"{name}, PyTorch": watch_torch(theirs),
    }


def _image() -> dict[str, tuple[float, dict[str, float]]]:
    _, ours = image_step._ours(jr.key(0))
    theirs = image_step._torch(jr.key(0), use_adjoint=False)
    use_best_num_threads(theirs, num_repeats=1)
    return {
        "image step, ornstein": watch(ours, 1),
        "image step, torchsde": watch_torch(theirs),
    }


def main(*, json: Path | None = None) -> None:
    """Watch each step, and say what it does in which time.

    Args:
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    found = {}
    for name in networks.NETWORKS:
        found |= _networks(name)
    found |= _image()
    _, step = sde._train_in_jax(toy_ornstein.loss, toy.make_params(key=jr.key(0)))
    found["toy, ornstein"] = watch(step, 1)
    cases = samplers.jax_cases(jr.key(0))
    for name in (samplers.HMC, samplers.HMC_FOUR):
        found[name] = watch(*cases[name])
    rows = {}
    for name, (ms, by_kind) in found.items():
        total = sum(by_kind.values())
        largest_first = sorted(by_kind, key=lambda kind: -by_kind[kind])
        shares = {kind: by_kind[kind] / total for kind in largest_first}
        rows[name] = {"ms": ms, "seen_ms": total} | shares
        table = [(kind, share * total, share) for kind, share in shares.items()]
        print_table(f"{name}: {ms:.3g} ms", ("what", "ms", "share of the seen"), table)
    if json is not None:
        write_json(json, rows, [])


if __name__ == "__main__":
    tyro.cli(main)
