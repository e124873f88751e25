"""Methods beside a reference of the posterior: `ornstein reproduce agreement`."""

import time
from collections.abc import Sequence
from typing import Any

import jax

from ..._sentence import OptionError
from ...prediction import predict
from ...train import NonFiniteError
from .._experiment import Experiment, Study
from ._compare import ceiling, distances, scores
from ._effort import EFFORTS, Approximation, Effort
from ._methods import METHODS
from ._predictive import Predictive, mixture, nll, predictive
from ._problems import PROBLEMS, Problem
from ._reference import (
    check_same,
    choose_prior,
    found_prior,
    found_reference,
    sample_reference,
)

_REFERENCE = "reference"
_CHOICE = 0.25


def _run(study: Study) -> list[dict[str, Any]]:
    """Compute what is asked for; show all that there is."""
    for name, method in _asked(study.models):
        problem = PROBLEMS[name]()
        prior_scale = choose_prior(study, problem)
        if method == _REFERENCE:
            sample_reference(study, problem, prior_scale)
        else:
            _one(study, problem, prior_scale, method)
    return [row for name in PROBLEMS for row in _rows(study, name)]


def _cells() -> list[tuple[str, str]]:
    return [(name, method) for name in PROBLEMS for method in (_REFERENCE, *METHODS)]


def _asked(models: Sequence[str]) -> list[tuple[str, str]]:
    """The cells that `mnist`, `sgld` or `mnist/sgld` name; else all."""
    found: dict[tuple[str, str], None] = {}
    for model in models:
        ours = [c for c in _cells() if model in (*c, "/".join(c))]
        if not ours:
            raise OptionError(
                "{models} {} is no row of `reproduce agreement`: give a data set ({}), "
                "a method ({}), or both, such as mnist/reference.",
                model,
                ", ".join(PROBLEMS),
                ", ".join((_REFERENCE, *METHODS)),
            )
        found |= dict.fromkeys(ours)
    return list(found) if models else _cells()


def _rows(study: Study, name: str) -> list[dict[str, Any]]:
    """Of the pieces that are there, without computing."""
    prior_scale = found_prior(study, name)
    if prior_scale is None:
        return []
    problem = PROBLEMS[name]()
    chains = found_reference(study, problem, prior_scale)
    common = {"data": name, "prior_scale": prior_scale}
    if not chains:
        study.say(f"{name}: no piece of the reference yet, and so nothing to compare")
        return []
    rows = [common | row for row in ceiling(chains, problem)]
    reference = mixture([mixture(chain.pieces) for chain in chains])
    for method in METHODS:
        found = _found(study, problem, prior_scale, method)
        if found is not None:
            rows.append(common | _row(method, found, reference, problem))
    return rows


def _row(
    method: str, found: dict[str, Any], reference: Predictive, problem: Problem
) -> dict[str, Any]:
    row = {"method": method, "setting": found["setting"]}
    if "failed" in found:
        return row | {"failed": found["failed"]}
    check_same(problem, found["fingerprint"])
    own = Predictive.from_json(found["predictive"], problem.test.y)
    facts = {name: found[name] for name in ("num_gradients", "seconds")}
    return row | distances(own, reference, problem) | scores(own, problem) | facts


def _settings(
    study: Study, problem: Problem, prior_scale: float
) -> tuple[Effort, dict[str, Any]]:
    effort = EFFORTS[problem.edges is None, study.scale]
    common = {"seed": study.seed, "prior_scale": prior_scale}
    return effort, common | {"effort": effort._asdict()}


def _choice(
    study: Study, problem: Problem, prior_scale: float, method: str
) -> tuple[str, dict[str, Any]]:
    """The name and the settings of the piece that chooses a method's setting."""
    _, settings = _settings(study, problem, prior_scale)
    settings |= {"tried": list(METHODS[method].settings), "share": _CHOICE}
    return f"{problem.name}_{method}_setting", settings


def _found(
    study: Study, problem: Problem, prior_scale: float, method: str
) -> dict[str, Any] | None:
    """What a method made, if it is there already."""
    tried = METHODS[method].settings
    chosen = {"best": tried[0]} if len(tried) == 1 else None
    chosen = chosen or study.find(*_choice(study, problem, prior_scale, method))
    if chosen is None:
        return None
    _, settings = _settings(study, problem, prior_scale)
    name = f"{problem.name}_{method}"
    found = study.find(name, settings | {"setting": chosen["best"]})
    return None if found is None else found | {"setting": chosen["best"]}


def _one(study: Study, problem: Problem, prior_scale: float, method: str) -> None:
    """Fit or sample, with the setting that validation rows chose."""
    effort, settings = _settings(study, problem, prior_scale)

    def choose() -> dict[str, Any]:
        tried = []
        for setting in METHODS[method].settings:
            rows = problem.to_choose()
            found = _made(study, rows, prior_scale, method, effort, setting, _CHOICE)
            score = None if isinstance(found, str) else nll(found[1], problem.y_scale)
            tried.append({"setting": setting, "nll": score})
        works = [found for found in tried if found["nll"] is not None]
        best = min(works, key=lambda found: found["nll"], default=tried[-1])
        return {"best": best["setting"], "tried": tried}

    best = METHODS[method].settings[0]
    if len(METHODS[method].settings) > 1:
        best = study.piece(*_choice(study, problem, prior_scale, method), choose)
        best = best["best"]

    def compute() -> dict[str, Any]:
        started = time.monotonic()
        found = _made(study, problem, prior_scale, method, effort, best, 1.0)
        if isinstance(found, str):
            return {"failed": found}
        return {
            "predictive": found[1].to_json(has_sd=False),
            "num_gradients": found[0].num_gradients,
            "seconds": round(time.monotonic() - started, 1),
            "fingerprint": problem.fingerprint,
        }

    study.piece(f"{problem.name}_{method}", settings | {"setting": best}, compute)


def _made(
    study: Study,
    problem: Problem,
    prior_scale: float,
    method: str,
    effort: Effort,
    setting: dict[str, Any],
    share: float,
) -> tuple[Approximation, Predictive] | str:
    """What a method makes, and what it predicts; or why it makes nothing."""
    # Each fit compiles programs of its own; hundreds of them exhaust a process's maps.
    jax.clear_caches()
    key, draw_key = jax.random.split(jax.random.key(study.seed))
    approximate = METHODS[method].approximate
    effort = effort if share == 1 else effort.times(share)
    try:
        found = approximate(problem, prior_scale, effort, key=key, **setting)
        prediction = predict(
            found.fitted, problem.test.x, key=draw_key, num_draws=found.num_draws
        )
    except NonFiniteError as error:
        return " ".join(str(error).split())
    return found, predictive(prediction, problem.test.y, problem.edges)


AGREEMENT = Experiment(
    "How near each method's predictive distribution is to long HMC's, and how near "
    "HMC's chains are to each other",
    "Izmailov et al. (2021), CIFAR-10, agreement / total variation with HMC, from "
    "memory: HMC 0.94 / 0.07, SGD 0.855 / 0.190, ensemble of 50 0.915 / 0.115.",
    _run,
    options=("models",),
    shelf="results/pieces/{name}-{scale}.json",
)
