"""Time and memory of a training step over weights, solver steps and draws."""

import statistics
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...functions import SDEBNN, Integrator
from ...likelihood import Gaussian
from ...nn import num_parameters
from ...recipe import ScaleName
from ...sde import Backprop, Checkpointed, Fixed, Reversible, ReversibleHeun
from ...train import elbo_loss
from .._experiment import Experiment, Study

_WIDTHS: dict[ScaleName, tuple[int, ...]] = {
    "quick": (16, 64),
    "gpu": (16, 64, 256, 1024),
    "full": (16, 64, 256, 1024),
}
_STEPS: dict[ScaleName, tuple[int, ...]] = {
    "quick": (10, 100),
    "gpu": (10, 100, 1000),
    "full": (10, 100, 1000),
}
_DRAWS: dict[ScaleName, tuple[int, ...]] = {
    "quick": (1, 4),
    "gpu": (1, 4, 16),
    "full": (1, 4, 16),
}
_BASE = {"width": 32, "num_steps": 20, "num_draws": 1}
_GRADIENTS = {
    "backprop": Backprop(),
    "checkpointed": Checkpointed(),
    "reversible": Reversible(),
}
_BATCH = 128
_REPEATS = 5


def _run(study: Study) -> list[dict[str, Any]]:
    axes = {
        "width": _WIDTHS[study.scale],
        "num_steps": _STEPS[study.scale],
        "num_draws": _DRAWS[study.scale],
    }
    rows = []
    for axis, values in axes.items():
        for value in values:
            # How memory grows with steps is what gradients differ in.
            gradients = _GRADIENTS if axis == "num_steps" else ("reversible",)
            for gradient in gradients:
                settings = _BASE | {axis: value}
                found = study.piece(
                    f"{axis}_{value}_{gradient}",
                    settings,
                    lambda s=settings, g=gradient: _cost(gradient=g, **s),
                )
                row = {"over": axis, **settings, "gradient": gradient}
                rows.append(row | found)
    return rows


def _cost(
    *, width: int, num_steps: int, num_draws: int, gradient: str
) -> dict[str, Any]:
    integrator = Integrator(
        ReversibleHeun(), Fixed(1 / num_steps), _GRADIENTS[gradient]
    )
    model = SDEBNN.for_vectors(
        1,
        1,
        width_sizes=(width, width),
        drift_widths=(2, 128, 2),
        num_inducing=0,
        integrator=integrator,
        key=jax.random.key(0),
    )
    params, static = eqx.partition(model, eqx.is_inexact_array)
    x = jnp.linspace(-1.0, 1.0, _BATCH)[:, None]

    def loss(params, key):
        model = eqx.combine(params, static)
        value, _ = elbo_loss(
            model,
            Gaussian(0.1),
            (x, jnp.cos(x)),
            num_data=_BATCH,
            key=key,
            num_draws=num_draws,
        )
        return value

    key = jax.random.key(1)
    program = jax.jit(jax.value_and_grad(loss)).lower(params, key).compile()
    jax.block_until_ready(program(params, key))
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        jax.block_until_ready(program(params, key))
        times.append(time.perf_counter() - begin)
    memory = program.memory_analysis()
    return {
        "num_weights": num_parameters(model.layers[1].dynamics),
        "seconds_a_step": statistics.median(times),
        "temporary_bytes": int(memory.temp_size_in_bytes) if memory else None,
    }


COST = Experiment(
    "time and memory of a training step over weights, solver steps and draws",
    "Linear in weights, steps and draws; memory independent of steps by the adjoint.",
    _run,
)
