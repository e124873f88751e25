"""Regression on UCI's sets, all splits: our methods beside MC dropout as published.

One hidden layer of 50 units and a learned noise scale. Each method's setting (prior
scale, dropout rate) is chosen within each split, by the log likelihood of a tenth of
its own training rows, after a part of the final training (`_Method.choice`). Splits
overlap: a choice made on one split has seen test rows of the others. Minibatch
samplers are left out: at the noise that these sets have, gradient noise outweighs any
friction unless steps are too small to get anywhere.

Splits share shapes, and so programs: with `JAX_COMPILATION_CACHE_DIR` in the
environment each is compiled once.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..._sentence import OptionError
from ..._types import PRNGKeyArray
from ...data import Data, Split, load
from ...evaluation import evaluate
from ...functions import (
    AbstractRandomFunction,
    LocalReparameterised,
    MCDropout,
    MeanField,
)
from ...likelihood import Gaussian
from ...mcmc import HMC, AbstractKernel, PartialHMC
from ...nn import MLP, activation_from_name
from ...prediction import Fitted, predict
from ...prior import GaussianPrior, fan_in_prior
from ...recipe import ScaleName
from ...sampling import sample
from ...train import KLWeight, fit
from .._experiment import Experiment, Study

PUBLISHED = {
    "concrete": (4.83, -2.94),
    "yacht": (0.67, -1.25),
    "wine-quality-red": (0.62, -0.93),
    "kin8nm": (0.079, 1.14),
}
"""Test RMSE and log likelihood of MC dropout (Gal & Ghahramani, 2016, table 1)."""

_NUM_SPLITS: dict[ScaleName, int] = {"quick": 2, "gpu": 20, "full": 20}
_WIDTH = 50
_START_SCALE = 0.3
_NUM_DRAWS = 200
_NUM_STEPS = 50_000


class _Method(NamedTuple):
    """A method: the settings to choose from, and how it is trained with one.

    `choice` is the share of the final training that a setting is tried with.
    """

    settings: Sequence[dict[str, Any]]
    train: Callable[..., Fitted]
    choice: float


def _network(split: Split, activation: str, *, key: PRNGKeyArray) -> MLP:
    fn = activation_from_name(activation)
    return MLP(split.x.shape[1], 1, [_WIDTH], activation=fn, key=key)


_JITTER = 0.1
_STARTS = (
    f"The two chains of hmc and partial-hmc start from one point within {_JITTER:g}: "
    "that they agree says nothing of other modes."
)


def _hmc(
    split: Split, prior_scale: float, *, budget: float, key: PRNGKeyArray
) -> Fitted:
    kernel = HMC(num_integration_steps=50, step_size=0.005)
    return _chains(split, kernel, prior_scale, thin=1, budget=budget, key=key)


def _partial_hmc(
    split: Split, prior_scale: float, *, budget: float, key: PRNGKeyArray
) -> Fitted:
    """As many gradients, in paths that go on: α = 0.9 keeps most of the momentum."""
    kernel = PartialHMC(alpha=0.9, num_integration_steps=10, step_size=0.005)
    return _chains(split, kernel, prior_scale, thin=5, budget=budget, key=key)


def _chains(
    split: Split,
    kernel: AbstractKernel,
    prior_scale: float,
    *,
    thin: int,
    budget: float,
    key: PRNGKeyArray,
) -> Fitted:
    network_key, key = jax.random.split(key)
    network = _network(split, "tanh", key=network_key)
    num_warmup, num_samples = (200, 100) if len(split) < 5_000 else (100, 50)
    return sample(
        network,
        split,
        Gaussian(_START_SCALE, learn_scale=True),
        kernel=kernel,
        prior=fan_in_prior(network, scale=prior_scale),
        likelihood_prior=GaussianPrior(1.0, mean=math.log(_START_SCALE)),
        key=key,
        num_chains=2,
        num_warmup=thin * round(budget * num_warmup),
        num_samples=round(budget * num_samples),
        thin=thin,
        jitter=_JITTER,
    )


def _mean_field(
    split: Split,
    prior_scale: float,
    activation: str,
    *,
    budget: float,
    key: PRNGKeyArray,
) -> Fitted:
    network_key, key = jax.random.split(key)
    network = _network(split, activation, key=network_key)
    model = MeanField(
        network,
        fan_in_prior(network, scale=prior_scale),
        init_scale=0.02,
        noise=LocalReparameterised(),
    )
    return _fit(model, split, budget=budget, key=key)


def _mc_dropout(
    split: Split, rate: float, *, budget: float, key: PRNGKeyArray
) -> Fitted:
    network_key, key = jax.random.split(key)
    network = _network(split, "relu", key=network_key)
    return _fit(MCDropout(network, rate=rate), split, budget=budget, key=key)


def _fit(
    model: AbstractRandomFunction, split: Split, *, budget: float, key: PRNGKeyArray
) -> Fitted:
    batch_size = min(64, len(split))
    return fit(
        model,
        split,
        Gaussian(_START_SCALE, learn_scale=True),
        key=key,
        num_epochs=round(budget * _NUM_STEPS) * batch_size // len(split),
        batch_size=batch_size,
        learning_rate=3e-3,
        kl=KLWeight(warmup=0.3),
        snr_decay=None,
    )


_METHODS = {
    "hmc": _Method([{"prior_scale": 1.0}, {"prior_scale": 2.0}], _hmc, 0.5),
    "partial-hmc": _Method(
        [{"prior_scale": 1.0}, {"prior_scale": 2.0}], _partial_hmc, 0.5
    ),
    "mc-dropout": _Method([{"rate": r} for r in (0.01, 0.02, 0.05)], _mc_dropout, 0.25),
    "mean-field": _Method(
        [{"prior_scale": 1.0, "activation": name} for name in ("relu", "tanh")],
        _mean_field,
        0.25,
    ),
}


def _run(study: Study) -> list[dict[str, Any]]:
    """Compute the rows that are asked for; show all that have a finished split."""
    for cell in _asked(study.models):
        for split in range(_NUM_SPLITS[study.scale]):
            _one(study, *cell, split)
    study.say(_STARTS)
    return _rows(study)


def _rows(study: Study) -> list[dict[str, Any]]:
    """Of what is there, without computing."""
    rows = []
    for cell in _cells():
        splits = range(_NUM_SPLITS[study.scale])
        found = [_found(study, *cell, split) for split in splits]
        done = [f for f in found if f is not None]
        if done:
            rows.append(_summary(*cell, done, len(splits)))
    return rows


def _cells() -> list[tuple[str, str]]:
    return [(name, method) for name in PUBLISHED for method in _METHODS]


def _asked(models: Sequence[str]) -> list[tuple[str, str]]:
    """The cells that `yacht`, `hmc` or `yacht/hmc` name, in that order; else all."""
    found: dict[tuple[str, str], None] = {}
    for model in models:
        ours = [c for c in _cells() if model in (*c, "/".join(c))]
        if not ours:
            raise OptionError(
                "{models} {} is no row of `reproduce uci`: give a set ({}), a method "
                "({}), or both, such as yacht/hmc.",
                model,
                ", ".join(PUBLISHED),
                ", ".join(_METHODS),
            )
        found |= dict.fromkeys(ours)
    return list(found) if models else _cells()


def _choice(study: Study, name: str, method: str, split: int) -> tuple[str, Any]:
    """The name and the settings of the piece that chooses for a split."""
    ours = _METHODS[method]
    settings = {"seed": study.seed, "settings": list(ours.settings)}
    return f"{name}_{method}_{split}_setting", settings | {"budget": ours.choice}


def _test(study: Study, name: str, method: str, split: int, best: Any) -> Any:
    """The name and the settings of the piece that tests a split."""
    return f"{name}_{method}_{split}", {"seed": study.seed, "setting": best}


def _found(study: Study, name: str, method: str, split: int) -> dict[str, Any] | None:
    """What `_one` returns, if it is there already."""
    chosen = study.find(*_choice(study, name, method, split))
    if chosen is None:
        return None
    tested = study.find(*_test(study, name, method, split, chosen["best"]))
    return None if tested is None else tested | {"setting": chosen["best"]}


def _one(study: Study, name: str, method: str, split: int) -> dict[str, Any]:
    """Test scores of one split, with the setting that its training rows chose."""

    def choose() -> dict[str, Any]:
        data = load(
            f"uci/{name}", split=split, validation_fraction=0.1, seed=study.seed
        )
        assert data.validation is not None
        tried = []
        for setting in _METHODS[method].settings:
            budget = _METHODS[method].choice
            score = _score(study, data, data.validation, method, setting, budget)
            tried.append({"setting": setting} | score)
        best = max(tried, key=lambda found: found["log_likelihood"])
        return {"best": best["setting"], "tried": tried}

    best = study.piece(*_choice(study, name, method, split), choose)["best"]

    def test() -> dict[str, Any]:
        data = load(f"uci/{name}", split=split)
        return _score(study, data, data.test, method, best, 1.0)

    tested = study.piece(*_test(study, name, method, split, best), test)
    return tested | {"setting": best}


def _score(
    study: Study,
    data: Data,
    split: Split,
    method: str,
    setting: dict[str, Any],
    budget: float,
) -> dict[str, float]:
    """RMSE and log likelihood of a split, in the units of the targets."""
    # Each fit compiles programs of its own; hundreds of them exhaust a process's maps.
    jax.clear_caches()
    train_key, draw_key = jax.random.split(jax.random.key(study.seed))
    train = _METHODS[method].train
    fitted = train(data.train, **setting, budget=budget, key=train_key)
    prediction = predict(fitted, split.x, key=draw_key, num_draws=_NUM_DRAWS)
    scores = evaluate(prediction, split.y)
    assert data.y_scaling is not None
    scale = float(np.squeeze(data.y_scaling.scale))
    return {
        "rmse": scale * float(scores["rmse"]),
        "log_likelihood": -float(scores["nll"]) - math.log(scale),
    }


def _summary(
    name: str, method: str, found: list[dict[str, Any]], num_splits: int
) -> dict[str, Any]:
    settings = [json.dumps(f["setting"], sort_keys=True) for f in found]
    row: dict[str, Any] = {
        "data": name,
        "method": method,
        "num_splits": len(found),
        "settings": dict(Counter(settings)),
        "setting_chosen_by": "a tenth of each split's own training rows, after "
        f"{_METHODS[method].choice:g} of the final training",
    }
    errors = {}
    for score in ("rmse", "log_likelihood"):
        values = np.array([f[score] for f in found])
        spread = values.std(ddof=1) if values.size > 1 else math.nan
        errors[score] = float(spread / math.sqrt(values.size))
        row |= {score: float(values.mean()), f"{score}_se": errors[score]}
    rmse, log_likelihood = PUBLISHED[name]
    is_whole = len(found) == num_splits
    row |= {
        "published_rmse": rmse,
        "published_log_likelihood": log_likelihood,
        "at_or_better": row["rmse"] <= rmse + errors["rmse"]
        and row["log_likelihood"] >= log_likelihood - errors["log_likelihood"]
        if is_whole
        else None,
    }
    row["splits"] = [[f["rmse"], f["log_likelihood"]] for f in found]
    return row


UCI = Experiment(
    "RMSE and log likelihood on UCI's sets, our methods beside published MC dropout",
    "MC dropout, Gal & Ghahramani (2016), RMSE / log likelihood: concrete 4.83 / -2.94,"
    " yacht 0.67 / -1.25, wine-quality-red 0.62 / -0.93, kin8nm 0.079 / 1.14.",
    _run,
    options=("models",),
    shelf="results/pieces/{name}-{scale}.json",
)
