"""SWAG of a trained network: `fit_swag`."""

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..._kinds import check_key
from ..._types import PRNGKeyArray, PyTree
from ...functions import MAP, SWAG, Deterministic, check_rows_alone
from ...likelihood import AbstractLikelihood
from ...network import without_batch_state
from .._check import check_data, check_positive
from .._errors import NonFiniteError
from .._fit import Fit
from .._shuffle import batch_indices
from ._points import check_points, with_model

_MOMENTUM = 0.9
"""As the reference has it."""


def fit_swag(
    fit: Any,
    split: Any,
    *,
    key: PRNGKeyArray,
    learning_rate: float,
    num_epochs: int = 20,
    rank: int | None = None,
    batch_size: int = 128,
    weight_decay: float = 0.0,
    augmentation: Callable | None = None,
) -> Fit:
    r"""The normal posterior of SGD's iterates around trained weights: SWAG.

    SGD with momentum 0.9 goes on from the fit at a constant rate, and the weights at
    the end of each epoch are an iterate. The rate decides how wide the posterior is:
    too low, and all iterates are one network; too high, and they leave the valley that
    was found. The likelihood stays as the fit has it.

    Args:
        fit: what `fit` returned of `Deterministic` or `MAP`; of a network trained
            elsewhere `orn.prediction.FittedModel(orn.Deterministic(network),
            likelihood)`.
        split: the training data: has `x` and `y`, rows first.
        key: of the shuffles and the augmentation.
        learning_rate: of SGD, on the loss of an example in nats; the reference has
            0.01 to 0.05 for classes, some tenths of the rate that a network of its size
            begins with. Of numbers the loss is squared errors over twice the noise's
            variance, and these are rates times that variance.
        num_epochs: iterates.
        rank: the columns of the low-rank part; 20, or as many as there are iterates.
        batch_size: examples in a step; clipped to the data.
        weight_decay: added to the gradient, times the weights.
        augmentation: `(x, *, key)` to an augmented batch of inputs.

    Returns:
        A `Fit` of a `SWAG`.

    Raises:
        TypeError: for what is no fit of a network with points for weights.
        ValueError: for a network with batch statistics, which would have to be computed
            for each draw; for a rate that is not positive, fewer than 2 epochs, a rank
            above them, and data that cannot be.
        NonFiniteError: if the weights stop being numbers.

    References:
        Maddox et al. (2019), "A Simple Baseline for Bayesian Uncertainty in Deep
        Learning", algorithm 1.
    """
    check_points(fit, "fit_swag")
    check_key(key)
    check_positive(num_epochs=num_epochs, batch_size=batch_size)
    if not (learning_rate > 0 and math.isfinite(learning_rate)):
        raise ValueError(
            f"`learning_rate` must be positive, got {learning_rate}: start from 0.01."
        )
    if num_epochs < 2:
        raise ValueError(
            "`num_epochs` is how many iterates there are, at least 2, got "
            f"{num_epochs}: start from 20."
        )
    if rank is not None and not 2 <= rank <= num_epochs:
        raise ValueError(
            f"`rank` is how many of the {num_epochs} iterates the low-rank part keeps, "
            f"at least 2 of them, got {rank}: choose fewer, or more epochs."
        )
    without_batch_state(fit.model.network)
    x, y = check_data(split, "split")
    check_rows_alone(fit.model, x, fit.state)
    num_data = jax.tree.leaves(x)[0].shape[0]
    batch_size = min(batch_size, num_data)
    is_moving = jax.tree.map(lambda label: label == "weights", fit.model.labels())
    moving, rest = eqx.partition(fit.model, is_moving)
    rule = optax.chain(
        optax.add_decayed_weights(weight_decay),
        optax.sgd(learning_rate, momentum=_MOMENTUM),
    )
    state = rule.init(moving)
    shuffle_key, step_key = jax.random.split(key)
    batches = batch_indices(num_data, batch_size, key=shuffle_key, start=0)
    iterates = []
    for epoch in range(num_epochs):
        for number, rows in enumerate(islice(batches, num_data // batch_size)):
            batch = jax.tree.map(lambda leaf, r=rows: jnp.asarray(leaf[r]), (x, y))
            own_key = jax.random.fold_in(jax.random.fold_in(step_key, epoch), number)
            moving, state = _step(
                moving,
                state,
                batch,
                own_key,
                rest=rest,
                likelihood=fit.likelihood,
                rule=rule,
                num_data=num_data,
                augmentation=augmentation,
            )
        weights = _weights(eqx.combine(moving, rest))
        leaves = jax.tree.leaves(weights)
        if not all(np.isfinite(leaf).all() for leaf in leaves):
            raise NonFiniteError(
                f"The weights stopped being numbers in epoch {epoch + 1} of SGD: use a "
                f"lower `learning_rate` than {learning_rate}."
            )
        iterates.append(weights)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *iterates)
    rank = min(20, num_epochs) if rank is None else rank
    swag = SWAG.from_iterates(
        fit.model.network, jax.tree.map(jnp.asarray, stacked), rank=rank
    )
    return with_model(fit, swag, fit.likelihood)


def swag_like(model: Deterministic | MAP, *, num_epochs: int, rank: int | None) -> SWAG:
    """What `fit_swag` would return of this model, with zeros for its moments.

    Args:
        model: a network, trained or not.
        num_epochs: as `fit_swag` takes it.
        rank: as `fit_swag` takes it.
    """
    rank = min(20, num_epochs) if rank is None else rank
    path = jax.tree.map(lambda leaf: np.stack([leaf] * rank), _weights(model))
    return SWAG.from_iterates(model.network, jax.tree.map(jnp.asarray, path), rank=rank)


def _weights(model: Any) -> PyTree:
    """A copy of the network's parameters on the host."""
    params = eqx.filter(model.network, eqx.is_inexact_array)
    return jax.tree.map(np.asarray, params)


@eqx.filter_jit
def _step(
    moving: PyTree,
    state: PyTree,
    batch: tuple[PyTree, PyTree],
    key: PRNGKeyArray,
    *,
    rest: PyTree,
    likelihood: AbstractLikelihood,
    rule: optax.GradientTransformation,
    num_data: int,
    augmentation: Callable | None,
) -> tuple[PyTree, PyTree]:
    augmentation_key, draw_key = jax.random.split(key)

    def loss(moving: PyTree):
        x, y = batch
        if augmentation is not None:
            x = augmentation(x, key=augmentation_key)
        draw = eqx.combine(moving, rest)(x, key=draw_key)
        # Of a MAP `kl` is the energy of its prior, and 0 of a plain network.
        return draw.kl / num_data - jnp.mean(likelihood.log_prob(draw.output, y))

    updates, state = rule.update(jax.grad(loss)(moving), state, moving)
    return optax.apply_updates(moving, updates), state
