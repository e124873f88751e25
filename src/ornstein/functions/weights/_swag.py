r"""SWAG: Maddox, Garipov, Izmailov, Vetrov & Wilson (2019), section 3.

Notation: $\theta_1, \dots, \theta_T$ are the iterates, $\bar\theta_i$ is the mean of
the first $i$ of them, and $\hat D$ has the columns $\theta_i - \bar\theta_i$ of the
last $K$.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._normals import standard_normal
from ..._types import Array, Float, Params, PRNGKeyArray, PyTree
from ...network import Network, as_network, call_network, without_batch_state
from .._base import FROZEN, AbstractRandomFunction, Draw, draw_key, no_local_kl
from .._posterior_parts import PosteriorParts
from ._deterministic import Deterministic


class SWAG(AbstractRandomFunction):
    r"""A normal posterior with the moments of SGD's iterates.

    $q(\theta) = N(\bar\theta_T, \tfrac12 \Sigma_{diag} + \tfrac12 \Sigma_{low})$ with
    $\Sigma_{diag}$ the iterates' variances and $\Sigma_{low} = \hat D \hat D^T /
    (K - 1)$. One draw of the weights serves all rows. It is made after training, so
    that nothing in it is trained, and it has no prior: its KL is 0.

    Build it with `orn.fit_swag`, or from iterates of one's own with
    `SWAG.from_iterates`.

    Attributes:
        network: with its own parameters, of which those that have a `mean` are drawn.
        mean: $\bar\theta_T$, in the network's structure; `None` for what is fixed.
        scale: square roots of $\Sigma_{diag}$, in the structure of `mean`.
        deviations: the columns of $\hat D$, an axis of K in front.

    References:
        Maddox et al. (2019), "A Simple Baseline for Bayesian Uncertainty in Deep
        Learning", equation (1) and algorithm 1.
    """

    network: Network
    mean: Params
    scale: Params
    deviations: PyTree[Float[Array, "rank ..."] | None]
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    @staticmethod
    def from_iterates(
        network: Network,
        iterates: Params,
        *,
        rank: int = 20,
    ) -> "SWAG":
        """From the path of SGD with a constant rate.

        Args:
            network: maps a batch of inputs, rows first, to the likelihood's
                parameters.
            iterates: the network's parameters at the end of each of several epochs,
                oldest first, on an axis in front; in the network's own structure, with
                `None` for what did not move.
            rank: K, how many of the last iterates the low-rank part keeps.

        Raises:
            TypeError: if the network cannot be called.
            ValueError: for iterates of another structure or shape than the network's,
                a rank below 2, or fewer iterates than the rank.
        """
        network, iterates = without_batch_state(network), as_network(iterates)
        num_iterates = _check_iterates(network, iterates)
        if not 2 <= rank <= num_iterates:
            raise ValueError(
                f"`rank` is how many of the {num_iterates} iterates the low-rank part "
                f"keeps, at least 2 of them, got {rank}: choose fewer, or keep more "
                "iterates."
            )
        leaves, treedef = jax.tree.flatten(iterates)
        moments = [_moments(leaf, rank) for leaf in leaves]
        mean, scale, deviations = map(treedef.unflatten, zip(*moments, strict=True))
        return SWAG(network, mean, scale, deviations)

    @property
    def rank(self) -> int:
        """K, the columns of the low-rank part."""
        return jax.tree.leaves(self.deviations)[0].shape[0]

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""
        params = self.draw_params(key=draw_key(key, index))
        output, _, report = call_network(eqx.combine(params, self.network), x)
        return Draw(
            output=output,
            kl=jnp.zeros(()),
            local_kl=no_local_kl(x),
            state=state,
            report=report,
        )

    def network_at(self, index: int | Array, *, key: PRNGKeyArray) -> Network:
        """The network of draw `index`: that of `__call__` with the same key.

        Args:
            index: which draw.
            key: which functions.
        """
        params = self.draw_params(key=draw_key(key, index))
        return as_network(eqx.combine(params, self.network))

    def draw_params(self, *, key: PRNGKeyArray) -> Params:
        r"""One draw of the parameters that have a mean.

        $\bar\theta_T + \tfrac{1}{\sqrt 2} \Sigma_{diag}^{1/2} z_1
        + \tfrac{1}{\sqrt{2 (K - 1)}} \hat D z_2$ with standard normal z.

        Args:
            key: of z.
        """
        low_key, diagonal_key = jax.random.split(key)
        low_scale = 1 / math.sqrt(2 * (self.rank - 1))
        means, treedef = jax.tree.flatten(self.mean)
        keys = treedef.unflatten(jax.random.split(diagonal_key, len(means)))

        def draw(mean, scale, columns, leaf_key):
            z1 = standard_normal(leaf_key, mean.shape, mean.dtype, is_broadcast=True)
            z2 = standard_normal(low_key, (self.rank,), mean.dtype)  # of all leaves
            low = jnp.tensordot(z2, columns, axes=1)
            return mean + math.sqrt(0.5) * scale * z1 + low_scale * low

        return jax.tree.map(draw, self.mean, self.scale, self.deviations, keys)

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """The network of its mean; no prior is behind its moments."""
        at_mean = lambda: Deterministic(eqx.combine(self.mean, self.network))
        own = eqx.filter(self.network, eqx.is_inexact_array)
        return PosteriorParts(
            has_bound=False,
            without_noise=at_mean,
            num_parameters=sum(leaf.size for leaf in jax.tree.leaves(own)),
        )

    def labels(self) -> PyTree[str]:
        """Nothing is trained: the moments are those of training that is over."""
        return jax.tree.map(lambda leaf: FROZEN, self)


def _moments(leaf: Array, rank: int) -> tuple[Array, Array, Array]:
    """Mean, standard deviation, and the last deviations from the running mean."""
    # In double precision: the iterates hardly differ.
    path = np.asarray(leaf, np.float64)
    count = np.arange(1, len(path) + 1).reshape(-1, *(1,) * (path.ndim - 1))
    deviations = (path - np.cumsum(path, axis=0) / count)[-rank:]
    found = (path.mean(axis=0), path.std(axis=0), deviations)
    mean, scale, deviations = (jnp.asarray(part, leaf.dtype) for part in found)
    return mean, scale, deviations


def _check_iterates(network: Network, iterates: PyTree) -> int:
    """How many there are, if they are the network's."""
    is_none = lambda leaf: leaf is None
    own, treedef = jax.tree.flatten(network, is_leaf=is_none)
    leaves, other = jax.tree.flatten(iterates, is_leaf=is_none)
    lengths = {np.shape(path)[:1] for path in leaves if path is not None}

    def fits(own: Any, path: Any) -> bool:
        if path is None:
            return True
        return eqx.is_inexact_array(own) and np.shape(path)[1:] == own.shape

    is_own = other == treedef and all(map(fits, own, leaves))
    if not is_own or len(lengths) != 1 or lengths == {()}:
        raise ValueError(
            "`iterates` must be the network's own tree with an axis of iterates in "
            "front of each parameter and `None` for everything else, got another "
            "structure or shape: stack `eqx.filter(network, eqx.is_inexact_array)` "
            "of each epoch."
        )
    return lengths.pop()[0]
