"""One training step of an image SDE-BNN: ours against torchsde.

    python -m benchmarks.image_step [--quick] [--json PATH]

Batch 128 of 28×28 images, 3 channels after augmentation, one block of width 32 with
strided and transposed convolutions, weight drift 2-128-2, ten midpoint steps, a readout
of 1,024 hidden units, Adam. Losses are compared on the same parameters and increments
before anything is timed. The targets are held against a program of one step. A step of
`fit` has beside it gathering the rows, clipping, the gradient's signal-to-noise ratio,
each batch's calibration, records, and a quarter of a validation of one row.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import torch
import tyro
from rich.console import Console

from ornstein.data import Split
from ornstein.likelihood import Categorical
from ornstein.train import KLWeight

from ._timing import (
    Target,
    compile_fn,
    interleaved,
    print_table,
    print_targets,
    write_json,
)
from .peers import image_ornstein as ours, image_torchsde
from .peers._epochs import epochs_of
from .peers._torch import use_best_num_threads
from .peers.check import check_image_peer

OURS, FIT = "ornstein, Backprop", "ornstein, a step of fit"
FIT_STEPS = 4
TORCH, TORCH_ADJOINT = "torchsde, backprop", "torchsde, stochastic adjoint"


def _ours(key: jax.Array) -> tuple[dict[str, float], Callable]:
    model = ours.make_model(key=key)
    x, y = _batch()
    params, static = eqx.partition(model, eqx.is_inexact_array)
    adam = optax.adam(ours.LEARNING_RATE)

    def step(params: Any, opt_state: Any, key: jax.Array) -> tuple:
        loss = lambda params: ours.loss(eqx.combine(params, static), x, y, key)
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = adam.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    state = (params, adam.init(params))
    program = compile_fn(step, *state, jr.key(0))
    keys = itertools.cycle(jr.split(jr.key(2), 100))

    def run() -> Any:
        nonlocal state
        *state, value = program.run(*state, next(keys))
        return state, value

    row = {"compile_s": program.seconds, "temp_mb": program.temp_bytes / 1e6}
    return row, run


def _fit(key: jax.Array) -> Callable:
    x, y = (jnp.tile(a, (FIT_STEPS,) + (1,) * (a.ndim - 1)) for a in _batch())
    return epochs_of(
        ours.make_model(key=key),
        Split(np.asarray(x), np.asarray(y)),
        Categorical(),
        key=key,
        batch_size=ours.BATCH_SIZE,
        optimiser=optax.adam,
        learning_rate=ours.LEARNING_RATE,
        kl=KLWeight(ours.KL_WEIGHT),
    )


def _batch() -> tuple[jax.Array, jax.Array]:
    return ours.make_batch(key=jr.key(1))


def _torch(key: jax.Array, *, use_adjoint: bool) -> Callable:
    model = image_torchsde.ImageSDE(ours.make_model(key=key))
    x, y = image_torchsde.to_torch(*_batch())
    adam = torch.optim.Adam(model.parameters(), ours.LEARNING_RATE)

    def run() -> None:
        loss = image_torchsde.loss(model, x, y, use_adjoint=use_adjoint)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return run


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Time, and compare with the targets.

    Args:
        quick: one repeat, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    jax.config.update("jax_enable_compilation_cache", False)
    key = jr.key(0)
    check_image_peer(key=key)
    Console().print("torchsde gives our loss on our noise.")
    row, run = _ours(key)
    rows: dict[str, dict[str, Any]] = {OURS: dict(row), FIT: {}}
    cases = {
        OURS: run,
        TORCH: _torch(key, use_adjoint=False),
        TORCH_ADJOINT: _torch(key, use_adjoint=True),
    }
    num_threads = use_best_num_threads(cases[TORCH], num_repeats=1)
    cases[FIT] = _fit(key)
    rows[TORCH] = {"num_threads": num_threads}
    rows[TORCH_ADJOINT] = {"num_threads": num_threads}
    times = interleaved(cases, num_rounds=1 if quick else 7, num_repeats=1)
    times[FIT] /= FIT_STEPS
    for name, seconds in times.items():
        rows[name]["ms"] = 1e3 * seconds
    print_table(
        "One Adam step of the image SDE-BNN",
        ("how", "ms", "compile s", "temp MB"),
        [(k, v["ms"], v.get("compile_s"), v.get("temp_mb")) for k, v in rows.items()],
    )
    ratio = lambda peer, of=OURS: times[of] / times[peer]
    targets = [
        Target("ours / torchsde backprop", ratio(TORCH), at_most=0.85),
        Target("ours / torchsde adjoint", ratio(TORCH_ADJOINT), at_most=0.65),
        Target("a step of fit / torchsde backprop", ratio(TORCH, FIT), at_most=0.85),
    ]
    print_targets(targets)
    if json is not None:
        write_json(json, rows, targets)


if __name__ == "__main__":
    tyro.cli(main)
