r"""Class probabilities that are surer, or less sure, than they are right.

If the posterior is right, the truth of all rows is one more draw of it, which the mean
probabilities were made without. Targets are simulated so: a draw $k$ of the S is the
truth, the mean of all others guesses and says how sure it is, and each row's guess is
right with its probability under draw $k$. Of so many rows and draws, this gives the
distribution that accuracy and ECE have for a calibrated model, whose ECE is never 0,
and which is a little too sure where it is the mean of few draws.
"""

import jax
import numpy as np

from ..._sentence import Choice, Sentence
from ..._types import Bool, Float, Int
from ...likelihood import AbstractClassLikelihood, Bernoulli
from ...metrics import overconfidence_error
from ...prediction import Prediction
from .._base import CHANCE, LEAST_ROWS, MATERIAL, NOT_CHECKED, CheckResult
from .._evidence import Evidence

_ERRORS = 3.0
_NUM_SIMULATED = 4_000
"""Data sets: five or six of them lie beyond three standard errors of a normal."""

_NUM_BINS = 15
"""Of equal width, as in `metrics.ece`."""

_BLOCK = 40
"""Data sets of one truth, of which there are 100."""


def confidence_off(evidence: Evidence) -> CheckResult:
    """Compare top-label confidence with accuracy, in all and bin by bin (ECE).

    Each is off if it is by more than three standard deviations from the mean of
    simulated data sets of a calibrated model, if fewer than 1 in 740 of these have as
    much (few errors are no normal), and if it is by more than two points. Of several
    yes-or-no columns nothing is said.
    """
    likelihood = evidence.likelihood
    if not isinstance(likelihood, AbstractClassLikelihood):
        return NOT_CHECKED
    prediction, y = evidence.scored
    is_several = isinstance(likelihood, Bernoulli) and prediction.num_outputs > 1
    if is_several or prediction.num_rows < LEAST_ROWS:
        return NOT_CHECKED
    probs = _probs(prediction)
    confidence, guess = _guess(probs.mean(axis=0))
    is_right = guess == np.asarray(y).ravel()
    gap, ece = float(np.mean(confidence - is_right)), _ece(confidence, is_right[None])
    seed = np.asarray(jax.random.key_data(evidence.key)).tolist()
    gaps, eces = _simulated(probs, np.random.default_rng(seed))
    over = gap - float(gaps.mean())
    beyond = np.mean(gaps >= gap if over > 0 else gaps <= gap)
    numbers = {
        "overconfidence": gap,
        "overconfidence_if_calibrated": float(gaps.mean()),
        "overconfidence_se": overconfidence_error(_of(guess, probs)),
        "ece": float(ece[0]),
        "ece_if_calibrated": float(eces.mean()),
        "ece_if_calibrated_sd": float(eces.std()),
    }
    accuracy, mean = float(is_right.mean()), float(confidence.mean())
    if beyond < CHANCE and abs(over) > max(MATERIAL, _ERRORS * float(gaps.std())):
        said = Sentence(
            "The guessed class has a probability of {:.1%} in the mean and is right in "
            "{:.1%} of {:,} rows, where a calibrated model has the same, give or take "
            "{:.1%}: this one is {}. {}",
            mean,
            accuracy,
            is_right.size,
            numbers["overconfidence_se"],
            "too sure of itself" if over > 0 else "less sure than it could be",
            _what_to_do(evidence, is_sure=over > 0),
        )
        return CheckResult(numbers, said)
    over = float(ece[0] - eces.mean())
    is_beyond = np.mean(eces >= ece[0]) < CHANCE
    if is_beyond and over > max(MATERIAL, _ERRORS * float(eces.std())):
        said = Sentence(
            "The ECE is {:.3g} on {:,} rows, where a calibrated model has {:.2g} ± "
            "{:.1g}: probabilities are too high in some places and too low in others. "
            "{}",
            float(ece[0]),
            is_right.size,
            numbers["ece_if_calibrated"],
            numbers["ece_if_calibrated_sd"],
            _what_to_do(evidence, is_sure=True),
        )
        return CheckResult(numbers, said)
    return CheckResult(numbers)


def _probs(prediction: Prediction) -> Float[np.ndarray, "draws rows classes"]:
    likelihood = prediction.likelihood
    assert isinstance(likelihood, AbstractClassLikelihood)
    assert prediction.outputs is not None
    probs = np.asarray(likelihood.probs(prediction.outputs), np.float64)
    if isinstance(likelihood, Bernoulli):
        probs = np.concatenate([1 - probs, probs], axis=-1)
    return probs


def _guess(
    mean: Float[np.ndarray, "rows classes"],
) -> tuple[Float[np.ndarray, " rows"], Int[np.ndarray, " rows"]]:
    """Confidence, and the class."""
    return mean.max(axis=-1), mean.argmax(axis=-1)


def _of(
    guess: Int[np.ndarray, " rows"], probs: Float[np.ndarray, "*draws rows classes"]
) -> Float[np.ndarray, "*draws rows"]:
    """The probability of each row's class."""
    return probs[..., np.arange(guess.size), guess]


def _simulated(
    probs: Float[np.ndarray, "draws rows classes"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, " sets"], Float[np.ndarray, " sets"]]:
    """Overconfidence and ECE of data sets whose truth is one more draw."""
    total, num_draws, gaps, eces = probs.sum(axis=0), len(probs), [], []
    num_blocks = _NUM_SIMULATED // _BLOCK
    for block in range(num_blocks):
        truth = probs[block * num_draws // num_blocks]
        mean = (total - truth) / (num_draws - 1) if num_draws > 1 else truth
        confidence, guess = _guess(mean)
        is_right = rng.random((_BLOCK, guess.size)) < _of(guess, truth)
        gaps.append(np.mean(confidence - is_right, axis=1))
        eces.append(_ece(confidence, is_right))
    return np.concatenate(gaps), np.concatenate(eces)


def _ece(
    confidence: Float[np.ndarray, " rows"], is_right: Bool[np.ndarray, "sets rows"]
) -> Float[np.ndarray, " sets"]:
    # In single precision, as `metrics.ece` has them.
    edges = np.float32(confidence) * np.float32(_NUM_BINS)
    bins = np.clip(np.ceil(edges).astype(int) - 1, 0, _NUM_BINS - 1)
    is_in = (bins[:, None] == np.arange(_NUM_BINS)).astype(np.float64)
    return np.abs((confidence - is_right) @ is_in).sum(axis=1) / confidence.size


def _what_to_do(evidence: Evidence, *, is_sure: bool) -> Sentence:
    posterior = evidence.posterior
    scaling = Choice(
        "`orn.temperature_scaling` on rows held out",
        "`orn.temperature_scaling` in Python, on rows held out",
    )
    if not is_sure:
        if posterior.has_stored_samples:
            return Sentence(
                "Its ranking of rows may still be good. Give a prior that suits the "
                "data ({}), or {}.",
                Choice("its `scale`", "`ornstein sample {prior_scale} ...`"),
                scaling,
            )
        return Sentence(
            "What was not fitted is not known: take more steps ({}) or another "
            "{learning_rate}; where the KL holds the fit back, a smaller network "
            "({}); or {}.",
            Choice("`num_epochs`", "{epochs}"),
            Choice("fewer or narrower layers", "{width}"),
            scaling,
        )
    if posterior.has_stored_samples:
        return Sentence(
            "Run more chains, from other starts ({}), take a narrower prior ({}), or "
            "{}.",
            Choice("`num_chains`", "`ornstein sample {num_chains} ...`"),
            Choice("a smaller `scale`", "`ornstein sample {prior_scale} ...`"),
            scaling,
        )
    return Sentence(
        "It helps to {}, to sample ({}), to take fewer steps ({}), or {}.",
        evidence.more_networks,
        Choice("`orn.sample`", "`ornstein sample`"),
        Choice("`num_epochs`", "{epochs}"),
        scaling,
    )
