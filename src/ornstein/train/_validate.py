"""How well a model predicts held-out rows, while it is being trained."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import PRNGKeyArray, PyTree
from ..data import Series
from ..functions import AbstractRandomFunction, Draw, map_draws, whole_rounds
from ..likelihood import (
    AbstractClassLikelihood,
    AbstractLikelihood,
    row_scores,
    unit_log_prob,
)
from ..network import in_inference
from .records import accuracy_and_ece, calibration_sums

BLOCK_ROWS = 512
_BLOCK_VALUES = 2**24
"""Of series, whose rows hold their values each: as many in a block, over all draws."""


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
    per example: probabilities are averaged over draws, not logits. Of a `Series` an
    example is an observed value, $-\frac{1}{M} \sum_{itj} \log \frac{1}{S} \sum_s
    p(y_{itj} | z_s)$: what a path's whole density says is that of the best draw.

    Args:
        model: the random function.
        likelihood: of the targets.
        data: held-out inputs and targets.
        key: of the draws.
        num_draws: rounded up to a multiple of the model's strata.
        state: batch statistics.
    """
    model = in_inference(model)
    num_draws = whole_rounds(num_draws, model.num_strata)
    num_rows = _num_rows(data)
    size = min(num_rows, BLOCK_ROWS)
    _, y = data
    if isinstance(y, Series):
        values = math.prod(y.shape[1:]) * num_draws
        size = min(size, max(1, _BLOCK_VALUES // values))
    log_p, num_units, probs = [], [], []
    for begin in range(0, num_rows, size):
        # The last block is padded with its last row, so that one program serves all.
        rows = np.minimum(np.arange(begin, begin + size), num_rows - 1)
        block = jax.tree.map(lambda a, rows=rows: jnp.asarray(a[rows]), data)
        inputs = (model, likelihood, state, key, num_draws)
        block_scores, block_probs = _score_block(inputs, block)
        num_valid = min(size, num_rows - begin)
        log_p.append(np.asarray(block_scores.log_prob, np.float64)[:num_valid])
        num_units.append(np.asarray(block_scores.num_units, np.float64)[:num_valid])
        if block_probs is not None:
            probs.append(np.asarray(block_probs)[:num_valid])
    total = np.concatenate(log_p).sum() / np.concatenate(num_units).sum()
    scores: dict[str, Any] = {"nll": -float(total)}
    if probs:
        sums = calibration_sums(jnp.asarray(np.concatenate(probs)), jnp.asarray(y))
        scores |= accuracy_and_ece(np.asarray(sums, np.float64))
    return scores


@eqx.filter_jit
def _score_block(inputs, block):
    model, likelihood, state, key, num_draws = inputs
    x, y = block

    def judged(draw: Draw):
        probs = None
        if isinstance(likelihood, AbstractClassLikelihood):
            probs = likelihood.probs(draw.output)
        return unit_log_prob(likelihood, draw.output, y), probs

    log_p, probs = map_draws(
        judged,
        model,
        x,
        key=key,
        num_draws=num_draws,
        state=state,
        draws_at_once=1 if jax.default_backend() == "cpu" else num_draws,
    )
    scores = row_scores(likelihood, log_p, y)
    return scores, None if probs is None else jnp.mean(probs, axis=0)


def _num_rows(data) -> int:
    return jax.tree.leaves(data)[0].shape[0]
