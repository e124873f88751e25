r"""Variational families over a network's weights, and ways to estimate their KL.

Notation: $q(w | \theta)$ the family, $\epsilon$ noise without parameters, $t$ the map
with $w = t(\theta, \epsilon) \sim q$ through which gradients reach $\theta$
(Blundell et al., 2015, "Weight Uncertainty in Neural Networks", proposition 1), and p
the prior. Everything goes leaf by leaf: one flat vector of a network's weights costs
nine times a step of the leaves.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._tree import normal_like
from ..._types import Array, Float, Params, PRNGKeyArray, PyTree
from ...prior import AbstractPrior, normal_leaves
from .._softplus import softplus, softplus_inverse

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class AbstractFamily(eqx.Module):
    r"""$q(w | \theta)$, a distribution over the weights; its arrays are $\theta$."""

    @abc.abstractmethod
    def sample(self, *, key: PRNGKeyArray) -> Params:
        r"""$w = t(\theta, \epsilon)$, in the network's structure."""

    @abc.abstractmethod
    def log_prob(self, params: Params) -> Float[Array, ""]:
        r"""$\log q(w | \theta)$ of all weights together, nats."""

    @abc.abstractmethod
    def entropy(self) -> Float[Array, ""] | None:
        r"""$-E_q \log q(w)$, nats, or `None` where there is no closed form."""

    @abc.abstractmethod
    def kl(self, prior: AbstractPrior) -> Float[Array, ""] | None:
        r"""$\mathrm{KL}(q \| p)$, nats, or `None` where there is no closed form."""


class NormalFamily(AbstractFamily):
    r"""$w = \mu + \log(1 + e^\rho) \circ \epsilon$ with $\epsilon \sim N(0, I)$.

    Blundell et al. (2015), section 3.2: two parameters a weight.

    Attributes:
        mean: $\mu$, in the network's structure.
        rho: standard deviations before the softplus, in the structure of `mean`.
    """

    mean: Params
    rho: Params

    @classmethod
    def around(cls, mean: Params, scale: Params) -> "NormalFamily":
        """The family with these means and standard deviations."""
        return cls(mean, jax.tree.map(softplus_inverse, scale))

    @property
    def scale(self) -> Params:
        """Standard deviations."""
        return jax.tree.map(softplus, self.rho)

    def perturbation(self, *, key: PRNGKeyArray) -> Params:
        r"""$w - \mu$ of a draw."""
        noise = normal_like(self.rho, key=key, is_broadcast=True)
        return jax.tree.map(lambda rho, z: softplus(rho) * z, self.rho, noise)

    def sample(self, *, key: PRNGKeyArray) -> Params:
        """See `AbstractFamily`."""
        return jax.tree.map(jnp.add, self.mean, self.perturbation(key=key))

    def log_prob(self, params: Params) -> Float[Array, ""]:
        """See `AbstractFamily`."""

        def of_leaf(w, mean, scale):
            z = (w - mean) / scale
            return jnp.sum(-0.5 * z**2 - jnp.log(scale) - _HALF_LOG_TWO_PI)

        return _total(jax.tree.map(of_leaf, params, self.mean, self.scale))

    def entropy(self) -> Float[Array, ""]:
        """See `AbstractFamily`."""
        of_leaf = lambda scale: jnp.sum(jnp.log(scale) + (0.5 + _HALF_LOG_TWO_PI))
        return _total(jax.tree.map(of_leaf, self.scale))

    def kl(self, prior: AbstractPrior) -> Float[Array, ""] | None:
        """See `AbstractFamily`: closed where the prior's cross-entropy is."""
        cross_entropy = prior.cross_entropy(self.mean, self.scale)
        return None if cross_entropy is None else cross_entropy - self.entropy()

    def only(self, chosen: PyTree[bool]) -> "NormalFamily":
        """The family of some of the weights, `None` for the others.

        Args:
            chosen: a tree like `mean`.
        """
        return NormalFamily(eqx.filter(self.mean, chosen), eqx.filter(self.rho, chosen))


class PriorFamily(AbstractFamily):
    """q put back to p on some of the weights: they are drawn from the prior.

    Attributes:
        others: the family of all weights, of which those put back are not used.
        prior: p.
        is_put_back: which weights are; a tree like them.
    """

    others: AbstractFamily
    prior: AbstractPrior
    is_put_back: PyTree[bool]

    def sample(self, *, key: PRNGKeyArray) -> Params:
        """See `AbstractFamily`; weights not put back are those of the same key.

        Under a normal prior those put back have the family's own noise, so that where q
        is p the draws are the same, and nothing is seen to change.
        """
        own = self.others.sample(key=key)
        drawn = self._drawn(own, key=key)
        pick = lambda is_prior, new, old: new if is_prior else old
        return jax.tree.map(pick, self.is_put_back, drawn, own)

    def log_prob(self, params: Params) -> Float[Array, ""]:
        """See `AbstractFamily`."""
        log_p = self.prior.log_prob(eqx.filter(params, self.is_put_back))
        rest = self._rest()
        if rest is None:
            return log_p
        return log_p + rest.log_prob(eqx.filter(params, self.is_put_back, inverse=True))

    def entropy(self) -> None:
        """See `AbstractFamily`."""

    def kl(self, prior: AbstractPrior) -> Float[Array, ""] | None:
        """See `AbstractFamily`; `prior` is that of the weights put back, too."""
        rest = self._rest()
        return jnp.zeros(()) if rest is None else rest.kl(prior)

    def only(self, chosen: PyTree[bool]) -> "PriorFamily":
        """The family of some of the weights, `None` for the others.

        Args:
            chosen: a tree like the weights.
        """
        assert isinstance(self.others, NormalFamily)
        is_put_back = eqx.filter(self.is_put_back, chosen)
        return PriorFamily(self.others.only(chosen), self.prior, is_put_back)

    def _drawn(self, own: Params, *, key: PRNGKeyArray) -> Params:
        """A draw of the prior for all weights."""
        try:
            priors = normal_leaves(self.prior, own)
        except TypeError:  # no normal, whose noise could not be the family's
            return self.prior.sample(own, key=jax.random.fold_in(key, 1))
        like = lambda value, leaf: value.astype(leaf.dtype)
        return jax.tree.map(
            lambda z, p: like(p.mean, z) + like(p.scale, z) * z,
            normal_like(own, key=key, is_broadcast=True),
            priors,
        )

    def _rest(self) -> NormalFamily | None:
        if all(jax.tree.leaves(self.is_put_back)):
            return None
        assert isinstance(self.others, NormalFamily)  # others are put back whole
        return self.others.only(jax.tree.map(lambda at: not at, self.is_put_back))


class AbstractWeightKL(eqx.Module):
    r"""How $\mathrm{KL}(q \| p)$ of the weights is estimated.

    Attributes:
        is_log_ratio: whether value and gradient are those of log q / p of the draw.
    """

    is_log_ratio: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def __call__(
        self, family: AbstractFamily, prior: AbstractPrior, params: Params
    ) -> Float[Array, ""]:
        """An unbiased estimate, nats.

        Args:
            family: q.
            prior: p.
            params: a draw from q, through which gradients flow.
        """


class AnalyticKL(AbstractWeightKL):
    """As much of the KL in closed form as there is, and the rest at the draw.

    For normal weights and a scale mixture: their entropy exactly, the prior's density
    at the draw. The gradient is that of `SampledKL` there, and the value less noisy.
    """

    is_log_ratio = False

    def __call__(
        self, family: AbstractFamily, prior: AbstractPrior, params: Params
    ) -> Float[Array, ""]:
        """See `AbstractWeightKL`."""
        closed = family.kl(prior)
        if closed is not None:
            return closed
        entropy = family.entropy()
        log_q = family.log_prob(params) if entropy is None else -entropy
        return log_q - prior.log_prob(params)


class SampledKL(AbstractWeightKL):
    r"""$\log q(w | \theta) - \log p(w)$ at the draw.

    References:
        Blundell et al. (2015), equation (2).
    """

    is_log_ratio = True

    def __call__(
        self, family: AbstractFamily, prior: AbstractPrior, params: Params
    ) -> Float[Array, ""]:
        """See `AbstractWeightKL`."""
        return family.log_prob(params) - prior.log_prob(params)


class StickTheLandingKL(AbstractWeightKL):
    r"""$\log q(w | \perp\theta) - \log p(w)$: gradients reach q through the draw alone.

    What is left out, the score of q, has mean 0. Where q is the exact posterior, the
    gradient of the whole bound on all data has no variance left. That needs the same
    draw in the likelihood: use it with `Reparameterised`.

    References:
        Roeder, Wu & Duvenaud (2017), "Sticking the Landing".
    """

    is_log_ratio = False  # its gradient leaves out q's score

    def __call__(
        self, family: AbstractFamily, prior: AbstractPrior, params: Params
    ) -> Float[Array, ""]:
        """See `AbstractWeightKL`."""
        theta, rest = eqx.partition(family, eqx.is_array)
        still = eqx.combine(jax.lax.stop_gradient(theta), rest)
        return still.log_prob(params) - prior.log_prob(params)


def _total(parts: Params) -> Float[Array, ""]:
    return sum(jax.tree.leaves(parts), start=jnp.zeros(()))
