"""A training step of plain networks: ours against the same in PyTorch.

    python -m benchmarks.networks [--quick] [--json PATH]

VGG-16 of a quarter of its width and WideResNet-16-2, batch normalised, 128 images of
32×32, cross-entropy and SGD with momentum; without noise, as what is compared are
convolutions. Both have the same weights, and losses are compared before anything is
timed. The targets are held against a program of one step. A step of `fit` has
beside it gathering the rows, clipping, the gradient's signal-to-noise ratio, each
batch's calibration, records, and a quarter of a validation of one row.
"""

from collections.abc import Callable
from functools import partial
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

from ornstein import nn
from ornstein.data import Split
from ornstein.functions import Deterministic
from ornstein.likelihood import Categorical

from ._timing import (
    Target,
    compile_fn,
    interleaved,
    print_table,
    print_targets,
    write_json,
)
from .peers import networks_torch
from .peers._epochs import epochs_of
from .peers._torch import from_jax, use_best_num_threads

FIT_STEPS = 4
NUM_CLASSES, BATCH_SIZE, LEARNING_RATE, MOMENTUM = 10, 128, 0.01, 0.9

NETWORKS: dict[str, tuple[Callable, Callable]] = {
    "VGG-16 / 4": (
        partial(nn.VGG16, NUM_CLASSES, width=0.25),
        partial(networks_torch.VGG16, NUM_CLASSES, width=0.25),
    ),
    "WideResNet-16-2": (
        partial(nn.WideResNet, 16, 2, NUM_CLASSES),
        partial(networks_torch.WideResNet, 16, 2, NUM_CLASSES),
    ),
}


def _ours(network: Any, x: jax.Array, y: jax.Array) -> tuple[dict, Callable]:
    params, static = eqx.partition(network, eqx.is_inexact_array)
    sgd = optax.sgd(LEARNING_RATE, MOMENTUM)

    def loss(params: Any, state: Any) -> tuple[jax.Array, Any]:
        logits, state = eqx.combine(params, static)(x, state)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
        return jnp.mean(losses), state

    def step(params: Any, state: Any, opt_state: Any) -> tuple:
        grad = jax.value_and_grad(loss, has_aux=True)
        (value, state), grads = grad(params, state)
        updates, opt_state = sgd.update(grads, opt_state)
        return optax.apply_updates(params, updates), state, opt_state, value

    carry = (params, eqx.nn.State(network), sgd.init(params))
    program = compile_fn(step, *carry)

    def run() -> float:
        nonlocal carry
        *carry, value = jax.block_until_ready(program.run(*carry))
        return float(value)

    row = {"compile_s": program.seconds, "temp_mb": program.temp_bytes / 1e6}
    return row, run


def _fit(network: Any, x: jax.Array, y: jax.Array) -> Callable:
    tiled = (jnp.tile(a, (FIT_STEPS,) + (1,) * (a.ndim - 1)) for a in (x, y))
    return epochs_of(
        Deterministic(network),
        Split(*map(np.asarray, tiled)),
        Categorical(),
        key=jr.key(0),
        batch_size=BATCH_SIZE,
        optimiser=partial(optax.sgd, momentum=MOMENTUM),
        learning_rate=LEARNING_RATE,
    )


def _torch(module: torch.nn.Module, x: jax.Array, y: jax.Array) -> Callable:
    images = (
        from_jax(x).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    )
    module = module.to(memory_format=torch.channels_last)
    labels = from_jax(y).long()
    sgd = torch.optim.SGD(module.parameters(), LEARNING_RATE, MOMENTUM)

    def run() -> float:
        loss = torch.nn.functional.cross_entropy(module(images), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss.item()

    return run


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Time, and compare with the targets.

    Args:
        quick: one repeat, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    jax.config.update("jax_enable_compilation_cache", False)
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((BATCH_SIZE, 32, 32, 3), np.float32))
    y = jnp.asarray(rng.integers(NUM_CLASSES, size=BATCH_SIZE))
    rows: dict[str, dict[str, Any]] = {}
    targets = []
    for name, (make, make_peer) in NETWORKS.items():
        network, module = make(key=jr.key(0)), make_peer()
        networks_torch.copy_weights(network, module)
        row, ours = _ours(network, x, y)
        theirs = _torch(module, x, y)
        first = [run() for run in (ours, theirs)]
        np.testing.assert_allclose(*first, rtol=1e-4)
        second = [run() for run in (ours, theirs)]
        np.testing.assert_allclose(*second, rtol=1e-2)
        num_threads = use_best_num_threads(theirs, num_repeats=1)
        us, fitted, them = (
            f"{name}, ornstein",
            f"{name}, a step of fit",
            f"{name}, PyTorch",
        )
        cases = {us: ours, fitted: _fit(network, x, y), them: theirs}
        times = interleaved(cases, num_rounds=1 if quick else 7, num_repeats=1)
        times[fitted] /= FIT_STEPS
        extra = {us: row, them: {"num_threads": num_threads}}
        for case, seconds in times.items():
            rows[case] = {"ms": 1e3 * seconds} | extra.get(case, {})
        for what, case in (("ours", us), ("a step of fit", fitted)):
            ratio = times[case] / times[them]
            targets.append(Target(f"{name}: {what} / PyTorch", ratio, at_most=1.2))
    print_table(
        "One training step",
        ("how", "ms", "compile s", "temp MB"),
        [(k, v["ms"], v.get("compile_s"), v.get("temp_mb")) for k, v in rows.items()],
    )
    print_targets(targets)
    if json is not None:
        write_json(json, rows, targets)


if __name__ == "__main__":
    tyro.cli(main)
