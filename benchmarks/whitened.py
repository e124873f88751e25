"""What whitened coordinates cost, beside the SDE-BNN whose solve they replace.

    python -m benchmarks.whitened [--quick] [--json PATH]

An Adam step of the same model at the same solver and batch: `SDEBNN` (its posterior's
drift, path KL, a draw of noise), a point over `whiten(model)` by increments and by four
modes, and `MeanField` over the latter (a draw of all coordinates, KL in closed form).
And the scratch memory of a gradient at 10 to 640 steps of four modes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
import tyro

from ornstein.functions import (
    SDEBNN,
    AbstractRandomFunction,
    Deterministic,
    Integrator,
    LevyCiesielski,
    MeanField,
    whiten,
)
from ornstein.likelihood import Categorical, Gaussian
from ornstein.prior import GaussianPrior
from ornstein.sde import (
    AbstractGradient,
    Backprop,
    Checkpointed,
    EulerMaruyama,
    Fixed,
    Midpoint,
)

from ._timing import (
    Compiled,
    Target,
    compile_fn,
    interleaved,
    print_table,
    print_targets,
    write_json,
)

SOLVE = "SDEBNN, Backprop"
INCREMENTS, MODES = "whitened, increments", "whitened, 4 modes"
MEAN_FIELD = "MeanField over 4 modes"
_STEPS = (10, 40, 160, 640)


def _step(model: AbstractRandomFunction, likelihood: Any, x: Any, y: Any) -> tuple:
    """A compiled Adam step on minus the bound, and what it is called with."""
    moving = jax.tree.map(lambda label: label != "frozen", model.labels())
    params, rest = eqx.partition(model, moving)
    adam = optax.adam(1e-3)

    def loss(params: Any, key: jax.Array) -> jax.Array:
        draw = eqx.combine(params, rest)(x, key=key)
        return draw.kl / 1e4 - jnp.mean(likelihood.log_prob(draw.output, y))

    def step(params: Any, state: Any, key: jax.Array) -> tuple:
        value, grads = jax.value_and_grad(loss)(params, key)
        updates, state = adam.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    arguments = (params, adam.init(params), jr.key(0))
    return compile_fn(step, *arguments), arguments


def _models(model: SDEBNN) -> dict[str, AbstractRandomFunction]:
    modes = whiten(model, LevyCiesielski(4))
    return {
        SOLVE: model,
        INCREMENTS: Deterministic(whiten(model)),
        MODES: Deterministic(modes),
        MEAN_FIELD: MeanField(modes, GaussianPrior(1.0), init_scale=0.1),
    }


def _table() -> tuple[SDEBNN, Any, Any, Any]:
    """277 rows of 6 numbers, 50 hidden units, 8 steps of Euler."""
    model = SDEBNN.for_vectors(
        6,
        1,
        width_sizes=(50,),
        num_inducing=0,
        integrator=Integrator(EulerMaruyama(), Fixed(0.125)),
        key=jr.key(0),
    )
    return model, Gaussian(0.3), jr.normal(jr.key(1), (277, 6)), jnp.ones((277, 1))


def _images() -> tuple[SDEBNN, Any, Any, Any]:
    """128 images of 14 by 14 by 4, a block of 32 channels, 5 midpoint steps."""
    model = SDEBNN.for_images(
        (28, 28, 1),
        10,
        width=32,
        augment=4,
        space_to_depth_first=True,
        integrator=Integrator(Midpoint(), Fixed(0.2)),
        key=jr.key(0),
    )
    x = jr.normal(jr.key(1), (128, 28, 28, 1))
    return model, Categorical(), x, jnp.zeros((128,), int)


def _memory(gradient: AbstractGradient, num_steps: int) -> int:
    """Scratch bytes of a gradient of four modes at so many steps."""
    model = SDEBNN.for_vectors(
        6,
        1,
        width_sizes=(50,),
        num_inducing=0,
        integrator=Integrator(EulerMaruyama(), Fixed(1 / num_steps), gradient),
        key=jr.key(0),
    )
    network = whiten(model, LevyCiesielski(4))
    params, rest = eqx.partition(network, eqx.is_inexact_array)
    x = jr.normal(jr.key(1), (1000, 6))
    loss: Callable = lambda params: jnp.mean(eqx.combine(params, rest)(x) ** 2)
    return compile_fn(jax.grad(loss), params).temp_bytes


def main(quick: bool = False, json: Path | None = None) -> None:
    """Time, print, and write.

    Args:
        quick: fewer rounds.
        json: where to write the result.
    """
    num_rounds = 5 if quick else 40
    rows: dict[str, dict[str, Any]] = {}
    targets = []
    for name, problem in {"table": _table(), "images": _images()}.items():
        model, *rest = problem
        found: dict[str, tuple[Compiled, tuple]] = {
            case: _step(function, *rest) for case, function in _models(model).items()
        }
        runs = {
            case: lambda p=program, a=arguments: p.run(*a)
            for case, (program, arguments) in found.items()
        }
        seconds = interleaved(runs, num_rounds=num_rounds)
        for case, (program, _) in found.items():
            rows[f"{name}: {case}"] = {
                "milliseconds": 1e3 * seconds[case],
                "of the solve's": seconds[case] / seconds[SOLVE],
                "compile_seconds": program.seconds,
                "temp_mb": program.temp_bytes / 1e6,
            }
        ratio = lambda case, s=seconds: s[case] / s[SOLVE]
        targets += [
            Target(f"{name}: {INCREMENTS} / {SOLVE}", ratio(INCREMENTS), at_most=1.1),
            Target(f"{name}: {MODES} / {SOLVE}", ratio(MODES), at_most=1.1),
        ]
    memory = {
        type(gradient).__name__: [_memory(gradient, steps) for steps in _STEPS]
        for gradient in (Backprop(), Checkpointed())
    }
    for name, found_bytes in memory.items():
        rows[f"memory: {name}"] = dict(
            zip(map(str, _STEPS), [b / 1e6 for b in found_bytes], strict=True)
        )
    head = ("step", "ms", "of the solve's", "temp MB")
    keys = ("milliseconds", "of the solve's", "temp_mb")
    timed = {name: row for name, row in rows.items() if "milliseconds" in row}
    print_table(
        "An Adam step", head, [(n, *(r[k] for k in keys)) for n, r in timed.items()]
    )
    print_table(
        "Scratch memory of a gradient, MB",
        ("gradient", *(f"{steps} steps" for steps in _STEPS)),
        [(name, *(b / 1e6 for b in found)) for name, found in memory.items()],
    )
    print_targets(targets)
    if json is not None:
        write_json(json, rows, targets)


if __name__ == "__main__":
    tyro.cli(main)
