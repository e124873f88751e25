"""Constant stochastic gradient descent as approximate inference."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from .._types import Params, PRNGKeyArray, RealScalar
from ..mcmc import Stage
from ..potential import AbstractPotential
from ._base import (
    AbstractMinibatchKernel,
    SGInfo,
    SGState,
    adapted_of,
    combine_trees,
    estimate_gradient,
    init_state,
    square_norm,
    step_info,
)
from ._preconditioner import AbstractPreconditioner, Scalar


class ConstantSGD(AbstractMinibatchKernel):
    r"""SGD at the constant step that brings its law at rest closest to the posterior.

    $$\theta' = \theta - H \nabla \tilde U(\theta)$$

    No noise is injected: the batches' is all there is, and H, a number, a diagonal or a
    matrix (see `Scalar`, `Diagonal`, `Full`), is chosen from its covariance V so that
    the law at rest has the least KL to the posterior. That is derived for a Gaussian
    posterior, a V that is the same everywhere, and small steps; with all three, `Full`
    is exact, the others as near as their form allows.

    V is that of the position given to `init`, and then, unless `adapts` is off, of the
    last position of the warm-up: warm up for long enough to reach the mode. In between
    and afterwards H is constant.

    Args:
        preconditioner: the form of H.
        num_rows: rows that V is estimated from; all, and exactly, if there are no more.
        adapts: whether the last step of the warm-up estimates V anew.

    Raises:
        ValueError: for fewer than 2 rows.

    References:
        Mandt, Hoffman & Blei (2017), Stochastic gradient descent as approximate
        Bayesian inference, theorem 1 and corollaries 2 and 3; Jospin et al. (2022),
        eqs. (36)–(38), with the mean loss L = U / N.
    """

    preconditioner: AbstractPreconditioner = Scalar()
    num_rows: int = eqx.field(default=1000, kw_only=True)
    adapts: bool = eqx.field(default=True, kw_only=True)

    def __check_init__(self) -> None:
        if self.num_rows < 2:
            raise ValueError(
                f"`num_rows` must be at least 2, got {self.num_rows}: a covariance "
                "needs them."
            )

    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> SGState:
        """See `AbstractKernel`: estimates V.

        Raises:
            ValueError: what the preconditioner refuses.
        """
        return init_state(position, self._estimate(potential, position, key))

    def step(
        self, potential: AbstractPotential, state: SGState, *, key: PRNGKeyArray
    ) -> tuple[SGState, SGInfo]:
        """See `AbstractKernel`."""
        energy, gradient = estimate_gradient(potential, state.position, key=key)
        matrix = adapted_of(state, self)
        move = self.preconditioner.apply(matrix, gradient)
        position = combine_trees((1, -1), state.position, move)
        step_size = self.preconditioner.mean_step_size(matrix)
        info = step_info(step_size, state, energy, square_norm(gradient))
        return state.move(position, state.momentum), info

    def warm_up(
        self,
        potential: AbstractPotential,
        state: SGState,
        stage: Stage,
        *,
        key: PRNGKeyArray,
    ) -> tuple[SGState, SGInfo]:
        """A step; the last one estimates V anew, where it arrived."""
        step_key, rows_key = jr.split(key)
        state, info = self.step(potential, state, key=step_key)
        if not self.adapts:
            return state, info
        anew = lambda: self._estimate(potential, state.position, rows_key)
        adapted = jax.lax.cond(stage.is_last, anew, lambda: state.adapted)
        return SGState(state.position, state.momentum, state.num_steps, adapted), info

    def noise_weight(self, state: SGState) -> RealScalar | Params:
        """Infinite: all the noise is the gradient's."""
        del state
        return jnp.inf

    def _estimate(self, potential, position, key):
        return self.preconditioner.estimate(
            potential, position, key=key, num_rows=self.num_rows
        )
