"""Chains in their own process, which the test kills.

python killed_chains.py FOLDER: once all is compiled it says in FOLDER.sampling from
which step the chains went on, and in FOLDER.done that they are at their end.
"""

import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ornstein._files._atomic import write_atomically
from ornstein.data._base import Split
from ornstein.likelihood import Gaussian
from ornstein.prior import GaussianPrior
from ornstein.sampling import BurnIn, _run, sample
from ornstein.sgmcmc import SGLD

NUM_SAMPLES = 6000


class Slow:
    """A callback that makes the chains last: otherwise they are over before a kill."""

    def __init__(self, folder: Path):
        self.marker = folder.with_suffix(".sampling")

    def start(self, plan: Any) -> None:
        self.first_step = plan.first_step

    def advance(self, step: int, record: dict[str, Any]) -> None:
        del step, record
        if not self.marker.exists():
            write_atomically(self.marker, str(self.first_step).encode())
        time.sleep(0.02)

    def stop(self) -> None:
        pass


def run(folder: Path, *, slow: bool) -> Any:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3)).astype(np.float32)
    y = x @ np.float32([[1.0], [0.5], [-1.0]]) + rng.standard_normal((40, 1))
    return sample(
        eqx.nn.Linear(3, 1, key=jax.random.key(0)),
        Split(x, y.astype(np.float32)),
        Gaussian(1.0),
        kernel=SGLD(step_size=1e-4),
        prior=GaussianPrior(1.0),
        key=jax.random.key(1),
        num_samples=NUM_SAMPLES,
        num_warmup=3000,
        num_chains=2,
        batch_size=20,
        burn_in=BurnIn(threshold=1.0, check_every=10, min_steps=500),
        folder=folder,
        resume=folder.exists(),
        save_every=0.2,
        callbacks=(Slow(folder),) if slow else (),
    )


def main(folder: Path) -> None:
    # Calls of a few samples and steps, as those of a large network have.
    _run._BUFFER_BYTES = 10 * 2 * 16
    _run._CALL_SECONDS = 0.005
    run(folder, slow=True)
    folder.with_suffix(".done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
