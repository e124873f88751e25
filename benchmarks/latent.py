"""Latent SDEs: a step against torchsde's, memory over steps, and large latent spaces.

    python -m benchmarks.latent [--quick] [--json PATH]

One Adam step of the model of motion capture (16 sequences of 300 frames of 50 numbers,
six latent dimensions, an Euler-Maruyama step a frame), with the loss and the gradient
compared on the same parameters and noise before anything is timed. Then the scratch
memory of a gradient as steps grow finer between 26 frames, and a step with latent paths
of 10, 100 and 1,000 dimensions, the last with more than a million parameters.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import optax
import torch
import tyro
from rich.console import Console

from ornstein import Series, sde
from ornstein.functions import LatentSDE

from ._timing import (
    Target,
    compile_fn,
    interleaved,
    print_table,
    print_targets,
    write_json,
)
from .peers import latent_ornstein as ours, latent_torchsde
from .peers._torch import use_best_num_threads
from .peers.latent_check import check_latent_peer

CHECKPOINTED, BACKPROP = "ornstein, Checkpointed", "ornstein, Backprop"
TORCH, TORCH_ADJOINT = "torchsde, backprop", "torchsde, stochastic adjoint"

_GRADIENTS = {CHECKPOINTED: sde.Checkpointed(), BACKPROP: sde.Backprop()}
_MEMORY_FRAMES = 26
_MEMORY_STEPS = (100, 400, 1600, 6400)
_LATENT_SIZES = (10, 100, 1000)
_LARGE_WIDTH = 220  # of the drifts' networks


def _train(model: LatentSDE, x: Series) -> tuple[dict[str, float], Callable]:
    """What compiling an Adam step found, and a function that takes one."""
    params, static = eqx.partition(model, eqx.is_inexact_array)
    adam = optax.adam(ours.LEARNING_RATE)

    def step(params: Any, opt_state: Any, key: jax.Array) -> tuple:
        loss = lambda params: ours.loss(eqx.combine(params, static), x, key)
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = adam.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    state = (params, adam.init(params))
    program = compile_fn(step, *state, jr.key(0))
    keys = itertools.cycle(jr.split(jr.key(1), 100))

    def run() -> Any:
        nonlocal state
        *state, value = program.run(*state, next(keys))
        return value

    row = {"compile_s": program.seconds, "temp_mb": program.temp_bytes / 1e6}
    return row, run


def _train_in_torch(model: LatentSDE, x: Series, *, use_adjoint: bool) -> Callable:
    peer = latent_torchsde.LatentPath(model)
    ts, values = latent_torchsde.to_torch(x)
    adam = torch.optim.Adam(peer.parameters(), ours.LEARNING_RATE)

    def run() -> None:
        loss = latent_torchsde.loss(peer, ts, values, use_adjoint=use_adjoint)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return run


def time_steps(num_frames: int, num_rounds: int) -> dict[str, dict[str, Any]]:
    """Milliseconds of a training step, and more about the compiled ones."""
    x = ours.make_series(num_frames, key=jr.key(1))
    rows: dict[str, dict[str, Any]] = {}
    cases: dict[str, Callable] = {}
    for name, gradient in _GRADIENTS.items():
        model = ours.make_model(gradient=gradient, key=jr.key(0))
        rows[name], cases[name] = _train(model, x)
    model = ours.make_model(key=jr.key(0))
    for name, use_adjoint in {TORCH: False, TORCH_ADJOINT: True}.items():
        cases[name] = _train_in_torch(model, x, use_adjoint=use_adjoint)
    num_threads = use_best_num_threads(cases[TORCH], num_repeats=1)
    for name in (TORCH, TORCH_ADJOINT):
        rows[name] = {"num_threads": num_threads}
    times = interleaved(cases, num_rounds=num_rounds, num_repeats=1)
    for name, seconds in times.items():
        rows[name]["ms"] = 1e3 * seconds
    return rows


def measure_memory(num_steps: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """Scratch memory of a gradient, by the number of steps between the same frames."""
    x = ours.make_series(_MEMORY_FRAMES, key=jr.key(1))
    rows = {}
    for (name, gradient), steps in itertools.product(_GRADIENTS.items(), num_steps):
        model = ours.make_model(
            gradient=gradient,
            num_substeps=steps // (_MEMORY_FRAMES - 1),
            key=jr.key(0),
        )
        params, static = eqx.partition(model, eqx.is_inexact_array)
        loss = lambda params, s=static: ours.loss(eqx.combine(params, s), x, jr.key(0))
        program = compile_fn(jax.grad(loss), params)
        temp_mb = program.temp_bytes / 1e6
        rows[f"{name}, {steps} steps"] = {"num_steps": steps, "temp_mb": temp_mb}
    return rows


def growth(rows: dict[str, dict[str, Any]], name: str) -> float:
    """The exponent of temp memory over steps, by least squares on logarithms."""
    own = [row for key, row in rows.items() if key.startswith(name)]
    steps, memory = (
        np.log([row[column] for row in own]) for column in ("num_steps", "temp_mb")
    )
    return float(np.polyfit(steps, memory, 1)[0])


def time_sizes(
    sizes: tuple[int, ...], num_frames: int, num_rounds: int
) -> dict[str, dict[str, Any]]:
    """Milliseconds, memory, and what training does to the loss, by the latent size."""
    x = ours.make_series(num_frames, key=jr.key(1))
    rows: dict[str, dict[str, Any]] = {}
    cases: dict[str, Callable] = {}
    for size in sizes:
        name = f"latent {size}"
        model = ours.make_model(
            latent=size, drift_widths=(_LARGE_WIDTH,), key=jr.key(0)
        )
        found, cases[name] = _train(model, x)
        first = float(cases[name]())
        rows[name] = {
            "num_parameters": ours.num_parameters(model),
            **found,
            "first_loss": first,
        }
    times = interleaved(cases, num_rounds=num_rounds, num_repeats=1)
    for name, seconds in times.items():
        rows[name] |= {"ms": 1e3 * seconds, "last_loss": float(cases[name]())}
        rows[name]["num_training_steps"] = num_rounds + 3
    return rows


def find_targets(
    steps: dict[str, dict[str, Any]],
    memory: dict[str, dict[str, Any]],
    sizes: dict[str, dict[str, Any]],
) -> list[Target]:
    """The numbers that matter."""
    largest = list(sizes.values())[-1]
    fell = largest["first_loss"] - largest["last_loss"]
    ratio = lambda name: steps[TORCH]["ms"] / steps[name]["ms"]
    return [
        Target("torchsde / ours, Checkpointed", ratio(CHECKPOINTED), at_least=5.0),
        Target("torchsde / ours, Backprop", ratio(BACKPROP), at_least=5.0),
        Target(
            "exponent of memory over steps", growth(memory, CHECKPOINTED), at_most=0.5
        ),
        Target("million parameters", largest["num_parameters"] / 1e6, at_least=1.0),
        Target("fall of their loss, nats a sequence", fell, at_least=0.0),
    ]


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Time, and compare with the targets.

    Args:
        quick: few repeats and small sizes, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    jax.config.update("jax_enable_compilation_cache", False)
    check_latent_peer(key=jr.key(0))
    Console().print("torchsde gives our loss and gradient on our noise.")
    steps = time_steps(ours.NUM_FRAMES, 1 if quick else 9)
    print_table(
        "One Adam step of the latent SDE of motion capture",
        ("how", "ms", "threads", "compile s", "temp MB"),
        [
            (k, v["ms"], v.get("num_threads"), v.get("compile_s"), v.get("temp_mb"))
            for k, v in steps.items()
        ],
    )
    memory = measure_memory(_MEMORY_STEPS[:2] if quick else _MEMORY_STEPS)
    print_table(
        f"Scratch memory of a gradient, {_MEMORY_FRAMES} frames",
        ("how", "temp MB"),
        [(name, row["temp_mb"]) for name, row in memory.items()],
    )
    exponents = {name: growth(memory, name) for name in _GRADIENTS}
    print_table(
        "It grows like steps to the power", ("how", "exponent"), [*exponents.items()]
    )
    sizes = time_sizes(
        _LATENT_SIZES, 30 if quick else ours.NUM_FRAMES, 1 if quick else 7
    )
    columns = (
        "num_parameters",
        "ms",
        "compile_s",
        "temp_mb",
        "first_loss",
        "last_loss",
    )
    print_table(
        f"An Adam step by the size of the latent space, width {_LARGE_WIDTH}",
        ("size", "parameters", "ms", "compile s", "temp MB", "first loss", "last loss"),
        [(name, *(row[c] for c in columns)) for name, row in sizes.items()],
    )
    targets = find_targets(steps, memory, sizes)
    print_targets(targets)
    if json is not None:
        write_json(json, steps | memory | sizes, targets)


if __name__ == "__main__":
    tyro.cli(main)
