"""The fit under examination: what several checks look at is computed once."""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, PRNGKeyArray, PyTree
from ..data import Series
from ..functions import AbstractRandomFunction, PosteriorParts, map_draws
from ..likelihood import (
    AbstractClassLikelihood,
    AbstractLocationScaleLikelihood,
    Categorical,
    of_one_value,
)
from ..network import SolveReport, in_inference
from ..prediction import Fitted, Prediction
from ._halve import on_finer_path

SOME_SKILL = 0.1
"""Share of the targets' uncertainty that a fit explains, from which inputs matter."""


class RowDraws(NamedTuple):
    """Several draws on the rows.

    Attributes:
        prediction: of all draws.
        terms: parts of the KL, nats, means over draws.
        report: of the solves, the largest over draws; `None` without any.
    """

    prediction: Prediction
    terms: dict[str, float]
    report: SolveReport | None


class Evidence:
    """A fit, rows to look at it on, and what is known of its training.

    Args:
        fit: what `predict` takes.
        x: inputs, rows first.
        y: their targets.
        key: which functions are drawn.
        num_draws: how many.
        history: arrays over epochs, as `Fit.history`; empty if there is none.
        num_data: examples that the fit was trained on, or `None`.
    """

    def __init__(
        self,
        fit: Fitted,
        x: PyTree[Array],
        y: PyTree[Array],
        *,
        key: PRNGKeyArray,
        num_draws: int,
        history: dict[str, np.ndarray],
        num_data: int | None,
    ):
        # Of the same law on the same steps, and its path can be met in half steps too.
        self.model = on_finer_path(in_inference(fit.model))
        self.likelihood, self.state = fit.likelihood, fit.state
        self.x, self.y = x, y
        self.history, self.num_data = history, num_data
        self.key, self.num_draws = key, num_draws

    def draw(self, model: AbstractRandomFunction) -> RowDraws:
        """The same draws of this fit's model, or of a relative of it."""
        outputs, terms, report = _draws(
            model, self.state, self.x, self.key, num_draws=self.num_draws
        )
        prediction = Prediction(outputs, self.likelihood)
        return RowDraws(prediction, {k: float(v) for k, v in terms.items()}, report)

    @functools.cached_property
    def draws(self) -> RowDraws:
        """Draws of the fit itself."""
        return self.draw(self.model)

    @functools.cached_property
    def log_prob(self) -> Float[np.ndarray, " rows"]:
        """Of each row's target, nats."""
        return np.asarray(self.draws.prediction.log_prob(self.y), np.float64)

    @functools.cached_property
    def skill(self) -> float:
        """Share of the targets' uncertainty that the inputs explain; at most 1.

        For classes 1 − NLL / entropy of the classes' frequencies, for real targets 1 −
        mean squared error / variance. NaN for others, and where targets are constant.
        """
        prediction = self.draws.prediction
        if isinstance(self.likelihood, Categorical):
            y = np.asarray(self.y)
            share = np.bincount(y) / y.size
            entropy = -np.sum(share * np.log(np.where(share > 0, share, 1.0)))
            return _one_minus(-float(np.mean(self.log_prob)), float(entropy))
        if isinstance(of_one_value(self.likelihood), AbstractLocationScaleLikelihood):
            has_mean = prediction.summary is not None
            guess = np.asarray(prediction.mean if has_mean else prediction.median)
            columns = _columns(self.y, guess.shape)
            guess = guess.reshape(columns.shape)
            error = float(np.nanmean((guess - columns) ** 2))
            return _one_minus(error, float(np.mean(np.nanvar(columns, axis=0))))
        return math.nan

    @functools.cached_property
    def signals(self) -> Float[np.ndarray, "draws rows outputs"] | None:
        """Each draw's class probabilities or outputs; `None` if they are a tree."""
        outputs = self.draws.prediction.outputs
        if not isinstance(outputs, jax.Array):
            return None
        if isinstance(self.likelihood, AbstractClassLikelihood):
            outputs = self.likelihood.probs(outputs)
        return np.asarray(outputs, np.float64).reshape(*outputs.shape[:2], -1)

    @functools.cached_property
    def posterior(self) -> PosteriorParts:
        """What the family says of itself."""
        return self.model.posterior_parts()


def _columns(
    y: PyTree[Array], shape: tuple[int, ...]
) -> Float[np.ndarray, "rows outputs"]:
    """Targets by output; of a series every value is a row, NaN where it is missing."""
    if isinstance(y, Series):
        y = np.where(np.asarray(y.mask), np.asarray(y.values), np.nan)
    return np.asarray(y).reshape(-1, shape[-1])


def _one_minus(loss: float, of_constant: float) -> float:
    return 1.0 - loss / of_constant if of_constant > 0 else math.nan


@eqx.filter_jit
def _draws(
    model: AbstractRandomFunction,
    state: eqx.nn.State | None,
    x: PyTree[Array],
    key: PRNGKeyArray,
    *,
    num_draws: int,
) -> tuple[PyTree[Array], dict[str, Array], SolveReport | None]:
    kept = lambda draw: (draw.output, draw.terms, draw.report)
    outputs, terms, report = map_draws(
        kept, model, x, key=key, num_draws=num_draws, state=state
    )
    terms = jax.tree.map(jnp.mean, terms)
    return outputs, terms, jax.tree.map(jnp.max, report)
