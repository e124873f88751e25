"""Regression on UCI's sets, all splits: our methods beside MC dropout as published.

A set's 20 splits are random; those of NAME-gap leave out the middle third of one
feature each (Foong et al., 2019), where a model should know less. One hidden layer of
50 units and a learned noise scale. Each method's setting (prior scale, dropout rate) is
chosen within each split, by the log likelihood of a tenth of its own training rows,
after a part of the final training (`Method.choice`). Splits overlap: a choice made on
one split has seen test rows of the others. Minibatch samplers
are left out: at the noise that these sets have, gradient noise outweighs any
friction unless steps are too small to get anywhere.

Splits share shapes, and so programs: with `JAX_COMPILATION_CACHE_DIR` in the
environment each is compiled once.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..._sentence import OptionError
from ...data import Data, Split, load
from ...evaluation import evaluate
from ...functions import PosteriorSamples
from ...prediction import predict
from ...recipe import ScaleName
from .._experiment import KEPT, Experiment, Study
from ._uci_methods import METHODS, STARTS

PUBLISHED = {
    "concrete": (4.83, -2.94),
    "yacht": (0.67, -1.25),
    "wine-quality-red": (0.62, -0.93),
    "kin8nm": (0.079, 1.14),
}
"""Test RMSE and log likelihood of MC dropout trained to convergence.

Probably of Mukhoti, Stenetorp & Gal (2018), from memory; Gal & Ghahramani (2016), after
40 epochs, have worse ones.
"""

_NUM_FEATURES = {"concrete": 8, "yacht": 6, "wine-quality-red": 11, "kin8nm": 8}
_GAP = "-gap"
_BESIDE = "hmc"
_NUM_SPLITS: dict[ScaleName, int] = {"quick": 2, "gpu": 20, "full": 20}
_NUM_DRAWS = 200
_CHAIN_ROWS = 20


def _run(study: Study) -> list[dict[str, Any]]:
    """Compute the rows that are asked for; show all that have a finished split."""
    asked = _asked(study.models)
    # Split by split, so that methods have the same splits wherever it is stopped.
    for split in range(_NUM_SPLITS[study.scale]):
        for cell in asked:
            if split in _splits(study, cell[0]):
                _one(study, *cell, split)
    study.say(STARTS)
    return _rows(study)


def _rows(study: Study) -> list[dict[str, Any]]:
    """Of what is there, without computing."""
    rows = []
    for cell in _cells():
        splits = _splits(study, cell[0])
        found = _done(study, *cell)
        if found:
            row = _summary(*cell, list(found.values()), len(splits))
            is_beside = _BESIDE in METHODS and cell[1] != _BESIDE
            others = _done(study, cell[0], _BESIDE) if is_beside else {}
            rows.append(row | _beside(found, others))
    return rows


def _done(study: Study, name: str, method: str) -> dict[int, dict[str, Any]]:
    """What `_one` returned, by the splits that it is there of."""
    splits = _splits(study, name)
    found = {split: _found(study, name, method, split) for split in splits}
    return {split: f for split, f in found.items() if f is not None}


def _beside(
    found: dict[int, dict[str, Any]], others: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    """The differences from HMC on the splits that both have, in pairs."""
    splits = [split for split in found if split in others]
    row: dict[str, Any] = {"split_numbers": list(found)}
    if len(splits) < 2:
        return row
    row["num_splits_beside_hmc"] = len(splits)
    for score in ("rmse", "log_likelihood"):
        values = np.array([found[s][score] - others[s][score] for s in splits])
        row[f"{score}_minus_hmc"] = float(values.mean())
        row[f"{score}_minus_hmc_se"] = _error(values)
    return row


def _error(values: np.ndarray) -> float:
    """Standard error of the mean over splits; one split has none."""
    if values.size < 2:
        return math.nan
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _cells() -> list[tuple[str, str]]:
    names = [*PUBLISHED, *(name + _GAP for name in PUBLISHED)]
    return [(name, method) for name in names for method in METHODS]


def _splits(study: Study, name: str) -> range:
    """The numbers of a set's splits; a gap has that of its feature."""
    num_splits = _NUM_SPLITS[study.scale]
    if name.endswith(_GAP):
        num_splits = min(num_splits, _NUM_FEATURES[name.removesuffix(_GAP)])
    return range(num_splits)


def _load(name: str, split: int) -> Data:
    if not name.endswith(_GAP):
        return load(f"uci/{name}", split=split)
    return load(f"uci/{name.removesuffix(_GAP)}", split=0).with_gap(split)


def _asked(models: Sequence[str]) -> list[tuple[str, str]]:
    """The cells that `yacht`, `hmc` or `yacht/hmc` name, in that order; else all.

    `kept` names none: what is there already is shown, and nothing computed.
    """
    if tuple(models) == (KEPT,):
        return []
    found: dict[tuple[str, str], None] = {}
    for model in models:
        ours = [c for c in _cells() if model in (*c, "/".join(c))]
        if not ours:
            raise OptionError(
                "{models} {} is no row of `reproduce uci`: give a set ({}), a method "
                "({}), or both, such as yacht/hmc; or kept, for what is there already.",
                model,
                ", ".join(dict.fromkeys(name for name, _ in _cells())),
                ", ".join(METHODS),
            )
        found |= dict.fromkeys(ours)
    return list(found) if models else _cells()


def _choice(study: Study, name: str, method: str, split: int) -> tuple[str, Any]:
    """The name and the settings of the piece that chooses for a split."""
    ours = METHODS[method]
    settings = {"seed": study.seed, "settings": list(ours.settings)}
    settings |= {"budget": ours.choice} | _lengths(method)
    return f"{name}_{method}_{split}_setting", settings


def _test(study: Study, name: str, method: str, split: int, best: Any) -> Any:
    """The name and the settings of the piece that tests a split."""
    settings = {"seed": study.seed, "setting": best} | _lengths(method)
    return f"{name}_{method}_{split}", settings


def _lengths(method: str) -> dict[str, Any]:
    """Of a method's chains, for the settings of its pieces."""
    found = METHODS[method].lengths
    return {"lengths": [list(map(str, length)) for length in found]} if found else {}


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
        data = _load(name, split).with_validation(0.1, seed=study.seed)
        assert data.validation is not None
        tried = []
        for setting in METHODS[method].settings:
            budget = METHODS[method].choice
            score = _score(study, data, data.validation, method, setting, budget)
            tried.append({"setting": setting} | score)
        best = max(tried, key=lambda found: found["log_likelihood"])
        return {"best": best["setting"], "tried": tried}

    best = study.piece(*_choice(study, name, method, split), choose)["best"]

    def test() -> dict[str, Any]:
        data = _load(name, split)
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
    train = METHODS[method].train
    fitted = train(data.train, **setting, budget=budget, key=train_key)
    prediction = predict(fitted, split.x, key=draw_key, num_draws=_NUM_DRAWS)
    scores = evaluate(prediction, split.y)
    assert data.y_scaling is not None
    scale = float(np.squeeze(data.y_scaling.scale))
    found = {
        "rmse": scale * float(scores["rmse"]),
        "log_likelihood": -float(scores["nll"]) - math.log(scale),
    }
    if isinstance(fitted, PosteriorSamples):
        r_hats = [
            fitted.chain_scores(split.x[row : row + 1])["r_hat"]
            for row in range(min(_CHAIN_ROWS, len(split)))
        ]
        found |= {
            "r_hat": float(np.fmax.reduce(r_hats)),
            "r_hat_median": float(np.median(r_hats)),
        }
    return found


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
        f"{METHODS[method].choice:g} of the final training",
    }
    errors = {}
    for score in ("rmse", "log_likelihood"):
        values = np.array([f[score] for f in found])
        errors[score] = _error(values)
        row |= {score: float(values.mean()), f"{score}_se": errors[score]}
    if name in PUBLISHED:
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
    r_hats = [f["r_hat_median"] for f in found if "r_hat_median" in f]
    if r_hats:
        # Of the outputs at some test rows: each split's median, and its worst.
        worst = np.array([f["r_hat"] for f in found if "r_hat_median" in f])
        row |= {
            "r_hat_median": float(np.median(r_hats)),
            "r_hat_worst": float(np.max(worst)),
            "num_splits_with_r_hat_below_1.05": int(np.sum(worst <= 1.05)),
        }
    row["splits"] = [[f["rmse"], f["log_likelihood"]] for f in found]
    return row


UCI = Experiment(
    "RMSE and log likelihood on UCI's sets, our methods beside published MC dropout",
    "MC dropout to convergence, probably Mukhoti, Stenetorp & Gal (2018), from memory, "
    "RMSE / log likelihood: concrete 4.83 / -2.94,"
    " yacht 0.67 / -1.25, wine-quality-red 0.62 / -0.93, kin8nm 0.079 / 1.14.",
    _run,
    options=("models",),
    shelf="results/pieces/{name}-{scale}.json",
)
