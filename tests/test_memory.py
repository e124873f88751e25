"""A device without room: one sentence, and what needs less, as each door says it."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest
from train.linear_model import NOISE, linear_data, linear_model

import ornstein as orn
from ornstein._memory import room_for
from ornstein._sentence import Sentence
from ornstein.cli import main
from ornstein.sampling import _run
from ornstein.train._loop import InMemory

FULL = "RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.\nBuffer: 17"


def exhausted(*args: Any, **kwargs: Any) -> Any:
    raise jax.errors.JaxRuntimeError(FULL)


def too_much(x: Any, *, key: Any) -> Any:
    """A thousand times what any machine has."""
    del key
    numbers = jnp.sin(x.ravel()[0] * jnp.arange(2.0**24))
    return x + jnp.sort(numbers[:, None] + jnp.cos(numbers)[None])[0, 0]


def fit(**options: Any) -> Any:
    data, likelihood = linear_data(), orn.Gaussian(NOISE)
    key = jr.key(0)
    model = linear_model()
    return orn.fit(model, data, likelihood, key=key, num_epochs=1, **options)


def test_a_step_without_room_names_what_needs_less():
    """A real one, of the CPU. Catches the runtime's own error, ten lines long."""
    match = (
        r"^There is not enough memory for a step of training \(Out of memory.*\): "
        r"lower `batch_size` or `num_draws`, cut each batch with `accumulate`, or "
        r"recompute with `rematerialise` \(of solves `gradient=Checkpointed\(\)`\)\.$"
    )
    with pytest.raises(MemoryError, match=match):
        fit(augmentation=too_much)


def test_chains_and_predictions_without_room(monkeypatch):
    """Catches errors of the device that pass through."""
    found = fit()
    monkeypatch.setattr("ornstein.prediction._predict._predict_block", exhausted)
    match = r"the predictions \(Out of memory allocating 99 bytes\): lower `draws_at_on"
    with pytest.raises(MemoryError, match=match):
        orn.predict(found, linear_data().x, key=jr.key(1), num_draws=2)
    monkeypatch.setattr(_run.Run, "_warm_up", exhausted)
    with pytest.raises(MemoryError, match=r"the chains .* fewer chains \(`num_chains`"):
        orn.sample(
            eqx.nn.Linear(3, 1, key=jr.key(0)),
            linear_data(),
            orn.Gaussian(NOISE),
            kernel=orn.HMC(2),
            prior=orn.GaussianPrior(1.0),
            key=jr.key(0),
        )


def test_the_command_line_says_it_in_flags(tmp_path: Path, monkeypatch, capsys):
    """And ends with 2. The run can be gone on with once there is room."""
    monkeypatch.setattr(InMemory, "run", exhausted)
    options = "train --data toy/cos --model mean-field --width 2 --epochs 1 --out"
    assert main([*options.split(), str(tmp_path / "run")]) == 2
    sentence = " ".join(capsys.readouterr().err.split())
    assert sentence.endswith(
        "not enough memory for a step of training (Out of memory allocating 99 bytes): "
        "lower --batch-size or --num-draws, cut each batch with --accumulate, or "
        "recompute with --rematerialise (of solves --gradient checkpointed)."
    )


def test_other_errors_of_a_device_pass():
    """Catches every failure called one of memory; and a sentence told twice."""
    remedy = Sentence("give less")
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        with room_for("this", remedy):
            raise jax.errors.JaxRuntimeError("INTERNAL: a fault")
    match = r"^There is not enough memory for the inner \(no\): give less\.$"
    with pytest.raises(MemoryError, match=match):
        with room_for("the outer", remedy), room_for("the inner", remedy):
            raise MemoryError("no")
