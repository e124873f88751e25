"""The law of constant SGD at rest with each preconditioner, beside the posterior.

Mandt, Hoffman & Blei (2017), figure 2, on a linear regression with two features.
"""

from typing import Any

import jax
import numpy as np

from ..._types import Float
from ...exactness import (
    CONSTANT_SGD,
    LinearRegression,
    Plan,
    estimate,
    gradient_map,
    lyapunov,
    position_at,
    run_chains,
    two_features,
    warm_state,
)
from ...plot import covariance_ellipses
from ...recipe import ScaleName
from ...report import save_figure
from ...sgmcmc import ConstantSGD
from .._experiment import Experiment, Study

_BATCH_SIZE = 50
_NUM_CHAINS: dict[ScaleName, int] = {"quick": 2048, "gpu": 65_536, "full": 65_536}


def _run(study: Study) -> list[dict[str, Any]]:
    target = two_features()
    mean, posterior = target.posterior()
    noise = target.batch_noise(_BATCH_SIZE)
    plan = Plan(20, num_chains=_NUM_CHAINS[study.scale])
    rows, panels, samples = [], {}, {}
    for name, (preconditioner, matrix) in CONSTANT_SGD.items():
        kernel = ConstantSGD(preconditioner)
        kept = study.piece(
            name.lower(),
            [study.seed, repr(kernel), plan],
            lambda k=kernel: _sample(k, target, plan, seed=study.seed),
        )
        drift = matrix(noise)
        step = gradient_map(target.row_gradients(), drift, 0 * drift, _BATCH_SIZE)
        covariances = {
            "chains": np.asarray(kept["covariance"]),
            "exact recursion": step.stationary(2).covariance,
            "OU approximation": lyapunov(target, drift, _BATCH_SIZE).covariance,
            "posterior": posterior,
        }
        panels[name] = covariances
        samples[name] = np.asarray(kept["positions"]) - mean
        rows.append({"preconditioner": name} | _compare(covariances))
    figure = covariance_ellipses(panels, samples=samples)
    study.say(f"Wrote {save_figure(study.folder / 'csgd_ellipses.png', figure)}")
    return rows


def _sample(
    kernel: ConstantSGD, target: LinearRegression, plan: Plan, *, seed: int
) -> dict[str, Any]:
    potential = target.potential(_BATCH_SIZE)
    start = position_at(target, target.posterior().mean)
    key = jax.random.key(seed)
    state = warm_state(kernel, potential, start, num_steps=0, key=key)
    positions = run_chains(kernel, potential, state, plan=plan, key=key)
    return {
        "covariance": estimate(positions).moments.covariance.tolist(),
        "positions": np.asarray(positions)[:1000, -1].tolist(),
    }


def _compare(covariances: dict[str, np.ndarray]) -> dict[str, float]:
    """Relative errors against the exact recursion, and how far the law is from it."""
    exact, posterior = covariances["exact recursion"], covariances["posterior"]
    relative = lambda found: np.linalg.norm(found - exact) / np.linalg.norm(exact)
    return {
        "chains_error": float(relative(covariances["chains"])),
        "ou_error": float(relative(covariances["OU approximation"])),
        "kl_to_posterior": gaussian_kl(exact, posterior),
        "kl_to_posterior_ou": gaussian_kl(covariances["OU approximation"], posterior),
    }


def gaussian_kl(
    first: Float[np.ndarray, "dim dim"], second: Float[np.ndarray, "dim dim"]
) -> float:
    r"""$\mathrm{KL}(N(0, S_1) \| N(0, S_2))$, nats.

    Args:
        first: $S_1$.
        second: $S_2$.
    """
    ratio = np.linalg.solve(second, first)
    return 0.5 * float(np.trace(ratio) - len(first) - np.linalg.slogdet(ratio)[1])


CSGD_ELLIPSES = Experiment(
    "the stationary covariance of constant SGD with each preconditioner",
    "Full preconditioning reaches the posterior; diagonal and scalar ones come as near "
    "as their form allows (Mandt et al. 2017).",
    _run,
)
"""`ornstein reproduce csgd-ellipses`."""
