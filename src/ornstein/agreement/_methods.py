"""The methods that are held to the reference: one entry of `METHODS` each.

All have the problem's network and likelihood. Where a method has a prior it is the
reference's; `deterministic` and `ensemble` have none, as their papers have them, and
`map` and `map-ensemble` are the same with it. Chains start where `map` ends, each from
its own initialisation.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ..sgmcmc import SGHMC, SGLD, SGNHT, ConstantSGD, PreconditionedSGLD
from ._effort import Approximate
from ._sampled import (
    adaptive_drift,
    cyclic_sghmc,
    expanded_sghmc,
    map_members,
    mclmc,
    minibatch_chains,
    nuts,
    partial_hmc,
    swag,
    underdamped,
)
from ._trained import (
    NUM_MEMBERS,
    deterministic,
    ensemble,
    implicit,
    ivon,
    mc_dropout,
    mean_field,
    sgd,
)

# A learned noise scale ends so small on tables that only the last ones stay finite.
_RATES = [{"rate": rate} for rate in (1.0, 0.1, 0.01, 1e-3, 1e-4)]


class Method(NamedTuple):
    """A method, and the settings that the validation rows choose from.

    Attributes:
        approximate: how it is fitted or sampled.
        settings: its further arguments; a quarter of the effort chooses.
    """

    approximate: Approximate
    settings: Sequence[dict[str, Any]] = ({},)


METHODS: dict[str, Method] = {
    "deterministic": Method(deterministic),
    "map": Method(partial(map_members, num_members=1)),
    "ensemble": Method(ensemble),
    "map-ensemble": Method(partial(map_members, num_members=NUM_MEMBERS)),
    "mc-dropout": Method(mc_dropout, [{"rate": rate} for rate in (0.02, 0.1, 0.3)]),
    "mean-field": Method(mean_field),
    "ivon": Method(ivon),
    "swag": Method(swag, _RATES),
    "implicit": Method(implicit),
    "constant-sgd": Method(
        partial(minibatch_chains, kernel=lambda rate, n: ConstantSGD())
    ),
    "sgld": Method(
        partial(minibatch_chains, kernel=lambda rate, n: SGLD(0.1 * rate / n)),
        _RATES,
    ),
    "adaptive-sgld": Method(partial(minibatch_chains, kernel=adaptive_drift), _RATES),
    "psgld": Method(
        partial(
            minibatch_chains, kernel=lambda rate, n: PreconditionedSGLD(2e-3 * rate)
        ),
        _RATES,
    ),
    "sghmc": Method(
        partial(minibatch_chains, kernel=partial(underdamped, SGHMC)),
        _RATES,
    ),
    "sgnht": Method(
        partial(minibatch_chains, kernel=partial(underdamped, SGNHT)),
        _RATES,
    ),
    "sghmc-cyclic": Method(cyclic_sghmc, _RATES),
    "px-sghmc": Method(expanded_sghmc, _RATES),
    "partial-hmc": Method(partial_hmc),
    "nuts": Method(nuts),
    "mclmc": Method(mclmc),
}
"""What is compared, by name. A new method needs an entry here, and nothing else."""

_CIFAR10 = {"sgd": Method(sgd)} | {
    name: METHODS[name]._replace(settings=({},))
    for name in ("ensemble", "mean-field", "sgld", "sghmc-cyclic")
}


def methods_of(problem: str) -> dict[str, Method]:
    """Those that a problem is small enough for.

    Args:
        problem: its name.
    """
    return _CIFAR10 if problem == "cifar10" else METHODS
