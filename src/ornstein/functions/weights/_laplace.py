r"""Laplace's approximation: a normal posterior around trained weights.

Notation: $w^*$ are the trained weights, $J(x) = \partial f(x; w) / \partial w$ at
$w^*$, and $P^{-1}$ is the posterior's covariance.
"""

from collections.abc import Collection

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Float, Params, PRNGKeyArray, PyTree
from ...network import Network, as_network, call_network, split_where
from ...prior import AbstractPrior
from .._base import FROZEN, AbstractRandomFunction, Draw, draw_key, no_local_kl
from .._posterior_parts import PosteriorParts
from ._deterministic import Deterministic
from ._deviations import AbstractDeviation, FromPrior

_LINEARISED = (
    "The bound is one on the evidence of the network linearised at its trained weights."
)
_POINTS_ARE_GIVEN = (
    "The bound is one on the evidence of the random weights, given the others as they "
    "were trained."
)


class LaplaceApproximation(AbstractRandomFunction):
    r"""A normal posterior around the weights of a trained network.

    $q(w) = N(w^*, P^{-1})$, with the precision $P$ of the generalised Gauss-Newton
    matrix and the prior. A draw is a function of the *linearised* network, $f(x; w^*) +
    J(x) (w - w^*)$: that is the model whose posterior $q$ is (Immer et al., section 2),
    and its mean is the trained network. Drawn weights in the network itself, which is
    the older way, leave that model: where $P$ is small in some direction the network
    is far from linear over one standard deviation, and such draws can be much worse
    than the network. One draw serves all rows. Nothing in it is trained.

    Build it with `orn.fit_laplace`.

    Attributes:
        mode: $w^*$ in the network's structure, `None` for weights that stay points.
        rest: the network with `None` in their place.
        deviation: of $w - w^*$.
        prior: of these weights.
        kl: of q from the prior, nats.
        log_evidence: Laplace's approximation of $\log p(D)$, nats.
        is_linearised: whether draws are of the linearised network.

    References:
        MacKay (1992), "A Practical Bayesian Framework for Backpropagation Networks";
        Immer, Korzepa & Bauer (2021), "Improving predictions of Bayesian neural nets
        via local linearization", equation (10); Daxberger et al. (2021), "Laplace
        Redux: Effortless Bayesian Deep Learning".
    """

    mode: Params
    rest: PyTree
    deviation: AbstractDeviation
    prior: AbstractPrior
    kl: Float[Array, ""]
    log_evidence: Float[Array, ""]
    is_linearised: bool = eqx.field(static=True)
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""

        def called_at(weights: Params) -> tuple:
            called = call_network(self.with_weights(weights), x, state)
            return called.output, (called.state, called.report)

        deviation = self.deviation.sample(self.mode, key=draw_key(key, index))
        if self.is_linearised:
            output, pull_back, found = jax.vjp(called_at, self.mode, has_aux=True)
            # J v as the derivative of u -> J^T u: solvers and convolutions with a
            # backward pass of their own have no forward mode.
            _, push = jax.vjp(pull_back, output)
            (change,) = push((deviation,))
            output = jax.tree.map(jnp.add, output, change)
        else:
            weights = jax.tree.map(jnp.add, self.mode, deviation)
            output, found = called_at(weights)
        state, report = found
        return Draw(
            output=output,
            kl=self.kl,
            local_kl=no_local_kl(x),
            state=state,
            terms={"kl_weights": self.kl},
            report=report,
        )

    def network_at(self, index: int | Array, *, key: PRNGKeyArray) -> Network:
        """The network of draw `index`: that of `__call__` with the same key.

        Args:
            index: which draw.
            key: which functions.

        Raises:
            ValueError: for linearised networks, of which no weights give a draw.
        """
        if self.is_linearised:
            raise ValueError(
                "A draw of a linearised network is no network of other weights: make "
                "it by `fit_laplace(..., linearised=False)`, or call the function."
            )
        deviation = self.deviation.sample(self.mode, key=draw_key(key, index))
        return self.with_weights(jax.tree.map(jnp.add, self.mode, deviation))

    def with_weights(self, weights: Params) -> Network:
        """The network with these values of its random weights."""
        return as_network(eqx.combine(weights, self.rest))

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """Its KL in closed form, and the network that it stands around."""
        points = jax.tree.leaves(split_where(self.rest, None)[0])
        notes = (_LINEARISED,) if self.is_linearised else ()
        notes += (_POINTS_ARE_GIVEN,) if points else ()
        sizes = [leaf.size for leaf in [*points, *jax.tree.leaves(self.mode)]]
        return PosteriorParts(
            notes=notes,
            parts=("weights",),
            at_prior=self._at_prior,
            held=lambda model: model.mode,
            without_noise=lambda: Deterministic(self.with_weights(self.mode)),
            num_parameters=sum(sizes),
        )

    def _at_prior(
        self, parts: Collection[str], key: PRNGKeyArray
    ) -> "LaplaceApproximation":
        del parts, key
        return eqx.tree_at(
            lambda model: (model.deviation, model.kl),
            self,
            (FromPrior(self.prior), jnp.zeros_like(self.kl)),
        )

    def labels(self) -> PyTree[str]:
        """Nothing is trained: training is over."""
        return jax.tree.map(lambda leaf: FROZEN, self)
