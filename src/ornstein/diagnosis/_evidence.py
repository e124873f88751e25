"""The fit under examination: what several checks look at is computed once."""

import functools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._sentence import Choice
from .._types import Array, Float, Int, PRNGKeyArray, PyTree
from ..data import Series, Split
from ..evaluation import evidence_bound, num_trained
from ..functions import AbstractRandomFunction, PosteriorParts, map_draws
from ..likelihood import (
    AbstractClassLikelihood,
    AbstractLocationScaleLikelihood,
    Categorical,
    of_one_value,
)
from ..network import SolveReport, in_inference
from ..prediction import Fitted, FittedModel, Prediction, predict
from ._base import MORE_MEMBERS, MORE_NETWORKS
from ._coverage import Coverage, coverages_of
from ._halve import on_finer_path

SCORED_ROWS = 2_000
"""Rows whose bands and probabilities are judged: see `MATERIAL`."""

SCORED_DRAWS = 32
"""Functions behind them, where no prediction is given. A mixture of S draws is about
1 / S too narrow in its variance, even where all uncertainty is between draws: bands of
90 % then hold 89 %."""

LEVELS = (0.5, 0.9, 0.95)
"""Of the bands whose targets are counted."""

CHAIN_ROWS = 20
"""Rows at whose outputs chains are compared."""

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
        whole: the fit with all its draws, where `fit` has few of many stored ones.
        scored: a prediction of other rows or draws, and its targets; of too few draws,
            or if it is `None`, `x` is predicted.
        train: what the fit was trained on, or `None`.
        bound: the ELBO of those rows and its standard error, nats; `None` estimates it.
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
        whole: Fitted | None = None,
        scored: tuple[Prediction, PyTree[Array]] | None = None,
        train: Split | None = None,
        bound: tuple[float, float] | None = None,
    ):
        # Of the same law on the same steps, and its path can be met in half steps too.
        self.in_training = on_finer_path(fit.model)
        self.model = in_inference(self.in_training)
        self.likelihood, self.state = fit.likelihood, fit.state
        self.x, self.y = x, y
        self.history, self.num_data = history, num_data
        self.key, self.num_draws = key, num_draws
        self.whole = FittedModel(self.model, fit.likelihood, fit.state)
        self.whole = self.whole if whole is None else whole
        self.train = train
        self._scored, self._bound = scored, bound

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

    @property
    def rows(self) -> str:
        """What its rows are, for sentences with their number."""
        return "series" if isinstance(self.y, Series) else "rows"

    @functools.cached_property
    def log_prob(self) -> Float[np.ndarray, " rows"]:
        """Of each row's target, nats."""
        return np.asarray(self.draws.prediction.log_prob(self.y), np.float64)

    @functools.cached_property
    def scored(self) -> tuple[Prediction, PyTree[Array]]:
        """A prediction of draws enough to judge its bands, and its targets."""
        is_random = self.posterior.is_random
        if self._scored is not None:
            num_draws = jax.tree.leaves(self._scored[0].outputs)[0].shape[0]
            if num_draws >= SCORED_DRAWS or not is_random:
                return self._scored
        if not is_random:
            return self.draws.prediction, self.y
        return self._predicted(self.x), self.y

    @functools.cached_property
    def scored_in_training(self) -> tuple[Prediction, PyTree[Array]]:
        """The same of some rows of the training data.

        Raises:
            ValueError: where these are not known.
        """
        if self.train is None:
            raise ValueError("There are no training rows to look at.")
        rows_key = jax.random.fold_in(self.key, 1)
        some = some_rows(len(self.train), self.scored[0].num_rows, key=rows_key)
        seen = self.train.rows(some)
        x, y = jax.tree.map(jnp.asarray, (seen.x, seen.y))
        return self._predicted(x), y

    @functools.cached_property
    def coverages(self) -> dict[float, Coverage]:
        """By level, of real targets that are no `Series`."""
        return dict(zip(LEVELS, coverages_of(*self.scored, LEVELS), strict=True))

    def _predicted(self, x: PyTree[Array]) -> Prediction:
        num_draws = SCORED_DRAWS if self.posterior.is_random else 1
        num_strata = self.model.num_strata
        if not self.posterior.has_stored_samples:  # whole rounds of members
            num_draws = max(1, num_draws // num_strata) * num_strata
        return predict(self.whole, x, key=self.key, num_draws=num_draws)

    @functools.cached_property
    def bound(self) -> tuple[float, float] | None:
        """The ELBO of the training rows and its standard error, if there is one."""
        if self._bound is not None or self.train is None:
            return self._bound
        if self.num_data is not None and len(self.train) < self.num_data:
            return None  # a sample bounds nothing of the whole
        if not self.posterior.has_bound:
            return None
        found = evidence_bound(
            self.whole,
            self.train,
            key=jax.random.fold_in(self.key, 2),
            num_draws=self.num_draws,
            num_rows=SCORED_ROWS,
        )
        return found["elbo"], found["elbo_se"]

    @property
    def num_parameters(self) -> int:
        """Numbers that training moved, of one member of an ensemble.

        A family of which nothing is trained any more says itself how many they were.
        """
        said = self.model.member(0).posterior_parts().num_parameters
        if said is not None:
            return said
        return num_trained(self.whole) // self.model.num_members

    @property
    def more_networks(self) -> Choice:
        """An ensemble, or a larger one, in the words of a sentence."""
        return MORE_MEMBERS if self.model.num_members > 1 else MORE_NETWORKS

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
    def chain_scores(self) -> dict[str, Any]:
        """What chains say of themselves on a few rows; empty without chains."""
        scores = self.whole.model.posterior_parts().chain_scores
        if scores is None:
            return {}
        return scores(jax.tree.map(lambda a: a[:CHAIN_ROWS], self.x))

    @functools.cached_property
    def posterior(self) -> PosteriorParts:
        """What the family says of itself."""
        return self.model.posterior_parts()


def some_rows(
    num_all: int, num_rows: int, *, key: PRNGKeyArray
) -> Int[np.ndarray, " rows"]:
    """Numbers of rows, chosen at random if not all are asked for, in their order."""
    chosen = np.asarray(jax.random.permutation(key, num_all)[:num_rows])
    return np.sort(chosen)


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
