r"""One expanded weight, $w = p v q$: a posterior that is no Gaussian, by a sum.

$U = p^2 + q^2 + \frac{v^2}{2 s^2} + \sum_i \frac{(y_i - p v q x_i)^2}{2 \sigma^2}$ is
what PX-SGHMC moves on, where there is one weight. Two signs are free, so that means are
0 and so are covariances of two; chains that start at 0 are as symmetric at every step.
"""

from typing import NamedTuple

import jax
import numpy as np

from .._types import Float
from ..data import Split
from ..functions import expand_parameters
from ..likelihood import Gaussian
from ..nn import Linear
from ..potential import Potential
from ..prior import GaussianPrior
from ._targets import Moments


class ExpandedWeight(NamedTuple):
    r"""$y_i \sim N(p v q\, x_i, \sigma^2)$; the position is (v, p, q).

    Attributes:
        x: inputs.
        y: targets.
        scale: σ.
        prior_scale: s, of v.
    """

    x: Float[np.ndarray, " data"]
    y: Float[np.ndarray, " data"]
    scale: float
    prior_scale: float

    def potential(self, batch_size: int) -> Potential:
        """U, for samplers: by `expand_parameters`."""
        layer = Linear(1, 1, use_bias=False, key=jax.random.key(0))
        network = expand_parameters(layer, include_ends=True)
        column = lambda a: a[:, None].astype(np.float32)
        return Potential(
            network,
            Split(column(self.x), column(self.y)),
            Gaussian(self.scale),
            prior=network.expanded_prior(GaussianPrior(self.prior_scale)),
            batch_size=batch_size,
        )

    def quadrature(self, num_points: int = 141, half_width: float = 5.0) -> Moments:
        """The moments of (v, p, q) by a sum over a grid.

        Args:
            num_points: along each axis.
            half_width: of the grid.
        """
        axis = np.linspace(-half_width, half_width, num_points)
        v, p, q = np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)
        # Σ (y - w x)² = Σ x² (w - ŵ)² + a constant.
        squares = np.sum(self.x**2)
        distance = p * v * q - self.x @ self.y / squares
        energy = p**2 + q**2 + v**2 / (2 * self.prior_scale**2)
        energy = energy + squares * distance**2 / (2 * self.scale**2)
        weights = np.exp(energy.min() - energy)
        weights /= weights.sum()
        variances = [np.sum(weights * a**2) for a in (v, p, q)]
        return Moments(np.zeros(3), np.diag(variances))


def expanded_weight() -> ExpandedWeight:
    """40 rows, from which w is known to a third of its size."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=40)
    return ExpandedWeight(x, 0.8 * x + 2 * rng.normal(size=40), 2.0, 0.8)
