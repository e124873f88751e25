r"""Five samplers on a double well with noisy gradients, against its density.

$U(\theta) = -2 \theta^2 + \theta^4$, $\nabla \tilde U = \nabla U + N(0, 4)$: figure 1
of Chen, Fox & Guestrin (2014), with its ε = 0.1, friction 3 and 50 steps a trajectory,
and figure 2 of Jospin et al. (2022). Two samplers see exact gradients, or none.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate

from ..._types import Float
from ...exactness import Plan, run_chains, warm_state
from ...mcmc import HMC, AbstractKernel, RandomWalkMetropolis
from ...metrics import total_variation
from ...plot import sampled_densities
from ...potential import DensityPotential
from ...recipe import ScaleName
from ...report import save_figure
from ...sgmcmc import SGHMC, NaiveSGHMC
from .._experiment import Experiment, Study

_GRADIENT_NOISE = 4.0
_EDGES = np.linspace(-2.5, 2.5, 51)
_NUM_CHAINS: dict[ScaleName, int] = {"quick": 2048, "gpu": 65_536, "full": 65_536}

SAMPLERS: dict[str, tuple[AbstractKernel, int]] = {
    "random-walk Metropolis": (RandomWalkMetropolis(1.5), 30),
    "HMC": (HMC(num_integration_steps=50, step_size=0.1), 3),
    "naive SGHMC, with test": (NaiveSGHMC(0.1, 50, adjusted=True), 8),
    "naive SGHMC, no test": (NaiveSGHMC(0.1, 50), 3),
    "SGHMC": (SGHMC(0.1, 3.0, _GRADIENT_NOISE, num_integration_steps=50), 3),
}
"""Name to kernel, and steps between samples."""

_WRONG = "naive SGHMC, no test"
IS_RIGHT_BELOW = 0.05
"""Total variation that counts as right: Euler's bias is inside, visible errors not."""


def _run(study: Study) -> list[dict[str, Any]]:
    rows, heights = [], {}
    exact = exact_masses(_EDGES)
    for name, (kernel, thin) in SAMPLERS.items():
        plan = Plan(thin, num_chains=_NUM_CHAINS[study.scale])
        kept = study.piece(
            name.replace(",", "").replace(" ", "_"),
            [study.seed, repr(kernel), plan],
            lambda k=kernel, p=plan: _histogram(k, p, seed=study.seed),
        )
        counts = np.asarray(kept)
        num_samples = int(counts.sum())
        distance = total_variation(counts / num_samples, exact)
        rows.append(
            {
                "sampler": name,
                "total_variation": distance,
                "monte_carlo_floor": _floor(exact, num_samples, seed=study.seed),
                "is_right": distance < IS_RIGHT_BELOW,
                "expected_right": name != _WRONG,
            }
        )
        heights[name] = counts[1:-1] / num_samples / np.diff(_EDGES)
    grid = np.linspace(_EDGES[0], _EDGES[-1], 401)
    density = np.exp(-_energy(grid)) / _mass(-np.inf, np.inf)
    figure = sampled_densities(_EDGES, heights, (grid, density))
    study.say(f"Wrote {save_figure(study.folder / 'distributions.png', figure)}")
    return rows


def _histogram(kernel: AbstractKernel, plan: Plan, *, seed: int) -> list[int]:
    """Counts in the bins, and beyond the first and last edge."""
    potential = DensityPotential(lambda q: -_energy(q), _GRADIENT_NOISE)
    key = jax.random.key(seed)
    state = warm_state(kernel, potential, jnp.zeros(()), num_steps=0, key=key)
    positions = np.asarray(run_chains(kernel, potential, state, plan=plan, key=key))
    edges = np.concatenate([[-np.inf], _EDGES, [np.inf]])
    return np.histogram(positions, edges)[0].tolist()


def exact_masses(edges: Float[np.ndarray, " edges"]) -> Float[np.ndarray, " bins"]:
    """Probabilities of the bins, and beyond the first and last edge.

    Args:
        edges: ascending.
    """
    whole = np.concatenate([[-np.inf], edges, [np.inf]])
    masses = [_mass(*pair) for pair in itertools.pairwise(whole)]
    return np.asarray(masses) / sum(masses)


def _floor(masses: np.ndarray, num_samples: int, *, seed: int) -> float:
    """The mean total variation of as many exact and independent samples."""
    drawn = np.random.default_rng(seed).multinomial(num_samples, masses, size=200)
    return float(np.mean([total_variation(d / num_samples, masses) for d in drawn]))


def _energy(theta: Any) -> Any:
    return -2.0 * theta**2 + theta**4


def _mass(low: float, high: float) -> float:
    return integrate.quad(lambda theta: np.exp(-_energy(theta)), low, high)[0]


SGHMC_DISTRIBUTIONS = Experiment(
    "five samplers with noisy gradients against the density of a double well",
    "Naive SGHMC without a Metropolis test is too wide; the others are right.",
    _run,
)
"""`ornstein reproduce sghmc-distributions`."""
