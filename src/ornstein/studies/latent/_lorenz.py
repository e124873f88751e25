"""The stochastic Lorenz attractor: a latent SDE and a latent ODE (Li et al., 2020).

Both read noisy paths of three numbers at 100 times. They are judged by the bound on
test paths, by how they reconstruct these, by what they say of the second half when the
first is all they see, and by the paths of their priors.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from ...data import Data, Series, load
from ...evaluation import evaluate, num_trained, series_evidence_bound
from ...functions import (
    AbstractRandomFunction,
    GRURecognition,
    Integrator,
    LatentODE,
    LatentSDE,
    LatentStart,
    PriorSamples,
)
from ...likelihood import Gaussian, OverTime
from ...plot import trajectories
from ...prediction import Prediction, predict
from ...recipe import ScaleName
from ...report import save_figure
from ...sde import Checkpointed, EulerMaruyama, Grid
from ...train import Fit, KLWeight, fit
from .._experiment import Experiment, Study

_SHOWN = 20  # prior paths in a figure


class _Settings(NamedTuple):
    """Sizes of both models, and how they are trained."""

    epochs: int = 250
    batch_size: int = 64
    learning_rate: float = 1e-2
    kl_warmup: float = 0.3
    num_substeps: int = 1
    latent_size: int = 4
    hidden_size: int = 64
    context_size: int = 16
    drift_widths: tuple[int, ...] = (64,)
    decoder_widths: tuple[int, ...] = ()
    first_scale: float = 0.1
    num_draws: int = 64
    num_prior: int = 256


_SETTINGS: dict[ScaleName, _Settings] = {
    "quick": _Settings(),
    "gpu": _Settings(epochs=2000, num_substeps=4, drift_widths=(128,)),
    "full": _Settings(epochs=5000, num_substeps=4, drift_widths=(128,)),
}


def _run(study: Study) -> list[dict[str, Any]]:
    settings = _SETTINGS[study.scale]
    data = load("toy/lorenz")
    # No model reads it: it stands in the settings of pieces that were kept before.
    kept = settings._asdict() | {"max_diffusion": 2.0, "seed": study.seed}
    rows = []
    for name, make in {"latent SDE": _sde, "latent ODE": _ode}.items():

        def compute(make=make) -> dict[str, Any]:
            return _learned(make, data, settings, study.seed)

        found = study.piece(name.replace(" ", "_"), kept, compute)
        _draw(study, data, f"prior of the {name}", found["paths"])
        rows.append({"model": name} | found["scores"])
    shown = np.asarray(data.test.x.values[:_SHOWN]).tolist()
    _draw(study, data, "test paths", shown)
    return rows


def _sde(settings: _Settings, *, key: jax.Array) -> AbstractRandomFunction:
    model_key, read_key = jax.random.split(key)
    steps = Grid(num_substeps=settings.num_substeps)
    size = settings.latent_size
    return LatentSDE.make(
        _recognition(settings, key=read_key),
        3,
        start=LatentStart(size, is_learned=True),
        drift_widths=settings.drift_widths,
        decoder_widths=settings.decoder_widths,
        integrator=Integrator(EulerMaruyama(), steps, Checkpointed()),
        key=model_key,
    )


def _ode(settings: _Settings, *, key: jax.Array) -> AbstractRandomFunction:
    model_key, read_key = jax.random.split(key)
    return LatentODE.make(
        _recognition(settings, key=read_key),
        3,
        start=LatentStart(settings.latent_size, is_learned=True),
        drift_widths=settings.drift_widths,
        decoder_widths=settings.decoder_widths,
        key=model_key,
    )


def _recognition(settings: _Settings, *, key: jax.Array) -> GRURecognition:
    return GRURecognition(
        3,
        settings.latent_size,
        hidden_size=settings.hidden_size,
        context_size=settings.context_size,
        key=key,
    )


def _learned(make: Any, data: Data, settings: _Settings, seed: int) -> dict[str, Any]:
    key = jax.random.key(seed)
    model_key, fit_key, test_key = jax.random.split(key, 3)
    fitted = fit(
        make(settings, key=model_key),
        data.train,
        OverTime(Gaussian(np.full(3, settings.first_scale), learn_scale=True)),
        key=fit_key,
        num_epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        kl=KLWeight(warmup=settings.kl_warmup),
    )
    return _judge(fitted, data, settings, key=test_key)


def _judge(fitted: Fit, data: Data, settings: _Settings, *, key: Any) -> dict[str, Any]:
    bound_key, test_key, half_key, prior_key = jax.random.split(key, 4)
    model, test = fitted.model, data.test
    assert isinstance(model, LatentSDE | LatentODE)
    bounds = series_evidence_bound(fitted, test, key=bound_key)
    num_draws = settings.num_draws
    whole = predict(fitted, test.x, key=test_key, num_draws=num_draws)
    half = test.x.num_times // 2
    seen = predict(fitted, test.x.first(half), key=half_key, num_draws=num_draws)
    assert seen.outputs is not None
    later = jax.tree.map(lambda leaf: leaf[:, half:], test.y)
    forecast = evaluate(Prediction(seen.outputs[:, :, half:], fitted.likelihood), later)
    ts = np.asarray(test.x.ts[0])
    prior = model.sample_prior(ts, key=prior_key, num_samples=settings.num_prior)
    likelihood: Any = fitted.likelihood
    scores = {
        "num_parameters": num_trained(fitted),
        "test_elbo_per_series": bounds["elbo"],
        "test_kl_per_series": bounds["kl"],
        "reconstruction_rmse": _rmse(whole, test.y),
        "noise_scale": float(np.mean(likelihood.likelihood.scale)),
        "forecast_rmse": forecast["rmse"],
        "forecast_nll": forecast["nll"],
        "forecast_nll_se": forecast["nll_se"],
        "forecast_crps": forecast["crps"],
        "forecast_coverage_90": forecast["coverage_90"],
        "prior_distance": _distance(prior, test.y),
    }
    if isinstance(model, LatentSDE):
        share = model.noise_share(ts, key=prior_key)
        scores |= {"noise_share_least": float(share.min())}
        scores |= {"noise_share_most": float(share.max())}
    paths = np.asarray(prior.output[:_SHOWN])
    return {"scores": scores, "paths": paths.tolist()}


def _rmse(prediction: Prediction, y: Series) -> float:
    """Of the mean over draws, in standard units, as all values here."""
    error = np.asarray(prediction.mean) - np.asarray(y.values)
    return float(np.sqrt(np.mean(error**2)))


def _distance(prior: PriorSamples, y: Series) -> float:
    """How far values of the prior's paths lie from the data's, in standard units.

    The first Wasserstein distance between their distributions at one time, a mean over
    times and features.
    """
    levels = (np.arange(50) + 0.5) / 50
    ours, theirs = (
        np.quantile(np.asarray(values), levels, axis=0)
        for values in (prior.output, y.values)
    )
    return float(np.mean(np.abs(ours - theirs)))


def _draw(study: Study, data: Data, title: str, paths: list) -> None:
    figure = trajectories(
        np.asarray(data.test.x.ts[0]),
        np.asarray(paths),
        labels=tuple(data.feature_names),
        xlabel="time t",
        ylabel="standard units",
        title=title,
    )
    name = title.replace(" ", "_")
    study.say(f"Wrote {save_figure(study.folder / f'{name}.png', figure)}")


LORENZ = Experiment(
    "stochastic Lorenz attractor: latent SDE and latent ODE, forecasts, prior paths",
    "Li et al. (2020) show the prior's paths in a figure, and no numbers.",
    _run,
)
