r"""Networks of ordinary differential equations over depth: plain networks.

Any method makes them random functions: `Deterministic(ODENet(...))`, `MeanField`,
`Ensemble`, the samplers. Chen, Rubanova, Bettencourt & Duvenaud (2018), "Neural
Ordinary Differential Equations"; the baselines of Xu et al. (2022), table 1.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..._types import Array, ArrayLike, Float, Params, PRNGKeyArray, RealScalar
from ...network import SolveReport, merge_reports
from ...nn import MLP, Augment, Concat, MakeTimeLayer, TimeMLP, fan_ins, tanh
from ...sde import Fixed, ReversibleHeun, sdeint
from ._hidden_units import (
    DepthState,
    first_roughness,
    promoted,
    report_of,
    velocity,
    with_moving_weights,
)
from ._image_stack import Readout, check_depths, check_sizes, image_keys, image_stack
from ._integrator import Integrator
from ._weight_drift import WeightDrift


class AbstractDepthBlock(eqx.Module):
    """One solve over depth inside a plain network."""

    @abc.abstractmethod
    def solve(
        self, h: Array, ts: Float[ArrayLike, " times"]
    ) -> tuple[DepthState, SolveReport]:
        """States at the given depths, which lead, and what the solve cost.

        Args:
            h: hidden units at depth 0, the batch first.
            ts: depths from 0 to 1.
        """


class ODEBlock(AbstractDepthBlock):
    r"""One solve of $dh = f_h(h, t)\,dt$, weights constant in depth.

    Attributes:
        dynamics: f_h, called as `(t, h)` with the batch first.
        integrator: how to solve.
    """

    dynamics: Callable[[RealScalar, Array], Array]
    integrator: Integrator

    def solve(
        self, h: Array, ts: Float[ArrayLike, " times"]
    ) -> tuple[DepthState, SolveReport]:
        """States at the given depths, which lead, and what the solve cost."""

        def drift(t: RealScalar, y: DepthState, args: Any) -> DepthState:
            del args
            return DepthState(*velocity(self.dynamics, t, y.hidden, self.integrator))

        h = promoted(h, self.dynamics)
        y = DepthState(h, first_roughness(h, self.integrator))
        return _solved(drift, y, ts, self.integrator)


class HyperODEBlock(AbstractDepthBlock):
    r"""One solve of $dw = NN_\phi(w, t)\,dt$, $dh = f_h(h, t, w)\,dt$.

    Attributes:
        dynamics: f_h; its parameters are w(0).
        drift: NN_φ, called as `(t, w, summary)`; zero at first.
        integrator: how to solve.
    """

    dynamics: Callable[[RealScalar, Array], Array]
    drift: Callable[..., Params]
    integrator: Integrator

    def solve(
        self, h: Array, ts: Float[ArrayLike, " times"]
    ) -> tuple[DepthState, SolveReport]:
        """States at the given depths, which lead, and what the solve cost."""
        weights, static = eqx.partition(self.dynamics, eqx.is_inexact_array)
        h = promoted(h, weights)
        nothing = jnp.zeros((0,), h.dtype)

        def drift(t: RealScalar, y: DepthState, args: Any) -> DepthState:
            del args
            dw = self.drift(t, y.weights, nothing)
            f_h = eqx.combine(y.weights, static)
            if self.integrator.roughness_order == 2:
                f_h = with_moving_weights(y.weights, dw, static)
            dh, dr = velocity(f_h, t, y.hidden, self.integrator)
            return DepthState(dh, dr, dw)

        y = DepthState(h, first_roughness(h, self.integrator), weights)
        return _solved(drift, y, ts, self.integrator)


class AbstractODENet(eqx.Module):
    """Solves over depth, fixed maps between them, and a readout.

    Attributes:
        layers: solves (`AbstractDepthBlock`) and fixed maps between them.
        readout: from hidden units to a likelihood's parameters.
    """

    layers: eqx.AbstractVar[tuple[Any, ...]]
    readout: eqx.AbstractVar[Callable[[Array], Array]]

    def __call__(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch out"]:
        """Apply to a batch."""
        return self.solve(x)[0]

    def solve(
        self, x: Float[Array, "batch ..."]
    ) -> tuple[Float[Array, "batch out"], SolveReport | None]:
        """The output for a batch, and what solving cost."""
        h, solved = self._through(x, np.array([0.0, 1.0]))
        return self.readout(h), merge_reports([report for _, report in solved])

    def trajectory(
        self, x: Float[Array, "batch ..."], ts: Float[ArrayLike, " times"]
    ) -> list[DepthState]:
        """What each block does over depth.

        Args:
            x: the batch.
            ts: depths; the first is 0, the last is 1.

        Returns:
            The states of each block; depth is the leading axis.

        Raises:
            ValueError: depths that do not begin at 0 and end at 1.
        """
        check_depths(ts)
        return [states for states, _ in self._through(x, ts)[1]]

    def _through(self, h: Array, ts: Any) -> tuple[Array, list[tuple]]:
        solved = []
        for layer in self.layers:
            if isinstance(layer, AbstractDepthBlock):
                solved.append(layer.solve(h, ts))
                h = solved[-1][0].hidden[-1]
            else:
                h = layer(h)
        return h, solved


class ODENet(AbstractODENet):
    r"""A network whose hidden units follow an ordinary differential equation.

    $dh = f_h(h, t; w)\,dt$ over depth $t \in [0, 1]$ with the same $w$ at every depth;
    f_h, readout and shapes are those of `SDEBNN`. A plain network: see the module.

    Attributes:
        layers: solves (`ODEBlock`) and fixed maps between them.
        readout: from hidden units to a likelihood's parameters.

    References:
        Chen, Rubanova, Bettencourt & Duvenaud (2018), "Neural Ordinary Differential
        Equations".
    """

    layers: tuple[Any, ...]
    readout: Callable[[Array], Array]

    @staticmethod
    def for_vectors(
        in_size: int,
        out_size: int,
        *,
        width_sizes: Sequence[int] = (16, 16),
        activation: Callable[[Array], Array] = tanh,
        time: MakeTimeLayer = Concat,
        augment: int = 2,
        integrator: Integrator | None = None,
        key: PRNGKeyArray,
    ) -> "ODENet":
        """For rows of numbers, standardised.

        Args:
            in_size: features.
            out_size: the likelihood's parameters.
            width_sizes: hidden widths of f_h.
            activation: of f_h.
            time: how f_h's layers depend on depth.
            augment: zeros appended to the input.
            integrator: how to solve; 20 steps of Euler.
            key: randomness of the initial parameters.
        """
        check_sizes(in_size=in_size, out_size=out_size)
        dyn_key, read_key = jr.split(key)
        size = in_size + augment
        dynamics = TimeMLP(
            size, width_sizes, activation=activation, time=time, key=dyn_key
        )
        how = Integrator() if integrator is None else integrator
        readout = Readout(MLP(size, out_size, (), key=read_key))
        return ODENet((Augment(augment), ODEBlock(dynamics, how)), readout)

    @staticmethod
    def for_images(
        example_shape: Sequence[int],
        num_outputs: int,
        *,
        blocks: Sequence[int] = (1,),
        width: int = 32,
        activation: Callable[[Array], Array] = tanh,
        time: MakeTimeLayer = Concat,
        augment: int = 2,
        space_to_depth_first: bool = False,
        stem: Callable[[Array], Array] | None = None,
        is_normalised: bool = False,
        readout_widths: Sequence[int] = (),
        integrator: Integrator | None = None,
        key: PRNGKeyArray,
    ) -> "ODENet":
        """For images (height, width, channels), standardised.

        Args:
            example_shape: of one image.
            num_outputs: classes.
            blocks: solves at each scale, with invertible downsampling between scales.
            width: channels inside f_h.
            activation: of f_h.
            time: how f_h's layers depend on depth.
            augment: zero channels appended to the input.
            space_to_depth_first: downsample once before the first block too.
            stem: a first layer in its place, such as `nn.PatchStem`: a point.
            is_normalised: `NormedConvBlock` in place of `ConvBlock`, strided
                convolutions that double the channels (and `width`) between scales,
                and a pooled, normalised readout; for chains over whitened weights.
            readout_widths: hidden widths of the readout.
            integrator: how to solve; eight steps of reversible Heun.
            key: randomness of the initial parameters.

        Raises:
            ValueError: sizes that cannot be halved as often as `blocks` asks.
        """
        if integrator is None:
            integrator = Integrator(ReversibleHeun(), Fixed(dt=0.125))
        make_block = lambda dynamics, shape, key: ODEBlock(dynamics, integrator)
        read_key, _, *block_keys = image_keys(blocks, key=key)
        return ODENet(
            *image_stack(
                make_block,
                example_shape,
                num_outputs,
                blocks=blocks,
                width=width,
                activation=activation,
                time=time,
                augment=augment,
                space_to_depth_first=space_to_depth_first,
                stem=stem,
                is_normalised=is_normalised,
                readout_widths=readout_widths,
                read_key=read_key,
                block_keys=block_keys,
            )
        )


class HyperODENet(AbstractODENet):
    r"""An `ODENet` whose weights follow a learned equation over depth too.

    $dw = NN_\phi(w, t)\,dt$, $dh = f_h(h, t, w)\,dt$: an SDE-BNN without noise and
    prior. A plain network: see the module.

    Args:
        network: its weights are w(0) of each solve, and it is what this network
            starts as.
        drift_widths: hidden widths of NN_φ.
        drift_scale: multiplies NN_φ's output, in units of 1/√fan-in.
        key: randomness of NN_φ's initial parameters.

    References:
        Xu, Chen, Li and Duvenaud (2022), "Infinitely Deep Bayesian Neural Networks with
        Stochastic Differential Equations", table 1.
    """

    layers: tuple[Any, ...]
    readout: Callable[[Array], Array]

    def __init__(
        self,
        network: ODENet,
        *,
        drift_widths: Sequence[int] = (2, 128, 2),
        drift_scale: float = 0.4,
        key: PRNGKeyArray,
    ):
        keys = jr.split(key, len(network.layers))
        self.layers = tuple(
            _with_drift(layer, tuple(drift_widths), drift_scale, key=layer_key)
            for layer, layer_key in zip(network.layers, keys, strict=True)
        )
        self.readout = network.readout


def _with_drift(
    layer: Any, widths: tuple[int, ...], scale: float, *, key: PRNGKeyArray
) -> Any:
    if not isinstance(layer, ODEBlock):
        return layer
    weights = eqx.filter(layer.dynamics, eqx.is_inexact_array)
    unit = jax.tree.map(lambda n: 1 / n**0.5, fan_ins(layer.dynamics))
    drift = WeightDrift(
        weights,
        width_sizes=widths,
        weight_scale=unit,
        drift_scale=jax.tree.map(lambda s: scale * s, unit),
        key=key,
    )
    return HyperODEBlock(layer.dynamics, drift, layer.integrator)


def _solved(
    drift: Callable[..., DepthState], y: DepthState, ts: Any, integrator: Integrator
) -> tuple[DepthState, SolveReport]:
    sol = sdeint(
        drift,
        None,
        y,
        ts,
        solver=integrator.solver,
        stepsize=integrator.stepsize,
        gradient=integrator.gradient,
    )
    roughness = None if y.roughness is None else sol.ys.roughness[-1]
    return sol.ys, report_of([sol], roughness)
