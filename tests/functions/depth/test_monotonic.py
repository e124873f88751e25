"""A draw of a 1-D SDE-BNN is monotonic, of an augmented one it need not be."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from functions.small_model import blocks_of, draw, trajectory

from ornstein.functions import SDEBNN, Integrator, WeightPrior, prior_of
from ornstein.sde import Fixed

NUM_STEPS = 40
X = np.linspace(-2, 2, 81, dtype=np.float32)[:, None]


def from_the_prior(augment: int, scale: float = 2.0) -> SDEBNN:
    model = SDEBNN.for_vectors(
        1,
        1,
        width_sizes=(8,),
        augment=augment,
        prior=WeightPrior(sigma=1.0, scale=scale),
        drift_widths=(2,),
        num_inducing=0,
        integrator=Integrator(stepsize=Fixed(1 / NUM_STEPS)),
        key=jr.key(0),
    )
    return prior_of(model)


def test_a_draw_in_one_dimension_is_monotonic():
    """While dt |∂f_h/∂h| < 1 on its way, an Euler step keeps the order of rows.
    Catches (seen) weights that differ between rows."""
    model = from_the_prior(augment=0)
    (block,) = blocks_of(model)
    static = eqx.filter(block.dynamics, eqx.is_inexact_array, inverse=True)
    depths = np.linspace(0, 1, NUM_STEPS + 1)

    @jax.jit
    def slopes(w, t, h):
        """∂f_h/∂h of every row at every step."""
        f_h = lambda w, t, h: eqx.combine(w, static)(t, h[None])[0]
        of_rows = jax.vmap(jax.grad(f_h, argnums=2), (None, None, 0))
        return jax.vmap(of_rows)(w, t, h)

    for seed in range(8):
        (ys,) = trajectory(model, X, jr.key(seed), None, NUM_STEPS)
        h = ys.hidden[..., 0]
        steep = slopes(ys.weights, jnp.asarray(depths, h.dtype), h)
        assert np.abs(steep).max() / NUM_STEPS < 1
        assert np.abs(steep).max() > 1  # or there would be little to see
        assert np.diff(h[-1]).min() > 0
        out = np.diff(draw(model, X, jr.key(seed)).output[:, 0])
        assert out.min() > 0 or out.max() < 0


def test_an_augmented_draw_can_turn_round():
    """Catches zeros that are not appended, or that f_h does not see."""
    model = from_the_prior(augment=2, scale=4.0)
    slopes = [np.diff(draw(model, X, jr.key(s)).output[:, 0]) for s in range(32)]
    turns = [s.min() < -1e-2 and s.max() > 1e-2 for s in slopes]
    assert sum(turns) >= 4
