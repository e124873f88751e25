"""One network as a random function that isn't random: what the others are held to."""

import equinox as eqx
import jax.numpy as jnp

from ..._types import Array, PRNGKeyArray, PyTree
from ...network import Network, as_network, call_network
from .._base import WEIGHTS, AbstractRandomFunction, Draw, label_tree, no_local_kl
from .._posterior_parts import PosteriorParts


class Deterministic(AbstractRandomFunction):
    """A plain network: every draw is the same function, and no KL.

    Trained by `fit` it is the maximum-likelihood network; with weight decay
    (`optimiser=partial(optax.adamw, weight_decay=...)`) a penalised one. All of its
    uncertainty is aleatoric.

    Args:
        network: maps a batch of inputs, rows first, to the likelihood's parameters.

    Raises:
        TypeError: if the network cannot be called.
    """

    network: Network
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    def __init__(self, network: Network):
        self.network = as_network(network)
        self.num_strata = 1

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""
        del key, index
        output, state, report = call_network(self.network, x, state)
        return Draw(
            output=output,
            kl=jnp.zeros(()),
            local_kl=no_local_kl(x),
            state=state,
            report=report,
        )

    def network_at(self, index: int | Array, *, key: PRNGKeyArray) -> Network:
        """The network, whichever draw.

        Args:
            index: which draw.
            key: which functions.
        """
        del index, key
        return self.network

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """Its draws are all the same."""
        return PosteriorParts(is_random=False, has_bound=False)

    def labels(self) -> PyTree[str]:
        """Everything is trained."""
        return label_tree(self, WEIGHTS)
