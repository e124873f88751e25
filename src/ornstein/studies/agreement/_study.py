"""Methods beside a reference of the posterior: `ornstein reproduce agreement`."""

from collections.abc import Sequence
from typing import Any

from ..._sentence import OptionError
from .._experiment import Experiment, Study
from ._problems import PROBLEMS, load_problem
from ._reference import found_reference, prior_scale, sample_reference

_REFERENCE = "reference"


def _run(study: Study) -> list[dict[str, Any]]:
    """Compute the rows that are asked for; show all that there are."""
    for name, method in _asked(study.models):
        problem = load_problem(name)
        scale = prior_scale(study, problem)
        sample_reference(study, problem, scale)
    return []


def _cells() -> list[tuple[str, str]]:
    return [(name, _REFERENCE) for name in PROBLEMS]


def _asked(models: Sequence[str]) -> list[tuple[str, str]]:
    """The cells that `mnist`, `reference` or `mnist/reference` name; else all."""
    found: dict[tuple[str, str], None] = {}
    for model in models:
        ours = [c for c in _cells() if model in (*c, "/".join(c))]
        if not ours:
            raise OptionError(
                "{models} {} is no row of `reproduce agreement`: give a data set ({}), "
                "a method ({}), or both, such as mnist/reference.",
                model,
                ", ".join(PROBLEMS),
                ", ".join(dict.fromkeys(method for _, method in _cells())),
            )
        found |= dict.fromkeys(ours)
    return list(found) if models else _cells()


AGREEMENT = Experiment(
    "How near each method's predictive distribution is to long HMC's, and how near "
    "HMC's chains are to each other",
    "Izmailov et al. (2021), CIFAR-10, agreement / total variation with HMC: HMC 0.94 / "
    "0.07, SGD 0.855 / 0.190, ensemble of 50 0.915 / 0.115 (from memory).",
    _run,
    options=("models",),
    shelf="results/pieces/{name}-{scale}.json",
)
