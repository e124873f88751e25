r"""One problem in its Itô and in its Stratonovich form.

$dy = f\,dt + g\,dB$ (Itô) and $dy = (f - \tfrac12 g\, \partial g)\,dt + g \circ dB$
(Stratonovich) have the same solutions. Diagonal noise: entry $i$ of $g$ may depend on
entry $i$ of the noisy state, on noise-free leaves and on time.
"""

from typing import Any

import jax

from .._types import PyTree, VectorField
from ._noise import is_none, match_noise


def _correct(drift: VectorField, diffusion: VectorField, sign: float) -> VectorField:
    def corrected(t: Any, y: PyTree, args: Any) -> PyTree:
        f = drift(t, y, args)

        def noise(y: PyTree) -> PyTree:
            return match_noise(diffusion(t, y, args), y)

        def direction(leaf: Any, g: Any) -> Any:
            # Noise-free leaves do not move with B: their tangent is zero.
            return leaf * 0 if g is None else g + leaf * 0

        # Over the state first: it may have a `None` of its own.
        tangent = jax.tree.map(direction, y, noise(y))
        _, gdg = jax.jvp(noise, (y,), (tangent,))

        def add(c: Any, fi: Any) -> Any:
            return fi if c is None else fi + sign * c / 2

        return jax.tree.map(add, gdg, f, is_leaf=is_none)

    return corrected


def ito_to_stratonovich(drift: VectorField, diffusion: VectorField) -> VectorField:
    r"""The Stratonovich drift $f - \tfrac12 g\,\partial g$ of an Itô problem.

    Args:
        drift: $f(t, y, args)$ of the Itô form.
        diffusion: $g(t, y, args)$, diagonal; the same in both forms.
    """
    return _correct(drift, diffusion, -1.0)


def stratonovich_to_ito(drift: VectorField, diffusion: VectorField) -> VectorField:
    r"""The Itô drift $f + \tfrac12 g\,\partial g$ of a Stratonovich problem."""
    return _correct(drift, diffusion, 1.0)
