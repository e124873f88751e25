r"""Random functions of the exactness table: fitted by `fit`, drawn from by `predict`.

Each is small enough that the optimum of its bound is known; what a row compares is the
fitted function's draws. Where the family cannot reach the posterior, that optimum is
what it is held to, and `method_gap` says how far off it is.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ..functions import AbstractRandomFunction, Ensemble
from ..likelihood import AbstractLikelihood
from ..prediction import predict
from ..train import fit
from ._chains import compare, estimate, known
from ._targets import Moments

NUM_DRAWS = 16_384
"""Of each function, and of each member of an ensemble."""

NUM_MEMBERS = 2


class FunctionCase(NamedTuple):
    """A random function, what it is fitted to, and what it should become.

    Attributes:
        method: its name.
        target: its data.
        make: a key to the function.
        split: the data.
        likelihood: of the data.
        where: inputs at which its draws are looked at.
        entries: of a draw's flat output, those that are.
        optimum: their moments where the bound is largest.
        posterior: their exact moments.
        options: of `fit`.
    """

    method: str
    target: str
    make: Callable[..., AbstractRandomFunction]
    split: Any
    likelihood: AbstractLikelihood
    where: Any
    entries: tuple[int, ...]
    optimum: Moments
    posterior: Moments
    options: dict[str, Any]


def function_rows(case: FunctionCase, *, seed: int) -> list[dict[str, Any]]:
    """Mean and covariance of one function, fitted alone.

    Args:
        case: the function.
        seed: of its first values, its training and its draws.
    """
    return _rows(case, case.make, 1, seed=seed)[0]


def ensemble_rows(case: FunctionCase, *, seed: int) -> list[list[dict[str, Any]]]:
    """Those of each member of an ensemble that was fitted together.

    A member should be what it would have been alone.

    Args:
        case: the function.
        seed: of the members' first values, their training and their draws.
    """
    make = lambda *, key: Ensemble.of(case.make, NUM_MEMBERS, key=key)
    return _rows(case, make, NUM_MEMBERS, seed=seed)


def _rows(
    case: FunctionCase, make: Callable, num_members: int, *, seed: int
) -> list[list[dict[str, Any]]]:
    make_key, fit_key, draw_key = jax.random.split(jax.random.key(seed), 3)
    fitted = fit(
        make(key=make_key), case.split, case.likelihood, key=fit_key, **case.options
    )
    num_draws = num_members * NUM_DRAWS
    prediction = predict(fitted, case.where, key=draw_key, num_draws=num_draws)
    draws = np.asarray(prediction.outputs, np.float64)
    draws = draws.reshape(num_draws, -1)[:, case.entries]
    return [
        compare(
            estimate(draws[member::num_members, None]),
            known(case.optimum),
            case.posterior,
        )
        for member in range(num_members)
    ]
