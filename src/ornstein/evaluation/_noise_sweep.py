"""Uncertainty over growing noise in the inputs: Trinh et al. (2020), section 3.5."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import scipy

from .._types import PRNGKeyArray
from ..data import Split, mix_with_noise, salt_and_pepper
from ..likelihood import AbstractClassLikelihood
from ..prediction import Fitted, predict
from ._evaluate import evaluate

GAMMAS = tuple(i / 10 for i in range(11))
"""Shares of Gaussian noise in the mixture."""

FRACTIONS = tuple(i / 20 for i in range(11))
"""Of salt and pepper among an image's numbers."""

_SCORES = ("entropy", "aleatoric", "epistemic", "accuracy", "nll")


def noise_sweep(
    fit: Fitted,
    split: Split,
    *,
    key: PRNGKeyArray,
    num_draws: int,
    gammas: Sequence[float] = GAMMAS,
    fractions: Sequence[float] = FRACTIONS,
) -> list[dict[str, Any]]:
    """What a fit says of rows that turn into noise.

    One noise of each kind for all intensities, and the same functions. Salt and pepper,
    for images alone, set each number to the lowest or highest of its channel in
    `split`: black or white there, where the paper's 0 or 1 are those of raw pixels.

    Args:
        fit: of classes.
        split: standardised test rows.
        key: of the noise, and which functions.
        num_draws: functions averaged over.
        gammas: of `mix_with_noise`.
        fractions: of `salt_and_pepper`.

    Returns:
        A row for each kind of `noise` (`"gaussian"`, `"salt-and-pepper"`) and each
        `intensity`: means over rows of the predictive `entropy` and its `aleatoric` and
        `epistemic` parts (equations 25 to 27, nats), `accuracy` and `nll`.

    Raises:
        ValueError: for a fit of something else than classes.

    References:
        Trinh, Kaski & Heinonen (2020), "Scalable Bayesian neural networks by layer-wise
        input augmentation", equation 28 and figure 8.
    """
    if not isinstance(fit.likelihood, AbstractClassLikelihood):
        raise ValueError(
            "A sweep of noise is about the entropy of classes, and this fit has a "
            f"`{type(fit.likelihood).__name__}` likelihood: give one of classes."
        )
    draws_key, *noise_keys = jax.random.split(key, 3)
    kinds: dict[str, tuple[Callable[..., jax.Array], Sequence[float]]] = {
        "gaussian": (mix_with_noise, gammas)
    }
    if split.x.ndim == 4:
        salt = partial(salt_and_pepper, whole_pixels=False)
        kinds["salt-and-pepper"] = (salt, fractions)
    rows = []
    for (noise, (corrupt, intensities)), noise_key in zip(
        kinds.items(), noise_keys, strict=False
    ):
        for intensity in intensities:
            x = np.asarray(corrupt(split.x, intensity, key=noise_key))
            prediction = predict(fit, x, key=draws_key, num_draws=num_draws)
            scores = evaluate(prediction, split.y)
            row = {name: scores[name] for name in _SCORES}
            rows.append({"noise": noise, "intensity": intensity, **row})
    return rows


def entropy_correlation(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Spearman's rho of the entropy and the intensity, for each kind of noise.

    1 where entropy rises from each intensity to the next; NaN where it never changes.

    Args:
        rows: what `noise_sweep` returned.
    """
    found = {}
    for noise in dict.fromkeys(row["noise"] for row in rows):
        own = [row for row in rows if row["noise"] == noise]
        ranks = [
            scipy.stats.rankdata([row[name] for row in own])
            for name in ("intensity", "entropy")
        ]
        is_constant = min(map(np.ptp, ranks)) == 0
        rho = math.nan if is_constant else float(np.corrcoef(*ranks)[0, 1])
        found[noise] = rho
    return found
