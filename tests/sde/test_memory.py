"""What a gradient needs beside its inputs, as XLA plans it."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein import sde

ONE = np.array([0.0, 1.0])
TWO = np.array([0.0, 0.5, 1.0])
# Large against the grid: its times and step numbers are 12 bytes a step.
SIZE = 20_000


def temp_bytes(gradient, num_steps, ts=ONE):
    """Of the gradient of a solve with the path KL, SIZE numbers a state."""

    def loss(params, key):
        sol = sde.sdeint(
            lambda t, y, args: jnp.tanh(params * y) - y,
            lambda t, y, args: 0.3,
            jnp.ones(SIZE),
            ts,
            key=key,
            solver=sde.ReversibleHeun(),
            stepsize=sde.Fixed(1 / num_steps),
            gradient=gradient,
            path_kl=sde.FullMonteCarlo(),
            prior_drift=lambda t, y, args: -y,
        )
        return jnp.sum(sol.ys) + sol.path_kl[-1]

    compiled = jax.jit(jax.grad(loss)).lower(jnp.ones(SIZE), jr.key(0)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("ts", [ONE, TWO], ids=["one", "two"])
def test_reversible_needs_constant_memory(ts):
    """Catches a residual for each step (seen with `Backprop`)."""
    reversible = sde.Reversible()
    assert temp_bytes(reversible, 1000, ts) <= 1.1 * temp_bytes(reversible, 10, ts)


def test_backsolve_needs_constant_memory():
    backsolve = sde.Backsolve()

    def needed(num_steps):
        def loss(params, key):
            sol = sde.sdeint(
                lambda t, y, args: jnp.tanh(params * y),
                lambda t, y, args: 0.3,
                jnp.ones(SIZE),
                ONE,
                key=key,
                solver=sde.Heun(),
                stepsize=sde.Fixed(1 / num_steps),
                gradient=backsolve,
            )
            return jnp.sum(sol.ys)

        compiled = jax.jit(jax.grad(loss)).lower(jnp.ones(SIZE), jr.key(0)).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert needed(1000) <= 1.1 * needed(10)


def test_checkpointed_needs_the_square_root():
    """100 times the steps, 10 times the memory; `Backprop` 100 times."""
    few, many = (temp_bytes(sde.Checkpointed(), n) for n in (100, 10_000))
    assert many < 12 * few
    few, many = (temp_bytes(sde.Backprop(), n) for n in (100, 1000))
    assert many > 7 * few
