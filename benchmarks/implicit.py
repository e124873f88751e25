"""Implicit BNNs: a step against PyTorch's and the deterministic twin's; their memory.

    python -m benchmarks.implicit [--quick] [--json PATH]

A step of `fit` on batches of 128: LeNet with eight components and two draws a row
against the same layers written in PyTorch, one draw against the same network without
noise, and that on VGG-16 of a quarter of its width. Then the sizes of the posteriors of
table 1 of Trinh et al. (2020), counted from shapes. Loss and gradient are compared with
PyTorch's, on the same parameters and noise, before anything is timed.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import tyro
from rich.console import Console

from ornstein import nn

from ._timing import (
    Target,
    interleaved,
    print_table,
    print_targets,
    write_json,
)
from .peers import implicit, implicit_ornstein as ours, implicit_torch
from .peers._torch import use_best_num_threads
from .peers.implicit_check import check_implicit_peer

OURS, TORCH = "LeNet, S = 2: ornstein", "LeNet, S = 2: PyTorch"
LENET, LENET_TWIN = "LeNet, S = 1: ornstein", "LeNet, no noise: ornstein"
VGG, VGG_TWIN = "VGG-16 / 4, S = 1: ornstein", "VGG-16 / 4, no noise: ornstein"

NETWORKS = {
    "LeNet": nn.LeNet,
    "AlexNet": partial(nn.AlexNet, 1000),
    "VGG-16, CIFAR": partial(nn.VGG16, implicit.NUM_CLASSES),
    "VGG-16, ImageNet": partial(nn.VGG16, 1000, head=nn.IMAGENET_HEAD, norm=None),
    "ResNet-50": partial(nn.ResNet, 50, 1000),
    "WideResNet-28x10": partial(nn.WideResNet, 28, 10, implicit.NUM_CLASSES),
}


def make_cases(key: jax.Array) -> dict[str, tuple[Callable[[], Any], int]]:
    """What is timed, and how many steps each takes a call."""
    digits = implicit.make_data(implicit.DIGITS, key=key)
    pictures = implicit.make_data(implicit.PICTURES, key=key)
    vgg = partial(nn.VGG16, implicit.NUM_CLASSES, width=0.25)
    lenet = ours.make_lenet
    peer = implicit_torch.ImplicitLeNet(ours.make_implicit(lenet, key=key))
    noisy = partial(ours.implicit_epochs, key=key)
    twin = partial(ours.twin_epochs, key=key)
    of_digits = implicit.DIGITS.steps_per_epoch
    of_pictures = implicit.PICTURES.steps_per_epoch
    num_draws = implicit.NUM_DRAWS
    return {
        OURS: (noisy(lenet, digits, num_draws=num_draws), of_digits),
        TORCH: (implicit_torch.steps(peer, digits), 1),
        LENET: (noisy(lenet, digits, num_draws=1), of_digits),
        LENET_TWIN: (twin(lenet, digits), of_digits),
        VGG: (noisy(vgg, pictures, num_draws=1), of_pictures),
        VGG_TWIN: (twin(vgg, pictures), of_pictures),
    }


def count_memory() -> dict[str, dict[str, int]]:
    """Weights and variational parameters, from shapes: nothing is allocated."""
    rows = {}
    for name, make in NETWORKS.items():
        model = eqx.filter_eval_shape(partial(ours.make_implicit, make), key=jr.key(0))
        rows[name] = {
            "num_weights": nn.num_parameters(model.network),
            "num_nodes": model.num_nodes,
            "num_variational": nn.num_parameters(model.mixture),
        }
    return rows


def find_targets(
    ms: dict[str, float], memory: dict[str, dict[str, int]]
) -> list[Target]:
    """The ratios that matter."""
    per_node = [
        row["num_variational"] / (2 * implicit.NUM_COMPONENTS * row["num_nodes"])
        for row in memory.values()
    ]
    twice_k_nodes = Target(
        "variational parameters / 2 K nodes", max(per_node), at_least=1.0, at_most=1.0
    )
    return [
        Target("LeNet, S = 2: ours / PyTorch", ms[OURS] / ms[TORCH], at_most=0.7),
        Target("LeNet: S = 1 / no noise", ms[LENET] / ms[LENET_TWIN], at_most=1.25),
        Target("VGG-16 / 4: S = 1 / no noise", ms[VGG] / ms[VGG_TWIN], at_most=1.25),
        twice_k_nodes,
    ]


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Time, and compare with the targets.

    Args:
        quick: few repeats, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    check_implicit_peer(key=jr.key(1))
    Console().print("PyTorch gives our loss and gradient on our noise.")
    cases = make_cases(jr.key(0))
    rows: dict[str, dict[str, Any]] = {name: {} for name in cases}
    rows[TORCH]["num_threads"] = use_best_num_threads(cases[TORCH][0])
    times = interleaved(
        {name: run for name, (run, _) in cases.items()},
        num_rounds=1 if quick else 7,
        num_repeats=1 if quick else 3,
    )
    for name, seconds in times.items():
        rows[name]["ms"] = 1e3 * seconds / cases[name][1]
    print_table(
        "One step, 128 images",
        ("how", "ms"),
        [(name, row["ms"]) for name, row in rows.items()],
    )
    memory = count_memory()
    print_table(
        f"Numbers of the posterior, K = {implicit.NUM_COMPONENTS}",
        ("network", "weights", "nodes", "variational", "weights / variational"),
        [
            (name, *row.values(), row["num_weights"] / row["num_variational"])
            for name, row in memory.items()
        ],
    )
    targets = find_targets({name: row["ms"] for name, row in rows.items()}, memory)
    print_targets(targets)
    if json is not None:
        write_json(json, rows | memory, targets)


if __name__ == "__main__":
    tyro.cli(main)
