"""What latent SDEs and latent ODEs share: series in, where a path begins, checks."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr

from ..._types import Array, ArrayLike, Float, PRNGKeyArray, PyTree
from ...data import Series
from ...sde import (
    AbstractPathKL,
    Adaptive,
    Grid,
    gaussian_kl,
    name_of,
    stepper_for,
)
from .._base import draw_key
from ..depth import Integrator
from ._diffusion import AbstractDiffusion
from ._recognition import AbstractContext, AbstractRecognition
from ._start import LatentStart

_Path = TypeVar("_Path")


class PriorSamples(NamedTuple):
    """What a model expects before it sees data.

    Attributes:
        z: latent paths.
        output: the likelihood's parameters along them.
    """

    z: Float[Array, "samples times latent"]
    output: Float[Array, "samples times outputs"]


class PathStart(NamedTuple):
    """Where the latent path of one series begins.

    Attributes:
        ts: its times.
        last: the time of its last observation.
        z: a draw from q(z₀).
        mean: of q(z₀).
        context: for the posterior's drift.
        kl: KL(q(z₀) ‖ p(z₀)) as the estimator has it, nats.
        kl_initial: the same in closed form.
    """

    ts: Float[Array, " times"]
    last: Float[Array, ""]
    z: Float[Array, " latent"]
    mean: Float[Array, " latent"]
    context: AbstractContext
    kl: Float[Array, ""]
    kl_initial: Float[Array, ""]


def start_path(
    recognition: AbstractRecognition,
    start: LatentStart,
    estimator: AbstractPathKL,
    series: Series,
    *,
    key: PRNGKeyArray,
) -> PathStart:
    """Encode one series (without an axis of rows) and draw z₀."""
    dtype = start.mean.dtype
    ts, mask = jnp.asarray(series.ts, dtype), jnp.asarray(series.mask)
    values = jnp.where(mask, jnp.asarray(series.values, dtype), 0)
    seen = recognition(ts, values, mask)
    mean = start.mean if seen.mean is None else seen.mean
    scale = start.scale if seen.scale is None else seen.scale
    z = mean + scale * jr.normal(key, mean.shape, mean.dtype)
    gaussians = (mean, scale, start.mean, start.scale)
    last = jnp.max(jnp.where(jnp.any(mask, axis=-1), ts, ts[0]))
    kl = estimator.gaussian(z, *gaussians)
    closed = gaussian_kl(*gaussians)
    return PathStart(ts, last, z, mean, seen.context, kl, closed)


def over_rows(
    path: Callable[[Series, PRNGKeyArray], _Path],
    x: Series,
    *,
    key: PRNGKeyArray,
    index: int | Array | None,
) -> _Path:
    """`path` of every series: with keys of their own in training, or one for all."""
    # `Series.of` leaves NumPy arrays, which a gradient of our own may not close over.
    x = jax.tree.map(jnp.asarray, x)
    if index is None:
        return jax.vmap(path)(x, jr.split(key, len(x)))
    return jax.vmap(path, (0, None))(x, draw_key(key, index))


def check_series(x: PyTree):
    """Refuse inputs that are not rows of series."""
    if not isinstance(x, Series) or x.values.ndim != 3:
        raise TypeError(
            f"A latent model takes a `Series` with rows first, got "
            f"{type(x).__name__}: write `orn.Series.of(ts, values)`."
        )


def check_integrator(integrator: Integrator):
    """Refuse steps that times of data cannot be met with."""
    steps = integrator.stepsize
    is_free_grid = isinstance(steps, Grid) and steps.ts is None
    if not is_free_grid and not isinstance(steps, Adaptive):
        raise ValueError(
            f"A latent model steps from one time of its series to the next, got "
            f"{steps!r}: write `orn.sde.Grid(num_substeps=4)` or `Adaptive()`."
        )
    if integrator.roughness_order:
        raise ValueError(
            "The dynamics of latent models are not regularised: leave "
            "`regularise_dynamics` out."
        )


def check_ito(diffusion: AbstractDiffusion, solver: diffrax.AbstractSolver):
    """Refuse a Stratonovich solver of an equation that is Itô's."""
    if diffusion.depends_on_state and not stepper_for(solver).is_ito:
        raise ValueError(
            f"`{type(diffusion).__name__}` depends on the state, so that the "
            f"latent equation is Itô's, and `{name_of(solver)}` solves "
            "Stratonovich's: use `EulerMaruyama()` or `Milstein()`, or a "
            "`ConstantDiffusion`."
        )


def check_sizes(recognition: AbstractRecognition, start: LatentStart):
    """Refuse parts that disagree on the size of z."""
    if recognition.latent_size != start.mean.size:
        raise ValueError(
            f"The recognition gives {recognition.latent_size} latent dimensions and "
            f"p(z₀) has {start.mean.size}: build both with one `latent_size`."
        )


def path_times(ts: Float[ArrayLike, " times"], dtype: jnp.dtype) -> Array:
    """Times as an array of the state's type, checked to be several."""
    times = jnp.asarray(ts, dtype)
    if times.ndim != 1 or times.shape[0] < 2:
        raise ValueError(
            f"`ts` must be at least two times, got shape {times.shape}: the first is "
            "where paths begin."
        )
    return times
