"""Settings that work for sequences: where latent models start from."""

import json
from importlib.resources import files
from typing import Any

from ...data import SERIES_TOYS
from ..options import ModelName

_COMMON = {
    "solver": "euler",
    "gradient": "checkpointed",
    "drift_widths": "64",
    "likelihood": "gaussian",
    "scale": 0.3,
    "learn_scale": True,
    "kl_warmup": 0.2,
    "test_draws": 100,
}
_CURVE = _COMMON | {
    "recognition": "none",
    "latent_prior": "ou",
    "latent_noise": "fixed",
    "sigma": 0.5,
    "likelihood": "laplace",
    "scale": 0.05,
    "learn_scale": False,
    "epochs": 1000,
    "batch_size": 1,
    "num_draws": 4,
    "learning_rate": 1e-2,
}
_BY_KIND: dict[str, dict[str, Any]] = {
    "series": _COMMON | {"epochs": 300, "batch_size": 32, "learning_rate": 5e-3},
    "one-series": _COMMON
    | {
        "epochs": 1000,
        "batch_size": 1,
        "num_draws": 2,
        "learning_rate": 5e-3,
        "substeps": 2,
    },
    # As torchsde's `latent_sde.py` has it: the path itself, under a fixed prior, for a
    # few points say nothing about a law of motion.
    "curve": _CURVE | {"latent_size": 1, "decoder_widths": "identity"},
    "toy/two-points": _CURVE | {"latent_size": 2, "likelihood": "cauchy", "scale": 1.0},
    # Of `ornstein reproduce` at scale quick: smaller than `latent-gbm`, and `lorenz`
    # but for the bound of its noise, which is 1 there.
    "toy/gbm": _COMMON
    | {
        "latent_size": 1,
        "hidden_size": 32,
        "context_size": 8,
        "drift_widths": "32",
        "latent_prior": "linear",
        "rate": 0.1,
        "max_noise": 5.0,
        "learn_start": True,
        "epochs": 200,
        "batch_size": 100,
        "learning_rate": 1e-2,
    },
    "toy/lorenz": _COMMON
    | {
        "max_noise": 2.0,
        "learn_start": True,
        "substeps": 1,
        "scale": 0.1,
        "epochs": 250,
        "batch_size": 64,
        "learning_rate": 1e-2,
        "kl_warmup": 0.3,
    },
}

# What a latent ODE does not read, and what solves it.
_OF_NOISE = {"context_size", "extrapolates_posterior", "drift_sees_time"}
_OF_NOISE |= {"latent_prior", "latent_noise", "max_noise", "rate", "sigma"}
_ODE = {"solver": "rk4", "substeps": 1}

_NAMED = {"mocap", "toy/gbm", "toy/lorenz", "toy/two-points"}


def kind_of_sequences(
    data: str, *, time: str | None = None, series: str | None = None
) -> str | None:
    """The preset of these sequences; `None` if they are none.

    From the arguments alone: a table is only read once all of them are understood.

    Args:
        data: as `--data` has it.
        time: the column of times, if one is named.
        series: the column that tells series apart, if one is named.
    """
    if data in _NAMED:
        return data
    if data in SERIES_TOYS:
        return "curve"
    if time is None:
        return None
    return "one-series" if series is None else "series"


def latent_presets() -> dict[tuple[ModelName, str], dict[str, Any]]:
    """By model and kind of sequences."""
    of_sde: dict[tuple[ModelName, str], dict[str, Any]] = {}
    of_ode: dict[tuple[ModelName, str], dict[str, Any]] = {}
    for kind, options in _BY_KIND.items():
        kept = {n: v for n, v in options.items() if n not in _OF_NOISE}
        of_sde["latent-sde", kind] = options
        of_ode["latent-ode", kind] = kept | _ODE
    return of_sde | of_ode | _recipes_of("mocap")


def _recipes_of(data: str) -> dict[tuple[ModelName, str], dict[str, Any]]:
    """The package's own recipes at scale quick, which `ornstein reproduce` trains."""
    found: dict[tuple[ModelName, str], dict[str, Any]] = {}
    models: tuple[ModelName, ...] = ("latent-sde", "latent-ode")
    for model in models:
        path = files("ornstein.recipe").joinpath("published", data, f"{model}.json")
        options = json.loads(path.read_text(encoding="utf-8"))["quick"]["options"]
        found[model, data] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in options.items()
            if name != "model"
        }
    return found
