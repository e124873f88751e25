"""What a solve gives back."""

import equinox as eqx

from .._types import Array, Float, Int, PyTree


class Solution(eqx.Module):
    """A solved differential equation at its output times.

    Attributes:
        ts: the output times, the initial one first.
        ys: the state there; each leaf has the times as its leading axis.
        path_kl: the estimate of the path KL from the first time to each of `ts`, in
            nats, made for its gradient; `None` unless asked for.
        half_squares: ∫ ½‖u‖² dt from the first time to each of `ts`, in nats: what to
            log. The same as `path_kl` for `KL`.
        stats: `num_steps`, `num_drift_evaluations` (forward),
            `num_drift_evaluations_backward` (what differentiating adds; absent where
            it is not known beforehand), and for `ReversibleHeun`
            `max_reversible_gap`, the largest |y − ŷ| at the last time: where it is
            not small against y, the solver has become unstable.
    """

    ts: Float[Array, " times"]
    ys: PyTree[Float[Array, "times ..."]]
    path_kl: Float[Array, " times"] | None
    half_squares: Float[Array, " times"] | None
    stats: dict[str, int | Int[Array, ""] | Float[Array, ""]]
