"""The differential equation that a solve integrates, with its path KL alongside."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PyTree
from ._noise import inner, is_none, match_noise
from ._path_kl import AbstractPathKL


class State(NamedTuple):
    r"""What is integrated: the user's state, and $\ell = \int \tfrac12 \|u\|^2 dt$.

    `ell` is `None` where no path KL is asked for.
    """

    y: PyTree[Array]
    ell: Float[Array, ""] | None


class Rates(NamedTuple):
    """The vector fields at one point.

    Attributes:
        f: drift of the `State`.
        g: diffusion of `y`, in its structure with `None` on noise-free leaves, or
            `None` for an ordinary differential equation.
        u: the integrand of the Itô term, or `None`.
    """

    f: State
    g: PyTree | None
    u: PyTree | None


class Problem(eqx.Module):
    """Drift, diffusion and prior drift with what they close over."""

    drift: Any
    diffusion: Any
    prior_drift: Any
    args: Any
    path_kl: AbstractPathKL | None

    @property
    def has_ito_term(self) -> bool:
        """Whether a sum of u dB is to be accumulated."""
        return self.path_kl is not None and self.path_kl.has_ito_term

    def noise(self, t: Array, y: PyTree[Array]) -> PyTree | None:
        """The diffusion, `None` for an ordinary differential equation."""
        if self.diffusion is None:
            return None
        return match_noise(self.diffusion(t, y, self.args), y)

    def state_drift(self, t: Array, state: State) -> State:
        """The drift of the `State` alone."""
        f = self.drift(t, state.y, self.args)
        if state.ell is None:
            return State(f, None)
        u = self._control(t, state.y, f, self.noise(t, state.y))
        return State(f, _half_square(u).astype(state.ell.dtype))

    def rates(self, t: Array, state: State) -> Rates:
        """Everything at one point, from one evaluation of the drift."""
        f = self.drift(t, state.y, self.args)
        g = self.noise(t, state.y)
        if state.ell is None:
            return Rates(State(f, None), g, None)
        u = self._control(t, state.y, f, g)
        rates = State(f, _half_square(u).astype(state.ell.dtype))
        return Rates(rates, g, self._ito_integrand(t, state.y, u))

    def ito_integrand(self, t: Array, state: State) -> PyTree | None:
        """The Itô term's u at one point, for solvers that keep theirs to themselves."""
        if not self.has_ito_term:
            return None
        f = self.drift(t, state.y, self.args)
        u = self._control(t, state.y, f, self.noise(t, state.y))
        return self._ito_integrand(t, state.y, u)

    def _ito_integrand(self, t: Array, y: PyTree[Array], u: PyTree) -> PyTree | None:
        if self.path_kl is None or not self.path_kl.has_ito_term:
            return None
        stopped = self.path_kl.parameters_of_ito_term(self)
        if stopped is self:
            return u
        # The same values again, differentiated differently: XLA shares the forward.
        f = stopped.drift(t, y, stopped.args)
        return stopped._control(t, y, f, stopped.noise(t, y))

    def _control(self, t: Array, y: PyTree, f: PyTree, g: PyTree) -> PyTree:
        """The control u = (f_q - f_p) / g on noisy leaves, `None` elsewhere."""
        f_p = prior_on(self.prior_drift(t, y, self.args), y)

        def divide(gi: Any, fi: Any, pi: Any, leaf: Any) -> Any:
            # A drift that is one number moves every entry, and each pays for it.
            own = lambda: jnp.broadcast_to((fi - pi) / gi, jnp.shape(leaf))
            return None if gi is None else own()

        return jax.tree.map(divide, g, f, f_p, y, is_leaf=is_none)


def prior_on(f_p: PyTree, y: PyTree[Array]) -> PyTree:
    """A prior drift in the structure of `y`: a `None` may stand for a subtree."""

    def expand(p: Any, subtree: PyTree) -> PyTree:
        if p is None:
            return jax.tree.map(lambda _: 0.0, subtree)
        return jax.tree.map(lambda leaf: jnp.asarray(p, leaf.dtype), subtree)

    try:
        return jax.tree.map(expand, f_p, y, is_leaf=is_none)
    except ValueError as error:
        raise ValueError(
            f"`prior_drift` returned {jax.tree.structure(f_p)}, which is not a prefix "
            f"of the state's {jax.tree.structure(y)}; return the drift of the noisy "
            "leaves in the state's structure, with `None` elsewhere."
        ) from error


def _half_square(u: PyTree) -> Float[Array, ""]:
    return inner(u, u) / 2
