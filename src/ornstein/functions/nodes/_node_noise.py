r"""Mixtures of normals over a network's nodes, and their KL to the prior.

Notation: $z$ are the multipliers of all nodes of all layers, side by side, and
$q(z) = \frac{1}{K} \sum_k \prod_j N(z_j; \mu_{kj}, \sigma_{kj}^2)$ is joint: one
component for all layers (erratum to equations 18 and 19 of the reference, whose
Algorithm 1 shares the component). The prior is $p(z) = \prod_j N(z_j; 1, s^2)$.

References:
    Trinh, Kaski & Heinonen (2020), "Scalable Bayesian neural networks by layer-wise
    input augmentation", sections 2.2 and 2.3.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.special as jsp

from ..._normals import standard_normal
from ..._tree import normal_like
from ..._types import Array, Float, PRNGKeyArray
from .._softplus import softplus, softplus_inverse

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class NodeMixture(eqx.Module):
    r"""$q(z)$: its arrays are the variational parameters, $2 K$ a node.

    Attributes:
        mean: $\mu$.
        rho: $\sigma$ before the softplus.
    """

    mean: Float[Array, "components nodes"]
    rho: Float[Array, "components nodes"]

    @staticmethod
    def init(
        num_components: int,
        num_nodes: int,
        *,
        spread: float,
        scale: float,
        key: PRNGKeyArray,
    ) -> "NodeMixture":
        r"""$\mu \sim N(1, \mathrm{spread}^2)$, and $\sigma$ a normal's absolute value.

        The normal has the mean `scale` and 0.4 of it as its standard deviation: 0.05
        and 0.02 in the reference's section 3.3.

        Args:
            num_components: $K$.
            num_nodes: of all layers.
            spread: of the components' means.
            scale: of each component.
            key: randomness.
        """
        mean_key, scale_key = jax.random.split(key)
        shape = (num_components, num_nodes)
        mean = 1.0 + spread * jax.random.normal(mean_key, shape)
        scales = jnp.abs(scale * (1.0 + 0.4 * jax.random.normal(scale_key, shape)))
        # A scale of 0 has no softplus inverse.
        return NodeMixture(mean, softplus_inverse(jnp.maximum(scales, 1e-3 * scale)))

    @property
    def num_components(self) -> int:
        """K."""
        return self.mean.shape[0]

    @property
    def scale(self) -> Float[Array, "components nodes"]:
        r"""$\sigma$."""
        return softplus(self.rho)

    def of_component(
        self, component: int | Array, *, key: PRNGKeyArray
    ) -> Float[Array, " nodes"]:
        """One draw from one component.

        Args:
            component: below K.
            key: randomness.
        """
        noise = normal_like(self.mean[0], key=key, is_broadcast=True)
        return self.mean[component] + self.scale[component] * noise

    def of_each(self, *, key: PRNGKeyArray) -> Float[Array, "components nodes"]:
        """One draw from each component."""
        noise = normal_like(self.mean, key=key, is_broadcast=True)
        return self.mean + self.scale * noise

    def dealt(
        self, num_rows: int, *, key: PRNGKeyArray
    ) -> Float[Array, "num_rows nodes"]:
        """A draw for each row, the rows dealt to the components in turn.

        Where K does not divide the rows, which components get one row more than the
        others is drawn anew, so that all count alike in expectation.

        Args:
            num_rows: at least K.
            key: randomness.
        """
        mean, scale, num = self.mean, self.scale, self.num_components
        if num_rows % num:
            key, deal_key = jax.random.split(key)
            first = jax.random.randint(deal_key, (), 0, num)
            mean, scale = jnp.roll(mean, first, axis=0), jnp.roll(scale, first, axis=0)
        num_hands = -(-num_rows // num)
        shape = (num_hands, *mean.shape)
        noise = standard_normal(key, shape, mean.dtype, is_broadcast=True)
        z = mean[None] + scale[None] * noise
        return z.reshape(num_hands * num, -1)[:num_rows]

    def log_prob(self, z: Float[Array, "*draws nodes"]) -> Float[Array, "*draws"]:
        """The joint density of all nodes, nats."""
        mean, scale = self.mean[None], self.scale[None]
        one = (z.reshape(-1, 1, z.shape[-1]) - mean) / scale
        log_density = -0.5 * one**2 - jnp.log(scale) - _HALF_LOG_TWO_PI
        by_component = jnp.sum(log_density, axis=-1)
        log_q = jsp.logsumexp(by_component, axis=-1) - math.log(self.num_components)
        return log_q.reshape(z.shape[:-1])


class AbstractNodeKL(eqx.Module):
    """A stand-in for, or an estimate of, KL(q || p) of the nodes."""

    @abc.abstractmethod
    def __call__(
        self, mixture: NodeMixture, prior_scale: float, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """In nats.

        Args:
            mixture: q.
            prior_scale: s.
            key: of estimates.
        """


class MixtureMeanKL(AbstractNodeKL):
    r"""The KL of the components' *mean*, in closed form.

    Of $\hat z = \frac{1}{K} \sum_k z_k$, each $z_k$ from its own component: a normal
    with mean $\frac{1}{K} \sum_k \mu_k$ and variance $\frac{1}{K^2} \sum_k \sigma_k^2$
    (equations 22 to 24). It is what the reference trains with, and at K = 1 it is the
    KL. With more components it is the KL of another distribution than the mixture,
    which leaves them free to spread, and the loss with it is no bound on the evidence.
    """

    def __call__(
        self, mixture: NodeMixture, prior_scale: float, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """See `AbstractNodeKL`."""
        del key
        mean = jnp.mean(mixture.mean, axis=0)
        variance = jnp.sum(mixture.scale**2, axis=0) / mixture.num_components**2
        ratio = variance / prior_scale**2
        distance = ((mean - 1.0) / prior_scale) ** 2
        return 0.5 * jnp.sum(distance + ratio - 1.0 - jnp.log(ratio))


class MonteCarloKL(AbstractNodeKL):
    r"""An unbiased estimate of the mixture's own KL, with which the loss is a bound.

    $\frac{1}{K} \sum_k [\log q(z_k) - \log p(z_k)]$ with one $z_k$ from each component.
    It pulls every component, not only their mean, to the prior.
    """

    def __call__(
        self, mixture: NodeMixture, prior_scale: float, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """See `AbstractNodeKL`."""
        z = mixture.of_each(key=key)
        log_density = -0.5 * ((z - 1.0) / prior_scale) ** 2
        log_density -= math.log(prior_scale) + _HALF_LOG_TWO_PI
        log_p = jnp.sum(log_density, axis=-1)
        return jnp.mean(mixture.log_prob(z) - log_p)
