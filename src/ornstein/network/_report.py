"""What the solves of differential equations behind a network's call cost."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp

from .._types import Array, Float, Int


class SolveReport(eqx.Module):
    r"""What the solves behind one call of a function on a batch cost and did.

    Attributes:
        num_drift_evaluations: of all solves, forward.
        roughness: $R_K = \int_0^1 \|d^K h / dt^K\|^2 dt$, the mean over rows and
            features, summed over solves; 0 where the `Integrator` asks for none. Kelly,
            Bettencourt, Johnson & Duvenaud (2020), "Learning Differential Equations
            that are Easy to Solve".
        reversible_gap: the largest $|y - \hat y|$ at a solve's end; 0 for solvers that
            have no $\hat y$.
    """

    num_drift_evaluations: Int[Array, ""]
    roughness: Float[Array, ""]
    reversible_gap: Float[Array, ""]


def merge_reports(reports: Sequence[SolveReport]) -> SolveReport | None:
    """The report of several solves, one after another; `None` of none."""
    if not reports:
        return None
    return SolveReport(
        num_drift_evaluations=sum(
            (r.num_drift_evaluations for r in reports), jnp.zeros((), int)
        ),
        roughness=sum((r.roughness for r in reports), jnp.zeros(())),
        reversible_gap=jnp.max(jnp.stack([r.reversible_gap for r in reports])),
    )


def mean_report(report: SolveReport | None) -> SolveReport | None:
    """One report of several calls, whose reports have a leading axis."""
    if report is None:
        return None
    return SolveReport(
        num_drift_evaluations=jnp.max(report.num_drift_evaluations),
        roughness=jnp.mean(report.roughness),
        reversible_gap=jnp.max(report.reversible_gap),
    )
