"""Depth on x³: implicit BNNs beside mean field, figure 1 of Trinh et al. (2020).

The source's networks have 1 to 5 hidden layers of 256 rectified units and meet 30
points of x³. It leaves the inputs and the noise open. Here the points are those of
`toy/cubic`, after Hernández-Lobato & Adams (2015): x uniform on [-4, 4] and noise of
standard deviation 3, which is learned from there by each method, or known to it. Test
points are 150 more of the same law; those outside lie evenly over 4 < |x| ≤ 6.

Settings were chosen on another draw of the data, one for all depths. Mean field has, of
normal priors of standard deviation 1, (2 / fan-in)^½ and fan-in^-½, the last, which the
bound prefers at one layer and at five; it starts from 0.3 of the prior's scales and is
trained until the bound hardly moves. Both matter: from small scales the bound is still
hundreds of thousands of nats too low after thousands of steps, and what is judged then
is a network with a little noise, not the posterior that the bound asks for.

What to expect: where noise is learned, the bound prefers to explain all of the data by
noise, and mean field returns to its prior whatever its depth; where it is known, 30
points are worth 1,500 nats, which pay for a fit that gets worse from layer to layer.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, PRNGKeyArray
from ..data import Data, Split, load
from ..evaluate import evaluate
from ..functions import (
    AbstractRandomFunction,
    ImplicitBNN,
    LocalReparameterised,
    MeanField,
)
from ..likelihood import Gaussian
from ..nn import MLP
from ..plot import BAND_QUANTILES, band_panels
from ..predict import predict
from ..prior import fan_in_prior
from ..report import save_figure
from ..train import Fit, fit
from ._judge import in_target_units
from ._study import Experiment, ScaleName, Study

DEPTHS = (1, 2, 3, 4, 5)
METHODS = ("BNN-VI", "iBNN")
NOISES = ("learned", "known")
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
"""Of `fit`, beside Adam."""


def _run(study: Study) -> list[dict[str, Any]]:
    num_steps = _STEPS[study.scale]
    data = load("toy/cubic")
    outside = _outside(data, seed=study.seed)
    grid = np.linspace(-6, 6, 121)
    rows: list[dict[str, Any]] = []
    panels: dict[str, dict[str, np.ndarray]] = {}
    for noise in NOISES:
        for method in METHODS:
            several = []
            for depth in DEPTHS:

                def compute(method=method, noise=noise, depth=depth) -> dict[str, Any]:
                    fitted = _fit(
                        method, noise, depth, data, num_steps, seed=study.seed
                    )
                    return _judge(fitted, data, outside, grid, seed=study.seed)

                settings = {
                    "num_steps": num_steps,
                    "width": _WIDTH,
                    "options": _OPTIONS[method],
                    "seed": study.seed,
                }
                found = study.piece(f"{method}_{noise}_{depth}", settings, compute)
                name = f"{method}, noise {noise}"
                quantiles = np.array(found["quantiles"])
                panels.setdefault(name, {})[f"L = {depth}"] = quantiles
                row = {"method": method, "noise": noise, "num_hidden_layers": depth}
                several.append(row | found["scores"])
            for row in several:
                row["nll_over_one_layer"] = row["nll"] - several[0]["nll"]
            rows += several
    figure = band_panels(grid, panels, data=_raw(data), ylim=(-250.0, 250.0))
    study.say(f"Wrote {save_figure(study.folder / 'depth.png', figure)}")
    return rows


def _fit(
    method: str, noise: str, depth: int, data: Data, num_steps: int, *, seed: int
) -> Fit:
    model_key, fit_key = jax.random.split(jax.random.key(seed))
    assert data.y_scaling is not None
    scale = _NOISE / float(np.squeeze(data.y_scaling.scale))
    return fit(
        _build(method, depth, key=model_key),
        data.train,
        Gaussian(scale, learn_scale=noise == "learned"),
        key=fit_key,
        num_epochs=num_steps,  # of one batch
        batch_size=len(data.train),
        snr_decay=None,
        **_OPTIONS[method],
    )


def _judge(
    fitted: Fit, data: Data, outside: Split, grid: np.ndarray, *, seed: int
) -> dict[str, Any]:
    """Scores in the units of the targets, nats a point, and quantiles over the grid."""
    assert data.x_scaling is not None
    assert data.y_scaling is not None
    draw_key = jax.random.key(seed + 1)
    draws = functools.partial(predict, fitted, key=draw_key, num_draws=_NUM_DRAWS)
    scores: dict[str, float] = {}
    splits = {"": data.test, "train_": data.train, "outside_": outside}
    for prefix, split in splits.items():
        judged = evaluate(draws(split.x), split.y)
        scores[f"{prefix}nll_se"] = judged["nll_se"]
        judged |= in_target_units(judged, data)
        scores[f"{prefix}nll"] = judged["nll_in_target_units"]
        scores[f"{prefix}rmse"] = judged["rmse_in_target_units"]
    assert isinstance(fitted.likelihood, Gaussian)
    scale = data.y_scaling.scale * np.asarray(fitted.likelihood.scale)
    scores["noise_scale"] = float(np.squeeze(scale))
    # The bound is of few draws: its mean over the end of the run.
    elbos = fitted.history["elbo"]
    scores["elbo"] = float(np.mean(elbos[-len(elbos) // 20 :]))
    scores["kl"] = float(fitted.history["kl"][-1])
    on_grid = draws(data.x_scaling.apply(grid[:, None])).quantile(BAND_QUANTILES)
    quantiles = data.y_scaling.undo(np.asarray(on_grid))[..., 0]
    return {"scores": scores, "quantiles": quantiles.tolist()}


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
        estimator=LocalReparameterised(),
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
