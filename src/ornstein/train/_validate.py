"""How well a model predicts held-out rows, while it is being trained."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

from .._types import PRNGKeyArray, PyTree
from ..functions._base import AbstractRandomFunction
from ..functions._network import in_inference
from ..likelihood import AbstractClassLikelihood, AbstractLikelihood
from ._calibration import accuracy_and_ece, calibration_sums

BLOCK_ROWS = 512


def validate(
    model: AbstractRandomFunction,
    likelihood: AbstractLikelihood,
    data: tuple[PyTree, PyTree],
    *,
    key: PRNGKeyArray,
    num_draws: int,
    state: eqx.nn.State | None = None,
) -> dict[str, float]:
    r"""Negative log predictive density, and for classes accuracy and ECE.

    $-\frac{1}{N} \sum_i \log \frac{1}{S} \sum_s p(y_i | x_i, \mathrm{draw}_s)$, nats
    per example: probabilities are averaged over draws, not logits.

    Args:
        model: the random function.
        likelihood: of the targets.
        data: held-out inputs and targets.
        key: of the draws.
        num_draws: rounded up to a multiple of the model's strata.
        state: batch statistics.
    """
    model = in_inference(model)
    num_draws = math.ceil(num_draws / model.num_strata) * model.num_strata
    num_rows = _num_rows(data)
    size = min(num_rows, BLOCK_ROWS)
    log_p, probs = [], []
    for begin in range(0, num_rows, size):
        # The last block is padded with its last row, so that one program serves all.
        rows = np.minimum(np.arange(begin, begin + size), num_rows - 1)
        block = jax.tree.map(lambda a, rows=rows: jnp.asarray(a[rows]), data)
        inputs = (model, likelihood, state, key, num_draws)
        block_log_p, block_probs = _score_block(inputs, block)
        num_valid = min(size, num_rows - begin)
        log_p.append(np.asarray(block_log_p)[:num_valid])
        if block_probs is not None:
            probs.append(np.asarray(block_probs)[:num_valid])
    scores: dict[str, Any] = {"nll": -float(np.concatenate(log_p).mean())}
    if probs:
        _, y = data
        sums = calibration_sums(jnp.asarray(np.concatenate(probs)), jnp.asarray(y))
        scores |= accuracy_and_ece(np.asarray(sums, np.float64))
    return scores


@eqx.filter_jit
def _score_block(inputs, block):
    model, likelihood, state, key, num_draws = inputs
    x, y = block

    def one_draw(index):
        own = jax.tree.map(lambda leaf: leaf, state)  # a state may be used only once
        output = model(x, key=key, index=index, state=own).output
        probs = None
        if isinstance(likelihood, AbstractClassLikelihood):
            probs = likelihood.probs(output)
        return likelihood.log_prob(output, y), probs

    indices = jnp.arange(num_draws)
    one_by_one = jax.default_backend() == "cpu"
    log_p, probs = (jax.lax.map if one_by_one else _vmap)(one_draw, indices)
    log_p = jsp.logsumexp(log_p, axis=0) - math.log(num_draws)
    return log_p, None if probs is None else jnp.mean(probs, axis=0)


def _vmap(fn, xs):
    return jax.vmap(fn)(xs)


def _num_rows(data) -> int:
    return jax.tree.leaves(data)[0].shape[0]
