"""What a recipe makes of a network once it is trained."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._sentence import Sentence
from ..._types import PRNGKeyArray
from ...data import Data
from ...functions import MAP, AbstractRandomFunction, Deterministic
from ...likelihood import (
    AbstractLikelihood,
    AbstractLocationScaleLikelihood,
    Gaussian,
    Weighted,
    WeightedTargets,
)
from ...train import (
    MAX_JOINT_WEIGHTS,
    AbstractStructure,
    DiagonalGGN,
    Fit,
    FullGGN,
    LastLayer,
    NonFiniteError,
    fit_laplace,
    fit_swag,
    laplace_like,
    swag_like,
)
from .._recipe import Recipe
from ..options import CurvatureName

_MAX_FULL = 2_000
"""Weights whose full covariance is a matter of seconds."""

STRUCTURES: dict[CurvatureName, Callable[[], AbstractStructure]] = {
    "full": FullGGN,
    "last-layer": LastLayer,
    "diagonal": DiagonalGGN,
}
"""By what the option says."""


class Posthoc(NamedTuple):
    """How a family is made of a trained network.

    Attributes:
        make: from the recipe, data, a fit, a key, and what else training had.
        like: from the recipe, the network as it was built and the likelihood to the
            structure of what `make` returns, for a file to be read into.
    """

    make: Callable[..., Fit]
    like: Callable[[Recipe, Any, AbstractLikelihood], AbstractRandomFunction]


def laplace_structure(
    recipe: Recipe, model: Deterministic | MAP, likelihood: AbstractLikelihood
) -> AbstractStructure:
    """What the option says; auto is one that can be.

    Of classes all weights together are underconfident: linearised around weights that
    tell the classes apart, outputs vary by more than the network's own. The NLL of five
    folds each (all in view) is 0.18, 0.19 and 0.14 on wine, iris and breast cancer, and
    with the last layer 0.09, 0.14 and 0.08. Of numbers the last layer, whose features
    have learned the noise, is too narrow: 13.9 for 5.8 on diabetes.

    Args:
        recipe: of the model.
        model: the network, trained or not.
        likelihood: of the data.
    """
    name = recipe.posthoc.curvature
    if name == "auto":
        weights = jax.tree.leaves(eqx.filter(model.network, eqx.is_inexact_array))
        is_small = sum(leaf.size for leaf in weights) <= _MAX_FULL
        is_full = is_small and isinstance(likelihood, Gaussian)
        name = "full" if is_full else "last-layer"
        if STRUCTURES[name]().num_weights(model.network) > MAX_JOINT_WEIGHTS:
            name = "diagonal"
    return STRUCTURES[name]()


def _laplace(
    recipe: Recipe, data: Data, fit: Fit, *, key: PRNGKeyArray, augmentation: Any
) -> Fit:
    del key, augmentation  # it is of the rows as they are
    model: Any = fit.model
    return fit_laplace(
        fit,
        data.train,
        structure=laplace_structure(recipe, model, fit.likelihood),
        empirical_bayes=True,  # of the prior that it was trained with, too
        linearised=recipe.posthoc.linearised,
    )


def _laplace_like(
    recipe: Recipe, model: MAP, likelihood: AbstractLikelihood
) -> AbstractRandomFunction:
    structure = laplace_structure(recipe, model, likelihood)
    return laplace_like(
        model, structure=structure, linearised=recipe.posthoc.linearised
    )


def _swag(
    recipe: Recipe, data: Data, fit: Fit, *, key: PRNGKeyArray, augmentation: Any
) -> Fit:
    options, rate = recipe.training, recipe.posthoc.swag_rate
    mean = _mean_weight(data)
    # Nesterov's decay is a gradient, as SGD's is, in these units: see `fit_table`.
    # AdamW's and Muon's is none, and SGD would leave what they found.
    decay = options.weight_decay if options.optimiser == "nesterov" else 0.0
    try:
        return fit_swag(
            fit,
            data.train,
            key=key,
            learning_rate=rate * _noise_factor(fit.likelihood) / mean,
            num_epochs=recipe.posthoc.swag_epochs,
            batch_size=options.batch_size,
            weight_decay=decay,
            augmentation=augmentation,
        )
    except NonFiniteError as error:
        raise NonFiniteError(
            Sentence(
                "The weights stopped being numbers in the epochs of SGD after "
                "training: use a lower {swag_rate} than {:g}.",
                rate,
            )
        ) from error


def _noise_factor(likelihood: AbstractLikelihood) -> float:
    r"""From a rate for squared errors to one for the loss of numbers.

    The loss curves as $J^T J / \sigma^2$: where the noise was learned to be 1 % of the
    targets, ten thousand times as much as the squared errors for which rates of 0.01
    are known.
    """
    base = likelihood.base if isinstance(likelihood, Weighted) else likelihood
    if not isinstance(base, AbstractLocationScaleLikelihood):
        return 1.0
    return min(1.0, float(jnp.mean(base.scale)) ** 2)


def _mean_weight(data: Data) -> float:
    """How much a row counts on average, and a gradient with it, padding among them."""
    targets = data.train.y
    is_weighted = isinstance(targets, WeightedTargets)
    return float(np.mean(targets.weight)) if is_weighted else 1.0


def _swag_like(
    recipe: Recipe, model: Deterministic, likelihood: AbstractLikelihood
) -> AbstractRandomFunction:
    del likelihood
    return swag_like(model, num_epochs=recipe.posthoc.swag_epochs, rank=None)


LAPLACE = Posthoc(_laplace, _laplace_like)
SWAG_OF = Posthoc(_swag, _swag_like)
