"""The latent ODE of Rubanova, Chen & Duvenaud (2019): `LatentSDE` without noise."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..._types import Array, ArrayLike, Float, PRNGKeyArray, PyTree, RealScalar
from ...data import Series
from ...network import SolveReport, mean_report
from ...nn import MLP, tanh
from ...sde import KL, RK4, AbstractPathKL, Checkpointed, Grid, sdeint
from .._base import WEIGHTS, AbstractRandomFunction, Draw, label_tree
from .._posterior_parts import PosteriorParts
from ..depth import Integrator, report_of
from ._drift import NetDrift, ProcessDrift
from ._path import (
    PathStart,
    PriorSamples,
    check_integrator,
    check_series,
    check_sizes,
    over_rows,
    path_times,
    start_path,
)
from ._put_back import PriorStart
from ._recognition import AbstractRecognition
from ._start import LatentStart


class LatentODE(AbstractRandomFunction):
    r"""Sequences as noisy views of $dz/dt = f(t, z)$, $z_0 \sim q(z_0 | x)$.

    The noise-free twin of `LatentSDE`, of the same parts: one law of motion for all,
    a start for each sequence, and the KL of that start alone. What the recognition
    network gives as a context is not used, for a drift that saw it would be a model
    without a prior.

    Attributes:
        recognition: from a series to $q(z_0)$.
        start: $p(z_0)$.
        drift: `(t, z)` to f.
        decoder: from z to the likelihood's parameters, on the last axis.
        integrator: solver, `Grid(num_substeps=...)` or `Adaptive`, and gradient.
        estimator: of $\mathrm{KL}(z_0)$.
    """

    recognition: AbstractRecognition
    start: LatentStart
    drift: Callable[[RealScalar, Array], Array]
    decoder: Callable[[Array], Array]
    integrator: Integrator
    estimator: AbstractPathKL = KL()
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        check_sizes(self.recognition, self.start)
        check_integrator(self.integrator)

    @staticmethod
    def make(
        recognition: AbstractRecognition,
        num_outputs: int,
        *,
        drift: Callable | None = None,
        start: LatentStart | None = None,
        drift_widths: Sequence[int] = (64,),
        decoder_widths: Sequence[int] = (),
        activation: Callable[[Array], Array] = tanh,
        start_drift: float = 1.0,
        integrator: Integrator | None = None,
        estimator: AbstractPathKL | None = None,
        key: PRNGKeyArray,
    ) -> "LatentODE":
        """With networks for what is not given.

        Args:
            recognition: as in `LatentSDE.make`.
            num_outputs: the likelihood's parameters: features of the series.
            drift: `(t, z)` to f; by default a network of z alone.
            start: p(z₀); by default standard normal.
            drift_widths: hidden widths of the drift's network.
            decoder_widths: hidden widths of the decoder; none for a linear one.
            activation: of the drift's network and the decoder.
            start_drift: multiplies the last layer of the drift's network at first; see
                `NetDrift` for when to begin with little.
            integrator: by default a step of `RK4` from one time to the next,
                differentiated by `Checkpointed`.
            estimator: of KL(z₀); `KL()`.
            key: randomness of the initial parameters.
        """
        size = recognition.latent_size
        drift_key, decoder_key = jr.split(key)
        if drift is None:
            drift = NetDrift(
                size,
                drift_widths,
                activation=activation,
                output_scale=start_drift,
                key=drift_key,
            )
        if integrator is None:
            integrator = Integrator(RK4(), Grid(), Checkpointed())
        return LatentODE(
            recognition=recognition,
            start=LatentStart(size) if start is None else start,
            drift=drift,
            decoder=MLP(
                size,
                num_outputs,
                decoder_widths,
                activation=activation,
                key=decoder_key,
            ),
            integrator=integrator,
            estimator=KL() if estimator is None else estimator,
        )

    def __call__(
        self,
        x: PyTree[Array | np.ndarray],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """A path for each series of a batch, decoded: (rows, times, outputs)."""
        z, path_start, report = self._paths(x, key=key, index=index)
        return Draw(
            output=self.decoder(z),
            kl=jnp.zeros((), z.dtype),
            local_kl=path_start.kl,
            state=state,
            report=mean_report(report),
            local_terms={"kl_initial": path_start.kl_initial},
            log_ratio="rows" if self.estimator.is_log_ratio else None,
        )

    def trajectory(
        self, x: Series, *, key: PRNGKeyArray, index: int | Array | None = None
    ) -> Float[Array, "rows times latent"]:
        """The latent path behind `__call__`'s output: see `LatentSDE`."""
        return self._paths(x, key=key, index=index)[0]

    def sample_prior(
        self, ts: Float[ArrayLike, " times"], *, key: PRNGKeyArray, num_samples: int
    ) -> PriorSamples:
        """Paths from draws of p(z₀), and what they decode to: see `LatentSDE`."""
        start = self.start
        times = path_times(ts, start.mean.dtype)
        noise = jr.normal(key, (num_samples, *start.mean.shape), start.mean.dtype)
        z0 = start.mean[None] + start.scale[None] * noise
        z = jax.vmap(lambda z: self._solve(z, times)[0])(z0)
        return PriorSamples(z, self.decoder(z))

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """What its solves start from, and that start put back to its prior."""
        at_prior = lambda parts, key: dataclasses.replace(
            self, recognition=PriorStart(self.recognition)
        )
        return PosteriorParts(
            start_size=self.start.root_mean_square,
            parts=("start",),
            at_prior=at_prior,
            held=lambda model: model.recognition,
        )

    def labels(self) -> PyTree[str]:
        """Everything is trained but a process, and p(z₀) if it is not learned."""

        def frozen(model: LatentODE) -> PyTree:
            parts: list[Any] = [model.integrator, model.estimator]
            if isinstance(model.drift, ProcessDrift):
                parts.append(model.drift)
            return parts + ([] if model.start.is_learned else [model.start])

        return label_tree(self, WEIGHTS, frozen=frozen)

    def _paths(
        self, x: PyTree, *, key: PRNGKeyArray, index: Any
    ) -> tuple[Array, PathStart, SolveReport]:
        check_series(x)

        def path(
            series: Series, key: PRNGKeyArray
        ) -> tuple[Array, PathStart, SolveReport]:
            parts = (self.recognition, self.start, self.estimator)
            path_start = start_path(*parts, series, key=key)
            z, report = self._solve(path_start.z, path_start.ts)
            return z, path_start, report

        return over_rows(path, x, key=key, index=index)

    def _solve(self, z0: Array, ts: Array) -> tuple[Array, SolveReport]:
        how = self.integrator
        sol = sdeint(
            lambda t, z, args: self.drift(t, z),
            None,
            z0,
            ts,
            solver=how.solver,
            stepsize=how.stepsize,
            gradient=how.gradient,
        )
        return sol.ys, report_of([sol], None)
