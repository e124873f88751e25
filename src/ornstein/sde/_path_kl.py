r"""Estimators of the KL divergence between the paths of two diffusions.

Posterior and prior share their diffusion $\sigma$, so that by Girsanov's theorem

$$\mathrm{KL}(q \| p) = E_q \int \tfrac12 \|u\|^2 dt, \quad u = (f_q - f_p) / \sigma.$$

Xu, Chen, Li and Duvenaud (2022), "Infinitely Deep Bayesian Neural Networks with
Stochastic Differential Equations", section 4 and eq. 12. Their eq. 6 prints prior minus
posterior; the sign matters in the Itô term, where posterior minus prior is right.
"""

import abc
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PyTree

_Tree = TypeVar("_Tree")


def stop_gradient(tree: _Tree) -> _Tree:
    """`tree` with its arrays cut off from differentiation."""
    dynamic, static = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.lax.stop_gradient(dynamic), static)


class AbstractPathKL(eqx.Module):
    r"""How the path KL, and the KL of a Gaussian start, are estimated.

    Attributes:
        has_ito_term: whether it has $\int u \cdot dB$.
        is_log_ratio: whether value and gradient are those of log q / p of the draw.
    """

    has_ito_term: eqx.AbstractClassVar[bool]
    is_log_ratio: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def parameters_of_ito_term(self, parameters: _Tree) -> _Tree:
        r"""The parameters with which $\int u \cdot dB$ is computed."""

    @abc.abstractmethod
    def gaussian(
        self,
        sample: PyTree[Array],
        mean: PyTree[Array],
        scale: PyTree[Array],
        prior_mean: PyTree[Array],
        prior_scale: PyTree[Array],
    ) -> Float[Array, ""]:
        """KL(q || p) of factorised Gaussians, estimated in the same way.

        Args:
            sample: a draw from q, through which gradients flow.
            mean: q's.
            scale: q's standard deviations.
            prior_mean: p's.
            prior_scale: p's standard deviations.

        Returns:
            nats.
        """


def _sum(tree: PyTree[Array]) -> Float[Array, ""]:
    return jnp.asarray(sum(jnp.sum(x) for x in jax.tree.leaves(tree)))


def gaussian_kl(
    mean: PyTree[Array],
    scale: PyTree[Array],
    prior_mean: PyTree[Array],
    prior_scale: PyTree[Array],
) -> Float[Array, ""]:
    r"""KL of factorised Gaussians in closed form, in nats.

    $\sum \tfrac12 (\sigma^2 + (\mu - \mu_0)^2) / \sigma_0^2 - \tfrac12 - \log \sigma /
    \sigma_0$.
    """

    def kl(m: Array, s: Array, m0: Array, s0: Array) -> Array:
        return ((s / s0) ** 2 + ((m - m0) / s0) ** 2 - 1) / 2 - jnp.log(s / s0)

    return _sum(jax.tree.map(kl, mean, scale, prior_mean, prior_scale))


def _log_ratio(
    sample: PyTree[Array],
    mean: PyTree[Array],
    scale: PyTree[Array],
    prior_mean: PyTree[Array],
    prior_scale: PyTree[Array],
) -> Float[Array, ""]:
    def ratio(w: Array, m: Array, s: Array, m0: Array, s0: Array) -> Array:
        squares = (((w - m0) / s0) ** 2 - ((w - m) / s) ** 2) / 2
        return squares - jnp.log(s / s0)

    return _sum(jax.tree.map(ratio, sample, mean, scale, prior_mean, prior_scale))


class KL(AbstractPathKL):
    r"""$\int \tfrac12 \|u\|^2 dt$ (Li, Wong, Chen and Duvenaud, 2020).

    Its value varies least; its gradient keeps a variance even at the exact posterior.
    """

    has_ito_term = False
    is_log_ratio = False

    def parameters_of_ito_term(self, parameters: _Tree) -> _Tree:
        return parameters

    def gaussian(self, sample, mean, scale, prior_mean, prior_scale):
        del sample
        return gaussian_kl(mean, scale, prior_mean, prior_scale)


class FullMonteCarlo(AbstractPathKL):
    r"""$\int \tfrac12 \|u\|^2 dt + \int u \cdot dB$, the path's log density ratio."""

    has_ito_term = True
    is_log_ratio = True

    def parameters_of_ito_term(self, parameters: _Tree) -> _Tree:
        return parameters

    def gaussian(self, sample, mean, scale, prior_mean, prior_scale):
        return _log_ratio(sample, mean, scale, prior_mean, prior_scale)


class StickTheLanding(AbstractPathKL):
    r"""`FullMonteCarlo` with $\phi$ stopped in the Itô term (Xu et al., eq. 12).

    $\int \tfrac12 \|u\|^2 dt + \int u(w, t; \bot\phi) \cdot dB$. Only the parameters
    are stopped: the gradient through $w$ stays. The same expected value and gradient
    as the others', and a gradient variance that goes to 0 (like $dt^2$) where the
    posterior's family contains the exact posterior.
    """

    has_ito_term = True
    is_log_ratio = False  # its value is, its gradient leaves out q's score

    def parameters_of_ito_term(self, parameters: _Tree) -> _Tree:
        return stop_gradient(parameters)

    def gaussian(self, sample, mean, scale, prior_mean, prior_scale):
        mean, scale = stop_gradient(mean), stop_gradient(scale)
        return _log_ratio(sample, mean, scale, prior_mean, prior_scale)
