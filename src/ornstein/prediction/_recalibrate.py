"""Recalibration after the fact: what a Bayesian network is compared with."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float
from ..likelihood import AbstractClassLikelihood, Bernoulli, Categorical, Targets
from ._prediction import Prediction

# log T lies between minus and plus this, or the rows don't decide it.
_LARGEST_LOG_TEMPERATURE = 10.0
# Halves that bracket to what float32 resolves.
_NUM_BISECTIONS = 40


class TemperatureScaling(eqx.Module):
    r"""Probabilities whose logits are divided by one number.

    $p_T(y = k) \propto \bar p_k^{1/T}$, where $\bar p$ are the probabilities averaged
    over draws. T above 1 makes them less certain. What it gives is *one* distribution
    for each row: the draws are gone, and its `epistemic` part is 0.

    Fit it with `temperature_scaling`.

    Attributes:
        temperature: T.
    """

    temperature: Float[Array, ""]

    def __call__(self, prediction: Prediction) -> Prediction:
        """The prediction, recalibrated."""
        likelihood = _class_likelihood(prediction)
        logits = _mean_logits(prediction, likelihood)
        logits = logits / self.temperature.astype(logits.dtype)
        return Prediction(logits[None], likelihood)


class IsotonicRegression(eqx.Module):
    r"""Probabilities passed through a monotone step function of each class's own.

    $\hat p_k = m_k(\bar p_k) / \sum_j m_j(\bar p_j)$ with $m_k$ linear between knots.
    A row that every $m_k$ maps to 0 gets equal probabilities. As with any histogram
    of few rows, a probability may be exactly 0, and the NLL of such a class infinite.
    As after `TemperatureScaling`, `epistemic` is 0.

    Fit it with `isotonic_regression`.

    Attributes:
        knots: each class's averaged probabilities, rising.
        values: $m_k$ at them.
    """

    knots: tuple[Float[Array, "..."], ...]
    values: tuple[Float[Array, "..."], ...]

    def __call__(self, prediction: Prediction) -> Prediction:
        """The prediction, recalibrated."""
        _check_categorical(prediction)
        probs = prediction.probs
        if probs.shape[1] != len(self.knots):
            raise ValueError(
                f"The regression is of {len(self.knots)} classes and the prediction "
                f"of {probs.shape[1]}: fit one on predictions of the same model."
            )
        columns = [
            jnp.interp(probs[:, k], knots.astype(probs.dtype), m.astype(probs.dtype))
            for k, (knots, m) in enumerate(zip(self.knots, self.values, strict=True))
        ]
        scores = jnp.stack(columns, axis=1)
        total = jnp.sum(scores, axis=1, keepdims=True)
        is_zero = total == 0
        scores = jnp.where(is_zero, 1.0, scores)
        probs = scores / jnp.where(is_zero, float(len(columns)), total)
        return Prediction(jnp.log(probs)[None], prediction.likelihood)


def temperature_scaling(prediction: Prediction, y: Targets) -> TemperatureScaling:
    r"""The temperature that maximises the likelihood of held-out rows.

    $T = \arg\min_T -\sum_i \log p_T(y_i)$, which is convex in $1 / T$.

    Args:
        prediction: of rows that the model was not trained on (validation rows, never
            the test's).
        y: their targets.

    Returns:
        What recalibrates other predictions of the same model.

    Raises:
        ValueError: for a likelihood without classes, targets that it refuses, or rows
            without a best temperature: all right, or worse than chance.

    References:
        Guo, Pleiss, Sun & Weinberger (2017), "On Calibration of Modern Neural
        Networks", section 4.2.
    """
    likelihood = _class_likelihood(prediction)
    likelihood.check_targets(y, prediction.num_outputs)
    logits = _mean_logits(prediction, likelihood)
    log_temperature, is_inside = _best_log_temperature(likelihood, logits, y)
    if not is_inside:
        raise ValueError(
            "No temperature is best for these rows, because their targets are all the "
            "most probable ones, or because the predictions are worse than chance: "
            "give more rows, that the model was not trained on."
        )
    return TemperatureScaling(jnp.exp(log_temperature))


def isotonic_regression(prediction: Prediction, y: Targets) -> IsotonicRegression:
    """Monotone maps from predicted to observed frequencies, one against the rest.

    Each class's map is the least-squares fit of a rising function of its averaged
    probability to whether a row is of that class; the maps' values are then divided by
    their sum.

    Args:
        prediction: of rows that the model was not trained on, of a `Categorical`
            likelihood.
        y: their classes.

    Returns:
        What recalibrates other predictions of the same model.

    Raises:
        ValueError: for another likelihood, or targets that it refuses.

    References:
        Zadrozny & Elkan (2002), "Transforming Classifier Scores into Accurate
        Multiclass Probability Estimates", sections 3 and 4.
    """
    from sklearn.isotonic import IsotonicRegression as OneClass

    _check_categorical(prediction)
    prediction.likelihood.check_targets(y, prediction.num_outputs)
    probs, y = np.asarray(prediction.probs, np.float64), np.asarray(y)
    knots, values = [], []
    for k in range(prediction.num_outputs):
        fitted = OneClass(y_min=0.0, y_max=1.0).fit(probs[:, k], y == k)
        knots.append(jnp.asarray(fitted.X_thresholds_, float))
        values.append(jnp.asarray(fitted.y_thresholds_, float))
    return IsotonicRegression(tuple(knots), tuple(values))


@eqx.filter_jit
def _best_log_temperature(
    likelihood: AbstractClassLikelihood,
    logits: Float[Array, "rows outputs"],
    y: Targets,
) -> tuple[Float[Array, ""], Array]:
    """The root of the slope in 1 / T by bisection, and whether there is one."""

    @jax.grad
    def slope(inverse: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.mean(likelihood.log_prob(inverse * logits, y))

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        is_warm = slope(jnp.exp(-middle)) > 0
        return jnp.where(is_warm, low, middle), jnp.where(is_warm, middle, high)

    end = jnp.asarray(_LARGEST_LOG_TEMPERATURE, logits.dtype)
    is_inside = (slope(jnp.exp(-end)) > 0) & (slope(jnp.exp(end)) < 0)
    low, high = jax.lax.fori_loop(0, _NUM_BISECTIONS, halve, (-end, end))
    return (low + high) / 2, is_inside


def _mean_logits(
    prediction: Prediction, likelihood: AbstractClassLikelihood
) -> Float[Array, "rows outputs"]:
    """Logits of the averaged probabilities: finite, where those round to 0 or 1."""
    probs = prediction.probs
    finfo = jnp.finfo(probs.dtype)
    if isinstance(likelihood, Bernoulli) and prediction.outputs is not None:
        # Log odds have two ends, and probabilities are coarse at one of them.
        draws = prediction.outputs.astype(probs.dtype)
        yes, no = (
            jax.nn.logsumexp(jax.nn.log_sigmoid(sign * draws), axis=0)
            for sign in (1, -1)
        )
        return yes - no
    if not isinstance(likelihood, Categorical):
        return likelihood.logits(jnp.clip(probs, finfo.tiny, 1 - finfo.epsneg))
    return likelihood.logits(jnp.maximum(probs, finfo.tiny))


def _class_likelihood(prediction: Prediction) -> AbstractClassLikelihood:
    likelihood = prediction.likelihood
    if not isinstance(likelihood, AbstractClassLikelihood):
        raise ValueError(
            "Probabilities of classes are recalibrated, got a prediction of a "
            f"`{type(likelihood).__name__}` likelihood: give one of classes."
        )
    return likelihood


def _check_categorical(prediction: Prediction) -> None:
    if not isinstance(prediction.likelihood, Categorical):
        raise ValueError(
            "Isotonic regression takes one class against the rest, got a prediction "
            f"of a `{type(prediction.likelihood).__name__}` likelihood: give one of "
            "`Categorical`."
        )
