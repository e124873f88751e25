"""Ways to solve and differentiate a latent path: one function whatever the numerics."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.functions import ConstantDiffusion, GRURecognition
from ornstein.sde import (
    Adaptive,
    Backprop,
    Backsolve,
    Checkpointed,
    Grid,
    Heun,
    Reversible,
    ReversibleHeun,
)

# NumPy arrays, as a user has them.
X = orn.Series.of(np.linspace(0.0, 1.0, 5), np.sin(np.arange(30.0)).reshape(3, 5, 2))


def model(**how) -> orn.LatentSDE:
    """Small, and away from its prior."""
    keys = jr.split(jr.key(0))
    read = GRURecognition(2, 2, hidden_size=4, context_size=2, key=keys[0])
    made = orn.LatentSDE.make(
        read,
        2,
        drift_widths=(4,),
        diffusion=ConstantDiffusion(0.5, is_learned=True),
        integrator=orn.Integrator(**how),
        key=keys[1],
    )
    return jax.tree.map(
        lambda leaf: leaf + 0.1 if eqx.is_inexact_array(leaf) else leaf, made
    )


@eqx.filter_jit
@eqx.filter_grad
def gradient(model):
    draw = model(X, key=jr.key(2))
    return jnp.mean(draw.output**2) + jnp.mean(draw.local_kl)


def gradients(kind) -> list[np.ndarray]:
    how = {"solver": ReversibleHeun(), "stepsize": Grid(num_substeps=4)}
    return [
        np.asarray(g) for g in jax.tree.leaves(gradient(model(**how, gradient=kind)))
    ]


@pytest.fixture(scope="module")
def backprop() -> list[np.ndarray]:
    return gradients(Backprop())


@pytest.mark.parametrize(
    ("kind", "atol"),
    [(Checkpointed(), 1e-6), (Reversible(), 1e-6), (Backsolve(), 1e-3)],
)
def test_gradients_are_backprops(backprop, kind, atol: float):
    """Of every part, the recognition network through the context among them.

    Catches (seen) a series of NumPy arrays that `Reversible` and `Backsolve` could not
    close over.
    """
    assert max(np.abs(g).max() for g in backprop) > 0.1
    assert all(np.abs(g).max() > 0 for g in backprop[:4])
    for ours, exact in zip(gradients(kind), backprop, strict=True):
        np.testing.assert_allclose(ours, exact, atol=atol)


def test_adaptive_steps_have_the_law_of_fine_ones():
    """Another Brownian path, so in mean over draws of one series."""
    rows = 400
    x = jax.tree.map(lambda leaf: np.repeat(leaf[:1], rows, axis=0), X)
    kls = []
    for steps in (Adaptive(1e-2, 1e-2), Grid(num_substeps=16)):
        ours = model(solver=Heun(), stepsize=steps, gradient=Backprop())
        call = eqx.filter_jit(lambda model: model(x, key=jr.key(2)))
        kls.append(np.asarray(call(ours).local_kl))
    error = np.sqrt(sum(np.var(kl) for kl in kls) / rows)
    assert abs(kls[0].mean() - kls[1].mean()) < 4.5 * error < 0.1 * kls[1].mean()
