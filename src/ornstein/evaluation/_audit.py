"""Whether a posterior does anything: beside itself without it, and beside its twins."""

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import numpy as np

from .._kinds import check_key, check_kind
from .._sentence import Choice, OptionError
from .._tree import all_finite
from .._types import PRNGKeyArray
from ..data import Data
from ..functions import (
    FROZEN,
    AbstractRandomFunction,
    HeldAtPrior,
    PosteriorParts,
)
from ..likelihood import AbstractLocationScaleLikelihood
from ..prediction import (
    Fitted,
    FittedByDraw,
    FittedModel,
    Prediction,
    check_fitted,
    predict,
)
from ..train import recompute_statistics
from ._ablation import nll_gain
from ._audit_result import Audit, Relative
from ._bound import evidence_bound, log_likelihood_bought, sums_of_draws
from ._draw_error import draw_blocks, draw_error
from ._evaluate import evaluate
from ._fit_scores import refuse_non_finite_predictions
from ._ood import ood_scores
from ._verdict import is_broken, judge

WITHOUT_NOISE, AT_PRIOR = "without noise", "with q = p"
"""What twins are called."""

_KEEP = ("accuracy", "rmse", "nll", "nll_se", "ece", "crps", "coverage_90")

_BATCH_ROWS = 128
"""Rows in each batch behind batch statistics."""


class Retraining(NamedTuple):
    """How twins of a fit are trained: as the fit was.

    Attributes:
        model: the random function before it was trained. For samples, a `MAP` of their
            network and prior.
        train: from a model, and what it is called, to a fit of it on the same data, for
            as many steps: `lambda model, name: orn.fit(model, data.train, ...)`. What
            `IVON` moves no twin has: give another optimiser there.
    """

    model: AbstractRandomFunction
    train: Callable[[AbstractRandomFunction, str], Fitted]


def audit(
    fit: Fitted,
    data: Data,
    *,
    key: PRNGKeyArray,
    num_draws: int = 32,
    retraining: Retraining | None = None,
) -> Audit:
    r"""Does this posterior do anything?

    The fit is compared, on the same test rows, with

    - itself with q put back to p, every part by itself and all together: the start and
      the path of weights, nodes, weights (or what the network's `parameter_parts` are);
    - itself without noise: every q at its mean;
    - a twin trained without noise, its weights points under the same prior (`MAP`, the
      KL weight included; that of an `SDEBNN` has neither a KL of its drift nor the
      prior of a Gaussian w₀), and a twin trained with q = p (points alone are
      trained), both at the budget of the fit.

    Differences of NLL are paired, so that their standard errors are those of the rows
    which both have met; and, added in quadrature, of the draws of both, by a jackknife
    that leaves draws out. Samples of chains depend on each other: there the jackknife
    leaves out samples, and whole chains (of fewer than 4, halves or quarters of each),
    and the larger error counts. A mean over few draws makes the wider side look worse:
    the jackknife's estimate of that is taken off a difference before it counts. The
    error of training is not in them: train with several seeds before you say of a small
    difference that it is one.

    Of few rows a noise scale that is learned with points vanishes, and the NLL of such
    a twin is millions: it is no fair comparison, and is beside the fit once more with
    the fit's own noise scale, which counts for no verdict (its points were fitted as if
    there were no noise).

    A difference counts from 3 standard errors and 0.001 nats a row on. There are three
    verdicts:

    - `"does nothing"`: with no part put back, nor with all, does the NLL change by what
      counts, nor could it by more than 0.05 nats a row (3 standard errors included),
      and the fit is not better than each of the trained twins.
    - `"does"`: its NLL is lower than that of each trained twin, and than its own with
      all parts put back, by what counts.
    - `"in between"`: all else, and the sentence says what. Without trained twins
      nothing is more.

    Args:
        fit: a fit, or samples, whose random function claims a posterior.
        data: what it was trained on, and the test rows.
        key: which functions: those of `predict` with this key and number.
        num_draws: functions averaged over; at least 2.
        retraining: how twins are trained; without it there are none.

    Returns:
        The verdict and what it rests on; `str` of it is a table and a sentence.

    Raises:
        TypeError: for a split of rows in place of `Data`.
        ValueError: for a random function that claims no posterior, a single draw, or
            fewer than two test rows.
        NonFiniteError: if a prediction of the fit is not a number.
    """
    check_fitted(fit)
    check_key(key)
    check_kind("data", data, Data, "orn.data.Data('mine', 'regression', train, test)")
    posterior = fit.model.posterior_parts()
    check_claims(fit.model)
    if num_draws < 2:
        raise ValueError(
            f"`num_draws` must be at least 2, got {num_draws}: one draw does not say "
            "how much another would change."
        )
    if len(data.test) < 2:
        raise ValueError(
            f"An audit compares test rows in pairs and {data.name} has "
            f"{len(data.test)}: give 2 or more."
        )
    compare = _Comparison(fit, data, key, num_draws)
    relatives = []
    for parts in _each_and_all(posterior.parts):
        model = _put_back(posterior, parts, key)
        name = f"{' and '.join(parts)} at prior"
        relatives.append(compare.with_model(model, name, "put back"))
    if posterior.without_noise is not None:
        model = posterior.without_noise()
        relatives.append(compare.with_model(model, WITHOUT_NOISE, "silenced"))
    if retraining is not None:
        for name, model in _twins(retraining.model).items():
            if not _has_points(model, fit):  # q = p leaves nothing to train
                continue
            twin = retraining.train(model, name)
            trained = compare.with_fit(twin, f"trained {name}", "twin")
            relatives.append(trained)
            if is_broken(trained) and _lost_scale(twin, fit):
                rescaled = _like(fit, twin.model, twin.state)
                named = f"{trained.name}, at the fit's noise scale"
                relatives.append(compare.with_fit(rescaled, named, "rescaled"))
    economy = _spent_and_bought(fit, data, posterior, key, num_draws)
    verdict, sentence = judge(relatives)
    own = Relative("the fit", "fit", compare.own_scores, 0.0, 0.0, 0.0)
    return Audit(verdict, sentence, (own, *relatives), *economy, len(data.train))


def check_claims(model: AbstractRandomFunction) -> None:
    """Refuse a random function without a posterior that could be audited.

    Args:
        model: any.

    Raises:
        ValueError: saying what it lacks.
    """
    posterior = model.posterior_parts()
    if posterior.parts or posterior.without_noise is not None:
        return
    if posterior.has_stored_samples:
        raise ValueError(
            "These samples do not know the prior that they were sampled with, to which "
            "an audit puts them back: give `samples.with_prior(prior)`."
        )
    raise OptionError(
        "{} claims no posterior: it has no distribution that could be put back to a "
        "prior, and so nothing to audit. {}.",
        Choice(f"`{type(model).__name__}`", "The {model} of this run"),
        Choice("Score its predictions by `evaluate`", "Leave {audit} out"),
    )


class _Economy(NamedTuple):
    """Nats of the whole data set: KL spent by its terms, log likelihood, its error."""

    spent: dict[str, float]
    bought: float | None
    bought_se: float | None


class _Comparison:
    """The fit's own prediction, and relatives beside it on the same rows and draws."""

    def __init__(self, fit: Fitted, data: Data, key: PRNGKeyArray, num_draws: int):
        self._fit, self._data, self._key = fit, data, key
        self._num_draws = num_draws
        self._blocks = draw_blocks(fit.model, num_draws)
        self._own = self._predict(fit)
        refuse_non_finite_predictions(self._own)
        self.own_scores = self._scores(fit, self._own)

    def with_model(
        self, model: AbstractRandomFunction, name: str, kind: str
    ) -> Relative:
        """A relative with the fit's own likelihood, and batch statistics of its own."""
        state = self._fit.state
        if state is not None:
            state = recompute_statistics(
                model,
                self._data.train.in_memory().x,
                state=state,
                key=jax.random.fold_in(self._key, 2),
                batch_size=_BATCH_ROWS,
            )
        return self.with_fit(_like(self._fit, model, state), name, kind)

    def with_fit(self, fit: Fitted, name: str, kind: str) -> Relative:
        """Scores, and by how many nats a row its NLL is above the fit's."""
        prediction = self._predict(fit)
        if not _is_finite(prediction):
            return Relative(name, kind, {}, math.inf, 0.0, 0.0)
        both, y = (self._own, prediction), self._data.test.y
        gain, rows_se = nll_gain(*both, y)
        draws = draw_error(*both, y, self._blocks)
        error = math.hypot(rows_se, draws.se)
        scores = self._scores(fit, prediction)
        return Relative(name, kind, scores, gain, error, *draws)

    def _predict(self, fit: Fitted) -> Prediction:
        x = self._data.test.x
        return predict(fit, x, key=self._key, num_draws=self._num_draws)

    def _scores(self, fit: Fitted, prediction: Prediction) -> dict[str, float]:
        scores = evaluate(prediction, self._data.test.y)
        kept = {name: scores[name] for name in _KEEP if name in scores}
        if self._data.task == "series":  # noise and rotations are of rows and images
            return kept
        how = {"num_draws": self._num_draws, "key": jax.random.fold_in(self._key, 1)}
        found = ood_scores(fit, self._data, prediction, **how)
        return kept | {f"auroc_{name}": each["auroc"] for name, each in found.items()}


def _like(fit: Fitted, model: AbstractRandomFunction, state: Any) -> Fitted:
    """The model with the likelihood of a fit; samples have each their own."""
    if isinstance(model, FittedByDraw) and isinstance(model, Fitted):
        return model
    return FittedModel(model, fit.likelihood, state)


def _each_and_all(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    each = [(part,) for part in parts]
    return each if len(parts) < 2 else [*each, parts]


def _put_back(
    posterior: PosteriorParts, parts: Collection[str], key: PRNGKeyArray
) -> AbstractRandomFunction:
    return posterior.at_prior(parts, jax.random.fold_in(key, 3))


def _twins(model: AbstractRandomFunction) -> dict[str, AbstractRandomFunction]:
    """What is trained in place of a model, as it was before training."""
    posterior, found = model.posterior_parts(), {}
    make_twin = posterior.noise_free_twin
    if make_twin is None:
        make_twin = posterior.without_noise
    if make_twin is not None:
        found[WITHOUT_NOISE] = make_twin()
    elif not posterior.is_random:
        found[WITHOUT_NOISE] = model
    if posterior.parts:
        at_prior = _put_back(posterior, posterior.parts, jax.random.key(0))
        found[AT_PRIOR] = HeldAtPrior(at_prior, posterior.held)
    return found


def _lost_scale(twin: Fitted, fit: Fitted) -> bool:
    """Whether a learned noise scale is less than half of the fit's, which has one."""
    ours, found = fit.likelihood, twin.likelihood
    if not isinstance(ours, AbstractLocationScaleLikelihood):
        return False
    if not isinstance(found, AbstractLocationScaleLikelihood):
        return False
    is_learned = not set(jax.tree.leaves(ours.labels())) <= {FROZEN}
    change = np.mean(np.asarray(found.log_scale) - np.asarray(ours.log_scale))
    return is_learned and bool(change < -math.log(2))


def _has_points(model: AbstractRandomFunction, fit: Fitted) -> bool:
    """Whether a twin has anything to train; else it is the fit put back."""
    labels = set(jax.tree.leaves((model.labels(), fit.likelihood.labels())))
    return not labels <= {FROZEN}


def _spent_and_bought(
    fit: Fitted,
    data: Data,
    posterior: PosteriorParts,
    key: PRNGKeyArray,
    num_draws: int,
) -> _Economy:
    """KL by its terms, and the training log likelihood that it bought."""
    if not (posterior.has_bound and posterior.parts):
        return _Economy({}, None, None)
    how = {"key": jax.random.fold_in(key, 4), "num_draws": num_draws}
    bound = evidence_bound(fit, data.train, **how)
    spent = {
        name: value
        for name, value in bound.items()
        if name.startswith("kl") and not name.endswith("_se")
    }
    at_prior = _put_back(posterior, posterior.parts, key)
    fits = fit, _like(fit, at_prior, fit.state)
    with np.errstate(invalid="ignore"):  # the prior may give a row no chance at all
        sums = [sums_of_draws(each, data.train, **how) for each in fits]
        bought = log_likelihood_bought(*sums)
    return _Economy(spent, *bought)


def _is_finite(prediction: Prediction) -> bool:
    return all_finite((prediction.outputs, prediction.summary))
