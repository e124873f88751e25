"""How wide chains over rows on disk are, beside the same chains over rows in memory.

    python -m benchmarks.streamed_chains [--quick] [--json PATH]

A linear model of known posterior, whose rows are in 20 `.npz` files: standard deviation
of the samples about the posterior's mode over the posterior's, R-hat and effective
sample size, mean and standard error over three seeds. *All* and *a fifth* are how many
rows the buffer holds; *sorted* files are sorted by x y. One kernel that is
refused over rows on disk, SGHMC with `noise_estimate`, is let through here to show why.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro

import ornstein as orn
from ornstein.functions import ess_bulk, split_r_hat
from ornstein.mcmc import AbstractKernel
from ornstein.sampling import _from_disk
from ornstein.sgmcmc import SGHMC, SGLD, SGNHT

from ._timing import Target, print_table, print_targets, write_json

NUM_FILES, NUM_SEEDS = 20, 3
SIGMA, PRIOR_SCALE = 1.0, 10.0


class _Plane(eqx.Module):
    weight: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.weight


def _write(folder: Path, num_rows: int, dim: int, *, is_sorted: bool) -> Path:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(num_rows, dim)), rng.normal(size=(num_rows, 1))
    if dim == 1:
        x = np.where(x > 0, 1.0, -1.0)  # of one curvature
    order = np.argsort(x[:, 0] * y[:, 0]) if is_sorted else np.arange(num_rows)
    folder.mkdir()
    for number, part in enumerate(np.split(order, NUM_FILES)):
        np.savez(folder / f"{number:02d}.npz", x=x[part], y=y[part])
    return folder


def _posterior(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mode and standard deviations, of the rows as the model meets them."""
    x, y = (np.asarray(a, np.float64) for a in (rows.x, rows.y))
    precision = x.T @ x / SIGMA**2 + np.eye(x.shape[1]) / PRIOR_SCALE**2
    covariance = np.linalg.inv(precision)
    return covariance @ x.T @ y[:, 0] / SIGMA**2, np.sqrt(np.diag(covariance))


def _widths(
    kernel: AbstractKernel, split: Any, rows: Any, num_steps: int, **options: Any
) -> dict[str, float]:
    mode, sd = _posterior(rows)
    found: dict[str, list[float]] = {"width": [], "r_hat": [], "ess": []}
    for seed in range(NUM_SEEDS):
        samples = orn.sample(
            _Plane(jnp.zeros((len(mode), 1))),
            split,
            orn.Gaussian(SIGMA),
            kernel=kernel,
            prior=orn.GaussianPrior(PRIOR_SCALE),
            key=jax.random.key(seed),
            num_samples=num_steps // 10,
            thin=10,
            jitter=0.01,
            num_warmup=num_steps // 5,
            **options,
        )
        w = np.asarray(samples.positions[0].weight)[..., 0]
        found["width"].append(float(np.sqrt(np.mean(((w - mode) / sd) ** 2))))
        found["r_hat"].append(float(np.max(np.asarray(split_r_hat(w)))))
        found["ess"].append(float(np.min(np.asarray(ess_bulk(w)))))
    error = np.std(found["width"], ddof=1) / np.sqrt(NUM_SEEDS)
    return {k: float(np.mean(v)) for k, v in found.items()} | {"width_se": float(error)}


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Sample, and compare with the posterior.

    Args:
        quick: few steps, to see that it runs.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    num_steps = 400 if quick else 20_000
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as root:
        own = {"num_rows": 2_500, "dim": 10}
        mixed = _write(Path(root) / "mixed", is_sorted=False, **own)
        whole = _load(mixed)
        rows, n = whole.rows(np.arange(len(whole))), 20
        kernels = {
            "SGNHT": SGNHT((0.02 / len(rows)) ** 0.5, 0.1 / (0.02 / len(rows)) ** 0.5),
            "SGHMC(noise_estimate)": SGHMC(
                1e-3, 105.0, noise_estimate=len(rows) ** 2 / n
            ),
        }
        let_through: Callable[[Any], None] = lambda kernel: None
        for name, kernel in kernels.items():
            size = 100 if name == "SGNHT" else n
            for chains in (1, 4):
                how = {"num_chains": chains, "batch_size": size}
                for where, split in (("memory", rows), ("disk", whole)):
                    with mock.patch.object(
                        _from_disk, "why_not_from_disk", let_through
                    ):
                        found = _widths(kernel, split, rows, num_steps, **how)
                    result[f"{name}, {chains} chains, {where}"] = found
        how = {"num_chains": 4, "batch_size": 100}
        for name in ("mixed", "sorted"):
            folder = Path(root) / f"one-{name}"
            own = {"num_rows": 25_000, "dim": 1}
            _write(folder, is_sorted=name == "sorted", **own)
            whole = _load(folder)
            rows = whole.rows(np.arange(len(whole)))
            kernel = SGLD(0.05 / len(rows))
            if name == "mixed":
                found = _widths(kernel, rows, rows, num_steps, **how)
                result["SGLD, memory"] = found
            for text, part in (("all", 1), ("a fifth", 5)):
                split = _load(folder, len(rows) // part)
                found = _widths(kernel, split, rows, num_steps, **how)
                result[f"SGLD, disk, {name}, {text}"] = found
    print_table(
        f"Width over the posterior's, mean of {NUM_SEEDS} seeds",
        ("chains", "width", "±", "R-hat", "ESS"),
        [
            (k, *(r[c] for c in ("width", "width_se", "r_hat", "ess")))
            for k, r in result.items()
        ],
    )
    memory, disk = result["SGLD, memory"], result["SGLD, disk, mixed, all"]
    ratio = disk["width"] / memory["width"]
    targets = [Target("SGLD: shuffled on disk / in memory", ratio, at_most=1.05)]
    print_targets(targets)
    if json is not None:
        write_json(json, result, targets)


def _load(folder: Path, buffer: int | None = None) -> Any:
    how = {"stream": True, "task": "regression", "shuffle_buffer": buffer}
    return orn.data.load(str(folder), **how).train


if __name__ == "__main__":
    tyro.cli(main)
