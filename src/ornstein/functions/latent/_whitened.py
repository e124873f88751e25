r"""A latent SDE of one series as a network over numbers that are N(0, 1) a priori.

The latent path z is a function of its start and of its Brownian path: of $\xi$, the
standardised $z_0$ and the path's coordinates of `_path_coordinates.py`, whose prior is
$N(0, I)$. The network maps times to what the decoder makes of z there. So every way to
a posterior is one for the path: `sample`, `MeanField`, `SWAG`, `Ensemble`, `fit`.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..._types import Array, ArrayLike, Float, PyTree, RealScalar
from ...data import Series
from ...network import SolveReport
from ...sde import (
    AbstractGridStepsize,
    Solution,
    check_given_noise,
    grid_of,
    solve_given_noise,
)
from .._base import FROZEN
from .._standardised import Held, Standardised
from ..depth import AbstractPathCoordinates, Integrator, report_of
from ._diffusion import AbstractDiffusion
from ._latent_sde import LatentSDE
from ._path import check_integrator, check_ito

_SHARE_OF_STEP = 1e-3
"""How far from a time of the grid is still that time, in the grid's shortest step."""


class WhitenedLatentSDE(eqx.Module):
    r"""A latent SDE's prior of one path, in coordinates $\xi$ whose prior is $N(0, I)$.

    A plain network: `x` is times of the solve's grid, one a row, and the output what
    the decoder makes of z there; or `x` is a `Series` of one row, for `OverTime` and
    its mask. Every floating-point array of it is standard normal a priori
    (`GaussianPrior(1.0)`). One $\xi$ is one path, of one series. `whiten` makes it, and
    says what is kept; `latent_paths` gives z itself, of samples and fits over it too.

    Attributes:
        start: z₀, standardised by p(z₀).
        path: coordinates of the Brownian path of each latent dimension.
        drift: `(t, z)` to the prior's drift.
        decoder: from z to the likelihood's parameters.
        diffusion: `(t, z)` to the prior's diffusion.
        prior_start: p(z₀).
        coordinates: what the path's coordinates are.
        ts: times at which the path can be asked for; it begins at the first.
        integrator: solver, `Grid(num_substeps=...)` and gradient.
    """

    start: Float[Array, " latent"]
    path: Float[Array, "coordinates latent"]
    drift: Standardised | Held
    decoder: Standardised | Held
    diffusion: Held
    prior_start: Held
    coordinates: AbstractPathCoordinates
    ts: tuple[float, ...] = eqx.field(static=True)
    integrator: Integrator

    def __call__(self, x: PyTree[Array | np.ndarray]) -> Float[Array, "... outputs"]:
        """Apply to times, one a row, or to a `Series` of one row."""
        return self.solve(x)[0]

    def solve(
        self, x: PyTree[Array | np.ndarray]
    ) -> tuple[Float[Array, "... outputs"], SolveReport]:
        """The output at times, and what solving cost.

        Raises:
            NotImplementedError: for several series.
            ValueError: for a time that is not on the grid.
        """
        wanted, is_series = _times_of(x)
        sol, grid = self._solution()
        output = self.decoder.module()(sol.ys[_places(wanted, grid)])
        return output[None] if is_series else output, report_of([sol], None)

    def latent_path(
        self, ts: Float[ArrayLike, " times"] | None = None
    ) -> Float[Array, "times latent"]:
        """The latent path at some times of the grid.

        Args:
            ts: the times; `None` for those that `whiten` was given.

        Raises:
            ValueError: for a time that is not on the grid.
        """
        sol, grid = self._solution()
        return sol.ys[_places(_known(self.ts if ts is None else ts), grid)]

    def parameter_parts(self) -> dict[str, Callable[[Any], PyTree]]:
        """Functions from this network to its parts: start, path, and points if any."""
        parts: dict[str, Callable[[Any], PyTree]] = {
            "start": lambda network: network.start,
            "path": lambda network: network.path,
        }
        if jax.tree.leaves(eqx.filter((self.drift, self.decoder), eqx.is_array)):
            parts["points"] = lambda network: (network.drift, network.decoder)
        return parts

    def _solution(self) -> tuple[Solution, Float[np.ndarray, " grid"]]:
        diffusion, how = self.diffusion.module(), self.integrator
        check_solve(how, diffusion)
        grid = _grid(how, self.ts, self.start.dtype)
        units = units_of(self.coordinates, grid, diffusion)
        xi = self.path
        if not np.array_equal(units, np.eye(*units.shape)):
            matrix = jnp.asarray(units, xi.dtype)
            xi = jnp.matmul(matrix, xi, precision=jax.lax.Precision.HIGHEST)
        steps = jnp.diff(jnp.asarray(grid, xi.dtype))
        prior_start, drift = self.prior_start.module(), self.drift.module()

        def noise(t: RealScalar, z: Array, args: Any) -> Array:
            del args
            return diffusion(t, z)

        def move(t: RealScalar, z: Array, args: Any) -> Array:
            del args
            return drift(t, z)

        sol = solve_given_noise(
            move,
            noise,
            prior_start.mean + prior_start.scale * self.start,
            xi * jnp.sqrt(steps)[:, None],
            grid,
            solver=how.solver,
            gradient=how.gradient,
        )
        return sol, grid


def whitened_latent_sde(
    model: LatentSDE,
    coordinates: AbstractPathCoordinates,
    *,
    ts: Float[ArrayLike, "..."] | Series,
    point_scale: float | None,
) -> WhitenedLatentSDE:
    """See `whiten`.

    Args:
        model: the latent SDE.
        coordinates: of the path.
        ts: times of the series, and others at which the path may be asked for; or
            the series.
        point_scale: of the points' prior in units of 1/√fan-in; `None` keeps them.

    Raises:
        NotImplementedError: for the times of several series.
        ValueError: for times that do not increase, steps that are not known beforehand,
            a solver or gradient that a given path has no use for, or coordinates that
            the steps do not fit.
    """
    check_solve(model.integrator, model.diffusion)
    zero = jnp.zeros_like(model.start.mean)
    times = _checked(ts, zero.dtype)
    grid = _grid(model.integrator, times, zero.dtype)
    window = (float(grid[0]), float(grid[-1]))
    try:
        bound = coordinates.on_grid(grid, window)
    except ValueError as error:
        raise _does_not_fit(coordinates, grid) from error
    units_of(bound, grid, model.diffusion)
    labels = model.labels()

    def points(module: PyTree, labels: PyTree[str]) -> Standardised | Held:
        is_trained = lambda a, label: eqx.is_inexact_array(a) and label != FROZEN
        if point_scale is None or not any(
            jax.tree.leaves(jax.tree.map(is_trained, module, labels))
        ):
            return Held.of(module)
        return Standardised.of(module, point_scale)

    return WhitenedLatentSDE(
        start=zero,
        path=jnp.zeros((bound.count(window), zero.size), zero.dtype),
        drift=points(model.prior_drift, labels.prior_drift),
        decoder=points(model.decoder, labels.decoder),
        diffusion=Held.of(model.diffusion),
        prior_start=Held.of(model.start),
        coordinates=bound,
        ts=times,
        integrator=model.integrator,
    )


def check_solve(integrator: Integrator, diffusion: AbstractDiffusion):
    """Refuse steps, solvers and gradients that a path of given numbers cannot have."""
    if not isinstance(integrator.stepsize, AbstractGridStepsize):
        raise ValueError(
            f"A path that is made of numbers needs steps that are known beforehand, "
            f"got `{type(integrator.stepsize).__name__}`: use "
            "`orn.sde.Grid(num_substeps=4)`."
        )
    check_integrator(integrator)
    check_ito(diffusion, integrator.solver)
    check_given_noise(integrator.solver, integrator.gradient)


def units_of(
    coordinates: AbstractPathCoordinates,
    grid: Float[np.ndarray, " grid"],
    diffusion: AbstractDiffusion,
) -> Float[np.ndarray, "steps coordinates"]:
    """From coordinates to standardised increments of the steps of a solve.

    An Itô solver counts on increments of variance $dt$. Those of a path of few modes
    have less, and in the limit of short steps the solution is Stratonovich's (Wong &
    Zakai, 1965): with noise that depends on the state, the drift is off by $g g' / 2$.

    Raises:
        ValueError: for coordinates that the steps do not fit, or that make another
            equation.
    """
    try:
        units = coordinates.units(grid, (float(grid[0]), float(grid[-1])))
    except ValueError as error:
        raise _does_not_fit(coordinates, grid) from error
    if diffusion.depends_on_state:
        is_whole = np.allclose(units @ units.T, np.eye(len(units)), atol=1e-3)
        if not is_whole:
            raise ValueError(
                f"`{type(diffusion).__name__}` depends on the state, so that the "
                "latent equation is Itô's, and a path of a few modes would make it "
                "Stratonovich's: use `GridIncrements()`, or a `ConstantDiffusion`."
            )
    return units


def _does_not_fit(
    coordinates: AbstractPathCoordinates, grid: Float[np.ndarray, " grid"]
) -> ValueError:
    name, num = type(coordinates).__name__, len(grid) - 1
    return ValueError(
        f"`{name}` does not fit the {num} steps of this path: use `GridIncrements()`, "
        f"at most {num} modes of `LevyCiesielski`, or another "
        "`Grid(num_substeps=...)`, whose times increments must have among theirs."
    )


def _grid(
    integrator: Integrator, ts: tuple[float, ...], dtype: jnp.dtype
) -> Float[np.ndarray, " grid"]:
    """Between what times the solve steps: the model's own, to the last bit."""
    return grid_of(integrator.stepsize, np.asarray(ts, dtype))


def _checked(ts: Any, dtype: jnp.dtype) -> tuple[float, ...]:
    """The times as numbers of the state's type."""
    if isinstance(ts, Series) or np.ndim(ts) == 2:
        rows = np.asarray(ts.ts if isinstance(ts, Series) else ts)
        if len(rows) != 1:
            raise NotImplementedError(
                f"A whitened latent SDE is one path, and `ts` are the times of "
                f"{len(rows)} series: whiten the model for each series by itself."
            )
        ts = rows[0]
    times = np.asarray(ts, dtype)
    if times.ndim != 1 or len(times) < 2:
        raise ValueError(
            f"`ts` must be at least two times, got shape {times.shape}: the first is "
            "where the path begins."
        )
    if not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0):
        raise ValueError(
            f"`ts` must be finite and increase, each time once and apart in "
            f"{times.dtype}, got {np.asarray(ts)}: give `np.unique(times)`, and count "
            "from near the first."
        )
    return tuple(map(float, times))


def _times_of(x: Any) -> tuple[Any, bool]:
    """The times of a batch, and whether it was a series."""
    is_series = isinstance(x, Series)
    times = _known(x.ts if is_series else x)
    one_row = is_series and times.ndim == 2 and times.shape[0] == 1
    if not one_row and (is_series or times.shape[1:] not in ((), (1,))):
        what = f"a `Series` of times {times.shape}" if is_series else f"{times.shape}"
        raise NotImplementedError(
            f"A whitened latent SDE is one path, and takes one time a row, (rows,) or "
            f"(rows, 1), or a `Series` of one row, got {what}: whiten the model for "
            "each series by itself."
        )
    return times.reshape(-1), is_series


def _known(a: Any) -> Any:
    """A NumPy array where values are known, so that they are checked at once."""
    return a if isinstance(a, Tracer) else np.asarray(a)


def _places(wanted: Any, grid: Float[np.ndarray, " grid"]) -> Array | np.ndarray:
    """Where in the grid each time is."""
    is_known = not isinstance(wanted, Tracer)
    xp: Any = np if is_known else jnp
    dtype = jnp.result_type(float)
    times, wanted = xp.asarray(grid, dtype), wanted.astype(dtype)
    rounding = 4 * float(jnp.finfo(dtype).eps) * float(np.abs(grid).max())
    tolerance = _SHARE_OF_STEP * float(np.diff(grid).min()) + rounding
    after = xp.clip(xp.searchsorted(times, wanted), 1, len(grid) - 1)
    is_before = wanted - times[after - 1] < times[after] - wanted
    at = xp.where(is_before, after - 1, after)
    is_absent = ~(xp.abs(times[at] - wanted) <= tolerance)
    message = (
        "The path was asked for at a time that its solve does not step on: give all "
        "times of the data, and all that are to be predicted, as `ts` of `whiten`."
    )
    if not is_known:
        return eqx.error_if(at, is_absent, message)
    if is_absent.any():
        first = wanted[int(np.argmax(is_absent))]
        raise ValueError(f"{message[:-1]}; {first:g} is not among them.")
    return at
