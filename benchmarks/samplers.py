"""Our samplers and mean-field step against posteriors, bayesian-torch and blackjax.

    python -m benchmarks.samplers [--quick] [--json PATH]

An MLP 784-400-400-10 on batches of 100 of 10,000 rows: a step of SGLD, of SGHMC (ten
inner steps a call, each counted by itself) and of a mean-field posterior, batches drawn
inside the step. An MLP 1-50-50-1 on 64 points: a leapfrog step of HMC, ten a proposal.
One chain, and four side by side. Ours runs in the loop of `ornstein.sample`, blackjax
in `lax.scan`. Before anything is timed, all are checked to take our step on the same
batch and noise.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.random as jr
import tyro
from rich.console import Console

from ornstein.train import IVON

from ._timing import (
    Target,
    interleaved,
    print_table,
    print_targets,
    write_json,
)
from .peers import sampler, sampler_blackjax, sampler_ornstein as ours, sampler_torch
from .peers._torch import use_best_num_threads
from .peers.sampler_check import check_sampler_peers

SGLD, SGLD_FOUR = "SGLD: ornstein", "SGLD: ornstein, four chains"
SGLD_BLACKJAX, SGLD_TORCH = "SGLD: blackjax", "SGLD: posteriors"
SGHMC, SGHMC_BLACKJAX = "SGHMC: ornstein", "SGHMC: blackjax"
SGHMC_TORCH = "SGHMC: posteriors"
FIELD, FIELD_FIT = "mean-field: ornstein", "mean-field: ornstein, a step of fit"
FIELD_IVON = "mean-field: ornstein, a step of fit by IVON"
FIELD_TORCH = "mean-field: bayesian-torch"
HMC, HMC_FOUR = "HMC: ornstein", "HMC: ornstein, four chains"
HMC_BLACKJAX = "HMC: blackjax"


class Case(NamedTuple):
    """What is timed.

    Attributes:
        run: takes some steps.
        num_steps: how many.
    """

    run: Callable[[], Any]
    num_steps: int = 1


def jax_cases(key: jax.Array) -> dict[str, Case]:
    """Ours and blackjax's, each some steps in one compiled call."""
    classes, points = sampler.make_classes(key=key), sampler.make_points(key=key)
    potential = ours.make_potential(classes, key=key)
    small = ours.make_small_potential(points, key=key)
    layers = sampler_blackjax.layers_of(potential.start[0])
    on_classes = {"data": classes, "key": key}
    inner = sampler.NUM_INNER_STEPS
    leapfrog = sampler.NUM_LEAPFROG_STEPS

    def chains(kernel: Any, target: Any, num_steps: int, num_chains: int = 1):
        return ours.chains(
            kernel, target, num_steps=num_steps, num_chains=num_chains, key=key
        )

    field_keys = {"model_key": key, "key": key}
    return {
        SGLD: Case(chains(ours.LANGEVIN, potential, 20), 20),
        SGLD_FOUR: Case(chains(ours.LANGEVIN, potential, 10, 4), 10),
        SGLD_BLACKJAX: Case(
            sampler_blackjax.sgld(layers, num_steps=20, **on_classes), 20
        ),
        SGHMC: Case(chains(ours.HAMILTONIAN, potential, 2), 2 * inner),
        SGHMC_BLACKJAX: Case(
            sampler_blackjax.sghmc(layers, num_steps=2, **on_classes), 2 * inner
        ),
        FIELD: Case(ours.mean_field(classes, num_steps=20, **field_keys), 20),
        FIELD_FIT: Case(*ours.fitted_mean_field(classes, **field_keys)),
        FIELD_IVON: Case(*ours.fitted_mean_field(classes, by=IVON(), **field_keys)),
        HMC: Case(chains(ours.HMC_KERNEL, small, 100), 100 * leapfrog),
        HMC_FOUR: Case(chains(ours.HMC_KERNEL, small, 100, 4), 100 * leapfrog),
        HMC_BLACKJAX: Case(
            sampler_blackjax.hmc(small, num_steps=100, key=key), 100 * leapfrog
        ),
    }


def torch_cases(key: jax.Array) -> dict[str, Case]:
    """PyTorch's, each one step."""
    network = ours.make_network(key=key)
    layers = sampler_blackjax.layers_of(network)
    data = sampler_torch.to_torch(sampler.make_classes(key=key))
    peer = sampler_torch.make_network(layers)
    chain = lambda transform: sampler_torch.chain(transform, peer, data)
    field = sampler_torch.MeanFieldNet(layers)
    return {
        SGLD_TORCH: Case(chain(sampler_torch.sgld(peer))),
        SGHMC_TORCH: Case(chain(sampler_torch.sghmc(peer))),
        FIELD_TORCH: Case(sampler_torch.mean_field(field, data)),
    }


def find_targets(ms: dict[str, float]) -> list[Target]:
    """The ratios that matter, from milliseconds a step."""
    return [
        Target("SGLD: posteriors / ours", ms[SGLD_TORCH] / ms[SGLD], at_least=2.5),
        Target("SGHMC: ours / blackjax", ms[SGHMC] / ms[SGHMC_BLACKJAX], at_most=1.0),
        Target(
            "mean-field: bayesian-torch / ours",
            ms[FIELD_TORCH] / ms[FIELD],
            at_least=2.0,
        ),
        Target(
            "mean-field: bayesian-torch / a step of fit",
            ms[FIELD_TORCH] / ms[FIELD_FIT],
            at_least=2.0,
        ),
        Target(
            "mean-field: a step of fit by IVON / by Adam",
            ms[FIELD_IVON] / ms[FIELD_FIT],
            at_most=1.25,
        ),
        Target("HMC: ours / blackjax", ms[HMC] / ms[HMC_BLACKJAX], at_most=1.1),
        Target("HMC: four chains / one", ms[HMC_FOUR] / ms[HMC], at_most=3.2),
        Target("SGLD: four chains / one", ms[SGLD_FOUR] / ms[SGLD], at_most=4.2),
    ]


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Time, and compare with the targets.

    Args:
        quick: few repeats, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    data_key, check_key = jr.split(jr.key(0))
    check_sampler_peers(sampler.make_classes(key=data_key), key=check_key)
    Console().print("All peers take our step on our batch and noise.")

    cases = jax_cases(data_key) | torch_cases(data_key)
    rows: dict[str, dict[str, Any]] = {name: {} for name in cases}
    num_threads = use_best_num_threads(cases[SGLD_TORCH].run)
    for name in (SGLD_TORCH, SGHMC_TORCH, FIELD_TORCH):
        rows[name]["num_threads"] = num_threads
    times = interleaved(
        {name: case.run for name, case in cases.items()}, num_rounds=2 if quick else 20
    )
    for name, seconds in times.items():
        rows[name]["ms"] = 1e3 * seconds / cases[name].num_steps
    print_table(
        "One step, all chains together",
        ("how", "ms"),
        [(name, rows[name]["ms"]) for name in sorted(rows)],
    )
    targets = find_targets({name: row["ms"] for name, row in rows.items()})
    print_targets(targets)
    if json is not None:
        write_json(json, rows, targets)


if __name__ == "__main__":
    tyro.cli(main)
