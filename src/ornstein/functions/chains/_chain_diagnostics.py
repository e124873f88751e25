"""Whether chains have met, and how many independent draws they are worth."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blackjax import diagnostics

from ..._types import Array, Float, PyTree, Shaped

Draws = Shaped[Array, "chains samples ..."] | Shaped[np.ndarray, "chains samples ..."]
"""Numbers of Markov chains: chains first, then samples."""

_FEWEST = 4


class ChainDiagnostics(NamedTuple):
    """Diagnostics of each number that chains sampled (Vehtari et al., 2021).

    Attributes:
        r_hat: rank-normalised split R-hat; 1 where chains agree, above 1.01 they do
            not yet. NaN for a number that is the same in all samples of all chains.
        ess_bulk: independent draws that give the same error of a mean or median; NaN
            for such a number, 0 where each chain stands still at a value of its own.
        ess_tail: independent draws that give the same error of the 5 % and 95 %
            quantiles; NaN and 0 as of the mean.
    """

    r_hat: Float[Array, "..."]
    ess_bulk: Float[Array, "..."]
    ess_tail: Float[Array, "..."]


def diagnose_chains(draws: Draws) -> ChainDiagnostics:
    """All three diagnostics; see `r_hat`."""
    return ChainDiagnostics(r_hat(draws), ess_bulk(draws), ess_tail(draws))


def r_hat(draws: Draws) -> Float[Array, "..."]:
    """Rank-normalised split R-hat of each number.

    Where ranks say nothing, as of chains that each stand still or of two values alone,
    the plain one: infinite for chains that stand apart.

    Args:
        draws: chains and samples first; one chain is split in two all the same.

    Raises:
        ValueError: for fewer than 4 samples of each chain.

    References:
        Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), Rank-normalization,
        folding, and localization: an improved R-hat, Bayesian Analysis 16.
    """
    found = _each(diagnostics.rhat, draws)
    if not np.any(np.isnan(found)):
        return found
    plain = split_r_hat(np.asarray(draws)).astype(found.dtype)
    return jnp.where(jnp.isnan(found), plain, found)


def ess_bulk(draws: Draws) -> Float[Array, "..."]:
    """Effective sample size of each number's mean; see `r_hat`."""
    return _of_moving(_each(diagnostics.ess_bulk, draws), draws)


def ess_tail(draws: Draws) -> Float[Array, "..."]:
    """Effective sample size of each number's 5 % and 95 % quantiles; see `r_hat`."""
    return _of_moving(_each(diagnostics.ess_tail, draws), draws)


def e_bfmi(energy: Float[np.ndarray, "chains samples"]) -> Float[np.ndarray, " chains"]:
    r"""Energy Bayesian fraction of missing information of each chain.

    $\sum_t (E_t - E_{t-1})^2 / \sum_t (E_t - \bar E)^2$: below 0.3 the momenta are
    refreshed too weakly to reach the tails. Of chains that are not thinned, whose
    numbers are nearer 2, and kernels that see all rows: where each
    energy is an estimate from another batch, it is of that noise, and near 2.

    References:
        Betancourt (2016), Diagnosing suboptimal cotangent disintegrations in
        Hamiltonian Monte Carlo, arXiv:1604.00695.
    """
    _check_samples(energy)
    centred = energy - energy.mean(axis=1, keepdims=True)
    return np.sum(np.diff(energy, axis=1) ** 2, axis=1) / np.sum(centred**2, axis=1)


def energy_of(info: dict[str, PyTree]) -> Float[np.ndarray, "chains samples"]:
    """The energies behind an E-BFMI, among what a kernel said of its steps.

    Raises:
        ValueError: if it has none, or those of batches.
    """
    if "energy" not in info:
        raise ValueError(
            "The kernel of these samples reports no energy, which E-BFMI is made of: "
            f"it reports {', '.join(info) or 'nothing'}."
        )
    if is_of_batches(info):
        raise ValueError(
            "The energies of these samples are estimates, each from another batch, of "
            "whose noise their E-BFMI would be: look at `function_diagnostics`, or "
            "take a kernel that sees all rows, such as `NUTS`."
        )
    return np.asarray(info["energy"])


def is_of_batches(info: dict[str, PyTree]) -> bool:
    """Whether a kernel saw a batch at each step, by what it said."""
    return "gradient_norm" in info


def split_r_hat(
    draws: Float[np.ndarray, "chains samples ..."],
) -> Float[np.ndarray, "..."]:
    """Plain split R-hat: no ranks, no compilation, for chains under way.

    Args:
        draws: chains and samples first, at least 4 samples.
    """
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within = np.mean(np.var(halves, axis=1, ddof=1), axis=0)
    between = np.var(np.mean(halves, axis=1), axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # numbers that never moved
        return np.asarray(np.sqrt((half - 1) / half + between / within))


def _each(diagnostic: Callable[[Array], Array], draws: Draws) -> Float[Array, "..."]:
    _check_samples(draws)
    num_chains, num_samples, *shape = draws.shape
    flat = jnp.asarray(draws).reshape(num_chains, num_samples, -1)
    return _compiled(diagnostic, flat).reshape(shape)  # blackjax squeezes


def _of_moving(found: Float[Array, "..."], draws: Draws) -> Float[Array, "..."]:
    """NaN for numbers that never moved, of which blackjax says 0."""
    has_moved = (draws != draws[:1, :1]).any((0, 1))
    return jnp.where(has_moved, found, jnp.nan)


@eqx.filter_jit
def _compiled(diagnostic, draws):
    return jnp.asarray(diagnostic(draws))


def _check_samples(draws: Draws) -> None:
    if draws.shape[1] < _FEWEST:
        raise ValueError(
            f"Diagnostics of chains need at least {_FEWEST} samples of each, got "
            f"{draws.shape[1]}: sample more (`num_samples`), or thin less."
        )


def thinned(
    name: str, info: Shaped[Array | np.ndarray, "chains steps ..."], every: int
) -> Shaped[Array | np.ndarray, "chains samples ..."]:
    """What a kernel said of its steps, as a thinned chain has it.

    Args:
        name: of what it said.
        info: of each step.
        every: so many.
    """
    num_chains, num_steps, *rest = info.shape
    kept = info[:, : num_steps - num_steps % every]
    steps = kept.reshape(num_chains, num_steps // every, every, *rest)
    if name == "is_divergent":
        return np.asarray(steps.any(2))
    is_count = np.issubdtype(info.dtype, np.integer)
    return steps.sum(2, dtype=info.dtype) if is_count else steps[:, :, -1]


def worst_of(found: PyTree[ChainDiagnostics]) -> dict[str, float]:
    """The largest R-hat and the smallest sizes of all outputs, a tree of them or one.

    An output that is the same in all samples has none.
    """
    is_one = lambda node: isinstance(node, ChainDiagnostics)
    parts = jax.tree.leaves(found, is_leaf=is_one)
    every = lambda name: np.concatenate([np.ravel(getattr(p, name)) for p in parts])
    scores = {"r_hat": float(np.fmax.reduce(every("r_hat")))}
    for name in ("ess_bulk", "ess_tail"):
        scores[name] = float(np.fmin.reduce(every(name)))
    return scores
