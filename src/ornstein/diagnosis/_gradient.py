"""Gradients that are no numbers, or that say nothing."""

import equinox as eqx
import jax
import numpy as np

from .._sentence import Choice, Sentence
from .._tree import all_finite
from .._types import Array, Float, PRNGKeyArray, PyTree
from ..functions import FROZEN
from ..likelihood import AbstractLikelihood
from ..train import elbo_loss
from ._base import CheckResult
from ._evidence import SOME_SKILL, Evidence

DEAD = 0.01
"""Signal-to-noise ratio that no noise has: the mean of |mean| / standard deviation of
n independent gradients without any signal is sqrt(2 / (pi n)), 0.057 for the running
moments of `fit` (n = 199). Below, nearly all entries have no gradient at all."""

ONLY_NOISE = 0.07
"""One and a quarter times what gradients without any signal have (see `DEAD`)."""

_SETTLED = 100
"""Steps until the running moments hold enough gradients to tell signal from noise."""

_NUM_ROWS = 32
"""Of which a gradient is taken, where training recorded none."""


def gradient_nan(evidence: Evidence) -> CheckResult:
    """Look for NaN and infinity: in records, parameters, outputs, and a gradient."""
    places = [
        f"`history[{name!r}]`"
        for name in ("loss", "grad_norm", "kl")
        if not np.all(np.isfinite(evidence.history.get(name, 0.0)))
    ]
    if not all_finite((evidence.model, evidence.likelihood)):
        places.append("the parameters")
    elif not all_finite(evidence.draws.prediction.outputs):
        places.append("the outputs")
    elif "grad_norm" not in evidence.history and not all_finite(_gradient(evidence)):
        places.append("the gradient at the parameters")
    numbers = {"num_places_not_finite": float(len(places))}
    if not places:
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "There are NaN or infinite values in {}: nothing that this fit says can be "
            "relied on. Train again with a smaller learning rate and {}, and look for "
            "square roots, logarithms and divisions at 0; {} names the place.",
            " and ".join(places),
            Choice("`clip_norm`", "{clip}"),
            Choice("`jax.debug_nans(True)`", "JAX_DEBUG_NANS=1 in the environment"),
        ),
    )


def gradient_noise(evidence: Evidence) -> CheckResult:
    """Look at each group's recorded ratio of signal to noise.

    At an optimum gradients are noise alone, so that this is a fault only of a fit that
    explains nothing; entries without any gradient are one of any fit.
    """
    steps = evidence.history.get("step")
    numbers, said = {}, []
    for name, values in sorted(evidence.history.items()):
        if not name.startswith("gradient_snr") or steps is None:
            continue
        settled = np.asarray(values)[np.asarray(steps) >= _SETTLED]
        settled = settled[np.isfinite(settled)]
        if not settled.size:
            continue
        mean = float(np.mean(settled))
        numbers[name] = mean
        group = name.removeprefix("gradient_snr").removeprefix("_") or "weights"
        if mean < DEAD:
            said.append(f"most entries of the {group} have none at all ({mean:.1g})")
        elif mean < ONLY_NOISE and evidence.skill < SOME_SKILL:
            said.append(f"those of the {group} are noise ({mean:.2g}, noise has 0.06)")
    if not said:
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "The gradients have no signal: by their ratio of signal to noise, {}. "
            "Training has nothing to go by: take more {num_draws} or larger batches, "
            "less noise, or another start, in which no unit is dead.",
            " and ".join(said),
        ),
    )


def _gradient(evidence: Evidence) -> PyTree[Float[Array, "..."]]:
    """Of the loss in training, for what is trained."""
    model = evidence.in_training
    is_trained = jax.tree.map(lambda label: label != FROZEN, model.labels())
    params, rest = eqx.partition(model, is_trained)
    if not jax.tree.leaves(params):
        return ()  # samples of a chain, for instance
    batch = jax.tree.map(lambda a: a[:_NUM_ROWS], (evidence.x, evidence.y))
    return _loss_gradient(
        params, rest, evidence.likelihood, evidence.state, batch, evidence.key
    )


@eqx.filter_jit
def _loss_gradient(
    params: PyTree,
    rest: PyTree,
    likelihood: AbstractLikelihood,
    state: eqx.nn.State | None,
    batch: tuple[PyTree, PyTree],
    key: PRNGKeyArray,
) -> PyTree[Float[Array, "..."]]:
    num_data = jax.tree.leaves(batch)[0].shape[0]

    def loss(params: PyTree) -> Float[Array, ""]:
        model = eqx.combine(params, rest)
        options = {"num_data": num_data, "key": key, "state": state}
        return elbo_loss(model, likelihood, batch, **options)[0]

    return jax.grad(loss)(params)
