"""Small networks in our spelling and in Equinox's, some with batch statistics."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, PRNGKeyArray

from ornstein import nn
from ornstein.functions import ImplicitBNN


class Chain(eqx.Module):
    """One layer after another."""

    layers: tuple

    def __call__(self, x: Array) -> Array:
        for layer in self.layers:
            x = layer(x)
        return x


def identities(size: int, depth: int = 1) -> Chain:
    """A network that returns its input, so that noise on it can be read."""
    layer = nn.Linear(size, size, use_bias=False, key=jr.key(0))
    layer = eqx.tree_at(lambda a: a.weight, layer, jnp.eye(size))
    return Chain((layer,) * depth)


class Normalised(eqx.Module):
    """Linear, batch normalisation, tanh, linear: two outputs of rows of three."""

    first: nn.Linear
    norm: nn.BatchNorm
    last: nn.Linear

    def __init__(self, width: int = 4, *, key: PRNGKeyArray):
        first_key, last_key = jr.split(key)
        self.first = nn.Linear(3, width, key=first_key)
        self.norm = nn.BatchNorm(width)
        self.last = nn.Linear(width, 2, key=last_key)

    def __call__(self, x: Array, state: eqx.nn.State) -> tuple[Array, eqx.nn.State]:
        h, new = self.norm(self.first(x), state)
        assert new is not None
        return self.last(jnp.tanh(h)), new


def equinox_vectors(*, is_normalised: bool, key: PRNGKeyArray) -> nn.PerExample:
    """The same in Equinox's layers, with its own batch normalisation or without."""
    first_key, last_key = jr.split(key)
    norm = [eqx.nn.BatchNorm(4, "batch", mode="batch")] if is_normalised else []
    first, last = (
        eqx.nn.Linear(3, 4, key=first_key),
        eqx.nn.Linear(4, 2, key=last_key),
    )
    layers = [first, *norm, eqx.nn.Lambda(jnp.tanh), last]
    return nn.PerExample(eqx.nn.Sequential(layers))


def equinox_images(*, is_normalised: bool, key: PRNGKeyArray) -> nn.ChannelsFirst:
    """Images of 5 by 5 by 2 to three outputs, in Equinox's layers."""
    conv_key, last_key = jr.split(key)
    norm = [eqx.nn.BatchNorm(4, "batch", mode="batch")] if is_normalised else []
    conv = eqx.nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, key=conv_key)
    layers = [conv, *norm, eqx.nn.Lambda(jax.nn.relu), eqx.nn.Lambda(jnp.ravel)]
    layers.append(eqx.nn.Linear(4 * 9, 3, key=last_key))
    return nn.ChannelsFirst(eqx.nn.Sequential(layers))


def with_moments(
    model: ImplicitBNN, mean: Array | None = None, scale: float | Array | None = None
) -> ImplicitBNN:
    """The model with these means and scales of its mixture; a scale of 0 is none."""
    mixture = model.mixture
    if mean is not None:
        mean = jnp.broadcast_to(jnp.asarray(mean, float), mixture.mean.shape)
        mixture = eqx.tree_at(lambda m: m.mean, mixture, mean)
    if scale is not None:
        # The softplus of -200 is 0 in single precision, and its inverse has no 0.
        scale = jnp.broadcast_to(jnp.asarray(scale, float), mixture.rho.shape)
        rho = jnp.where(scale == 0, -200.0, jnp.log(jnp.expm1(scale)))
        mixture = eqx.tree_at(lambda m: m.rho, mixture, rho)
    return eqx.tree_at(lambda m: m.mixture, model, mixture)
