"""A training run in its own process, which the test kills.

python killed_run.py RUN SLOW [EPOCHS SECONDS]: with SLOW = 1 every checkpoint write
pauses in its middle and says so in RUN/writing. EPOCHS in all and SECONDS from one
checkpoint to the next are those of a run that is to be killed often. Once it is through
an epoch, and all is compiled, it says in RUN/training from which step it went on. The
parameters go to RUN/final.npz at the end.
"""

import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from train.linear_model import NOISE, linear_data, linear_model

from ornstein._files._atomic import write_atomically
from ornstein.data._base import Split
from ornstein.likelihood import Gaussian
from ornstein.train import (
    EarlyStopping,
    Fit,
    Run,
    RunFolder,
    Validation,
    fit,
    save_model,
)
from ornstein.train.saving import _checkpoint

NUM_EPOCHS = 16


class Slow:
    """A callback that makes the run last: otherwise it is over before any kill.

    Args:
        path: of the run.
    """

    def __init__(self, path: Path):
        self.path = path

    def start(self, plan: Any) -> None:
        self.first_step = plan.first_step

    def advance(self, step: int, record: dict[str, Any]) -> None:
        del step, record
        time.sleep(0.05)

    def epoch(self, record: dict[str, Any]) -> None:
        del record
        if not (self.path / "training").exists():
            write_atomically(self.path / "training", str(self.first_step).encode())

    def stop(self) -> None:
        pass


def train(
    run: RunFolder | None,
    *,
    resume: bool,
    slow: bool,
    num_epochs: int = NUM_EPOCHS,
    checkpoint_every: float = 0.0,
) -> Fit:
    data = linear_data(num_rows=80)
    kept = run and Run(run, resume=resume, checkpoint_every=checkpoint_every)
    return fit(
        linear_model(),
        Split(data.x[:64], data.y[:64]),
        Gaussian(NOISE, learn_scale=True),
        key=jax.random.key(7),
        num_epochs=num_epochs,
        batch_size=16,
        optimiser=lambda rate: optax.chain(
            optax.adam(rate), optax.add_noise(1e-3, 0.55, jax.random.key(5))
        ),
        learning_rate=3e-2,
        ema_decay=0.9,
        validation=Validation(
            Split(data.x[64:], data.y[64:]),
            early_stopping=EarlyStopping(patience=num_epochs),
        ),
        run=kept,
        callbacks=(Slow(run.path),) if run is not None and slow else (),
    )


def final_arrays(result: Fit) -> Any:
    last = {name: jnp.asarray(v) for name, v in result.history.items()}
    last.pop("seconds")
    return (result.model, result.likelihood, result.ema, last)


def main(path: Path, slow_writes: bool, num_epochs: int, seconds: float) -> None:
    if slow_writes:
        describe = _checkpoint.describe

        def slow_describe(arrays: Any) -> Any:
            """Between the arrays and `meta.json`."""
            (path / "writing").touch()
            time.sleep(0.2)
            (path / "writing").unlink()
            return describe(arrays)

        _checkpoint.describe = slow_describe
    run = RunFolder.open(path)
    result = train(
        run, resume=True, slow=True, num_epochs=num_epochs, checkpoint_every=seconds
    )
    save_model(path / "final.npz", final_arrays(result))


if __name__ == "__main__":
    rest = sys.argv[3:] or [str(NUM_EPOCHS), "0"]
    main(Path(sys.argv[1]), sys.argv[2] == "1", int(rest[0]), float(rest[1]))
