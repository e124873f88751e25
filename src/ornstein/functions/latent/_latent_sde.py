r"""A sequence's own latent path: the latent SDE of Li, Wong, Chen & Duvenaud (2020).

$$dz = f_p(t, z)\,dt + g(z)\,dB \quad \text{(prior)}, \qquad
dz = f_q(t, z, c)\,dt + g(z)\,dB \quad \text{(posterior)},$$

$z_0 \sim p(z_0)$ or $q(z_0 | x)$, $y_i \sim p(y | d(z(t_i)))$ with decoder $d$, and the
context $c$ from a recognition network over the sequence. Per sequence

$$\mathrm{ELBO} = E_q \sum_i \log p(y_i | z(t_i)) - \mathrm{KL}(q(z_0) \| p(z_0))
- E_q \int \tfrac12 \|u\|^2 dt, \qquad u = (f_q - f_p) / g.$$
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..._types import Array, ArrayLike, Float, PRNGKeyArray, PyTree, RealScalar
from ...data import Series
from ...network import SolveReport, mean_report
from ...nn import MLP, tanh
from ...sde import (
    KL,
    AbstractPathKL,
    AbstractProcess,
    Checkpointed,
    EulerMaruyama,
    Grid,
    sdeint,
)
from .._base import WEIGHTS, AbstractRandomFunction, Draw, label_tree
from .._posterior_parts import PosteriorParts
from ..depth import Integrator, report_of
from ._diffusion import AbstractDiffusion, NetDiffusion, ProcessDiffusion
from ._drift import ContextDrift, NetDrift, ProcessDrift
from ._latent_ode import LatentODE
from ._path import (
    PriorSamples,
    check_integrator,
    check_ito,
    check_series,
    check_sizes,
    over_rows,
    path_times,
    start_path,
)
from ._put_back import at_prior
from ._recognition import AbstractRecognition
from ._start import LatentStart


class _Path(NamedTuple):
    """One series: z at its times, its KL (nats), and what solving cost."""

    z: Float[Array, "times latent"]
    kl: Float[Array, ""]
    terms: dict[str, Float[Array, ""]]
    report: SolveReport


class LatentSDE(AbstractRandomFunction):
    r"""Sequences as noisy views of a diffusion, with a posterior path for each.

    `x` is a `Series`, as are the targets (usually the same), under the likelihood
    `OverTime(...)`. A path belongs to its own sequence, so that its KL is `local_kl`.
    In training every row has a path of its own. Draw i of a prediction is one function
    of the sequence, decided by `(key, i)`: rows share the normals and the Brownian
    path that it is made from. With `Grid` what a row gets does not depend on the
    others, nor on later times that it is extended by; with `Adaptive` it does, whose
    Brownian tree spans all times of a row. Each row's draws have its own posterior;
    across rows they are dependent.

    The posterior's drift holds up to a sequence's last observation, and the prior's
    from there on, at no KL: to predict the future is to ask for times without
    observations (`Series.extended`).

    $f_q$ and $f_p$ share the diffusion, without which the KL is infinite. Noise that
    depends on z makes the equation Itô's; then only Itô solvers will do. With solvers
    that look at a step's right end (Heun's), the changes of drift at observations are
    met there a step early, which costs their higher order.

    Attributes:
        recognition: from a series to $q(z_0)$ and a context.
        start: $p(z_0)$.
        prior_drift: `(t, z)` to $f_p$.
        posterior_drift: `(t, z, context)` to $f_q$, or to $f_q - f_p$.
        diffusion: `(t, z)` to g, positive.
        decoder: from z to the likelihood's parameters, on the last axis.
        integrator: solver, `Grid(num_substeps=...)` or `Adaptive`, and gradient.
        estimator: of the KL.
        is_relative: whether `posterior_drift` adds to the prior's.
        extrapolates_posterior: keep the posterior's drift after the last observation
            too, and pay its KL there. For a context that is meant to last, such as
            that of the `FirstFrames` of a motion.
        is_noisy: `False` for the posterior without its noise: $z_0$ at its mean, and
            the ordinary equation of $f_q$, without a KL.
    """

    recognition: AbstractRecognition
    start: LatentStart
    prior_drift: Callable[[RealScalar, Array], Array]
    posterior_drift: Callable[[RealScalar, Array, Array], Array]
    diffusion: AbstractDiffusion
    decoder: Callable[[Array], Array]
    integrator: Integrator
    estimator: AbstractPathKL = KL()
    is_relative: bool = eqx.field(static=True, default=True)
    extrapolates_posterior: bool = eqx.field(static=True, default=False)
    is_noisy: bool = eqx.field(static=True, default=True)
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        check_sizes(self.recognition, self.start)
        check_integrator(self.integrator)
        check_ito(self.diffusion, self.integrator.solver)

    @staticmethod
    def make(
        recognition: AbstractRecognition,
        num_outputs: int,
        *,
        prior: AbstractProcess | Callable | None = None,
        diffusion: AbstractDiffusion | None = None,
        start: LatentStart | None = None,
        drift_widths: Sequence[int] = (64,),
        decoder_widths: Sequence[int] = (),
        activation: Callable[[Array], Array] = tanh,
        start_drift: float = 1.0,
        sees_time: bool = True,
        is_relative: bool = True,
        extrapolates_posterior: bool = False,
        integrator: Integrator | None = None,
        estimator: AbstractPathKL | None = None,
        key: PRNGKeyArray,
    ) -> "LatentSDE":
        """With networks for what is not given.

        Args:
            recognition: `GRURecognition`, `FirstFrames`, `SplitRecognition` of both,
                or `NoRecognition` for a single series; it knows the size of z.
            num_outputs: the likelihood's parameters: features of the series.
            prior: a process, with its drift and diffusion, neither of which is trained;
                or a drift `(t, z)`, such as `LinearDrift`. By default a network of z
                alone with hidden widths `drift_widths`.
            diffusion: shared by prior and posterior; by default a small network for
                each dimension. Comes with the prior if that is a process.
            start: p(z₀); by default standard normal.
            drift_widths: hidden widths of the drifts' networks.
            decoder_widths: hidden widths of the decoder; none for a linear one.
            activation: of the drifts' networks and the decoder.
            start_drift: multiplies the last layer of the prior's drift network at
                first; see `NetDrift` for when to begin with little.
            sees_time: whether the posterior's drift sees t itself.
            is_relative: whether the network adds to the prior's drift. The posterior
                is then the prior at first.
            extrapolates_posterior: see the class.
            integrator: by default four steps of Euler-Maruyama from one time to the
                next, differentiated by `Checkpointed`.
            estimator: of the KL; `KL()`.
            key: randomness of the initial parameters.

        Raises:
            ValueError: parts that do not go together.
        """
        size = recognition.latent_size
        prior_key, noise_key, drift_key, decoder_key = jr.split(key, 4)
        if isinstance(prior, AbstractProcess):
            if diffusion is not None:
                raise ValueError(
                    f"`prior={type(prior).__name__}(...)` has a diffusion of its own: "
                    "leave `diffusion` out, or give `prior=ProcessDrift(process)`."
                )
            prior, diffusion = ProcessDrift(prior), ProcessDiffusion(prior)
        if prior is None:
            prior = NetDrift(
                size,
                drift_widths,
                activation=activation,
                output_scale=start_drift,
                key=prior_key,
            )
        if diffusion is None:
            diffusion = NetDiffusion(size, key=noise_key)
        if integrator is None:
            steps = Grid(num_substeps=4)
            integrator = Integrator(EulerMaruyama(), steps, Checkpointed())
        return LatentSDE(
            recognition=recognition,
            start=LatentStart(size) if start is None else start,
            prior_drift=prior,
            posterior_drift=ContextDrift(
                size,
                recognition.context_size,
                drift_widths,
                sees_time=sees_time,
                activation=activation,
                output_scale=0.0 if is_relative else 1.0,
                key=drift_key,
            ),
            diffusion=diffusion,
            decoder=MLP(
                size,
                num_outputs,
                decoder_widths,
                activation=activation,
                key=decoder_key,
            ),
            integrator=integrator,
            estimator=KL() if estimator is None else estimator,
            is_relative=is_relative,
            extrapolates_posterior=extrapolates_posterior,
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
        paths = self._paths(x, key=key, index=index)
        return Draw(
            output=self.decoder(paths.z),
            kl=jnp.zeros((), paths.kl.dtype),
            local_kl=paths.kl,
            state=state,
            report=mean_report(paths.report),
            local_terms=paths.terms,
            log_ratio="rows" if self.estimator.is_log_ratio else None,
        )

    def trajectory(
        self, x: Series, *, key: PRNGKeyArray, index: int | Array | None = None
    ) -> Float[Array, "rows times latent"]:
        """The latent path behind `__call__`'s output, at the times of the series.

        Args:
            x: the series.
            key: randomness; with `index`, that of the same draw as `__call__`'s.
            index: which draw.
        """
        return self._paths(x, key=key, index=index).z

    def sample_prior(
        self, ts: Float[ArrayLike, " times"], *, key: PRNGKeyArray, num_samples: int
    ) -> PriorSamples:
        """Paths of the prior, and what they decode to.

        Args:
            ts: times; paths begin at the first with a draw from p(z₀).
            key: randomness.
            num_samples: how many paths.
        """
        times = path_times(ts, self.start.mean.dtype)

        def path(key: PRNGKeyArray) -> Float[Array, "times latent"]:
            z_key, path_key = jr.split(key)
            noise = jr.normal(z_key, self.start.mean.shape, self.start.mean.dtype)
            return sdeint(
                lambda t, z, args: self.prior_drift(t, z),
                self._noise,
                self.start.mean + self.start.scale * noise,
                times,
                key=path_key,
                **self._how,
            ).ys

        z = jax.vmap(path)(jr.split(key, num_samples))
        return PriorSamples(z, self.decoder(z))

    def noise_share(
        self,
        ts: Float[ArrayLike, " times"],
        *,
        key: PRNGKeyArray,
        num_samples: int = 64,
    ) -> Float[Array, " latent"]:
        r"""How much of the prior's spread is noise: a diffusion near 0 is gone.

        $\sqrt{E \int g_i^2 dt / (E \int g_i^2 dt + V_i)}$ for each latent dimension,
        where $V_i$ is the variance of $z_i$ over paths and times: near 1 where noise
        could make the spread, and near 0 where paths are as good as an ordinary
        differential equation's, however small or large their unit is.

        Args:
            ts: times that span the data.
            key: randomness.
            num_samples: paths of the prior.
        """
        times = path_times(ts, self.start.mean.dtype)
        z = self.sample_prior(times, key=key, num_samples=num_samples).z
        g = jax.vmap(jax.vmap(self.diffusion), (None, 0))(times, z)
        noise = jnp.mean(g**2, axis=(0, 1)) * (times[-1] - times[0])
        return jnp.sqrt(noise / (noise + jnp.var(z, axis=(0, 1))))

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """The noise of the prior's paths, at the times of the first series; its parts.

        What is trained without noise is a `LatentODE`, which keeps the KL of its start:
        a drift that sees the data has no prior without noise.
        """
        if not self.is_noisy:
            return PosteriorParts(is_random=False, has_bound=False)
        share = lambda x, key: float(jnp.max(self.noise_share(x.ts[0], key=key)))
        return PosteriorParts(
            noise_share=share,
            start_size=self.start.root_mean_square,
            parts=("start", "path"),
            at_prior=lambda parts, key: dataclasses.replace(
                self, **at_prior(parts, self.recognition)
            ),
            held=lambda model: model.recognition,
            without_noise=lambda: dataclasses.replace(self, is_noisy=False),
            noise_free_twin=self._noise_free_twin,
        )

    def _noise_free_twin(self) -> LatentODE:
        parts = self.recognition, self.start, self.prior_drift, self.decoder
        return LatentODE(*parts, self.integrator.without_noise(), self.estimator)

    def labels(self) -> PyTree[str]:
        """Everything is trained but processes, and scales that are not learned."""

        def frozen(model: LatentSDE) -> PyTree:
            parts: list[Any] = [model.integrator, model.estimator]
            if isinstance(model.prior_drift, ProcessDrift):
                parts.append(model.prior_drift)
            learned = (model.start, model.diffusion)
            return parts + [part for part in learned if not part.is_learned]

        return label_tree(self, WEIGHTS, frozen=frozen)

    def _paths(self, x: PyTree, *, key: PRNGKeyArray, index: Any) -> _Path:
        check_series(x)
        check_ito(self.diffusion, self.integrator.solver)
        return over_rows(self._path, x, key=key, index=index)

    def _path(self, series: Series, key: PRNGKeyArray) -> _Path:
        start_key, path_key = jr.split(key)
        path_start = start_path(
            self.recognition, self.start, self.estimator, series, key=start_key
        )

        def drift(t: Array, z: Array, args: Any) -> Array:
            context, last = args
            prior = self.prior_drift(t, z)
            posterior = self.posterior_drift(t, z, context(t))
            if self.is_relative:
                posterior = prior + posterior
            if self.extrapolates_posterior:
                return posterior
            return jnp.where(t < last, posterior, prior)

        seen = (path_start.context, path_start.last)
        if not self.is_noisy:
            z0, ts, none = path_start.mean, path_start.ts, jnp.zeros_like(path_start.kl)
            sol = sdeint(drift, None, z0, ts, args=seen, **self._how)
            terms = {"kl_path": none, "kl_initial": none}
            return _Path(sol.ys, none, terms, report_of([sol], None))
        sol = sdeint(
            drift,
            self._noise,
            path_start.z,
            path_start.ts,
            key=path_key,
            args=seen,
            path_kl=self.estimator,
            prior_drift=lambda t, z, args: self.prior_drift(t, z),
            **self._how,
        )
        assert sol.path_kl is not None
        assert sol.half_squares is not None
        terms = {"kl_path": sol.half_squares[-1], "kl_initial": path_start.kl_initial}
        return _Path(
            sol.ys, path_start.kl + sol.path_kl[-1], terms, report_of([sol], None)
        )

    def _noise(self, t: Array, z: Array, args: Any) -> Array:
        del args
        return self.diffusion(t, z)

    @property
    def _how(self) -> dict[str, Any]:
        how = self.integrator if self.is_noisy else self.integrator.without_noise()
        names = ("solver", "stepsize", "gradient")
        return {name: getattr(how, name) for name in names}
