"""The reference's pieces: what is there, what is missing, which prior they have.

A piece is so many draws of one chain, and has the position that the next piece starts
from: an interrupted chain goes on.
"""

from typing import Any

import jax

from ...agreement import (
    PRIOR_SCALES,
    Budget,
    Chain,
    Predictive,
    Problem,
    begin,
    check_same,
    go_on,
    nll,
)
from ...recipe import ScaleName
from .._experiment import Study

BUDGETS: dict[ScaleName, Budget] = {
    "quick": Budget(2, 2, 25, 160, 500, 25),
    "full": Budget(4, 4, 500, 200, 1500, 100),
}
"""Of the references that this program samples itself."""


def choose_prior(study: Study, problem: Problem) -> float:
    """The scale whose short chain gives the validation rows the best log likelihood.

    No test row is looked at: `Problem.validation` are training rows.
    """
    scales = PRIOR_SCALES[problem.name]
    if len(scales) == 1:
        return scales[0]
    budget = BUDGETS[study.scale]

    def choose() -> dict[str, Any]:
        rows, tried = problem.to_choose(), []
        for scale in scales:
            key = jax.random.key(study.seed)
            start = begin(rows, scale, budget, key=key)
            part, facts, _ = go_on(
                rows, scale, start, num_draws=budget.num_tried, key=key
            )
            found = {"nll": nll(part, problem.y_scale)} | facts
            tried.append({"prior_scale": scale} | found)
            study.say(f"{problem.name}: prior scale {scale:g}: {found['nll']:.4f} nats")
        best = min(tried, key=lambda found: found["nll"])
        return {"best": best["prior_scale"], "tried": tried}

    return study.piece(*_prior_piece(study, problem.name), choose)["best"]


def found_prior(study: Study, name: str) -> float | None:
    """The scale that was chosen for a problem, if it was.

    Args:
        study: whose pieces.
        name: of the problem.
    """
    if len(PRIOR_SCALES[name]) == 1:
        return PRIOR_SCALES[name][0]
    found = study.find(*_prior_piece(study, name))
    return None if found is None else found["best"]


def _prior_piece(study: Study, name: str) -> tuple[str, dict[str, Any]]:
    budget = BUDGETS[study.scale]
    return f"{name}_prior", {
        "seed": study.seed,
        "scales": list(PRIOR_SCALES[name]),
        "num_warmup": budget.num_warmup,
        "num_adam": budget.num_adam,
        "num_draws": budget.num_tried,
    }


def sample_reference(study: Study, problem: Problem, scale: float) -> None:
    """Compute the pieces that are not there yet, chains in turn."""
    budget = BUDGETS[study.scale]
    for number in range(-1, budget.num_pieces):
        for chain in range(budget.num_chains):
            _piece(study, problem, scale, chain, number)


def found_reference(study: Study, problem: Problem, scale: float) -> list[Chain]:
    """The chains that have a piece, without computing.

    Raises:
        ValueError: if a piece is of other rows, or of another model.
    """
    budget, chains = BUDGETS[study.scale], []
    for chain in range(budget.num_chains):
        pieces, facts = [], []
        for number in range(budget.num_pieces):
            name, settings = _named(study, problem, scale, chain, number)
            found = study.find(name, settings)
            if found is None:
                break
            check_same(problem, found["fingerprint"])
            pieces.append(Predictive.from_json(found["predictive"], problem.test.y))
            facts.append(found["facts"] | {"seconds": study.ledger.seconds_of(name)})
        if pieces:
            chains.append(Chain(pieces, facts))
    return chains


def _named(
    study: Study, problem: Problem, scale: float, chain: int, number: int
) -> tuple[str, dict[str, Any]]:
    """The name and the settings of a piece; number -1 is the start."""
    budget = BUDGETS[study.scale]
    settings: dict[str, Any] = {
        "seed": study.seed,
        "prior_scale": scale,
        "num_warmup": budget.num_warmup,
        "num_adam": budget.num_adam,
    }
    name = f"{problem.name}_reference_{chain}"
    if number < 0:
        return f"{name}_start", settings
    return f"{name}_{number}", settings | {"num_draws": budget.num_draws}


def _piece(
    study: Study, problem: Problem, scale: float, chain: int, number: int
) -> dict[str, Any]:
    def compute() -> dict[str, Any]:
        key = jax.random.fold_in(jax.random.key(study.seed), chain)
        budget = BUDGETS[study.scale]
        if number < 0:
            return begin(problem, scale, budget, key=key)
        before = _piece(study, problem, scale, chain, number - 1)
        check_same(problem, before["fingerprint"])
        key = jax.random.fold_in(key, 1 + number)
        part, facts, end = go_on(
            problem, scale, before, num_draws=budget.num_draws, key=key
        )
        return end | {"predictive": part.to_json(has_sd=True), "facts": facts}

    name, settings = _named(study, problem, scale, chain, number)
    found = study.find(name, settings)
    return study.piece(name, settings, compute) if found is None else found
