"""Ours against a hand-written loop, diffrax and torchsde, on a toy SDE-BNN.

    python -m benchmarks.sde [--quick] [--json PATH]

One Adam step: 1,350 weights, 40 inputs, 16 weight paths, 20 steps on [0, 1], loss = fit
plus path KL. Before anything is timed, all are checked to give our loss (and, where
they claim to be exact, our gradient) on the same parameters and Brownian increments.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.random as jr
import optax
import torch
import tyro
from rich.console import Console

from ornstein import sde

from ._timing import (
    Compiled,
    Target,
    compile_fn,
    interleaved,
    print_table,
    print_targets,
    write_json,
)
from .peers import toy, toy_diffrax, toy_ornstein, toy_scan, toy_torchsde
from .peers._torch import use_best_num_threads
from .peers.check import check_toy_peers

HAND, OURS = "hand-written scan", "ornstein, Euler"
DIFFRAX = "diffrax.diffeqsolve, Euler"
TORCH, TORCH_ADJOINT = "torchsde, Euler", "torchsde, Euler, stochastic adjoint"
REVERSIBLE = "ornstein, reversible Heun, Reversible"
BACKPROP = "ornstein, reversible Heun, Backprop"
TORCH_REVERSIBLE = "torchsde, reversible Heun, its adjoint"

_GRADIENTS = {"Backprop": sde.Backprop(), "Reversible": sde.Reversible()}


def _reversible_heun(gradient: sde.AbstractGradient, num_steps: int) -> Callable:
    def loss(params: toy.Params, key: jax.Array) -> jax.Array:
        return toy_ornstein.loss(
            params,
            key,
            num_steps=num_steps,
            solver=sde.ReversibleHeun(),
            gradient=gradient,
        )

    return loss


def _train_in_jax(loss: Callable, params: toy.Params) -> tuple[Compiled, Callable]:
    """A compiled Adam step, and a function that takes one with fresh noise."""
    adam = optax.adam(toy.LEARNING_RATE)

    def step(params: toy.Params, opt_state: Any, key: jax.Array) -> tuple:
        value, grads = jax.value_and_grad(loss)(params, key)
        updates, opt_state = adam.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    state = (params, adam.init(params))
    program = compile_fn(step, *state, jr.key(0))
    keys = itertools.cycle(jr.split(jr.key(1), 100))

    def run() -> Any:
        nonlocal state
        *state, value = program.run(*state, next(keys))
        return state, value

    return program, run


def _train_in_torch(params: toy.Params, *, sde_type: str, **how: Any) -> Callable:
    model = toy_torchsde.ToySDE(params, sde_type=sde_type)
    adam = torch.optim.Adam(model.parameters(), toy.LEARNING_RATE)

    def run() -> None:
        loss = toy_torchsde.loss(model, **how)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return run


def time_steps(params: toy.Params, num_rounds: int) -> dict[str, dict[str, Any]]:
    """Milliseconds of a training step, and more about the compiled ones."""
    losses = {
        HAND: toy_scan.loss,
        OURS: toy_ornstein.loss,
        DIFFRAX: toy_diffrax.loss,
        REVERSIBLE: _reversible_heun(sde.Reversible(), toy.NUM_STEPS),
        BACKPROP: _reversible_heun(sde.Backprop(), toy.NUM_STEPS),
    }
    rows: dict[str, dict[str, Any]] = {}
    cases: dict[str, Callable] = {}
    for name, loss in losses.items():
        program, cases[name] = _train_in_jax(loss, params)
        rows[name] = {
            "compile_s": program.seconds,
            "temp_mb": program.temp_bytes / 1e6,
        }
    ito, stratonovich = {"sde_type": "ito"}, {"sde_type": "stratonovich"}
    heun = {"method": "reversible_heun", "adjoint_method": "adjoint_reversible_heun"}
    cases[TORCH] = _train_in_torch(params, **ito, method="euler")
    cases[TORCH_ADJOINT] = _train_in_torch(
        params, **ito, method="euler", use_adjoint=True
    )
    cases[TORCH_REVERSIBLE] = _train_in_torch(
        params, **stratonovich, **heun, use_adjoint=True
    )
    num_threads = use_best_num_threads(cases[TORCH])
    for name in (TORCH, TORCH_ADJOINT, TORCH_REVERSIBLE):
        rows[name] = {"num_threads": num_threads}
    for name, seconds in interleaved(cases, num_rounds=num_rounds).items():
        rows[name]["ms"] = 1e3 * seconds
    return rows


def time_gradients(
    params: toy.Params, num_steps: int, num_rounds: int
) -> dict[str, dict[str, Any]]:
    """Milliseconds and scratch memory of one gradient, by the number of steps."""
    rows: dict[str, dict[str, Any]] = {}
    cases: dict[str, Callable] = {}
    for name, gradient in _GRADIENTS.items():
        loss = _reversible_heun(gradient, num_steps)
        program = compile_fn(jax.grad(loss), params, jr.key(0))
        cases[name] = lambda run=program.run: run(params, jr.key(0))
        rows[name] = {"num_steps": num_steps, "temp_mb": program.temp_bytes / 1e6}
    times = interleaved(cases, num_rounds=num_rounds, num_repeats=1)
    for name, seconds in times.items():
        rows[name]["ms"] = 1e3 * seconds
    return rows


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Time, and compare with the targets.

    Args:
        quick: few repeats and no long solves, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    # What compiles must compile, or compile times mean nothing.
    jax.config.update("jax_enable_compilation_cache", False)
    params = toy.make_params(key=jr.key(0))
    check_toy_peers(params, key=jr.key(1))
    Console().print("All peers give our loss on our noise.")

    rows = time_steps(params, num_rounds=3 if quick else 20)
    ms = {name: row["ms"] for name, row in rows.items()}
    print_table(
        "One Adam step of the toy SDE-BNN",
        ("how", "ms", "of hand-written", "compile s", "temp MB"),
        [
            (k, v["ms"], v["ms"] / ms[HAND], v.get("compile_s"), v.get("temp_mb"))
            for k, v in sorted(rows.items(), key=lambda row: row[1]["ms"])
        ],
    )

    solves = {}
    for num_steps in (20,) if quick else (20, 200, 1000):
        found = time_gradients(params, num_steps, num_rounds=3 if quick else 7)
        solves |= {f"{name}, {num_steps} steps": v for name, v in found.items()}
    print_table(
        "One gradient by reversible Heun",
        ("how", "ms", "temp MB"),
        [(name, row["ms"], row["temp_mb"]) for name, row in solves.items()],
    )

    def cost(row: str, steps: int) -> float:
        return (
            solves[f"Reversible, {steps} steps"][row]
            / (solves[f"Backprop, {steps} steps"][row])
        )

    targets = [
        Target("ours / hand-written scan", ms[OURS] / ms[HAND], at_most=1.15),
        Target("torchsde Euler / ours", ms[TORCH] / ms[OURS], at_least=4.0),
        Target(
            "torchsde reversible Heun / ours",
            ms[TORCH_REVERSIBLE] / ms[REVERSIBLE],
            at_least=3.5,
        ),
        Target(
            "Reversible / Backprop, one step of training",
            ms[REVERSIBLE] / ms[BACKPROP],
            at_most=1.4,
        ),
    ]
    steps = sorted({row["num_steps"] for row in solves.values()})
    targets += [
        Target(f"Reversible / Backprop, {n} steps", cost("ms", n), at_most=1.4)
        for n in steps
    ]
    print_targets(targets)
    if json is not None:
        write_json(json, rows | solves, targets)


if __name__ == "__main__":
    tyro.cli(main)
