"""A training step through `ornstein.torch` against the same step in JAX alone.

    python -m benchmarks.torch_bridge [--quick] [--json PATH]

The image SDE-BNN of `image_step` (128 images of 28×28, one block of width 32, ten
midpoint steps, 2.4 million parameters in a readout), and a small SDE-BNN of a table (64
rows of 8 numbers), on which what the bridge itself costs is all that differs. JAX: one
compiled program of loss, gradient and optax's Adam. PyTorch: forward, backward and
`torch.optim.Adam`, in eager mode. Both have the same weights, rows and loss, and the
losses are compared before anything is timed.
"""

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

import ornstein as orn
import ornstein.torch

from ._timing import (
    Target,
    compile_fn,
    interleaved,
    print_table,
    print_targets,
    write_json,
)
from .peers import image_ornstein as images
from .peers._torch import from_jax, use_best_num_threads

KL_WEIGHT = images.KL_WEIGHT
SEED = 7


def _table_model(*, key: jax.Array) -> orn.AbstractRandomFunction:
    return orn.SDEBNN.for_vectors(8, 3, key=key)


def _table_batch(*, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    x_key, y_key = jr.split(key)
    return jr.normal(x_key, (64, 8)), jr.randint(y_key, (64,), 0, 3)


PROBLEMS = {
    "image": (images.make_model, images.make_batch),
    "table": (_table_model, _table_batch),
}


def _in_jax(model: Any, x: jax.Array, y: jax.Array) -> tuple[dict, Callable]:
    labels = model.labels()
    is_trained = jax.tree.map(lambda label: label != "frozen", labels)
    params, static = eqx.partition(model, is_trained)
    adam = optax.adam(images.LEARNING_RATE)

    def step(params: Any, opt_state: Any, x: Any, y: Any, key: jax.Array) -> tuple:
        loss = lambda params: images.loss(eqx.combine(params, static), x, y, key)
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = adam.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    state = (params, adam.init(params))
    program = compile_fn(step, *state, x, y, jr.key(SEED))
    keys = iter(jr.split(jr.key(2), 10_000))

    def run() -> Any:
        nonlocal state
        *state, value = program.run(*state, x, y, next(keys))
        return state, value

    row = {"compile_s": program.seconds, "temp_mb": program.temp_bytes / 1e6}
    return row, run


def _in_torch(model: Any, x: jax.Array, y: jax.Array) -> tuple[Callable, Callable]:
    """The loss for a seed, and a step."""
    module = orn.torch.RandomFunction(model)
    x, y = from_jax(x), from_jax(y).long()
    adam = torch.optim.Adam(module.parameters(), images.LEARNING_RATE)

    def loss(seed: int | None = None) -> torch.Tensor:
        draw = module(x, seed=seed)
        nll = torch.nn.functional.cross_entropy(draw.output, y)
        return nll + KL_WEIGHT * draw.kl

    def run() -> None:
        adam.zero_grad()
        loss().backward()
        adam.step()

    return loss, run


def _check(loss: Callable, model: Any, x: jax.Array, y: jax.Array) -> None:
    """Both have the same loss for the same key."""
    with torch.no_grad():
        theirs = loss(SEED).item()
    ours = float(eqx.filter_jit(images.loss)(model, x, y, jr.key(SEED)))
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Time, and compare with the target.

    Args:
        quick: one repeat, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    jax.config.update("jax_enable_compilation_cache", False)
    rows: dict[str, dict[str, Any]] = {}
    targets = []
    for problem, (make_model, make_batch) in PROBLEMS.items():
        model, (x, y) = make_model(key=jr.key(0)), make_batch(key=jr.key(1))
        loss, in_torch = _in_torch(model, x, y)
        _check(loss, model, x, y)
        row, in_jax = _in_jax(model, x, y)
        ours, theirs = f"{problem}, ornstein.torch", f"{problem}, JAX"
        rows[theirs] = row
        rows[ours] = {"num_threads": use_best_num_threads(in_torch, num_repeats=2)}
        is_long = problem == "image"
        times = interleaved(
            {theirs: in_jax, ours: in_torch},
            num_rounds=1 if quick else 9,
            num_repeats=1 if is_long or quick else 30,
        )
        for name, seconds in times.items():
            rows[name]["ms"] = 1e3 * seconds
        if is_long:
            ratio = times[ours] / times[theirs]
            targets.append(Target("image: ornstein.torch / JAX", ratio, at_most=1.15))
    print_table(
        "One Adam step of an SDE-BNN",
        ("how", "ms", "compile s", "temp MB", "torch threads"),
        [
            (k, v["ms"], v.get("compile_s"), v.get("temp_mb"), v.get("num_threads"))
            for k, v in rows.items()
        ],
    )
    print_targets(targets)
    if json is not None:
        write_json(json, rows, targets)


if __name__ == "__main__":
    tyro.cli(main)
