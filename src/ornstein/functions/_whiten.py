"""A stochastic equation's prior as a network over independent standard normals."""

import math
import numbers
from typing import Any, overload

from .._types import ArrayLike, Float
from ..data import Series
from ._base import AbstractRandomFunction
from .depth import (
    SDEBNN,
    AbstractPathCoordinates,
    GridIncrements,
    WhitenedSDEBNN,
    whitened_sdebnn,
)
from .latent import LatentSDE, WhitenedLatentSDE, whitened_latent_sde


@overload
def whiten(
    model: SDEBNN,
    coordinates: AbstractPathCoordinates | None = None,
    *,
    point_scale: float = 1.0,
) -> WhitenedSDEBNN: ...


@overload
def whiten(
    model: LatentSDE,
    coordinates: AbstractPathCoordinates | None = None,
    *,
    point_scale: float | None = 1.0,
    ts: Float[ArrayLike, "..."] | Series,
) -> WhitenedLatentSDE: ...


def whiten(
    model: AbstractRandomFunction,
    coordinates: AbstractPathCoordinates | None = None,
    *,
    point_scale: float | None = 1.0,
    ts: Float[ArrayLike, "..."] | Series | None = None,
) -> WhitenedSDEBNN | WhitenedLatentSDE:
    r"""The prior of an SDE-BNN, or of a latent SDE of one series, as a plain network.

    Of an `SDEBNN`, what the prior says of $w_0$ and of the path is kept: its scales,
    its rate, its window, what it reverts to. Transitions from one time of the grid to
    the next are exact, where the model's own solver approximates them, so that with
    `GridIncrements()` draws of both agree in law up to the solver's error, and exactly
    for Brownian motion. Fewer modes than steps are another prior, of smoother and
    narrower paths: see `LevyCiesielski`. What was a point estimate (the readout,
    weights that `where` did not choose) gets a prior: normal, of standard deviation
    `point_scale` / √fan-in. The drift network, inducing inputs and the width of
    $q(w_0)$ are of the model's own posterior, and are dropped.

    Of a `LatentSDE`, p(z₀) and the diffusion are kept as the model has them, and so is
    a drift that is a named process. The prior's drift network and the decoder are
    points: they get a prior as above, or with `point_scale=None` are kept too, which
    is for a law of motion that is known, or was trained on other series. Steps are
    those of the model's solver, and the same normals give the same path. Recognition
    and the posterior's drift are dropped. The network takes times, one a row, or a
    `Series` of one row; it is one path, so that each series needs a network and chains
    of its own.

    The network starts where the model does: at the mean of its $w_0$ or $z_0$ and at
    its points, on the path without noise.

    Args:
        model: any SDE-BNN: of vectors or images, of several blocks, with a window or
            with points among its weights; or a latent SDE.
        coordinates: of the paths; `GridIncrements()`, the increments of the solver's
            own steps, or `LevyCiesielski(num_modes)`, which serves any step.
        point_scale: of the points' prior, in units of 1/√fan-in; `None`, for a latent
            SDE only, keeps them as they are.
        ts: for a latent SDE, and only for it: the times of the series, and all others
            at which its path may be asked for; or the series. The path begins at the
            first.

    Returns:
        The network, all of whose floating-point arrays are N(0, 1) a priori.

    Raises:
        TypeError: for another model, or `ts` that the model has no use for.
        NotImplementedError: for several series.
        ValueError: for a scale that is not positive, steps that are not known
            beforehand, a grid of one's own, a solver or gradient that a given path
            cannot have, or coordinates that the steps do not fit.

    Example:
        >>> import jax, jax.numpy as jnp, ornstein as orn
        >>> model = orn.SDEBNN.for_vectors(3, 1, key=jax.random.key(0))
        >>> network = orn.whiten(model, orn.LevyCiesielski(num_modes=4))
        >>> network(jnp.ones((5, 3))).shape
        (5, 1)
        >>> latent = orn.LatentSDE.make(
        ...     orn.functions.NoRecognition(2), 1, key=jax.random.key(0)
        ... )
        >>> network = orn.whiten(latent, ts=jnp.linspace(0.0, 1.0, 6))
        >>> network(jnp.array([0.2, 1.0])).shape
        (2, 1)
    """
    wanted = GridIncrements() if coordinates is None else coordinates
    if not isinstance(wanted, AbstractPathCoordinates):
        raise TypeError(
            "`coordinates` must be an object such as `LevyCiesielski(num_modes=8)`, "
            f"got {wanted!r}."
        )
    if isinstance(model, LatentSDE):
        if point_scale is not None:
            _check_scale(point_scale)
        if ts is None:
            raise TypeError(
                "`whiten` of a `LatentSDE` needs `ts`: the times of its series, and "
                "those that are to be predicted."
            )
        return whitened_latent_sde(model, wanted, ts=ts, point_scale=point_scale)
    if not isinstance(model, SDEBNN):
        raise TypeError(
            f"`whiten` takes an `SDEBNN` or a `LatentSDE`, got "
            f"`{type(model).__name__}`: other networks have no path of noise; their "
            "parameters have a prior of their own."
        )
    if ts is not None:
        raise TypeError(
            "`ts` are times of a `LatentSDE`'s series, and depth runs from 0 to 1: "
            "leave it out for an `SDEBNN`."
        )
    return whitened_sdebnn(model, wanted, point_scale=_check_scale(point_scale))


def _check_scale(point_scale: Any) -> float:
    is_number = isinstance(point_scale, numbers.Real)
    if not is_number or not 0 < float(point_scale) < math.inf:
        raise ValueError(
            f"`point_scale` must be a positive number, got {point_scale!r}."
        )
    return float(point_scale)
