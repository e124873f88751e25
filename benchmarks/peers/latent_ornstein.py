"""The latent SDE of motion capture, its loss, and the noise that it draws.

Sixteen sequences of 300 frames of 50 numbers, a latent path of six dimensions that one
Euler-Maruyama step takes from frame to frame, an encoder of the first three frames, a
context of three numbers, networks of 30 hidden units.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import Array

import ornstein as orn
from ornstein import sde
from ornstein.functions import (
    ConstantDiffusion,
    FirstFrames,
    Integrator,
    LatentSDE,
    NetDiffusion,
)

NUM_FRAMES, BATCH_SIZE, NUM_FEATURES = 300, 16, 50
LATENT, CONTEXT, NUM_READ, WIDTH = 6, 3, 3, 30
FRAME = 0.125  # from one to the next: float32 counts in eighths exactly
BOUNDS = (0.01, 1.0)  # of the diffusion
START_SCALE = 0.1
SCALE = 0.5  # of the likelihood
LEARNING_RATE = 1e-3

LIKELIHOOD = orn.OverTime(orn.Gaussian(SCALE))


class Noise(NamedTuple):
    """What `loss` draws from a key.

    Attributes:
        start: standard normals behind z₀, (rows, latent).
        increments: Brownian, (rows, steps, latent).
    """

    start: Array
    increments: Array


def make_model(
    *,
    gradient: sde.AbstractGradient | None = None,
    num_substeps: int = 1,
    latent: int = LATENT,
    drift_widths: Sequence[int] = (WIDTH,),
    key: Array,
) -> LatentSDE:
    """With a posterior's drift that is not zero, as after training: nor is its KL."""
    read_key, model_key, noise_key, drift_key = jr.split(key, 4)
    recognition = FirstFrames(
        NUM_READ,
        NUM_FEATURES,
        latent,
        width_sizes=(WIDTH,),
        context_size=CONTEXT,
        start_scale=START_SCALE,
        key=read_key,
    )
    model = LatentSDE.make(
        recognition,
        NUM_FEATURES,
        diffusion=NetDiffusion(latent, bounds=BOUNDS, key=noise_key),
        drift_widths=drift_widths,
        decoder_widths=(WIDTH, WIDTH),
        integrator=Integrator(
            sde.EulerMaruyama(),
            sde.Grid(num_substeps=num_substeps),
            sde.Checkpointed() if gradient is None else gradient,
        ),
        key=model_key,
    )
    last = lambda model: model.posterior_drift.net.layers[-1].weight
    drawn = jr.normal(drift_key, last(model).shape) / len(last(model)) ** 0.5
    return eqx.tree_at(last, model, drawn)


def make_series(
    num_frames: int = NUM_FRAMES, num_rows: int = BATCH_SIZE, *, key: Array
) -> orn.Series:
    """Standard normal numbers, all of them observed."""
    shape = (num_rows, num_frames, NUM_FEATURES)
    ts = jnp.tile(FRAME * jnp.arange(num_frames, dtype=float), (num_rows, 1))
    return orn.Series(ts, jr.normal(key, shape), jnp.ones(shape, bool))


def loss(model: LatentSDE, x: orn.Series, key: Array) -> Array:
    """-ELBO, nats a sequence."""
    draw = model(x, key=key)
    return jnp.mean(draw.local_kl - LIKELIHOOD.log_prob(draw.output, x))


def noise_of(model: LatentSDE, x: orn.Series, key: Array) -> Noise:
    """What `loss` draws from `key`.

    Found from outside: from where its paths begin, and from the paths of a model that
    noise alone moves.
    """
    still = eqx.tree_at(
        lambda model: (
            model.prior_drift.net.layers[-1],
            model.posterior_drift.net.layers[-1],
        ),
        model,
        replace_fn=lambda layer: jax.tree.map(jnp.zeros_like, layer),
    )
    still = eqx.tree_at(lambda model: model.diffusion, still, ConstantDiffusion(1.0))
    z = still.trajectory(x, key=key)
    arrays = map(jnp.asarray, (x.ts, x.values, x.mask))
    seen = jax.vmap(model.recognition)(*arrays)
    return Noise((z[:, 0] - seen.mean) / seen.scale, jnp.diff(z, axis=1))


def num_parameters(model: LatentSDE) -> int:
    """How many numbers training moves."""
    labels = jax.tree.leaves(model.labels())
    sizes = [np.size(leaf) for leaf in jax.tree.leaves(model)]
    return sum(n for n, label in zip(sizes, labels, strict=True) if label != "frozen")
