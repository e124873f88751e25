"""What weights and hidden units do over depth, of any function that has a depth."""

from typing import Any

from .._types import Array, ArrayLike, Float, PRNGKeyArray
from ._base import AbstractRandomFunction
from .depth import SDEBNN, DepthState


def trajectory(
    model: AbstractRandomFunction,
    x: Float[Array, "batch ..."],
    ts: Float[ArrayLike, " times"],
    *,
    key: PRNGKeyArray,
    index: int | Array = 0,
) -> list[DepthState]:
    """States over depth of one draw: of an `SDEBNN`, or of samples or a fit over one.

    Args:
        model: an `SDEBNN`; or `PosteriorSamples`, `MeanField`, `SWAG`, `Ensemble` or
            `Deterministic` of a network with a depth (`WhitenedSDEBNN`, `ODENet`).
        x: the batch.
        ts: depths, multiples of the step; the first is 0, the last is 1.
        key: which functions.
        index: which draw.

    Returns:
        The states of each block; depth is the leading axis.

    Raises:
        TypeError: for a function without a depth.
        ValueError: depths that do not begin at 0 and end at 1.
    """
    if isinstance(model, SDEBNN):
        return model.trajectory(x, ts, key=key, index=index)
    network_at = getattr(model, "network_at", None)
    network: Any = None if network_at is None else network_at(index, key=key)
    if not hasattr(network, "trajectory"):
        what = type(model if network is None else network).__name__
        raise TypeError(
            f"`trajectory` needs a function that solves an equation over depth, such "
            f"as an `SDEBNN`, or samples of `whiten(model)`; got `{what}`. (A network "
            "by itself has a method `trajectory`, or give `Deterministic(network)`; "
            "the path of a whitened `LatentSDE` is in `latent_paths`.)"
        )
    return network.trajectory(x, ts)
