r"""The exact first two moments of a linear recursion with random batches.

One step of an unadjusted sampler on a Gaussian target is
$s' = A_b s + c_b + \xi$, $\xi \sim N(0, Q)$, where $A_b$ and $c_b$ are the means of a
batch's rows' $A_i$ and $c_i$, and rows are n indices drawn with replacement. With
$z = (1, s)$ and $Z_i$ the matrix of $z' = Z_b z + (0, \xi)$, the second moment obeys
$$ M' = E[Z_b M Z_b^\top] + Q, \qquad
   E[Z_b \otimes Z_b] = \bar Z \otimes \bar Z
   + \tfrac1n \bigl(\overline{Z_i \otimes Z_i} - \bar Z \otimes \bar Z\bigr), $$
which is linear in M, and whose first row holds the mean. No small-step argument is
made: this is the chain itself (Mandt et al., 2017, use its limit: `lyapunov`).
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from .._types import Float
from ._targets import LinearRegression, Moments, RowGradients

_NUM_SQUARINGS = 40


class MomentMap(NamedTuple):
    """An affine map of vec M, the second moment of (1, s).

    Attributes:
        matrix: the linear part.
        shift: the rest.
    """

    matrix: Float[np.ndarray, "dim2 dim2"]
    shift: Float[np.ndarray, " dim2"]

    def then(self, after: "MomentMap") -> "MomentMap":
        """This map, and `after` on what it returns."""
        return MomentMap(
            after.matrix @ self.matrix, after.matrix @ self.shift + after.shift
        )

    def power(self, exponent: int) -> "MomentMap":
        """The map this many times."""
        identity = MomentMap(np.eye(len(self.shift)), np.zeros_like(self.shift))
        half = self.power(exponent // 2) if exponent else identity
        whole = half.then(half)
        return whole.then(self) if exponent % 2 else whole

    def stationary(self, dim: int) -> Moments:
        """The moments that the map's powers converge to.

        Args:
            dim: how many of s to return, from the first: the position.

        Raises:
            ValueError: if they grow without bound.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            settled = self.power(2**_NUM_SQUARINGS)
            # The map keeps M₀₀ = 1: column 0 is what becomes of a start at s = 0.
            moments = settled.shift + settled.matrix[:, 0]
        size = round(len(moments) ** 0.5)
        second = moments.reshape(size, size)
        if not np.all(np.isfinite(second)):
            raise ValueError(
                "The second moment has no stationary value: take a smaller step."
            )
        mean = second[0, 1 : dim + 1]
        covariance = second[1 : dim + 1, 1 : dim + 1] - np.outer(mean, mean)
        return Moments(mean, covariance)


def batch_map(
    matrices: Float[np.ndarray, "data dim dim"],
    shifts: Float[np.ndarray, "data dim"],
    noise: Float[np.ndarray, "dim dim"],
    batch_size: int | float,
) -> MomentMap:
    r"""$s' = A_b s + c_b + N(0, Q)$.

    Args:
        matrices: $A_i$ of each row.
        shifts: $c_i$ of each row.
        noise: Q.
        batch_size: n; `inf` for the exact gradient.
    """
    num_data, dim = shifts.shape
    whole = np.zeros((num_data, dim + 1, dim + 1))
    whole[:, 0, 0] = 1.0
    whole[:, 1:, 0] = shifts
    whole[:, 1:, 1:] = matrices
    mean = whole.mean(axis=0)
    squares = np.einsum("iab,icd->acbd", whole, whole) / num_data
    square = np.einsum("ab,cd->acbd", mean, mean)
    matrix = square + (squares - square) / batch_size
    shift = np.zeros((dim + 1, dim + 1))
    shift[1:, 1:] = noise
    return MomentMap(matrix.reshape((dim + 1) ** 2, -1), shift.ravel())


def gradient_map(
    rows: RowGradients,
    drift: Float[np.ndarray, "dim dim"],
    noise: Float[np.ndarray, "dim dim"],
    batch_size: int | float,
) -> MomentMap:
    r"""$\theta' = \theta - G \nabla \tilde U(\theta) + N(0, Q)$: SGLD, constant SGD.

    Args:
        rows: of the gradient.
        drift: G.
        noise: Q.
        batch_size: n; `inf` for the exact gradient.
    """
    matrices = np.eye(len(drift)) - drift @ rows.hessians
    return batch_map(matrices, rows.forces @ drift.T, noise, batch_size)


def kick_map(
    rows: RowGradients,
    keep: float,
    learning_rate: float,
    noise_variance: float,
    batch_size: int | float,
) -> MomentMap:
    r"""$v' = k v - \eta \nabla \tilde U(\theta) + N(0, q)$, on $s = (\theta, v)$.

    Args:
        rows: of the gradient.
        keep: k; 0 draws the momentum anew.
        learning_rate: η.
        noise_variance: q of each entry.
        batch_size: n; `inf` for the exact gradient.
    """
    num_data, dim = rows.forces.shape
    matrices = np.zeros((num_data, 2 * dim, 2 * dim))
    matrices[:, :dim, :dim] = np.eye(dim)
    matrices[:, dim:, :dim] = -learning_rate * rows.hessians
    matrices[:, dim:, dim:] = keep * np.eye(dim)
    shifts = np.concatenate([0 * rows.forces, learning_rate * rows.forces], axis=1)
    noise = np.diag(np.repeat([0.0, noise_variance], dim))
    return batch_map(matrices, shifts, noise, batch_size)


def drift_map(dim: int) -> MomentMap:
    r"""$\theta' = \theta + v$, on $s = (\theta, v)$."""
    matrix = np.kron([[1.0, 1.0], [0.0, 1.0]], np.eye(dim))
    return batch_map(matrix[None], np.zeros((1, 2 * dim)), 0 * matrix, np.inf)


def rescale_map(dim: int, scale: float) -> MomentMap:
    r"""$v' = r v$, on $s = (\theta, v)$."""
    matrix = np.diag(np.repeat([1.0, scale], dim))
    return batch_map(matrix[None], np.zeros((1, 2 * dim)), 0 * matrix, np.inf)


def lyapunov(
    target: LinearRegression,
    drift: Float[np.ndarray, "dim dim"],
    batch_size: int,
) -> Moments:
    r"""The Ornstein–Uhlenbeck approximation of $\theta' = \theta - G \nabla \tilde U$.

    $G \Lambda \Sigma + \Sigma \Lambda G^\top = G V G^\top$: Mandt et al. (2017),
    section 3.2; eqs (33)–(35) of Jospin et al. (2022).

    Args:
        target: whose gradients.
        drift: G.
        batch_size: n.
    """
    mean, covariance = target.posterior()
    speed = drift @ np.linalg.inv(covariance)
    noise = drift @ target.batch_noise(batch_size) @ drift.T
    return Moments(mean, linalg.solve_continuous_lyapunov(speed, noise))
