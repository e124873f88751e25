r"""Implicit Bayesian neural networks: Trinh, Kaski & Heinonen (2020).

Notation: layer $\ell$ of a network has weights $U_\ell$ and bias $b_\ell$, both points,
and computes $U_\ell (z_\ell \circ h) + b_\ell$ (equation 1), which is a layer with
weights $W = U_\ell \, \mathrm{diag}(z_\ell)$ (equation 11). A node is an input feature,
or an input channel of a convolution; $z_\ell$ has one number for each.
"""

from collections.abc import Collection
from itertools import accumulate
from typing import Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._kinds import check_key
from ..._types import Array, Float, PRNGKeyArray, PyTree
from ...network import Network, as_network, call_network
from ...nn import PerRow, layers_of, num_inputs
from .._base import (
    NOISE,
    AbstractRandomFunction,
    Draw,
    draw_key,
    label_tree,
    no_local_kl,
)
from .._layers import ScaledInputs, replace_layers, with_inputs_scaled
from .._noise_scale import median_entry
from .._posterior_parts import KLEstimate, PosteriorParts
from .._softplus import softplus_inverse
from ..depth import check_calls_layers
from ..weights import Deterministic
from ._node_noise import AbstractNodeKL, MixtureMeanKL, MonteCarloKL, NodeMixture

Which: TypeAlias = int | Literal["mean", "ones"]
"""A component by its number, the components' mean, or no noise at all."""


class ImplicitBNN(AbstractRandomFunction):
    r"""Any network, with noise on the inputs of its linear and convolutional layers.

    The posterior is over the nodes, thousands of times fewer than weights: a mixture of
    K normals that all layers share, around the prior $N(1, s^2)$. In training a batch
    is dealt evenly to the components, and each row draws its own noise (Algorithm 1); S
    draws a row are `fit(..., num_draws=S)`. Draw i in prediction is one function, from
    component i mod K: the reference averages 5 K of them.

    Weights and noise have labels, and so optimisers, of their own: see
    `ornstein.train.implicit_options` for the reference's.

    Args:
        network: maps a batch of inputs, rows first, to the likelihood's parameters; of
            this package's layers or of Equinox's.
        num_components: $K$; 1 is a plain normal posterior of the nodes.
        prior_scale: $s$, the standard deviation of the multipliers a priori.
        init_spread: $\sigma_0$: the components' means start as $N(1, \sigma_0^2)$.
        init_scale: of the components at first, about.
        bias_noise: also multiply the biases, one number for each.
        kl: the KL of the components' mean, as in the reference, or an honest estimate.
        key: of the first means and scales.

    Raises:
        TypeError: if the network cannot be called.
        ValueError: for a network without a layer, fewer than one component, or scales
            that aren't positive.

    References:
        Trinh, Kaski & Heinonen (2020), "Scalable Bayesian neural networks by layer-wise
        input augmentation".
    """

    network: Network
    mixture: NodeMixture
    kl: AbstractNodeKL
    prior_scale: float = eqx.field(static=True)
    bias_noise: bool = eqx.field(static=True)
    num_strata: int = eqx.field(static=True)
    num_members: int = eqx.field(static=True, default=1)

    def __init__(
        self,
        network: Network,
        *,
        num_components: int = 4,
        prior_scale: float = 0.3,
        init_spread: float = 0.5,
        init_scale: float = 0.05,
        bias_noise: bool = False,
        kl: AbstractNodeKL | None = None,
        key: PRNGKeyArray,
    ):
        self.network = as_network(network)
        check_calls_layers(self.network)
        check_key(key)
        _check_mixture(num_components, prior_scale, init_spread, init_scale)
        self.prior_scale, self.bias_noise = prior_scale, bias_noise
        self.kl = MixtureMeanKL() if kl is None else kl
        sizes = self._sizes()
        if not sizes:
            raise ValueError(
                f"`{type(network).__name__}` has no linear or convolutional layer, "
                "whose inputs could be random: give a network of `ornstein.nn`'s "
                "layers, or of `eqx.nn.Linear` and `eqx.nn.Conv`."
            )
        self.mixture = NodeMixture.init(
            num_components, sum(sizes), spread=init_spread, scale=init_scale, key=key
        )
        self.num_strata = num_components

    @property
    def num_nodes(self) -> int:
        """Multipliers of one component: inputs of all layers, and biases if noisy."""
        return self.mixture.mean.shape[1]

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""
        noise_key, kl_key = jax.random.split(draw_key(key, index))
        if index is None:
            num_rows = jax.tree.leaves(x)[0].shape[0]
            if num_rows < self.num_strata:
                raise ValueError(
                    f"A batch of {num_rows} rows cannot be dealt to {self.num_strata} "
                    "components: give larger batches, or fewer components."
                )
            z = self.mixture.dealt(num_rows, key=noise_key)
        else:
            z = self.mixture.of_component(index % self.num_strata, key=noise_key)
        output, state, report = call_network(self._with_noise(z), x, state)
        kl = self.kl(self.mixture, self.prior_scale, key=kl_key)
        return Draw(
            output=output,
            kl=kl,
            local_kl=no_local_kl(x),
            state=state,
            terms={"kl_nodes": kl},
            report=report,
        )

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """The KL of its mixture, and its scales in units of the prior's."""
        kl_of = lambda kl: lambda key: kl(self.mixture, self.prior_scale, key=key)
        return PosteriorParts(
            kl_estimate=KLEstimate(
                "kl_mixture",
                kl_of(MonteCarloKL()),
                {"kl_nodes": kl_of(MixtureMeanKL())},
            ),
            kl_record="kl",
            noise_scales=lambda: {
                "scale_over_prior": median_entry(self.mixture.scale) / self.prior_scale
            },
            parts=("nodes",),
            at_prior=self._at_prior,
            held=lambda model: model.mixture,
            without_noise=self.to_deterministic,
        )

    def _at_prior(self, parts: Collection[str], key: PRNGKeyArray) -> "ImplicitBNN":
        del parts, key
        mean = self.mixture.mean
        rho = softplus_inverse(jnp.full_like(mean, self.prior_scale))
        prior = NodeMixture(jnp.ones_like(mean), rho)
        return eqx.tree_at(lambda model: model.mixture, self, prior)

    def labels(self) -> PyTree[str]:
        """`"weights"` for the network, `"noise"` for the mixture."""
        labels = label_tree(self, "weights", frozen=lambda model: model.kl)
        noise = jax.tree.map(lambda leaf: NOISE, self.mixture)
        return eqx.tree_at(lambda model: model.mixture, labels, noise)

    def to_deterministic(self, which: Which = "mean") -> Deterministic:
        r"""The network with weights $U \, \mathrm{diag}(z)$ for one $z$, folded in.

        With batch statistics, compute them afresh for it: `Fit.with_statistics_of`.

        Args:
            which: $\mu_k$ of a component by its number, `"mean"` for the mean of the
                components, or `"ones"` for $U$ itself.

        Raises:
            ValueError: for anything else.
        """
        mean = self.mixture.mean
        if which == "mean":
            z = jnp.mean(mean, axis=0)
        elif which == "ones":
            z = jnp.ones_like(mean[0])
        elif isinstance(which, int) and 0 <= which < self.num_strata:
            z = mean[which]
        else:
            raise ValueError(
                f'`which` must be a component below {self.num_strata}, "mean" or '
                f'"ones", got {which!r}.'
            )
        scales, bias_scales = self._split(z)
        layers = layers_of(self.network)
        folded = [
            with_inputs_scaled(*parts)
            for parts in zip(layers, scales, bias_scales, strict=True)
        ]
        return Deterministic(replace_layers(self.network, folded))

    def _with_noise(self, z: Float[Array, "*rows nodes"]) -> Network:
        """The network with these multipliers; with an axis of rows, each its own."""
        layers = layers_of(self.network)
        scales, bias_scales = self._split(z)
        if z.ndim == 2:
            scales = [PerRow(value) for value in scales]
            bias_scales = [None if v is None else PerRow(v) for v in bias_scales]
        noisy = [
            ScaledInputs(*parts)
            for parts in zip(layers, scales, bias_scales, strict=True)
        ]
        return replace_layers(self.network, noisy)

    def _sizes(self) -> list[int]:
        """How many multipliers each layer has; then, if noisy, each bias."""
        layers = layers_of(self.network)
        sizes = [num_inputs(layer) for layer in layers]
        if self.bias_noise:
            sizes += [0 if a.bias is None else a.bias.size for a in layers]
        return sizes

    def _split(self, z: Float[Array, "*rows nodes"]) -> tuple[list, list]:
        """The multipliers by layer: of inputs, and of biases (or `None`)."""
        sizes = self._sizes()
        parts = jnp.split(z, list(accumulate(sizes))[:-1], axis=-1)
        num_layers = len(layers_of(self.network))
        biases = [part if part.shape[-1] else None for part in parts[num_layers:]]
        return parts[:num_layers], biases or [None] * num_layers


def _check_mixture(
    num_components: int, prior_scale: float, init_spread: float, init_scale: float
) -> None:
    if num_components < 1:
        raise ValueError(
            f"`num_components` must be at least 1, got {num_components}: 4 to 16 are "
            "usual."
        )
    for name, value in (("prior_scale", prior_scale), ("init_scale", init_scale)):
        if not value > 0:
            raise ValueError(
                f"`{name}` is a standard deviation and must be positive, got {value}: "
                "start from 0.3 and 0.05."
            )
    if not init_spread >= 0:
        raise ValueError(
            f"`init_spread` is a standard deviation and must not be negative, got "
            f"{init_spread}."
        )
