r"""A network at the mode of its posterior: points, trained with their prior.

The loss of `fit` is $-\frac{1}{N} [\sum_i \log p(y_i | w) - \beta D]$ with the KL D of
a draw. Of a point there is no KL; with $D = -\log p(w)$ in its place, what is minimised
is the energy of the posterior, its prior to the power $\beta$, whose minimum is the MAP
estimate: what a posterior over the same weights comes to without its noise.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._kinds import check_kind
from ..._types import Array, Params, PRNGKeyArray, PyTree
from ...network import (
    Network,
    as_network,
    call_network,
    check_parameters,
    split_where,
    with_named_state,
)
from ...prior import AbstractPrior
from .._base import WEIGHTS, AbstractRandomFunction, Draw, label_tree, no_local_kl
from .._posterior_parts import PosteriorParts


class MAP(AbstractRandomFunction):
    r"""One network, whose weights have a prior: every draw is the same function.

    Trained by `fit` it goes to the maximum of $\log p(D | w) + \beta \log p(w)$, with
    $\beta$ the KL weight: the energy $-\log p(w)$ stands where other functions have
    their KL, so that the records `kl` and `elbo` of its training are that energy and
    the log of the joint density. Neither is a bound on the evidence.

    Attributes:
        params: the weights with a prior, in the network's structure.
        rest: the network with `None` in their place.
        prior: of those weights, which training leaves as it is.
    """

    params: Params
    rest: PyTree
    prior: AbstractPrior
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    @staticmethod
    def of(
        network: Network,
        prior: AbstractPrior,
        *,
        where: Callable[[Any], PyTree] | None = None,
    ) -> "MAP":
        """From a network, at whose parameters training starts.

        Args:
            network: any Equinox module of a batch (rows first), or an `eqx.nn.MLP` or
                `eqx.nn.Linear`.
            prior: of its parameters.
            where: the network to its subtree (or a tuple of them) that has the prior;
                all of it by default. Other parameters are trained without one.

        Raises:
            TypeError: if the network cannot be called.
            ValueError: for no parameters, or a prior of the wrong shape.
        """
        as_network(network)
        check_kind("prior", prior, AbstractPrior, "orn.GaussianPrior(1.0)")
        params, rest = split_where(with_named_state(network), where)
        check_parameters(
            params, "for a prior (floating-point arrays chosen by `where`)"
        )
        prior.check(params)
        return MAP(jax.tree.map(jnp.asarray, params), rest, prior)

    @property
    def network(self) -> Network:
        """The network, as it is now."""
        return as_network(eqx.combine(self.params, self.rest))

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`; `kl` is the energy of the prior."""
        del key, index
        output, state, report = call_network(self.network, x, state)
        return Draw(
            output=output,
            kl=-self.prior.log_prob(self.params),
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
        """Its draws are all the same, and its energy is no KL."""
        return PosteriorParts(is_random=False, has_bound=False)

    def labels(self) -> PyTree[str]:
        """Everything is trained but the prior."""
        return label_tree(self, WEIGHTS, frozen=lambda model: model.prior)
