r"""Ways to draw a network's Gaussian weights in training.

All have the expected gradient of $E_q[\ell(f_w)]$ for losses $\ell$ that are sums over
rows; they differ in its variance, because with noise of each row's own the rows' errors
average out.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._normals import standard_normal
from ..._types import Array, Float, Params, PRNGKeyArray, PyTree
from ...network import Network, as_network
from ...nn import AbstractLayer, Layer, PerRow, layers_of
from .._layers import replace_layers, takes_one_example
from ._variational import AbstractFamily, NormalFamily


class AbstractWeightNoise(eqx.Module):
    """How weights are drawn for a batch in training."""

    @abc.abstractmethod
    def check(self, family: AbstractFamily) -> None:
        """Refuse a family that cannot be drawn from like this.

        Raises:
            TypeError: naming both.
        """

    @abc.abstractmethod
    def draw(
        self, family: AbstractFamily, rest: PyTree, *, num_rows: int, key: PRNGKeyArray
    ) -> tuple[Network, Params]:
        """A network for one batch.

        Args:
            family: of the weights.
            rest: the network with `None` in place of those weights.
            num_rows: rows of the batch.
            key: randomness.

        Returns:
            The network, and a draw of the weights for a KL without a closed form.
        """


class Reparameterised(AbstractWeightNoise):
    """One draw of the weights for all rows.

    References:
        Blundell et al. (2015), "Weight Uncertainty in Neural Networks", section 3.2.
    """

    def check(self, family: AbstractFamily) -> None:
        """Any family."""
        del family

    def draw(
        self, family: AbstractFamily, rest: PyTree, *, num_rows: int, key: PRNGKeyArray
    ) -> tuple[Network, Params]:
        """See `AbstractWeightNoise`."""
        del num_rows
        params = family.sample(key=key)
        return as_network(eqx.combine(params, rest)), params


class LocalReparameterised(AbstractWeightNoise):
    r"""Noise on the outputs of linear and convolutional layers, not on their weights.

    An output has mean $\mu^\top x + \mu_b$ and variance $(\sigma^2)^\top x^2 +
    \sigma_b^2$, and is drawn from that normal for each row by itself. Exact for linear
    layers that meet each row once. Where one meets a row at several places (pixels of
    a convolution, times, tokens), these share its weights, and so are correlated,
    which this leaves out: there it is an approximation, and `Flipout` is exact.
    Parameters outside such layers are drawn once for all rows.

    References:
        Kingma, Salimans & Welling (2015), "Variational Dropout and the Local
        Reparameterization Trick", equation (6).
    """

    def check(self, family: AbstractFamily) -> None:
        """See `AbstractWeightNoise`."""
        _check_normal(self, family)

    def draw(
        self, family: AbstractFamily, rest: PyTree, *, num_rows: int, key: PRNGKeyArray
    ) -> tuple[Network, Params]:
        """See `AbstractWeightNoise`."""
        assert isinstance(family, NormalFamily)
        weight_key, noise_key = jax.random.split(key)
        params = family.sample(key=weight_key)
        variance = jax.tree.map(jnp.square, family.scale)
        network = _with_noisy_layers(
            _LocalLayer, family.mean, variance, params, rest, num_rows, key=noise_key
        )
        return network, params


class Flipout(AbstractWeightNoise):
    r"""One draw $\mu + \Delta$ of the weights, with $\Delta$'s signs flipped by row.

    Row n meets $\mu + \Delta \circ r_n s_n^\top$, with random signs s of a layer's
    inputs (channels) and r of its outputs: a draw from q for every row, and nearly
    independent ones, for the price of two products a layer. Parameters outside linear
    and convolutional layers are drawn once for all rows.

    References:
        Wen, Vicol, Ba, Tran & Grosse (2018), "Flipout: Efficient Pseudo-Independent
        Weight Perturbations on Mini-Batches", equation (4).
    """

    def check(self, family: AbstractFamily) -> None:
        """See `AbstractWeightNoise`."""
        _check_normal(self, family)

    def draw(
        self, family: AbstractFamily, rest: PyTree, *, num_rows: int, key: PRNGKeyArray
    ) -> tuple[Network, Params]:
        """See `AbstractWeightNoise`."""
        assert isinstance(family, NormalFamily)
        weight_key, sign_key = jax.random.split(key)
        delta = family.perturbation(key=weight_key)
        params = jax.tree.map(jnp.add, family.mean, delta)
        network = _with_noisy_layers(
            _FlipoutLayer, family.mean, delta, params, rest, num_rows, key=sign_key
        )
        return network, params


class _LocalLayer(eqx.Module):
    """A layer whose outputs are drawn: see `LocalReparameterised`."""

    mean: Layer
    variance: Layer
    noise_key: PRNGKeyArray | PerRow

    def __call__(
        self, x: Float[Array, "..."], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "..."]:
        del key  # Equinox's containers hand one to every layer
        mean, variance = self.mean(x), self.variance(x**2)
        # Zero where all inputs are (an image's border): there the root has no slope.
        scale = jnp.sqrt(jnp.maximum(variance, jnp.asarray(1e-30, variance.dtype)))
        normal_key = _own_key(self.noise_key)
        return mean + scale * standard_normal(normal_key, mean.shape, mean.dtype)


class _FlipoutLayer(eqx.Module):
    """A layer whose perturbation changes signs: see `Flipout`."""

    mean: Layer
    delta: Layer
    sign_key: PRNGKeyArray | PerRow

    def __call__(
        self, x: Float[Array, "..."], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "..."]:
        del key
        in_key, out_key = jax.random.split(_own_key(self.sign_key))
        noise = self.delta(_flip(x, self.mean, key=in_key))
        return self.mean(x) + _flip(noise, self.mean, key=out_key)


def _flip(x: Float[Array, "*shape"], layer: Layer, *, key: PRNGKeyArray) -> Array:
    """Random signs for each row and feature of x, the same for all its pixels."""
    if not isinstance(layer, AbstractLayer):  # Equinox's: one example
        shape = x.shape[:1] + (1,) * (x.ndim - 1)
    else:
        rows = x.shape[: min(1, x.ndim - 1 - layer.num_pixel_axes)]
        shape = rows + (1,) * (x.ndim - 1 - len(rows)) + x.shape[-1:]
    return x * jax.random.rademacher(key, shape, x.dtype)


def _own_key(key: PRNGKeyArray | PerRow) -> PRNGKeyArray:
    """The key of the row at hand."""
    if not isinstance(key, PerRow):
        return key
    if key.value.ndim > 0:
        raise ValueError(
            "A layer that takes one example met a batch whose rows have their own "
            "noise: wrap the network in `ornstein.nn.PerExample` (or `ChannelsFirst`) "
            "instead of calling `jax.vmap` in it, or use `Reparameterised`."
        )
    return key.value


def _with_noisy_layers(
    noisy_layer: type[_LocalLayer] | type[_FlipoutLayer],
    mean: Params,
    spread: Params,
    params: Params,
    rest: PyTree,
    num_rows: int,
    *,
    key: PRNGKeyArray,
) -> Network:
    """The network with noise in every layer that has random weights.

    Args:
        noisy_layer: made of a layer of means, one of spreads, and a key.
        mean: of the weights.
        spread: of the weights; parameters that are points get 0.
        params: a draw of the weights, for those outside layers.
        rest: the network with `None` in place of the weights.
        num_rows: rows of the batch.
        key: randomness.
    """
    point = jax.tree.map(
        lambda leaf: jnp.zeros_like(leaf) if eqx.is_inexact_array(leaf) else leaf, rest
    )
    network = as_network(eqx.combine(params, rest))
    layers = layers_of(network)
    means = layers_of(eqx.combine(mean, rest))
    spreads = layers_of(eqx.combine(spread, point))
    is_random = [len(jax.tree.leaves(layer)) > 0 for layer in layers_of(mean)]
    keys = jax.random.split(key, len(layers))
    noisy: list[Callable] = list(layers)
    for i, layer in enumerate(layers):
        if is_random[i]:
            own_key = keys[i]
            if takes_one_example(layer):
                own_key = PerRow(jax.random.split(own_key, num_rows))
            noisy[i] = noisy_layer(means[i], spreads[i], own_key)
    return replace_layers(network, noisy)


def _check_normal(noise: AbstractWeightNoise, family: AbstractFamily) -> None:
    if not isinstance(family, NormalFamily):
        raise TypeError(
            f"`{type(noise).__name__}` needs normal weights, and "
            f"`{type(family).__name__}` has others: use `Reparameterised`."
        )
