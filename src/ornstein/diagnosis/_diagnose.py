"""Whether a fit's posterior is one: all checks, in words."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._kinds import check_key
from .._types import PRNGKeyArray
from ..data import Split
from ..prediction import Fitted, FittedByDraw, Prediction, check_fitted
from ..train import Fit, check_data, check_positive
from ._band_holds_all import band_holds_all
from ._base import CheckResult, Diagnosis, Finding
from ._bound_underfitted import bound_underfitted
from ._chains_apart import chains_apart, chains_divergent, chains_heated
from ._coarse_step import coarse_step
from ._diffusion_gone import diffusion_gone
from ._draws_agree import draws_agree
from ._evidence import SCORED_ROWS, Evidence, some_rows
from ._gradient import gradient_nan, gradient_noise
from ._kl_still import kl_still
from ._noise_drowns_drift import noise_drowns_drift
from ._num_data import wrong_num_data
from ._point_start import point_start
from ._reversible_gap import reversible_gap
from ._still_rising import still_rising
from ._weights_at_prior import weights_at_prior
from .scores import (
    bound_below_constant,
    confidence_off,
    coverage_off,
    known_by_heart,
    worse_than_constant,
)

CHECKS: dict[str, Callable[[Evidence], CheckResult]] = {
    "gradient-nan": gradient_nan,
    "worse-than-constant": worse_than_constant,
    "chains-divergent": chains_divergent,
    "chains-heated": chains_heated,
    "chains-apart": chains_apart,
    "point-start": point_start,
    "draws-agree": draws_agree,
    "kl-still": kl_still,
    "bound-underfitted": bound_underfitted,
    "bound-below-constant": bound_below_constant,
    "still-rising": still_rising,
    "noise-drowns-drift": noise_drowns_drift,
    "diffusion-gone": diffusion_gone,
    "band-holds-all": band_holds_all,
    "coverage-off": coverage_off,
    "confidence-off": confidence_off,
    "known-by-heart": known_by_heart,
    "weights-at-prior": weights_at_prior,
    "gradient-noise": gradient_noise,
    "wrong-num-data": wrong_num_data,
    "coarse-step": coarse_step,
    "reversible-gap": reversible_gap,
}
"""By the name of the fault, the gravest first."""


def diagnose(
    fit: Fitted,
    split: Any,
    *,
    key: PRNGKeyArray,
    num_draws: int = 8,
    num_rows: int = 500,
    history: dict[str, np.ndarray] | None = None,
    num_data: int | None = None,
    train: Split | None = None,
    prediction: Prediction | None = None,
    bound: tuple[float, float] | None = None,
) -> Diagnosis:
    r"""Say in words when a posterior is not one.

    | finding | what is wrong | for |
    |---|---|---|
    | `gradient-nan` | NaN or infinity in records, parameters, gradients | all |
    | `point-start` | a point $w_0$ carries the fit: q is p on paths | `SDEBNN` |
    | `draws-agree` | all draws are one function | random ones |
    | `worse-than-constant` | a constant guess has the better NLL | `train` |
    | `chains-divergent` | samples follow divergent steps | chains of trajectories |
    | `chains-heated` | noise of batches above the kernel's own | minibatches |
    | `chains-apart` | chains say different things: R-hat of outputs | chains |
    | `kl-still` | the KL never moved | those with a KL, and a history |
    | `bound-underfitted` | the KL is more than data could pay for | those with a KL |
    | `bound-below-constant` | a constant guess has more evidence | `train`, a KL |
    | `still-rising` | the bound rose until training stopped | a history, a KL |
    | `noise-drowns-drift` | the path decides the output, not the input | `SDEBNN` |
    | `diffusion-gone` | scales shrunk to nothing | families with scales |
    | `band-holds-all` | the 90 % band holds every target | real targets |
    | `coverage-off` | bands hold too few targets, or too many | real targets |
    | `confidence-off` | confidence is not accuracy, in all or by bins | classes |
    | `known-by-heart` | more parameters than rows feed, by the NLL's gap | `train` |
    | `weights-at-prior` | more weights than rows feed, by their KL | `MeanField` |
    | `gradient-noise` | gradients without signal, by group | a history |
    | `wrong-num-data` | the loss miscounts examples | a history and `num_data` |
    | `coarse-step` | half the step moves the prediction | `Fixed` steps |
    | `reversible-gap` | a solver's two states have parted | `ReversibleHeun` |

    Each threshold is a named constant, with its reason, in the file of its check. That
    nothing is found proves nothing; `evaluate` on held-out rows is the other half.

    Args:
        fit: what `fit` or `sample` returned, or whatever else `predict` takes.
        split: rows that the fit should do well on, held out or not: has `x` and `y`.
        key: which rows and functions.
        num_draws: functions to look at.
        num_rows: rows to look at, chosen at random of more.
        history: records of training, by name, as `Fit.history`, from where it is taken
            by default.
        num_data: examples in the whole data set that the fit was trained on, each
            counted once; those of `train` by default.
        train: what the fit was trained on, for what is compared with a constant guess
            or with training rows. Without it these findings are left out.
        prediction: of all rows of `split`, with its draws, for what is said of bands,
            probabilities and the NLL (of 2,000 rows at most). By default, and in place
            of one of fewer draws, 32 draws on `num_rows` rows are made for that.
        bound: the ELBO of `train` and its standard error, as `evidence_bound` gives
            them; by default estimated from 2,000 rows of it.

    Raises:
        ValueError: for data or counts that cannot be.
    """
    check_fitted(fit)
    check_key(key)
    check_positive(num_draws=num_draws, num_rows=num_rows)
    x, y = check_data(split, "split")
    if train is not None:
        check_data(train, "train")
    rows_key, draws_key = jax.random.split(key)
    num_all = jax.tree.leaves(x)[0].shape[0]
    scored = None
    if prediction is not None and prediction.outputs is not None:
        if prediction.num_rows != num_all:
            raise ValueError(
                f"`prediction` has {prediction.num_rows} rows and `split` has "
                f"{num_all}: give the prediction of the same rows, in their order."
            )
        rows = some_rows(num_all, SCORED_ROWS, key=rows_key)
        take = lambda a: jnp.asarray(a[rows])
        outputs = jax.tree.map(lambda a: a[:, rows], prediction.outputs)
        scored = Prediction(outputs, prediction.likelihood), jax.tree.map(take, y)
    chosen = some_rows(num_all, num_rows, key=rows_key)
    x, y = jax.tree.map(lambda a: jnp.asarray(a[chosen]), (x, y))
    if num_data is None and train is not None:
        num_data = len(train)
    if history is None:
        history = fit.history if isinstance(fit, Fit) else {}
    evidence = Evidence(
        fit.for_draws(num_draws) if isinstance(fit, FittedByDraw) else fit,
        x,
        y,
        key=draws_key,
        num_draws=num_draws,
        history=history,
        num_data=num_data,
        whole=fit,
        scored=scored,
        train=train,
        bound=bound,
    )
    findings, numbers = [], {}
    for name, check in CHECKS.items():
        checked = check(evidence)
        numbers |= checked.numbers
        if checked.message is not None:
            findings.append(Finding(name, checked.message, checked.numbers))
    return Diagnosis(tuple(findings), numbers)
