"""Methods beside a reference of the posterior: `ornstein reproduce agreement`."""

import time
from typing import Any

import jax

from ..._sentence import OptionError
from ...agreement import (
    EFFORTS,
    PROBLEMS,
    SCALES,
    Approximation,
    Effort,
    Predictive,
    Problem,
    ceiling,
    check_same,
    distances,
    methods_of,
    mixture,
    nll,
    of_probabilities,
    predictive,
    scores,
)
from ...prediction import predict
from ...train import NonFiniteError
from .._experiment import Experiment, Study
from ._agreement_pieces import (
    choose_prior,
    found_prior,
    found_reference,
    sample_reference,
)

_REFERENCE = "reference"
_CHOICE = 0.25


def _run(study: Study) -> list[dict[str, Any]]:
    """Compute what is asked for; show all that there is."""
    for name, method in _asked(study):
        problem = PROBLEMS[name]()
        prior_scale = choose_prior(study, problem)
        if method != _REFERENCE:
            _one(study, problem, prior_scale, method)
        elif problem.published is None:
            sample_reference(study, problem, prior_scale)
    return [row for name in SCALES[study.scale] for row in _rows(study, name)]


def _asked(study: Study) -> list[tuple[str, str]]:
    """The cells that `mnist`, `sgld` or `mnist/sgld` name; else all of the scale.

    `kept` names none: what is there already is shown.
    """
    if study.shows_kept:
        return []
    names = SCALES[study.scale]
    cells = [(name, m) for name in names for m in (_REFERENCE, *methods_of(name))]
    found: dict[tuple[str, str], None] = {}
    for model in study.models:
        ours = [c for c in cells if model in (*c, "/".join(c))]
        if not ours:
            raise OptionError(
                "{models} {} is no row of `reproduce agreement` at {scale} {}: give a "
                "data set ({}), a method ({}), or both, such as {}/{}; or kept, for "
                "what is there.",
                model,
                study.scale,
                ", ".join(names),
                ", ".join(dict.fromkeys(method for _, method in cells)),
                *cells[0],
            )
        found |= dict.fromkeys(ours)
    return list(found) if study.models else cells


def _rows(study: Study, name: str) -> list[dict[str, Any]]:
    """Of the pieces that are there, without computing."""
    prior_scale = found_prior(study, name)
    if prior_scale is None:
        return []
    problem = PROBLEMS[name]()
    common = {"data": name, "prior_scale": prior_scale}
    if problem.published is None:
        chains = found_reference(study, problem, prior_scale)
        if not chains:
            study.say(f"{name}: no piece of the reference is there to compare with")
            return []
        rows = ceiling(chains, problem)
        reference = mixture([mixture(chain.pieces) for chain in chains])
    else:
        reference = of_probabilities(problem.published, problem.test.y)
        rows = [{"method": "hmc, as published"} | scores(reference, problem)]
    for method in methods_of(name):
        found = _found(study, problem, prior_scale, method)
        if found is not None:
            rows.append(_row(method, found, reference, problem))
    return [common | row for row in rows]


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
    effort = EFFORTS[problem.name, study.scale]
    common = {"seed": study.seed, "prior_scale": prior_scale}
    return effort, common | {"effort": effort._asdict()}


def _choice(
    study: Study, problem: Problem, prior_scale: float, method: str
) -> tuple[str, dict[str, Any]]:
    """The name and the settings of the piece that chooses a method's setting."""
    _, settings = _settings(study, problem, prior_scale)
    settings |= {
        "tried": list(methods_of(problem.name)[method].settings),
        "share": _CHOICE,
    }
    return f"{problem.name}_{method}_setting", settings


def _found(
    study: Study, problem: Problem, prior_scale: float, method: str
) -> dict[str, Any] | None:
    """What a method made, if it is there already."""
    tried = methods_of(problem.name)[method].settings
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
        for setting in methods_of(problem.name)[method].settings:
            rows = problem.to_choose()
            found = _made(study, rows, prior_scale, method, effort, setting, _CHOICE)
            score = None if isinstance(found, str) else nll(found[1], problem.y_scale)
            tried.append({"setting": setting, "nll": score})
        works = [found for found in tried if found["nll"] is not None]
        best = min(works, key=lambda found: found["nll"], default=tried[-1])
        return {"best": best["setting"], "tried": tried}

    best = methods_of(problem.name)[method].settings[0]
    if len(methods_of(problem.name)[method].settings) > 1:
        best = study.piece(*_choice(study, problem, prior_scale, method), choose)
        best = best["best"]

    def compute() -> dict[str, Any]:
        started = time.monotonic()
        found = _made(study, problem, prior_scale, method, effort, best, 1.0)
        if isinstance(found, str):
            return {"failed": found}
        seconds = time.monotonic() - started + found[0].spared_seconds
        return {
            "predictive": found[1].to_json(has_sd=False),
            "num_gradients": found[0].num_gradients,
            "seconds": round(seconds, 1),
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
    approximate = methods_of(problem.name)[method].approximate
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
