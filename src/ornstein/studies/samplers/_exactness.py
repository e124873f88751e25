"""Every method that claims a posterior, held to the exact moments of what it does.

A row is about a mean or a covariance. `error` is the largest difference of an entry, in
Monte Carlo standard errors, and `bound` what it may be. `power` is the difference that
the bound lets pass, in standard deviations (mean) or variances (covariance) of the
posterior, and `method_gap` how far what the method does is from that posterior. Rows
"command line" are of `ornstein sample` at its defaults; random functions are fitted by
`fit` and held to the optimum of their bound.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._types import PRNGKeyArray
from ...exactness import (
    BATCH_SIZE,
    NUM_DRAWS,
    NUM_MEMBERS,
    ClaimedCase,
    Estimate,
    ExpandedWeight,
    LinearCase,
    LinearRegression,
    LogisticRegression,
    Moments,
    Plan,
    command_line_cases,
    compare,
    draw_laplace,
    draw_swag,
    ensemble_rows,
    estimate,
    expanded_claims,
    expanded_weight,
    extrapolate,
    fit_mean_field,
    function_cases,
    function_rows,
    known,
    linear_cases,
    linear_claims,
    linear_regression,
    logistic_claims,
    logistic_regression,
    mean_field_optimum,
    path_cases,
    path_function_cases,
    path_rows,
    position_at,
    run_chains,
    swag_moments,
    warm_state,
)
from ...functions import Flipout, LocalReparameterised, Reparameterised
from ...mcmc import NUTS, AbstractKernel
from ...potential import AbstractPotential
from ...prior import GaussianPrior
from ...sgmcmc import SGLD, WithControlVariate
from .._experiment import Experiment, Study

_LINEAR, _LOGISTIC = "linear regression", "logistic regression"
_EXPANDED = "one expanded weight, by quadrature"
_REFERENCE_PLAN = Plan(2, num_samples=32, num_chains=4096)
_NUM_ITERATES, _SWAG_RANK = 60, 20
_LEFT_OUT = (
    "Left out: dropout and ensembles of networks, which claim no posterior that they "
    "could be held to (of ensembles of random functions, each member is held to its "
    "own); naive SGHMC without a test, whose law is wrong on purpose: see "
    "sghmc-distributions."
)


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []

    def add(method: str, target: str, settings: Any, compute: Callable[[], Any]):
        name = f"{method} {target}".replace(",", "").replace(" ", "_")
        found = study.piece(name, [study.seed, settings], compute)
        rows.extend({"method": method, "target": target} | row for row in found)

    for case in [*linear_cases(), *command_line_cases()]:
        compute = lambda case=case: linear_rows(case, seed=study.seed)
        settings = [case.thin, case.batch_size, case.num_samples, case.num_warm_up]
        add(case.method, _LINEAR, _settings(case.kernel, settings), compute)
    linear = linear_regression()
    exact = known(linear.posterior())
    for claim in linear_claims():
        compute = lambda c=claim: claimed_rows(c, linear, exact, seed=study.seed)
        kernel = claim.make(claim.step_size)
        add(claim.method, _LINEAR, _settings(kernel, claim.plan), compute)
    for estimator in (Reparameterised(), LocalReparameterised(), Flipout()):
        method = f"MeanField, {type(estimator).__name__}"
        compute = lambda e=estimator: _mean_field_rows(e, seed=study.seed)
        add(method, _LINEAR, None, compute)
    add("SWAG", "its iterates", _NUM_ITERATES, lambda: _swag_rows(seed=study.seed))

    for linearised in (True, False):
        method = "LaplaceApproximation" + ", linearised" * linearised
        compute = lambda is_so=linearised: _laplace_rows(is_so, seed=study.seed)
        add(method, _LINEAR, None, compute)

    for case in path_cases():
        compute = lambda c=case: path_rows(c, seed=study.seed)
        settings = [repr(case.kernel), case.num_steps, case.plan]
        add(case.method, _LINEAR, settings, compute)
    functions = [*function_cases(), *path_function_cases()]
    for function in functions:
        options = [_as_text(function.options), NUM_DRAWS]
        compute = lambda f=function: function_rows(f, seed=study.seed)
        add(function.method, function.target, options, compute)
    for function in functions:
        options = [_as_text(function.options), NUM_DRAWS, NUM_MEMBERS]
        name = f"Ensemble of {function.method}".replace(",", "").replace(" ", "_")
        compute = lambda f=function: ensemble_rows(f, seed=study.seed)
        members = study.piece(name, [study.seed, options], compute)
        for number, found in enumerate(members):
            method = f"Ensemble of {function.method}, member {number}"
            of_member = {"method": method, "target": function.target}
            rows.extend(of_member | row for row in found)

    logistic = logistic_regression()
    kept = study.piece(
        "reference",
        [study.seed, _REFERENCE_PLAN],
        lambda: to_json(_reference(logistic, seed=study.seed)),
    )
    reference = from_json(kept)
    # The long run is itself held to a sum over a grid.
    grid = logistic.quadrature()
    add(
        "NUTS, long run",
        f"{_LOGISTIC}, by quadrature",
        kept,
        lambda: compare(reference, known(grid), grid),
    )
    for claim in logistic_claims():
        compute = lambda c=claim: claimed_rows(c, logistic, reference, seed=study.seed)
        kernel = claim.make(claim.step_size)
        add(claim.method, _LOGISTIC, _settings(kernel, [claim.plan, kept]), compute)
    weight = expanded_weight()
    by_sum = known(weight.quadrature())
    for claim in expanded_claims():
        compute = lambda c=claim: claimed_rows(c, weight, by_sum, seed=study.seed)
        kernel = claim.make(claim.step_size)
        add(claim.method, _EXPANDED, _settings(kernel, [claim.plan]), compute)
    study.say(_LEFT_OUT)
    return rows


def linear_rows(case: LinearCase, *, seed: int) -> list[dict[str, Any]]:
    """Mean and covariance of one sampler on linear regression.

    Args:
        case: the sampler, and the exact moments of what it does.
        seed: of the chains.
    """
    target = linear_regression(case.num_data)
    potential: AbstractPotential = target.potential(case.batch_size)
    posterior = target.posterior()
    start = position_at(target, posterior.mean if case.starts_at_mean else 0.0)
    if case.has_control_variate:
        potential = WithControlVariate(potential, start)
    key, warm_up_key = jax.random.split(jax.random.key(seed))
    state = warm_state(
        case.kernel, potential, start, num_steps=case.num_warm_up, key=warm_up_key
    )
    plan = Plan(case.thin, num_samples=case.num_samples)
    samples = run_chains(case.kernel, potential, state, plan=plan, key=key)
    law = case.oracle(target, state)
    exact = law if isinstance(law, Estimate) else known(law)
    rows = compare(estimate(samples), exact, posterior)
    if case.approximation is not None:
        covariance = exact.moments.covariance
        error = case.approximation(target).covariance - covariance
        relative = np.linalg.norm(error) / np.linalg.norm(covariance)
        rows[1]["ou_error"] = float(relative)
    return rows


def claimed_rows(
    case: ClaimedCase,
    target: LinearRegression | LogisticRegression | ExpandedWeight,
    reference: Estimate,
    *,
    seed: int,
) -> list[dict[str, Any]]:
    """Mean and covariance of a sampler that claims the posterior.

    Args:
        case: the sampler.
        target: the data.
        reference: moments of the posterior.
        seed: of the chains.
    """
    potential = target.potential(BATCH_SIZE)
    start = jax.tree.map(jnp.zeros_like, potential.start)
    keys = jax.random.split(jax.random.key(seed), 2)

    def found(step_size: float, plan: Plan, key: PRNGKeyArray) -> Estimate:
        kernel = case.make(step_size)
        state = warm_state(kernel, potential, start, num_steps=0, key=key)
        return estimate(run_chains(kernel, potential, state, plan=plan, key=key))

    result = found(case.step_size, case.plan, keys[0])
    if not case.is_exact:
        # Half the step needs twice the steps.
        plan = case.plan._replace(thin=2 * case.plan.thin)
        result = extrapolate(result, found(case.step_size / 2, plan, keys[1]))
    return compare(result, reference, reference.moments)


def _settings(kernel: AbstractKernel, rest: Any) -> list:
    return [repr(kernel), rest]


def _as_text(options: dict[str, Any]) -> dict[str, Any]:
    """Options of `fit` as JSON: objects in their own words."""
    is_number = lambda value: isinstance(value, int | float)
    return {n: v if is_number(v) else repr(v) for n, v in options.items()}


def _reference(target: LogisticRegression, *, seed: int) -> Estimate:
    potential, kernel = target.potential(BATCH_SIZE), NUTS(0.3, 7)
    key = jax.random.fold_in(jax.random.key(seed), 1)
    start = position_at(target, 0.0)
    state = warm_state(kernel, potential, start, num_steps=0, key=key)
    return estimate(run_chains(kernel, potential, state, plan=_REFERENCE_PLAN, key=key))


def _mean_field_rows(estimator, *, seed: int) -> list[dict[str, Any]]:
    target = linear_regression()
    prior = GaussianPrior(target.prior_scale)
    fitted = fit_mean_field(target, estimator, prior, key=jax.random.key(seed))
    return compare(fitted, known(mean_field_optimum(target)), target.posterior())


def _swag_rows(*, seed: int) -> list[dict[str, Any]]:
    target = linear_regression()
    potential = target.potential(BATCH_SIZE)
    path_key, draw_key = jax.random.split(jax.random.key(seed))
    plan = Plan(5, num_samples=_NUM_ITERATES, num_chains=1)
    kernel, start = SGLD(0.04), position_at(target, 0.0)
    state = warm_state(kernel, potential, start, num_steps=0, key=path_key)
    path = run_chains(kernel, potential, state, plan=plan, key=path_key)
    iterates = np.asarray(path[0], np.float64)
    exact = swag_moments(iterates, _SWAG_RANK)
    drawn = draw_swag(iterates, _SWAG_RANK, key=draw_key)
    # SWAG claims the law of its iterates, not the posterior.
    return compare(drawn, known(exact), exact)


def _laplace_rows(linearised: bool, *, seed: int) -> list[dict[str, Any]]:
    target, key = linear_regression(), jax.random.key(seed)
    drawn = draw_laplace(target, linearised=linearised, key=key)
    return compare(drawn, known(target.posterior()), target.posterior())


def to_json(found: Estimate) -> list:
    """Lists of numbers."""
    return [[array.tolist() for array in moments] for moments in found]


def from_json(kept: list) -> Estimate:
    """What `to_json` was given."""
    return Estimate(*(Moments(*map(np.asarray, moments)) for moments in kept))


EXACTNESS = Experiment(
    "every method that claims a posterior against the exact moments of what it does",
    "Not in the papers. All rows within 4.5 standard errors, at a power below 0.1.",
    _run,
)
"""`ornstein reproduce exactness`."""
