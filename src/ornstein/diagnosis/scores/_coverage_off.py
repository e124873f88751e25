r"""Bands that hold fewer targets, or more, than they say.

Notation: a band of level $a$ for row $i$ of $n$ holds the target with probability
$c_{ki}$ if draw $k$ of the posterior is the truth; the mean of $c_{ki}$ over draws is
$a$. If the posterior is right, one draw is the truth for all rows, and the share of
targets that are held has the variance

    V = Var_k(mean_i c_ki) + mean_k sum_i c_ki (1 - c_ki) / n^2.

For a single draw, or where draws agree, V is the binomial a (1 - a) / n. Where they do
not, rows are held or missed together, and binomial errors would be false alarms. The
share is then far from normal, too, and its tail is the mean over draws of each one's.
"""

import math
from typing import Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import bdtr, bdtrc, ndtr

from ..._sentence import Choice, Sentence
from ..._types import Array, Float
from ...likelihood import AbstractLocationScaleLikelihood
from ...prediction import Prediction
from .._band_holds_all import ALL
from .._base import CHANCE, LEAST_ROWS, MATERIAL, NOT_CHECKED, CheckResult
from .._evidence import Evidence

_ERRORS = 3.0
_LEVELS = (0.5, 0.9, 0.95)
_ONE_SIDED = 1.0
"""Standard errors from which a band leans to one side, beside another that is off."""

_Fault: TypeAlias = Literal["narrow", "wide", "shape"]
_CALLED: dict[_Fault, str] = {
    "narrow": "too narrow",
    "wide": "too wide",
    "shape": "too wide in one place and too narrow in another",
}
_LEAST_VARIANCE = 1e-12


def coverage_off(evidence: Evidence) -> CheckResult:
    """Count the targets in the 50, 90 and 95 % bands.

    A band is off if its share is more than three standard errors (the root of V) and
    two points from its level, and if it would be so by chance in less than 1 in 740
    data sets: of independent rows (the exact binomial tail, which few rows ask for),
    and of rows whose truth is one of the draws.
    Columns of one row count as one. Of series nothing is said, nor of a 90 % band that
    holds all, which is another finding.
    """
    likelihood = evidence.likelihood
    if not isinstance(likelihood, AbstractLocationScaleLikelihood):
        return NOT_CHECKED
    prediction, y = evidence.scored
    if prediction.num_rows < LEAST_ROWS:
        return NOT_CHECKED
    numbers, off, sides = {}, [], set()
    for level in _LEVELS:
        share, error, by_draw = _coverage(prediction, np.asarray(y, np.float64), level)
        name = f"{100 * level:g}"
        numbers |= {f"coverage_{name}": share, f"coverage_{name}_se": error}
        z = (share - level) / error
        is_off = abs(z) > _ERRORS and abs(share - level) > MATERIAL
        if is_off and max(by_draw, _tail(share, level, prediction.num_rows)) < CHANCE:
            off.append(z)
        if abs(z) > _ONE_SIDED:
            sides.add(z > 0)
    holds_all = numbers["coverage_90"] >= ALL  # of which `band-holds-all` speaks
    if not off or (holds_all and sides == {True}):
        return CheckResult(numbers)
    what: _Fault = "narrow" if min(off) < 0 else "wide"
    what = "shape" if len(sides) > 1 else what
    return CheckResult(
        numbers,
        Sentence(
            "The 50, 90 and 95 % bands hold {:.0%}, {:.0%} and {:.0%} of {:,} targets, "
            "give or take {:.1%}, {:.1%} and {:.1%}: they are {}. {}",
            *(numbers[f"coverage_{100 * level:g}"] for level in _LEVELS),
            prediction.num_rows,
            *(numbers[f"coverage_{100 * level:g}_se"] for level in _LEVELS),
            _CALLED[what],
            _what_to_do(evidence, likelihood, what),
        ),
    )


def _coverage(
    prediction: Prediction, y: Float[np.ndarray, "..."], level: float
) -> tuple[float, float, float]:
    """The share of targets in the bands, and what it is if a draw is the truth.

    Returns:
        The share, its standard error, and the probability of one as far out.
    """
    likelihood, outputs = prediction.likelihood, prediction.outputs
    assert isinstance(likelihood, AbstractLocationScaleLikelihood)
    assert isinstance(outputs, jax.Array)
    lower, upper = prediction.interval(level)
    columns = y.reshape(lower.shape)
    inside = (np.asarray(lower) <= columns) & (columns <= np.asarray(upper))
    held = np.asarray(_held_by_draw(likelihood, outputs, lower, upper), np.float64)
    share, of_draws = float(np.mean(inside)), held.mean(axis=(1, 2))
    # Columns of a row may depend on each other: they tell no more than one.
    within = np.mean(held * (1 - held), axis=(1, 2)) / inside.shape[0]
    error = math.sqrt(np.var(of_draws) + within.mean())
    away = (share - of_draws) * np.sign(share - level)
    beyond = ndtr(-away / np.sqrt(np.maximum(within, _LEAST_VARIANCE)))
    return share, error, float(beyond.mean())


@eqx.filter_jit
def _held_by_draw(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows outputs"],
    lower: Float[Array, "rows outputs"],
    upper: Float[Array, "rows outputs"],
) -> Float[Array, "draws rows outputs"]:
    cdf = likelihood.marginals(outputs).cdf
    at = lambda edge: jnp.asarray(cdf(jnp.broadcast_to(edge, outputs.shape)))
    return jax.nn.relu(at(upper) - at(lower))


def _tail(share: float, level: float, rows: int) -> float:
    """How often so few of independent rows are held, or so many."""
    held = share * rows  # whole, of one column
    held = round(held) if math.isclose(held, round(held), abs_tol=1e-6) else held
    if share < level:
        return float(bdtr(math.floor(held), rows, level))
    return float(bdtrc(math.ceil(held) - 1, rows, level))


def _what_to_do(
    evidence: Evidence, likelihood: AbstractLocationScaleLikelihood, what: _Fault
) -> Sentence:
    posterior = evidence.posterior
    is_learned = likelihood.learn_scale or posterior.has_stored_samples
    first = "" if is_learned else Sentence("Learn the noise ({learn_scale}). ")
    if what == "shape":
        return Sentence(
            "{}Targets miss the mean by little in most rows and by much in some, which "
            "no one noise does: give them heavier tails ({}), or a transform of the "
            "target, such as its logarithm.",
            first,
            Choice("`StudentT`", "{likelihood} student-t"),
        )
    if what == "wide":
        again = Choice("train longer (`num_epochs`)", "train longer ({epochs})")
        if posterior.has_stored_samples:
            again = Choice(
                "run longer chains (`num_warmup`)",
                "run longer chains (`ornstein sample {num_warmup} ...`)",
            )
        return Sentence(
            "{}A band is as wide as what was not fitted: {}, or give the prior less "
            "noise.",
            first,
            again,
        )
    if posterior.has_stored_samples:
        advice = Sentence(
            "The chains fit noise, or agree where they should not: run more of them "
            "({}), take a smaller network ({}) or a narrower prior ({}), or give the "
            "targets heavier tails ({}).",
            Choice("`num_chains`", "`ornstein sample {num_chains} ...`"),
            Choice("fewer or narrower layers", "`ornstein sample {width} ...`"),
            Choice("a smaller `scale`", "`ornstein sample {prior_scale} ...`"),
            Choice("`StudentT`", "{likelihood} student-t"),
        )
    elif posterior.has_bound:
        advice = Sentence(
            "The posterior is surer than the data let it be, as factorised ones are: "
            "take another {seed} to see whether it stays, then sample ({}) or {}.",
            Choice("`orn.sample`", "{model} chains"),
            evidence.more_networks,
        )
    else:
        advice = Sentence(
            "Training rows are fitted closer than others can be: take fewer steps "
            "({}) or a smaller network ({}), {}, or sample ({}).",
            Choice("`num_epochs`", "{epochs}"),
            Choice("fewer or narrower layers", "{width}"),
            evidence.more_networks,
            Choice("`orn.sample`", "{model} chains"),
        )
    return Sentence("{}{}", first, advice)
