"""Curves of time by a latent SDE: the toy of the slides of Li et al. (2020).

One latent number, seen as it is; an Ornstein-Uhlenbeck prior of rate 1 and scale ½; and
likelihoods of scale 0.05 with light and heavy tails. The settings are those of
torchsde's `latent_sde.py`; fewer and larger steps of Adam at scale quick. Data and
curves are noise-free, so that the band of the posterior, and not that of predictions,
is held against the curve.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ... import data
from ..._types import Array, Float
from ...data import Data, Series, Split
from ...functions import Integrator, LatentSDE, LatentStart, NoRecognition
from ...likelihood import (
    AbstractLocationScaleLikelihood,
    Cauchy,
    Gaussian,
    Laplace,
    OverTime,
)
from ...plot import BAND_QUANTILES, band_panels, trajectories
from ...prediction import Prediction
from ...recipe import ScaleName
from ...report import save_figure
from ...sde import Checkpointed, EulerMaruyama, Grid, OrnsteinUhlenbeck
from ...train import Constant, Fit, KLWeight, fit
from .._experiment import Experiment, Study
from .._same_for_all import SameForAll

DATA = ("toy/irregular-sine", "toy/segmented-cosine")
LIKELIHOODS: dict[str, type[AbstractLocationScaleLikelihood]] = {
    "laplace": Laplace,
    "normal": Gaussian,
    "cauchy": Cauchy,
}
_SCALE = 0.05
_NEAR, _FAR = 0.02, 0.1  # of a time to the nearest observation: at data, in a gap
_NUM_DRAWN = 30


class Plan(NamedTuple):
    """How a path is learned and judged.

    Attributes:
        num_updates: of Adam.
        num_paths: in each.
        width_size: of the drift's two hidden layers.
        learning_rate: constant.
        num_judged: paths behind bands and scores.
    """

    num_updates: int
    num_paths: int
    width_size: int
    learning_rate: float = 1e-3
    num_judged: int = 1000


PLANS: dict[ScaleName, Plan] = {
    "quick": Plan(400, num_paths=64, width_size=64, learning_rate=5e-3),
    "gpu": Plan(5000, num_paths=512, width_size=200),
    "full": Plan(5000, num_paths=512, width_size=200),
}


def untrained(plan: Plan, *, seed: int) -> LatentSDE:
    """The prior's own path, and a network that is to bend it.

    Args:
        plan: width of the network.
        seed: of the initial parameters.
    """
    model = LatentSDE.make(
        NoRecognition(1, scale=_stationary()),
        1,
        prior=OrnsteinUhlenbeck(1.0, 0.0, 0.5),
        start=LatentStart(1, scale=_stationary()),
        drift_widths=(plan.width_size, plan.width_size),
        integrator=Integrator(EulerMaruyama(), Grid(), Checkpointed()),
        key=jax.random.key(seed),
    )
    return eqx.tree_at(lambda m: m.decoder, model, SameForAll(1))


def learned(series: Series, likelihood: OverTime, plan: Plan, *, seed: int) -> Fit:
    """Train on many paths of one series.

    Args:
        series: one row; steps go from each of its times to the next.
        likelihood: of its values.
        plan: how.
        seed: of everything random.
    """
    rows = repeated(series, plan.num_paths)
    return fit(
        untrained(plan, seed=seed),
        Split(rows, rows),
        likelihood,
        key=jax.random.key(seed + 1),
        num_epochs=plan.num_updates,
        batch_size=plan.num_paths,
        learning_rate=plan.learning_rate,
        schedule=Constant(),
        kl=KLWeight(warmup=min(1.0, 100 / plan.num_updates)),
        snr_decay=None,
    )


def repeated(series: Series, num_rows: int) -> Series:
    """One series as many rows: in training, as many paths."""
    return jax.tree.map(lambda leaf: np.repeat(leaf, num_rows, axis=0), series)


def _run(study: Study) -> list[dict[str, Any]]:
    plan, rows = PLANS[study.scale], []
    for name in DATA:
        loaded, panels = data.load(name), {}
        asked = loaded.test.x
        ts = np.asarray(asked.ts[0])
        for kind, make in LIKELIHOODS.items():
            likelihood = OverTime(make(_SCALE))
            kept = study.piece(
                f"{name.split('/')[1]}_{kind}",
                [study.seed, plan],
                lambda loaded=loaded, likelihood=likelihood: _judged(
                    loaded, likelihood, plan, seed=study.seed
                ),
            )
            rows.append({"data": name, "likelihood": kind} | kept["scores"])
            panels[kind] = np.asarray(kept["quantiles"])
            if kind == "laplace":
                paths = np.stack([kept["prior_paths"], kept["paths"]], axis=-1)
                figure = trajectories(
                    ts,
                    paths,
                    labels=("prior", "posterior"),
                    xlabel="time t",
                    ylabel="latent z(t)",
                    title=f"{name}, {kind} likelihood",
                )
                path = study.folder / f"paths_{name.split('/')[1]}.png"
                study.say(f"Wrote {save_figure(path, figure)}")
        seen = np.asarray(asked.mask)[0, :, 0]
        points = (ts[seen], np.asarray(asked.values)[0, seen, 0])
        figure = band_panels(
            ts, {"posterior": panels}, data=points, xlabel="t", ylabel="z(t)"
        )
        path = study.folder / f"bands_{name.split('/')[1]}.png"
        study.say(f"Wrote {save_figure(path, figure)}")
    return rows


def _judged(
    loaded: Data, likelihood: OverTime, plan: Plan, *, seed: int
) -> dict[str, Any]:
    asked, curve = loaded.test.x, loaded.test.y
    found = learned(asked, likelihood, plan, seed=seed)
    model = found.model
    assert isinstance(model, LatentSDE)
    path_key, prior_key = jax.random.split(jax.random.key(seed + 2))
    rows = repeated(asked, plan.num_judged)
    draw, z = eqx.filter_jit(
        lambda model, x, key: (model(x, key=key), model.trajectory(x, key=key))
    )(model, rows, path_key)
    z = np.asarray(z)[..., 0]
    fitted = float(np.mean(likelihood.log_prob(draw.output, rows)))
    kls = {of: float(np.mean(kl)) for of, kl in draw.local_terms.items()}
    prior = model.sample_prior(asked.ts[0], key=prior_key, num_samples=_NUM_DRAWN)
    scores = {"nll": value_nll(likelihood, draw.output, curve)}
    scores |= {"elbo": fitted - sum(kls.values())}
    scores |= {"log_likelihood": fitted} | kls | spreads(asked, curve, z)
    return {
        "scores": scores,
        "quantiles": np.quantile(z, BAND_QUANTILES, axis=0).tolist(),
        "paths": z[:_NUM_DRAWN].tolist(),
        "prior_paths": np.asarray(prior.z)[: len(z), :, 0].tolist(),
    }


def value_nll(
    likelihood: OverTime, output: Float[Array, "paths times 1"], curve: Series
) -> float:
    """-log of the mean density of a value over paths, nats; its mean over values.

    Args:
        likelihood: of the values.
        output: its parameters along each path.
        curve: one series of values.
    """
    scores = Prediction(output[:, None], likelihood).row_scores(curve)
    return -float(np.sum(scores.log_prob) / np.sum(scores.num_units))


def spreads(
    asked: Series, curve: Series, z: Float[np.ndarray, "paths times"]
) -> dict[str, float]:
    """How wide the posterior is, and how much of the curve its 90 % band covers.

    Args:
        asked: one series: its times, and where it was observed.
        curve: the values between.
        z: paths of the posterior.
    """
    ts, seen = np.asarray(asked.ts)[0], np.asarray(asked.mask)[0, :, 0]
    asked_for = np.asarray(curve.mask)[0, :, 0]
    true = np.asarray(curve.values)[0, :, 0]
    lower, upper = np.quantile(z, (0.05, 0.95), axis=0)
    is_covered = (lower <= true) & (true <= upper)
    distance = np.abs(ts[:, None] - ts[seen]).min(axis=1)
    inside = (ts > ts[seen].min()) & (ts < ts[seen].max())
    sd = z.std(axis=0)
    found = {"coverage_90": float(is_covered[asked_for].mean())}
    places = {
        "at_data": distance <= _NEAR,
        "in_gaps": inside & (distance > _FAR),
        "beyond": ~inside & (distance > _FAR),
    }
    for name, chosen in places.items():
        if chosen.any():
            found[f"std_{name}"] = float(sd[chosen].mean())
    return found


def _stationary() -> float:
    """Standard deviation of the prior's stationary law, σ / √(2θ)."""
    return 0.5 / 2**0.5


LATENT_TOY = Experiment(
    "curves by a latent SDE with an OU prior, under three likelihoods",
    "Slides of Li et al. (2020): posterior paths go through the data and spread "
    "between; no numbers.",
    _run,
)
"""`ornstein reproduce latent-toy`."""
