"""Fits of a network whose weights are points: what posteriors are made of."""

import dataclasses
from typing import Any

from ...functions import MAP, AbstractRandomFunction, Deterministic
from ...likelihood import AbstractLikelihood
from ...network import check_parameters
from .._fit import Fit


def check_points(fit: Any, name: str) -> None:
    """Refuse what is no fit of a network whose weights are points.

    Args:
        fit: what was given.
        name: of the function that it was given to.

    Raises:
        TypeError: saying what to give.
        ValueError: for a network without parameters.
    """
    write = "orn.prediction.FittedModel(orn.Deterministic(network), orn.Gaussian(0.1))"
    if not (hasattr(fit, "model") and hasattr(fit, "likelihood")):
        raise TypeError(
            f"`{name}` takes a fit, got {type(fit).__name__}: give what `orn.fit` "
            f"returned, or {write}."
        )
    if not isinstance(fit.model, Deterministic | MAP):
        raise TypeError(
            f"`{name}` takes a fit of `Deterministic` or `MAP`, got one of "
            f"`{type(fit.model).__name__}`: train `orn.Deterministic(network)` (each "
            "member of an ensemble by itself)."
        )
    check_parameters(fit.model, "to be random (floating-point arrays)")


def with_model(
    fit: Any,
    model: AbstractRandomFunction,
    likelihood: AbstractLikelihood,
    *,
    own_notes: tuple[str, ...] = (),
) -> Fit:
    """A fit with what was made of it, and the records of its training, if it has any.

    Args:
        fit: that it was made of.
        model: what was made.
        likelihood: of the targets.
        own_notes: sentences about how it was made.
    """
    notes = (*model.posterior_parts().notes, *own_notes)
    if not isinstance(fit, Fit):
        return Fit(model, likelihood, fit.state, {}, notes=notes)
    notes = (*fit.notes, *(note for note in notes if note not in fit.notes))
    made = {"model": model, "likelihood": likelihood, "notes": notes}
    return dataclasses.replace(fit, **made, ema=None)
