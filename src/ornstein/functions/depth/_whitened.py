r"""An SDE-BNN as a plain network over numbers that are N(0, 1) a priori.

Weights, hidden units and outputs of an SDE-BNN are functions of its Brownian path, its
$w_0$ and its points; in the coordinates $\xi$ of `_path_coordinates.py` the prior of
all is $N(0, I)$. So the same model is a network like any other, and every way to a
posterior is one for paths of weights: `sample`, `MeanField`, `SWAG`, `Ensemble`, `fit`.
The posterior of Xu et al. (2022) is a drift network, which cannot pull weights one by
one (a bottleneck sees them all through a few numbers); these can.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._types import Array, ArrayLike, Float, Params, PyTree, RealScalar
from ...network import SolveReport, split_where
from ...sde import AbstractStepsize, grid_of, solve_driven
from .._standardised import Standardised
from ._grid_times import depths_by_window
from ._hidden_units import (
    DepthState,
    first_roughness,
    promoted,
    report_of,
    velocity,
    with_moving_weights,
)
from ._integrator import Integrator, check_no_grid
from ._odenet import AbstractDepthBlock, AbstractODENet
from ._path_coordinates import AbstractPathCoordinates
from ._sde_block import SDEBlock
from ._sdebnn import SDEBNN

_ENDS = np.array([0.0, 1.0])


class WhitenedBlock(AbstractDepthBlock):
    r"""One solve along the path of the weights that $\xi$ makes.

    Attributes:
        start: $w_0 / \rho$, in the structure of f_h's random weights.
        path: coordinates of each weight's path, which lead; `None` without noise.
        points: f_h without its random weights; what is left of it, standardised.
        coordinates: what the coordinates are.
        start_scale: $\rho$ of each weight.
        sigma: the diffusion of each weight.
        rate: $\theta$.
        integrator: how to solve.
        reverts_to_start: whether the prior's drift reverts to w₀.
        window: the depths between which weights have noise.
    """

    start: Params
    path: Params | None
    points: Standardised
    coordinates: AbstractPathCoordinates | None
    start_scale: PyTree[float]
    sigma: PyTree[float]
    rate: float = eqx.field(static=True)
    integrator: Integrator
    reverts_to_start: bool = eqx.field(static=True)
    window: tuple[float, float] = eqx.field(static=True)

    @property
    def is_noisy(self) -> bool:
        """Whether weights have noise at all."""
        return self.coordinates is not None

    def check_steps(self, stepsize: AbstractStepsize) -> None:
        """Refuse steps that the path does not know, before anything is solved.

        Args:
            stepsize: that a solve is to have.

        Raises:
            ValueError: for steps that are not known beforehand, that are arrays, or
                that increments of other steps do not have.
        """
        times = grid_of(stepsize, _with_window(_ENDS, self.window))
        # Arrays of steps would be taken for parameters that chains have not sampled.
        check_no_grid(stepsize)
        if self.coordinates is not None:
            self.coordinates.matrix(times, self.rate, self.window)

    def solve(
        self, h: Array, ts: Float[ArrayLike, " times"]
    ) -> tuple[DepthState, SolveReport]:
        """States at the given depths, which lead, and what the solve cost."""
        is_dense = len(ts) > 2  # pyright: ignore[reportArgumentType]
        times = grid_of(self.integrator.stepsize, _with_window(ts, self.window))
        weights = self.weights(times)
        points = self.points.module()
        h = promoted(h, (self.start, points))

        def drift(t: RealScalar, y: DepthState, w: Params) -> DepthState:
            f_h = eqx.combine(w, points)
            if self.integrator.roughness_order == 2 and not self.reverts_to_start:
                # Without noise weights decay from their start.
                dw = jax.tree.map(lambda a: -self.rate * a, w)
                f_h = with_moving_weights(w, dw, points)
            return DepthState(*velocity(f_h, t, y.hidden, self.integrator))

        sol = solve_driven(
            drift,
            DepthState(h, first_roughness(h, self.integrator)),
            weights,
            times,
            solver=self.integrator.solver,
            gradient=self.integrator.gradient,
            is_dense=is_dense,
        )
        wanted = _ENDS if not is_dense else np.asarray(ts, np.float64)
        at = np.abs(times[:, None] - wanted).argmin(0)
        units = at if is_dense else slice(None)
        states = jax.tree.map(lambda a: a[units], sol.ys)
        states = states._replace(weights=jax.tree.map(lambda a: a[at], weights))
        roughness = None if states.roughness is None else states.roughness[-1]
        return states, report_of([sol], roughness)

    def weights(self, times: Float[np.ndarray, " grid"]) -> Params:
        """The path of the weights at the times of a grid, which lead."""
        decay = np.exp(-self.rate * times)
        if self.reverts_to_start:
            decay = np.ones_like(times)

        def still(xi: Array, scale: float) -> Array:
            return jnp.tensordot(jnp.asarray(scale * decay, xi.dtype), xi, 0)

        w = jax.tree.map(still, self.start, self.start_scale)
        if self.path is None or self.coordinates is None:
            return w
        matrix = self.coordinates.matrix(times, self.rate, self.window)

        def moved(w: Array, xi: Array, sigma: float) -> Array:
            return w + jnp.tensordot(jnp.asarray(sigma * matrix, xi.dtype), xi, 1)

        return jax.tree.map(moved, w, self.path, self.sigma)


class WhitenedSDEBNN(AbstractODENet):
    r"""An SDE-BNN in coordinates $\xi$ whose prior is $N(0, I)$: a plain network.

    Every floating-point array of it is standard normal a priori (`GaussianPrior(1.0)`),
    so that `sample`, `MeanField`, `SWAG`, `Ensemble` and `fit` take it as they take an
    MLP. One $\xi$ is one path of the weights, which serves a whole batch. `whiten`
    makes it, and says what else its prior says. `with_solver` turns the dial of
    precision against speed afterwards too, of samples and fits over it as well.

    Attributes:
        layers: solves (`WhitenedBlock`) and fixed maps between them.
        readout: from hidden units to a likelihood's parameters, standardised.
    """

    layers: tuple[Any, ...]
    readout: Standardised

    def parameter_parts(self) -> dict[str, Callable[[Any], PyTree]]:
        """Functions from this network to its parts: start, path and points."""

        def blocks(network: WhitenedSDEBNN) -> list[WhitenedBlock]:
            is_block = lambda layer: isinstance(layer, WhitenedBlock)
            return [layer for layer in network.layers if is_block(layer)]

        def points(network: WhitenedSDEBNN) -> PyTree:
            maps = [a for a in network.layers if not isinstance(a, WhitenedBlock)]
            return [b.points for b in blocks(network)], maps, network.readout

        parts: dict[str, Callable[[Any], PyTree]] = {
            "start": lambda network: [block.start for block in blocks(network)]
        }
        if any(block.path is not None for block in blocks(self)):
            parts["path"] = lambda network: [block.path for block in blocks(network)]
        return parts | {"points": points}


def whitened_sdebnn(
    model: SDEBNN, coordinates: AbstractPathCoordinates, *, point_scale: float
) -> WhitenedSDEBNN:
    """See `whiten`.

    Args:
        model: any SDE-BNN.
        coordinates: of the paths.
        point_scale: of the points' prior, in units of 1/√fan-in.

    Raises:
        ValueError: for steps that are not known beforehand, a grid of one's own, or
            coordinates that the steps do not fit.
    """

    def of_layer(layer: Any) -> Any:
        if isinstance(layer, SDEBlock):
            return _whitened(layer, coordinates, point_scale)
        has_points = any(map(eqx.is_inexact_array, jax.tree.leaves(layer)))
        return Standardised.of(layer, point_scale) if has_points else layer

    layers = tuple(map(of_layer, model.layers))
    return WhitenedSDEBNN(layers, Standardised.of(model.readout, point_scale))


def _whitened(
    block: SDEBlock, coordinates: AbstractPathCoordinates, point_scale: float
) -> WhitenedBlock:
    number = lambda a: float(np.asarray(a))
    weights, points = split_where(block.dynamics, block.where)
    start_scale = jax.tree.map(number, block.initial_scale)
    integrator = block.integrator
    check_no_grid(integrator.stepsize)
    times = grid_of(integrator.stepsize, _with_window(_ENDS, block.window))
    path = bound = None
    if block.is_noisy:
        bound = coordinates.on_grid(times, block.window)
        count = bound.count(block.window)
        nothing = lambda w: jnp.zeros((count, *w.shape), w.dtype)
        path = jax.tree.map(nothing, weights)
    return WhitenedBlock(
        start=jax.tree.map(lambda w, s: w / s, weights, start_scale),
        path=path,
        points=Standardised.of(points, point_scale, whole=block.dynamics),
        coordinates=bound,
        start_scale=start_scale,
        sigma=jax.tree.map(number, block.process.scale),
        rate=number(block.process.rate),
        integrator=integrator,
        reverts_to_start=block.reverts_to_start,
        window=block.window,
    )


def _with_window(ts: Any, window: tuple[float, float]) -> np.ndarray:
    """Depths between which steps are cut: those asked for, and the window's ends."""
    return np.unique([*depths_by_window(ts, window), *np.round(window, 9)])
