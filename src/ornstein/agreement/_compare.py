"""How near a predictive distribution is to the reference's, and how near that is.

The ceiling is the reference's own: each chain held to the mixture of the *others*, and
each half of a chain too, which shows what fewer draws cost.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import metrics
from .._types import Float
from ._predictive import Predictive, mixture, nll
from ._problems import Problem


class Chain(NamedTuple):
    """One chain of a reference, as far as it is there.

    Attributes:
        pieces: its predictive distributions, in order.
        facts: of each piece: acceptance, gradients, seconds.
    """

    pieces: list[Predictive]
    facts: list[dict[str, Any]]


def scores(found: Predictive, problem: Problem) -> dict[str, Any]:
    """By the test rows' targets, in the targets' units."""
    y = np.asarray(problem.test.y)
    row: dict[str, Any] = {
        "num_draws": found.num_draws,
        "nll": nll(found, problem.y_scale),
    }
    if problem.edges is None:
        return row | {
            "accuracy": float(metrics.accuracy(found.masses, y)),
            "ece": float(metrics.ece(found.masses, y)),
        }
    errors = found.mean - y.reshape(found.mean.shape)
    return row | {"rmse": problem.y_scale * float(np.sqrt(np.mean(errors**2)))}


def distances(
    found: Predictive, reference: Predictive, problem: Problem
) -> dict[str, float]:
    r"""From a predictive distribution to another, means over test rows.

    `total_variation` is ½ Σ |p − q| over classes, or over bins of the target.
    `agreement` is the share of rows with the same top class. Real targets have none;
    `mean_shift` is the root mean square of the difference of predictive means over the
    reference's predictive standard deviation.
    """
    gaps = 0.5 * np.abs(found.masses - reference.masses).sum(axis=1)
    row = {"total_variation": float(np.mean(gaps))}
    if problem.edges is None:
        same = found.masses.argmax(axis=1) == reference.masses.argmax(axis=1)
        return row | {"agreement": float(np.mean(same))}
    shifts = (found.mean - reference.mean) / reference.spread
    return row | {"mean_shift": float(np.sqrt(np.mean(shifts**2)))}


def ceiling(chains: Sequence[Chain], problem: Problem) -> list[dict[str, Any]]:
    """Rows of the reference: all of it, one chain, and half of one.

    A chain is held to the mixture of the others, in which it has no part; rows are
    means over chains, and `lowest` is the worst of them.
    """
    wholes = [mixture(chain.pieces) for chain in chains]
    gradients = [sum(f["num_gradients"] for f in chain.facts) for chain in chains]
    total = sum(len(chain.facts) for chain in chains)
    seconds = [f["seconds"] for chain in chains for f in chain.facts]
    everything = mixture(wholes)
    rows = [
        {"method": f"hmc, {len(chains)} chains"}
        | scores(everything, problem)
        | {
            "num_gradients": sum(gradients),
            "seconds": None if None in seconds else sum(seconds),
            "acceptance_rate": _mean_fact(chains, "acceptance_rate"),
            "num_divergent": round(total * _mean_fact(chains, "num_divergent")),
        }
        | r_hats(chains)
    ]
    if len(chains) < 2:
        return rows
    one, half = [], []
    for number, chain in enumerate(chains):
        others = mixture([w for n, w in enumerate(wholes) if n != number])
        one.append(_row(wholes[number], others, problem))
        half += [_row(part, others, problem) for part in _halves(chain)]
    rows.append(
        {"method": "hmc, a chain against the others"}
        | _means(one)
        | {"num_gradients": float(np.mean(gradients))}
    )
    if len(half) == len(one):  # no chain has a second piece yet
        return rows
    rows.append(
        {"method": "hmc, half a chain against the others"}
        | _means(half)
        | {"num_gradients": float(np.mean(gradients)) / (len(half) / len(one))}
    )
    return rows


def r_hats(chains: Sequence[Chain]) -> dict[str, float]:
    """Plain R-hat of what functions say of test rows, over halves of chains.

    Quantiles over rows (and classes): the median, 95 %, and the largest.
    """
    parts = [part for chain in chains for part in _halves(chain)]
    if len(parts) < 2:
        return {}
    values = r_hat_of_parts(parts)
    values = values[~np.isnan(values)]
    if values.size == 0:
        return {}
    levels = [0.5, 0.95, 1.0]
    # Not between two values: a row whose chains never moved has an infinite one.
    quantiles = np.quantile(values, levels, method="inverted_cdf").tolist()
    names = ("r_hat_median", "r_hat_95", "r_hat_max")
    return dict(zip(names, quantiles, strict=True))


def r_hat_of_parts(parts: Sequence[Predictive]) -> Float[np.ndarray, "rows values"]:
    """From means and standard deviations of equally many draws.

    Args:
        parts: of chains; the shortest's number of draws is taken as all's.
    """
    num_draws = min(part.num_draws for part in parts)
    within = np.mean([part.sd**2 for part in parts], axis=0)
    within *= num_draws / (num_draws - 1)
    between = np.var([part.mean for part in parts], axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # values that never moved
        return np.sqrt((num_draws - 1) / num_draws + between / within)


def _row(found: Predictive, others: Predictive, problem: Problem) -> dict[str, Any]:
    return distances(found, others, problem) | scores(found, problem)


def _means(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of every number; and the worst of what is near or far."""
    found = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    found["num_draws"] = round(found["num_draws"])
    found["worst_total_variation"] = max(row["total_variation"] for row in rows)
    return found


def _mean_fact(chains: Sequence[Chain], name: str) -> float:
    return float(np.mean([facts[name] for chain in chains for facts in chain.facts]))


def _halves(chain: Chain) -> list[Predictive]:
    """Its first and its second half; of one piece, that."""
    half = len(chain.pieces) // 2
    if half == 0:
        return [chain.pieces[0]]
    return [mixture(chain.pieces[:half]), mixture(chain.pieces[half : 2 * half])]
