"""Depth on x³: implicit BNNs beside mean field, figure 1 of Trinh et al. (2020).

The source's networks have 1 to 5 hidden layers of 256 rectified units and meet 30
points of x³. It leaves the inputs and the noise open. Here the points are those of
`toy/cubic`, after Hernández-Lobato & Adams (2015): x uniform on [-4, 4] and noise of
standard deviation 3, which a method knows, or learns from there. Test points are 150
more of the same law; those outside lie evenly over 4 < |x| ≤ 6.

Settings were chosen on another draw of the data, one for all depths. Mean field has
those with the higher bound at one layer and at five: of normal priors of standard
deviation 1, (2 / fan-in)^½ and fan-in^-½, the last, and of rates 3e-3 and 3e-2 the
second. It starts from 0.3 of the prior's scales: from 0.01, the bound is still hundreds
of thousands of nats too low after thousands of steps, and what is judged then is a
network with a little noise, not the posterior that the bound asks for.

What to expect: told the noise, mean field pays 200 nats or more to fit, and the error
of its mean grows with every layer, but its NLL rises no faster than the implicit BNN's,
which starts lower; left to learn the noise, the bound would rather call all of the data
noise, and mean field returns to its prior, one layer or five. So the collapse is there,
but it is the learned noise that brings it about, not the depth.
"""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._types import Array, PRNGKeyArray
from ...data import Data, Split, load
from ...functions import (
    AbstractRandomFunction,
    ImplicitBNN,
    LocalReparameterised,
    MeanField,
)
from ...likelihood import Gaussian
from ...nn import MLP
from ...plot import BAND_QUANTILES, band_panels
from ...prediction import predict
from ...prior import fan_in_prior
from ...recipe import ScaleName
from ...report import save_figure
from ...train import Fit, KLWeight, fit
from .._experiment import Experiment, Study

DEPTHS = (1, 2, 3, 4, 5)
METHODS = ("BNN-VI", "iBNN")
NOISES = ("known", "learned")
_WIDTH = 256
_NOISE = 3.0
_STEPS: dict[ScaleName, int] = {"quick": 2000, "gpu": 10_000, "full": 20_000}
_NUM_DRAWS = 200
_NUM_COMPONENTS = 4
_OPTIONS: dict[str, dict[str, Any]] = {
    "BNN-VI": {"learning_rate": 3e-2},
    "iBNN": {
        "learning_rate": {"weights": 1e-3, "noise": 1e-2},
        "kl_warmup": 2 / 3,
        "num_draws": 2,
    },
}
"""Of `fit`, beside Adam; `kl_warmup` is that of its `KLWeight`."""


def _run(study: Study) -> list[dict[str, Any]]:
    num_steps = _STEPS[study.scale]
    data = load("toy/cubic")
    outside = _outside(data, seed=study.seed)
    grid = np.linspace(-6, 6, 121)
    rows: list[dict[str, Any]] = []
    panels: dict[str, dict[str, np.ndarray]] = {}
    for noise, method in itertools.product(NOISES, METHODS):
        several, bands = [], {}
        for depth in DEPTHS:

            def compute(noise=noise, method=method, depth=depth) -> dict[str, Any]:
                fitted = _fit(method, noise, depth, data, num_steps, seed=study.seed)
                return _judge(fitted, data, outside, grid, seed=study.seed)

            settings = {
                "num_steps": num_steps,
                "width": _WIDTH,
                "options": _OPTIONS[method],
                "seed": study.seed,
            }
            found = study.piece(f"{method}_{noise}_{depth}", settings, compute)
            bands[f"L = {depth}"] = np.array(found["quantiles"])
            row = {"method": method, "noise": noise, "num_hidden_layers": depth}
            several.append(row | found["scores"])
        for row in several:
            row["nll_over_one_layer"] = row["nll"] - several[0]["nll"]
        rows += several
        panels[f"{method}, {noise} noise"] = bands
    figure = band_panels(grid, panels, data=_raw(data), ylim=(-150.0, 150.0))
    study.say(f"Wrote {save_figure(study.folder / 'depth.png', figure)}")
    return rows


def _fit(
    method: str, noise: str, depth: int, data: Data, num_steps: int, *, seed: int
) -> Fit:
    model_key, fit_key = jax.random.split(jax.random.key(seed))
    assert data.y_scaling is not None
    scale = _NOISE / float(np.squeeze(data.y_scaling.scale))
    options = dict(_OPTIONS[method])
    return fit(
        _build(method, depth, key=model_key),
        data.train,
        Gaussian(scale, learn_scale=noise == "learned"),
        key=fit_key,
        num_epochs=num_steps,  # of one batch
        batch_size=len(data.train),
        snr_decay=None,
        kl=KLWeight(warmup=options.pop("kl_warmup", 0.0)),
        **options,
    )


def _judge(
    fitted: Fit, data: Data, outside: Split, grid: np.ndarray, *, seed: int
) -> dict[str, Any]:
    """Scores in the units of the targets, nats a point, and quantiles over the grid."""
    assert data.x_scaling is not None
    assert data.y_scaling is not None
    splits = {"": data.test, "train_": data.train, "outside_": outside}
    on_grid = data.x_scaling.apply(grid[:, None])
    x = np.concatenate([*(split.x for split in splits.values()), on_grid])
    # One call for all rows: each shape is another compilation.
    key = jax.random.key(seed + 1)
    prediction = predict(fitted, x, key=key, num_draws=_NUM_DRAWS)
    quantiles = np.asarray(prediction.quantile(BAND_QUANTILES))
    targets = np.concatenate([split.y for split in splits.values()])
    padded = np.concatenate([targets, np.zeros_like(on_grid)])
    nlls = -np.asarray(prediction.log_prob(padded), np.float64)
    errors = np.asarray(prediction.mean - padded, np.float64)[:, 0]
    scale = float(np.squeeze(data.y_scaling.scale))
    scores: dict[str, float] = {}
    end = 0
    for prefix, split in splits.items():
        rows = slice(end, end := end + len(split))
        scores[f"{prefix}nll"] = float(nlls[rows].mean()) + math.log(scale)
        spread = float(nlls[rows].std(ddof=1))
        scores[f"{prefix}nll_se"] = spread / math.sqrt(len(split))
        scores[f"{prefix}rmse"] = scale * float(np.sqrt(np.mean(errors[rows] ** 2)))
    assert isinstance(fitted.likelihood, Gaussian)
    scores["noise_scale"] = scale * float(fitted.likelihood.scale)
    # The bound is of few draws: its mean over the end of the run.
    elbos = fitted.history["elbo"]
    scores["elbo"] = float(np.mean(elbos[-len(elbos) // 20 :]))
    scores["kl"] = float(fitted.history["kl"][-1])
    bands = data.y_scaling.undo(quantiles[:, end:])[..., 0]
    return {"scores": scores, "quantiles": bands.tolist()}


def _build(method: str, depth: int, *, key: PRNGKeyArray) -> AbstractRandomFunction:
    network_key, noise_key = jax.random.split(key)
    network = MLP(1, 1, [_WIDTH] * depth, activation=jax.nn.relu, key=network_key)
    if method == "iBNN":
        return ImplicitBNN(
            network, num_components=_NUM_COMPONENTS, prior_scale=1.0, key=noise_key
        )
    return MeanField(
        network,
        fan_in_prior(network),
        init_scale=_start_scale,
        noise=LocalReparameterised(),
    )


def _start_scale(mean: Array) -> Array:
    """0.3 of the prior's for matrices; biases start small."""
    scale = 0.3 / math.sqrt(mean.shape[0]) if mean.ndim == 2 else 0.02
    return jnp.full_like(mean, scale)


def _outside(data: Data, *, seed: int) -> Split:
    """Points beyond the data, standardised as they are."""
    size = np.linspace(4, 6, 101)[1:, None]
    x = np.concatenate([-size, size])
    noise = np.random.default_rng(seed).normal(size=x.shape)
    y = x**3 + _NOISE * noise
    assert data.x_scaling is not None
    assert data.y_scaling is not None
    return Split(data.x_scaling.apply(x), data.y_scaling.apply(y))


def _raw(data: Data) -> tuple[np.ndarray, np.ndarray]:
    assert data.x_scaling is not None
    assert data.y_scaling is not None
    return data.x_scaling.undo(data.train.x), data.y_scaling.undo(data.train.y)


IBNN_FIG1 = Experiment(
    "x³ from 30 points with 1 to 5 hidden layers, implicit BNN beside mean field",
    "Trinh et al. (2020), figure 1: mean field collapses as layers are added; the "
    "implicit BNN keeps its fit, whatever their number.",
    _run,
)
"""`ornstein reproduce ibnn-fig1`."""
