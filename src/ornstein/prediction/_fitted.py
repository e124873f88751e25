"""What a fit is to whoever predicts with it."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx

from ..functions import AbstractRandomFunction
from ..likelihood import AbstractLikelihood


@runtime_checkable
class Fitted(Protocol):
    """What `predict` needs: a random function, its likelihood, its batch state."""

    @property
    def model(self) -> AbstractRandomFunction:
        """The random function."""
        ...

    @property
    def likelihood(self) -> AbstractLikelihood:
        """What an output says about a target."""
        ...

    @property
    def state(self) -> eqx.nn.State | None:
        """Batch statistics, for a model that has them."""
        ...


@runtime_checkable
class FittedByDraw(Protocol):
    """A `Fitted` of many stored functions, of which few may be drawn."""

    def for_draws(self, num_draws: int) -> Fitted:
        """What draws 0 to `num_draws - 1` need; a scale may be each draw's own."""
        ...


class FittedModel(NamedTuple):
    """The least that is a `Fitted`: a model from a file, a relative, one's own.

    Attributes:
        model: the random function.
        likelihood: of the targets.
        state: batch statistics, or `None`.
    """

    model: AbstractRandomFunction
    likelihood: AbstractLikelihood
    state: eqx.nn.State | None = None


def check_fitted(fit: Any) -> None:
    """Refuse what is no fit, such as a network or a random function alone.

    Raises:
        TypeError: saying what to give.
    """
    is_fit = hasattr(fit, "model") and hasattr(fit, "state")
    if not (is_fit or isinstance(fit, FittedByDraw)):  # samples compute theirs
        raise TypeError(
            f"`fit` must be what `orn.fit` or `orn.sample` returned, got "
            f"{type(fit).__name__}: of a random function alone write "
            "orn.prediction.FittedModel(model, likelihood)."
        )
