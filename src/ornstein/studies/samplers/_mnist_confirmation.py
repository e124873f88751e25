"""Does the posterior of MNIST's first 1,000 rows pay? On rows that had no say.

All of `_mnist_rows`' design was settled before: no method of it had been scored on test
rows 5,000 to 9,999, and seeds are others. Each test row's loss is kept, so that the
error of a difference counts rows and seeds as what they are. Beside the twins of
`_mnist_rows` stand those with a sigma of their own.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..._types import Float
from ...agreement import packed, unpacked
from ...data import load
from ...recipe import ScaleName
from .._experiment import Experiment, Study
from ._mnist_methods import NARROW_SIGMA, NARROWER
from ._mnist_rows import NUM_TEST, STEPS, design, scores

_NUM_ROWS = 1_000
_POSTERIOR = "variational paths"
_METHODS = (
    _POSTERIOR,
    "paths at their prior",
    "without noise",
    "five modes",
    *NARROWER,
)
_FIRST_SEED = 5
_NUM_SEEDS: dict[ScaleName, int] = {"quick": 2, "gpu": 5, "full": 5}


def _run(study: Study) -> list[dict[str, Any]]:
    seeds = range(
        study.seed + _FIRST_SEED, study.seed + _FIRST_SEED + _NUM_SEEDS[study.scale]
    )
    found = {
        seed: {method: _one(study, method, seed) for method in _METHODS}
        for seed in seeds
    }
    return [_row(list(found.values()), method, study) for method in _METHODS]


def _one(study: Study, method: str, seed: int) -> dict[str, Any]:
    settings = design(STEPS[study.scale]) | {
        "rows": _NUM_ROWS,
        "narrow_sigma": NARROW_SIGMA,
        "seed": seed,
    }

    def compute() -> dict[str, Any]:
        data = load("mnist")
        num_test = len(data.test)
        test = data.test.rows(np.arange(num_test - NUM_TEST, num_test))
        train = data.train.rows(np.arange(_NUM_ROWS))
        num_steps, key = STEPS[study.scale], jax.random.key(seed)
        found, losses = scores(method, train, test, num_steps, key=key)
        return {"scores": found, "losses": packed(losses.astype(np.float16))}

    return study.piece(f"{method.replace(' ', '_')}_{seed}", settings, compute)


def _row(found: Sequence[dict[str, Any]], method: str, study: Study) -> dict[str, Any]:
    """Means over seeds, and the posterior's loss minus the method's."""
    row: dict[str, Any] = {
        "method": method,
        "rows": _NUM_ROWS,
        "num_steps": STEPS[study.scale],
        "num_seeds": len(found),
    }
    for score in found[0][method]["scores"]:
        values = np.array([of_seed[method]["scores"][score] for of_seed in found])
        row[score] = float(values.mean())
        row[f"{score}_sd"] = float(values.std(ddof=1))
    return row | errors(_losses(found, _POSTERIOR) - _losses(found, method))


def _losses(
    found: Sequence[dict[str, Any]], method: str
) -> Float[np.ndarray, "seeds rows"]:
    return np.stack([unpacked(of_seed[method]["losses"]) for of_seed in found])


def errors(differences: Float[np.ndarray, "seeds rows"]) -> dict[str, float]:
    """The mean of differences, and its errors.

    Args:
        differences: of losses, of each seed's and each test row's.

    Returns:
        `minus`; `minus_rows`, its standard error over test rows, each the mean of its
        seeds; `minus_seeds`, that over seeds, each the mean of its rows; and
        `minus_both`, the root of the sum of their squares, which counts what is of row
        and seed together twice and so is too large rather than too small.
    """
    num_seeds, num_rows = differences.shape
    over_rows = differences.mean(0).std(ddof=1) / math.sqrt(num_rows)
    over_seeds = differences.mean(1).std(ddof=1) / math.sqrt(num_seeds)
    return {
        "minus": float(differences.mean()),
        "minus_rows": float(over_rows),
        "minus_seeds": float(over_seeds),
        "minus_both": math.hypot(over_rows, over_seeds),
    }


MNIST_CONFIRMATION = Experiment(
    "The posterior of an SDE-BNN of MNIST's first 1,000 rows and its twins, on test "
    "rows and seeds that chose nothing",
    "No paper's.",
    _run,
    shelf="results/pieces/{name}-{scale}.json",
)
