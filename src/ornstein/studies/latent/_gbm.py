"""Geometric Brownian motion continued past its data: does the band keep its spread?

A latent SDE and a latent ODE learn from 500 noisy paths until 0.6, and say what comes
until 1, beside the answer that the known law gives on the same observations.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ... import metrics
from ..._types import Array, Float, RealScalar
from ...data import Data, Split, load
from ...evaluation import series_evidence_bound
from ...functions import (
    AbstractDiffusion,
    AbstractRandomFunction,
    BridgeDrift,
    GRURecognition,
    Integrator,
    LatentODE,
    LatentSDE,
    LatentStart,
    LinearDrift,
)
from ...likelihood import Gaussian, OverTime
from ...plot import BAND_QUANTILES, band_panels, method_curves
from ...prediction import Prediction, predict
from ...recipe import ScaleName
from ...report import save_figure
from ...sde import Checkpointed, EulerMaruyama, Grid, StickTheLanding
from ...train import Fit, KLWeight, fit
from .._experiment import Experiment, Study
from ._gbm_law import known

_LEVELS = (0.05, 0.95)


class _Settings(NamedTuple):
    """How both are trained.

    Attributes:
        every: which observations are shown, the first and the last among them. An
            Euler step of the posterior has the prior's variance, though an observation
            to come leaves less: that costs nats, the more so the longer the step and
            the more and the sharper the observations, and training escapes by less
            noise and a narrower band.
        num_substeps: of the latent SDE, from one observation shown to the next.
    """

    every: int = 5
    num_substeps: int = 16
    epochs: int = 1000
    batch_size: int = 100
    learning_rate: float = 1e-2
    kl_warmup: float = 0.2
    hidden_size: int = 64
    context_size: int = 8
    drift_widths: tuple[int, ...] = (32,)
    first_slack: float = 0.05
    num_draws: int = 128


_SETTINGS: dict[ScaleName, _Settings] = {
    "quick": _Settings(),
    "gpu": _Settings(num_substeps=64, epochs=3000),
    "full": _Settings(every=1, num_substeps=32, epochs=3000),
}


class _GrowingNoise(AbstractDiffusion):
    """g(z) = 0.01 + softplus(a z + b), learned: multiplicative noise is among them."""

    slope: Float[Array, " latent"]
    offset: Float[Array, " latent"]
    is_learned: bool = eqx.field(static=True, default=True)
    depends_on_state: bool = eqx.field(static=True, default=True)

    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)`."""
        del t
        return 0.01 + jax.nn.softplus(self.slope * z + self.offset)


def _run(study: Study) -> list[dict[str, Any]]:
    settings = _SETTINGS[study.scale]
    data = _shown(load("toy/gbm"), settings.every)
    kept = settings._asdict() | {"seed": study.seed}
    found = {
        "known law": study.piece("known_law", settings.every, lambda: _exact(data)),
        **{
            name: study.piece(
                name.replace(" ", "_"),
                kept,
                lambda make=make: _learned(make, data, settings, study.seed),
            )
            for name, make in {"latent SDE": _sde, "latent ODE": _ode}.items()
        },
    }
    _draw(study, data, found)
    ts = _future(data)
    rows = [{"of": name, **one["scores"]} for name, one in found.items()]
    for name, one in found.items():
        by_time = zip(ts, one["coverage"], one["width"], strict=True)
        rows += [
            {"of": name, "time": float(t), "coverage_90": c, "width_of_90_percent": w}
            for t, c, w in by_time
        ]
    return rows


def _shown(data: Data, every: int) -> Data:
    """With every so many of what is observed, and all that is asked."""

    def thinned(split: Split) -> Split:
        is_seen = np.asarray(split.x.mask[0, :, 0])
        is_kept = ~is_seen
        is_kept[np.flatnonzero(is_seen)[::every]] = True
        pick = lambda series: jax.tree.map(lambda leaf: leaf[:, is_kept], series)
        return Split(pick(split.x), pick(split.y))

    return dataclasses.replace(
        data, train=thinned(data.train.in_memory()), test=thinned(data.test)
    )


def _sde(settings: _Settings, *, key: jax.Array) -> AbstractRandomFunction:
    """One latent number, which is the value up to units."""
    model_key, read_key, drift_key = jax.random.split(key, 3)
    recognition = _recognition(settings, key=read_key)
    steps = Grid(num_substeps=settings.num_substeps)
    model = LatentSDE.make(
        recognition,
        1,
        prior=LinearDrift(1, rate=0.1),
        diffusion=_GrowingNoise(jnp.zeros(1), jnp.full(1, -0.5)),
        start=LatentStart(1, is_learned=True),
        integrator=Integrator(EulerMaruyama(), steps, Checkpointed()),
        estimator=StickTheLanding(),
        key=model_key,
    )
    drift = BridgeDrift(
        1,
        recognition.context_size,
        settings.drift_widths,
        slack=settings.first_slack,
        key=drift_key,
    )
    return eqx.tree_at(lambda model: model.posterior_drift, model, drift)


def _ode(settings: _Settings, *, key: jax.Array) -> AbstractRandomFunction:
    """The same without noise: its paths differ by where they begin alone."""
    model_key, read_key = jax.random.split(key)
    return LatentODE.make(
        _recognition(settings, key=read_key),
        1,
        start=LatentStart(1, is_learned=True),
        drift_widths=settings.drift_widths,
        key=model_key,
    )


def _recognition(settings: _Settings, *, key: jax.Array) -> GRURecognition:
    return GRURecognition(
        1,
        1,
        hidden_size=settings.hidden_size,
        context_size=settings.context_size,
        key=key,
    )


def _learned(make: Any, data: Data, settings: _Settings, seed: int) -> dict[str, Any]:
    model_key, fit_key, test_key = jax.random.split(jax.random.key(seed), 3)
    fitted = fit(
        make(settings, key=model_key),
        data.train,
        OverTime(Gaussian(0.3, learn_scale=True)),
        key=fit_key,
        num_epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        kl=KLWeight(warmup=settings.kl_warmup),
    )
    return _judge(fitted, data, settings, key=test_key)


def _judge(fitted: Fit, data: Data, settings: _Settings, *, key: Any) -> dict[str, Any]:
    bound_key, test_key = jax.random.split(key)
    num_draws = settings.num_draws
    prediction = predict(fitted, data.test.x, key=test_key, num_draws=num_draws)
    assert prediction.outputs is not None
    asked = _asked(data)
    outputs = prediction.outputs[:, :, asked]
    future = Prediction(outputs, fitted.likelihood)
    y = jax.tree.map(lambda leaf: leaf[:, asked], data.test.y)
    likelihood: Any = fitted.likelihood
    first = Prediction(outputs[:, :1], fitted.likelihood)
    found = _scores(
        y.values[..., 0],
        cdf=np.asarray(future.cdf(y))[..., 0],
        mean=np.asarray(future.mean)[..., 0],
        log_prob=np.asarray(future.value_log_prob(y))[..., 0],
        interval=np.stack(future.interval(_LEVELS[1] - _LEVELS[0]))[..., 0],
        bands=np.asarray(first.quantile(BAND_QUANTILES))[:, 0, :, 0],
    )
    bounds = series_evidence_bound(fitted, data.train.in_memory(), key=bound_key)
    found["scores"] |= {
        "elbo_per_series": bounds["elbo"],
        "noise_scale": float(likelihood.likelihood.scale),
    }
    if isinstance(fitted.model, LatentSDE):
        ts = np.asarray(data.train.x.ts[0])
        share = fitted.model.noise_share(ts, key=test_key)
        found["scores"]["noise_share"] = float(share[0])
    return found


def _exact(data: Data) -> dict[str, Any]:
    x, asked = data.test.x, _asked(data)
    ts, values = np.asarray(x.ts[0], float), np.asarray(x.values[..., 0], float)
    y = np.asarray(data.test.y.values[:, asked, 0], float)
    law = known(ts[~asked], values[:, ~asked], ts[asked])
    found = _scores(
        y,
        cdf=law.cdf(y),
        mean=law.mean,
        log_prob=law.log_prob(y),
        interval=law.quantiles(_LEVELS),
        bands=law._replace(density=law.density[:1]).quantiles(BAND_QUANTILES)[:, 0],
    )
    found["scores"]["elbo_per_series"] = float(np.mean(law.evidence))
    return found


def _scores(
    y: np.ndarray,
    *,
    cdf: np.ndarray,
    mean: np.ndarray,
    log_prob: np.ndarray,
    interval: np.ndarray,
    bands: np.ndarray,
) -> dict[str, Any]:
    """Of predictions of (series, times): over all of them, and time by time."""
    is_inside = (_LEVELS[0] <= cdf) & (cdf <= _LEVELS[1])
    width = interval[1] - interval[0]
    # Times of one path depend on each other: paths are what the error counts.
    over_paths = lambda values: metrics.mean_and_error(values.mean(axis=1))
    coverage, coverage_se = over_paths(is_inside)
    nll, nll_se = over_paths(-log_prob)
    scores = {
        "coverage_90": coverage,
        "coverage_90_se": coverage_se,
        "below": (cdf < _LEVELS[0]).mean(),
        "above": (cdf > _LEVELS[1]).mean(),
        "width_of_90_percent": width.mean(),
        "nll": nll,
        "nll_se": nll_se,
        "rmse": np.sqrt(np.mean((mean - y) ** 2)),
    }
    return {
        "scores": {name: float(score) for name, score in scores.items()},
        "coverage": is_inside.mean(axis=0).tolist(),
        "width": width.mean(axis=0).tolist(),
        "bands": bands.tolist(),
    }


def _asked(data: Data) -> np.ndarray:
    """Which times of a test row are past its data."""
    return np.asarray(data.test.y.mask[0, :, 0])


def _future(data: Data) -> np.ndarray:
    return np.asarray(data.test.x.ts[0])[_asked(data)]


def _draw(study: Study, data: Data, found: dict[str, Any]) -> None:
    ts = _future(data)
    coverage = method_curves(
        {name: one["coverage"] for name, one in found.items()},
        xs=ts.tolist(),
        xlabel="time t",
        ylabel="share inside the 90 % band",
        title="past the data, which end at 0.6",
        ylim=(0.0, 1.0),
    )
    panels = {name: np.asarray(one["bands"]) for name, one in found.items()}
    asked = np.asarray(data.test.y.values[0, _asked(data), 0])
    bands = band_panels(
        ts, {"path 1": panels}, data=(ts, asked), xlabel="time t", ylabel="value"
    )
    for name, figure in {"coverage": coverage, "bands": bands}.items():
        study.say(f"Wrote {save_figure(study.folder / f'{name}.png', figure)}")


LATENT_GBM = Experiment(
    "geometric Brownian motion past its data: coverage of latent SDE, ODE and the law",
    "Not in the papers. The 90 % band past the data should hold 85 to 95 %.",
    _run,
)
