r"""Monte Carlo dropout: Gal & Ghahramani (2016), "Dropout as a Bayesian Approximation".

Notation: $h$ comes into a layer of the network, $p$ is the rate, and
$z_j \sim \mathrm{Bernoulli}(1 - p)$ for each feature (each whole channel of an image).
The layer sees $h_j z_j / (1 - p)$, in training and in prediction alike.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, PRNGKeyArray, PyTree
from ...network import Network, as_network, call_network
from ...nn import Layer, PerRow, layers_of, num_inputs
from .._base import (
    WEIGHTS,
    AbstractRandomFunction,
    Draw,
    draw_key,
    label_tree,
    no_local_kl,
)
from .._layers import ScaledInputs, replace_layers
from .._posterior_parts import PosteriorParts
from ..depth import check_calls_layers


class MCDropout(AbstractRandomFunction):
    r"""Any network, with dropout before its linear and convolutional layers.

    In training each row has masks of its own. A draw in prediction is *one* mask a
    layer, the same for all rows: a function, as Gal & Ghahramani's $q(\omega)$ has it,
    rather than fresh noise at each input.

    Its KL is 0. Their bound's KL to a Gaussian prior is, but for constants, weight
    decay: give `fit` `optimiser=partial(optax.adamw, weight_decay=...)`. The rate is
    theirs to choose too: it isn't trained.

    Args:
        network: maps a batch of inputs, rows first, to the likelihood's parameters; of
            this package's layers or of Equinox's.
        rate: $p$, the fraction of inputs that each layer but the first loses; at
            least 0 and below 1.
        input_rate: the same of the network's own inputs, those of its first layer.

    Raises:
        TypeError: if the network cannot be called.
        ValueError: for a rate outside [0, 1), or a network without a layer to drop
            inputs of.

    References:
        Gal & Ghahramani (2016), "Dropout as a Bayesian Approximation: Representing
        Model Uncertainty in Deep Learning", sections 3 and 4.
    """

    network: Network
    rate: float = eqx.field(static=True)
    input_rate: float = eqx.field(static=True)
    num_strata: int = eqx.field(static=True)
    num_members: int = eqx.field(static=True, default=1)

    def __init__(self, network: Network, *, rate: float = 0.1, input_rate: float = 0.0):
        self.network = as_network(network)
        self.rate, self.input_rate = rate, input_rate
        self.num_strata = 1

    def __check_init__(self):
        for name in ("rate", "input_rate"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(
                    f"`{name}` is the fraction of inputs dropped, at least 0 and below "
                    f"1, got {value}: start from 0.1."
                )
        check_calls_layers(self.network)
        num_layers = len(layers_of(self.network))
        if num_layers == 0 or (num_layers == 1 and self.input_rate == 0 < self.rate):
            raise ValueError(
                f"`{type(self.network).__name__}` has {num_layers} linear or "
                "convolutional layers, whose first drops nothing unless `input_rate` "
                "is positive: give a deeper network, or an `input_rate` to one layer."
            )

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""
        num_rows = jax.tree.leaves(x)[0].shape[0] if index is None else None
        layers = layers_of(self.network)
        rates = [self.input_rate] + [self.rate] * (len(layers) - 1)
        keys = jax.random.split(draw_key(key, index), len(layers))
        dropped = [
            _drop_inputs(layer, rate, num_rows, key=layer_key)
            for layer, rate, layer_key in zip(layers, rates, keys, strict=True)
        ]
        output, state, report = call_network(
            replace_layers(self.network, dropped), x, state
        )
        return Draw(
            output=output,
            kl=jnp.zeros(()),
            local_kl=no_local_kl(x),
            state=state,
            report=report,
        )

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """A KL of 0 bounds nothing: no prior is behind it."""
        return PosteriorParts(has_bound=False)

    def labels(self) -> PyTree[str]:
        """The network is trained."""
        return label_tree(self, WEIGHTS)


def _drop_inputs(
    layer: Layer, rate: float, num_rows: int | None, *, key: PRNGKeyArray
) -> Layer | ScaledInputs:
    """The layer with one mask for all rows, or with `num_rows` masks."""
    if rate == 0:
        return layer
    rows = () if num_rows is None else (num_rows,)
    keep = jax.random.bernoulli(key, 1 - rate, (*rows, num_inputs(layer)))
    mask = jnp.where(keep, 1 / (1 - rate), 0.0)
    return ScaledInputs(layer, mask if num_rows is None else PerRow(mask))
