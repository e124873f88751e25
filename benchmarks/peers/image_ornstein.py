"""The image SDE-BNN of the benchmarks, and the increments that it draws.

28×28 images of one channel augmented by two, one block of width 32, weight drift
2-128-2, ten midpoint steps, a readout with 1,024 hidden units, a point w₀.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jax import Array

from ornstein import sde
from ornstein.functions import SDEBNN, Integrator, WeightPrior

SHAPE = (28, 28, 1)
NUM_CLASSES = 10
NUM_STEPS = 10
BATCH_SIZE = 128
KL_WEIGHT = 1e-4
LEARNING_RATE = 1e-3


def make_model(*, rate: float = 1.0, key: Array) -> SDEBNN:
    """With NN_φ not zero, as after training, so that the KL is not."""
    model_key, *writes_keys = jr.split(key, 50)
    model = SDEBNN.for_images(
        SHAPE,
        NUM_CLASSES,
        width=32,
        augment=2,
        readout_widths=(1024,),
        drift_widths=(2, 128, 2),
        prior=WeightPrior(rate=rate),
        start_width=None,
        estimator=sde.KL(),
        integrator=Integrator(sde.Midpoint(), sde.Fixed(1 / NUM_STEPS)),
        key=model_key,
    )
    writes = lambda model: jax.tree.leaves(block_of(model).drift.writes)
    drawn = [
        jr.normal(k, leaf.shape)
        for k, leaf in zip(writes_keys, writes(model), strict=False)
    ]
    return eqx.tree_at(writes, model, drawn)


def block_of(model: SDEBNN):
    """Its one solve."""
    _, block = model.layers
    return block


def make_batch(*, key: Array) -> tuple[Array, Array]:
    """Images of noise, and labels."""
    x_key, y_key = jr.split(key)
    x = jr.normal(x_key, (BATCH_SIZE, *SHAPE))
    return x, jr.randint(y_key, (BATCH_SIZE,), 0, NUM_CLASSES)


def loss(model: SDEBNN, x: Array, y: Array, key: Array) -> Array:
    """Cross-entropy plus KL, nats an example."""
    draw = model(x, key=key)
    losses = optax.softmax_cross_entropy_with_integer_labels(draw.output, y)
    return jnp.mean(losses) + KL_WEIGHT * draw.kl


def increments(key: Array, *, model_key: Array) -> eqx.Module:
    """What `loss` draws from `key`: a tree like w with a leading axis of steps.

    Found from outside, as the path of weights that noise alone moves.
    """
    model = make_model(rate=0.0, key=model_key)
    block = block_of(model)
    still = jax.tree.map(jnp.zeros_like, block.drift.writes)
    model = eqx.tree_at(lambda m: block_of(m).drift.writes, model, still)
    ts = np.linspace(0, 1, NUM_STEPS + 1)
    (path,) = model.trajectory(jnp.zeros((1, *SHAPE)), ts, key=key)
    moved = jax.tree.map(lambda w: jnp.diff(w, axis=0), path.weights)
    return jax.tree.map(lambda dw, scale: dw / scale, moved, block.process.scale)
