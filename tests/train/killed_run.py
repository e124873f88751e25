"""A training run in its own process, which the test kills.

python killed_run.py RUN SLOW: with SLOW = 1 every checkpoint write pauses in its
middle and says so in RUN/writing. The parameters go to RUN/final.npz at the end.
"""

import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from train.linear_model import NOISE, linear_data, linear_model

from ornstein.data._base import Split
from ornstein.likelihood import Gaussian
from ornstein.train import EarlyStopping, Fit, RunFolder, _checkpoint, fit, save_model

NUM_EPOCHS = 16


class Slow:
    """A callback that makes the run last: otherwise it is over before any kill."""

    def start(self, plan: Any) -> None:
        del plan

    def advance(self, step: int, record: dict[str, Any]) -> None:
        del step, record
        time.sleep(0.05)

    def epoch(self, record: dict[str, Any]) -> None:
        del record

    def stop(self) -> None:
        pass


def train(run: RunFolder | None, *, resume: bool, slow: bool) -> Fit:
    data = linear_data(num_rows=80)
    return fit(
        linear_model(),
        Split(data.x[:64], data.y[:64]),
        Gaussian(NOISE, learn_scale=True),
        key=jax.random.key(7),
        num_epochs=NUM_EPOCHS,
        batch_size=16,
        optimiser=lambda rate: optax.chain(
            optax.adam(rate), optax.add_noise(1e-3, 0.55, jax.random.key(5))
        ),
        learning_rate=3e-2,
        ema_decay=0.9,
        validation=Split(data.x[64:], data.y[64:]),
        early_stopping=EarlyStopping(patience=NUM_EPOCHS),
        run=run,
        resume=resume,
        checkpoint_every=0.0,
        callbacks=(Slow(),) if slow else (),
    )


def final_arrays(result: Fit) -> Any:
    last = {name: jnp.asarray(v) for name, v in result.history.items()}
    last.pop("seconds")
    return (result.model, result.likelihood, result.ema, last)


def main(path: Path, slow_writes: bool) -> None:
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
    result = train(run, resume=True, slow=True)
    save_model(path / "final.npz", final_arrays(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "1")
