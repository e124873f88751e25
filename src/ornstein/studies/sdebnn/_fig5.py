"""Ways to differentiate the solve: figure 5 of Xu et al. (2022), and C.8.

One network, one solver and one path for all: what differs is how gradients come about.
The exact ones must have equal losses; the stochastic adjoint is biased by the step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...data import Data, Split
from ...functions import Integrator, with_solver
from ...plot import method_curves
from ...recipe import (
    Keys,
    Prepared,
    Recipe,
    ScaleName,
    fit_options,
    prepare,
    preset_recipe,
)
from ...report import save_figure
from ...sde import (
    AbstractGradient,
    Backprop,
    Backsolve,
    Checkpointed,
    Fixed,
    Reversible,
    sdeint,
)
from ...train import ELBO, Validation, elbo_loss, fit
from .._experiment import Experiment, Study

_GRADIENTS: dict[str, AbstractGradient] = {
    "backprop": Backprop(),
    "checkpointed": Checkpointed(),
    "reversible": Reversible(),
    "backsolve": Backsolve(),
}
_CHANGES: dict[ScaleName, dict[str, Any]] = {
    "quick": {"train_rows": 1280, "test_rows": 1000, "epochs": 8, "dt": 0.1},
    "gpu": {"epochs": 2, "dt": 0.05},
    "full": {"epochs": 100, "dt": 0.05},
}
_SEEDS: dict[ScaleName, int] = {"quick": 2, "gpu": 3, "full": 3}
_STEPS: dict[ScaleName, tuple[int, ...]] = {
    "quick": (5, 20, 80),
    "gpu": (5, 20, 80, 320),
    "full": (5, 20, 80, 320),
}


def _run(study: Study) -> list[dict[str, Any]]:
    recipe = preset_recipe(study.data).changed(
        solver="reversible-heun", **_CHANGES[study.scale]
    )
    rows = []
    for seed in range(_SEEDS[study.scale]):
        ours = recipe.changed(seed=study.seed + seed)
        for name in _GRADIENTS:
            found = study.piece(
                f"{study.data}_{name}_{ours.training.seed}",
                ours.to_json(),
                lambda n=name, r=ours: _trained(r, n),
            )
            rows.append({"gradient": name, "seed": ours.training.seed} | found)
    memory = {
        name: study.piece(
            f"{study.data}_{name}_memory",
            [recipe.to_json(), _STEPS[study.scale]],
            lambda n=name: _memory(recipe, n, _STEPS[study.scale]),
        )
        for name in _GRADIENTS
    }
    rows = [row | memory[row["gradient"]] for row in rows]
    rows += _summary(rows)
    _draw(study, rows)
    return rows


def _trained(recipe: Recipe, name: str) -> dict[str, Any]:
    prepared = prepare(recipe)
    model = with_solver(prepared.model, gradient=_GRADIENTS[name])
    test = prepared.data.test
    found = fit(
        model,
        prepared.data.train,
        prepared.likelihood,
        key=Keys.of(recipe).fit,
        # Without it one call of the program runs several epochs, and each has no time.
        validation=Validation(Split(test.x[:1], test.y[:1])),
        **fit_options(recipe, prepared.data),
    )
    history = found.history
    seconds = np.diff(history["seconds"])  # the first epoch also compiles
    steps = len(prepared.data.train) // recipe.training.batch_size
    return {
        "losses": history["loss"].tolist(),
        "seconds_a_step": float(np.median(seconds)) / steps,
        **_evaluations(prepared, name),
    }


def _evaluations(prepared: Prepared, name: str) -> dict[str, int | None]:
    """Drift evaluations of one solve, forward and what its gradient adds."""
    is_integrator = lambda node: isinstance(node, Integrator)
    nodes = jax.tree.leaves(prepared.model, is_leaf=is_integrator)
    integrator = next(filter(is_integrator, nodes))
    sol = sdeint(
        lambda t, y, args: -y,
        lambda t, y, args: jnp.ones(()),
        jnp.ones(()),
        np.array([0.0, 1.0]),
        key=jax.random.key(0),
        solver=integrator.solver,
        stepsize=integrator.stepsize,
        gradient=_GRADIENTS[name],
    )
    return {
        "drift_evaluations": int(sol.stats["num_drift_evaluations"]),
        "drift_evaluations_backward": int(sol.stats["num_drift_evaluations_backward"]),
    }


def _memory(recipe: Recipe, name: str, steps: tuple[int, ...]) -> dict[str, Any]:
    """Scratch memory of one training step over the solver's steps, from XLA."""
    prepared = prepare(recipe)
    return {
        f"temporary_megabytes_{num_steps}": _temporary(prepared, name, num_steps)
        for num_steps in steps
    }


def _temporary(prepared: Prepared, name: str, num_steps: int) -> float | None:
    model = with_solver(
        prepared.model, stepsize=Fixed(1 / num_steps), gradient=_GRADIENTS[name]
    )
    params, static = eqx.partition(model, eqx.is_inexact_array)
    data: Data = prepared.data
    num_rows = prepared.recipe.training.batch_size
    batch = (jnp.asarray(data.train.x[:num_rows]), jnp.asarray(data.train.y[:num_rows]))

    def loss(params, key):
        model = eqx.combine(params, static)
        value, _ = elbo_loss(
            model,
            prepared.likelihood,
            batch,
            num_data=len(data.train),
            key=key,
            objective=ELBO(),
        )
        return value

    program = jax.jit(jax.grad(loss)).lower(params, jax.random.key(0)).compile()
    found = program.memory_analysis()
    return None if found is None else found.temp_size_in_bytes / 2**20


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How far losses are from backprop's, and from those of another seed."""
    last = {(r["gradient"], r["seed"]): r["losses"][-1] for r in rows}
    seeds = sorted({seed for _, seed in last})
    spread = float(np.ptp([last["backprop", seed] for seed in seeds]))
    return [
        {
            "gradient": name,
            "seed": "all",
            "largest_difference_from_backprop": max(
                abs(last[name, seed] - last["backprop", seed]) for seed in seeds
            ),
            "spread_of_seeds": spread,
        }
        for name in _GRADIENTS
    ]


def _draw(study: Study, rows: list[dict[str, Any]]) -> None:
    first = [row for row in rows if row["seed"] == study.seed]
    losses = {row["gradient"]: row["losses"] for row in first}
    figure = method_curves(
        losses, xlabel="epoch", ylabel="loss, nats per example", title=study.data
    )
    study.say(f"Wrote {save_figure(study.folder / 'losses.png', figure)}")
    steps = _STEPS[study.scale]
    memory = {
        row["gradient"]: [row[f"temporary_megabytes_{n}"] for n in steps]
        for row in first
    }
    figure = method_curves(
        memory,
        xs=[float(n) for n in steps],
        xlabel="steps of the solver",
        ylabel="scratch memory, MiB",
        has_log_x=True,
    )
    study.say(f"Wrote {save_figure(study.folder / 'memory.png', figure)}")


FIG5 = Experiment(
    "optimisation, time, memory and drift evaluations of the gradient methods",
    "Xu et al. (2022), figure 5: similar optimisation, final performance and "
    "wall-clock time of backpropagation and the stochastic adjoint, which needs less "
    "memory.",
    _run,
    options=("data",),
)
