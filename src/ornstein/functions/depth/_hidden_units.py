r"""What all solves over depth share: the hidden units' drift, and its roughness.

$R_K = \int_0^1 \|d^K h / dt^K\|^2 dt$ (Kelly, Bettencourt, Johnson & Duvenaud, 2020,
"Learning Differential Equations that are Easy to Solve") is one more state of the solve
that it describes: a number, whose derivative is the mean over rows and features of the
square.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Float, Params, PyTree, RealScalar
from ...network import SolveReport
from ...sde import Solution
from ._integrator import Integrator


class DepthState(NamedTuple):
    r"""What moves with depth; or its drift, or its diffusion.

    Attributes:
        hidden: hidden units, the batch first.
        roughness: $R_K$ so far; `None` where none is asked for.
        weights: those that move; `None` where all are constant in depth.
        inducing: the inducing inputs' hidden units, or `None`.
    """

    hidden: Any
    roughness: Float[Array, "..."] | None = None
    weights: Params | None = None
    inducing: Array | None = None


Dynamics = Callable[[RealScalar, Array], Array]
"""f_h: depth and hidden units to their derivative."""


def first_roughness(h: Array, integrator: Integrator) -> Float[Array, ""] | None:
    """The state $R_K$ at depth 0; `None` where none is asked for."""
    return jnp.zeros((), h.dtype) if integrator.roughness_order else None


def promoted(h: Array, dynamics: PyTree) -> Array:
    """Hidden units in the type that f_h returns them in: a solve keeps its state's.

    Args:
        h: at depth 0.
        dynamics: f_h.
    """
    parameters = jax.tree.leaves(eqx.filter(dynamics, eqx.is_inexact_array))
    return h.astype(jnp.result_type(h, *parameters))


def velocity(
    dynamics: Dynamics, t: RealScalar, h: Array, integrator: Integrator
) -> tuple[Array, Float[Array, ""] | None]:
    r"""$dh/dt$, and $dR_K/dt$ where it is asked for.

    Args:
        dynamics: f_h; if K is 2, `with_moving_weights` where they move, smoothly.
        t: depth.
        h: hidden units.
        integrator: knows K.
    """
    if integrator.roughness_order == 0:
        return dynamics(t, h), None
    if integrator.roughness_order == 1:
        dh = dynamics(t, h)
        return dh, jnp.mean(dh**2)
    t = jnp.asarray(t, h.dtype)
    dh, pullback = jax.vjp(dynamics, t, h)
    # d/dt f(t, h(t)) is the derivative of f along (1, f). Our convolutions have no
    # forward mode, but the pullback is linear, and its own pullback is that.
    _, pushforward = jax.vjp(pullback, jnp.zeros_like(dh))
    (second,) = pushforward((jnp.ones_like(t), dh))
    return dh, jnp.mean(second**2)


def with_moving_weights(weights: Params, velocity: Params, static: PyTree) -> Dynamics:
    """f_h, whose derivative along depth moves its weights, too.

    Args:
        weights: at this depth.
        velocity: their derivative there.
        static: the rest of f_h.
    """

    def dynamics(t: RealScalar, h: Array) -> Array:
        step = t - jax.lax.stop_gradient(t)
        along = lambda w, d: w + jnp.asarray(step, w.dtype) * d
        moved = jax.tree.map(along, weights, velocity)
        return eqx.combine(moved, static)(t, h)

    return dynamics


def report_of(
    sols: Sequence[Solution], roughness: Float[Array, ""] | None
) -> SolveReport:
    """What solves, one after another, cost and did.

    Args:
        sols: the solves.
        roughness: the state $R_K$ at the end of the last, or `None`.
    """
    number = jnp.zeros(()).dtype
    return SolveReport(
        num_drift_evaluations=jnp.asarray(
            sum(sol.stats["num_drift_evaluations"] for sol in sols), int
        ),
        roughness=jnp.zeros(()) if roughness is None else roughness,
        reversible_gap=jnp.stack(
            [jnp.asarray(s.stats.get("max_reversible_gap", 0.0), number) for s in sols]
        ).max(),
    )


def check_roughness(order: int, *, is_noisy: bool) -> None:
    """Refuse to regularise a derivative that does not exist."""
    if order == 2 and is_noisy:
        raise ValueError(
            "R_2 needs d²h/dt², which does not exist in an SDE-BNN, whose weights are "
            "rough in depth: regularise by order 1, or take an `ODENet`."
        )
