"""Relatives of a trained SDE-BNN, to compare it with: what does its posterior do?"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, Params, RealScalar
from ..network import split_where
from ..nn import scale_parameters
from ._softplus import softplus_inverse
from .depth import SDEBNN, SDEBlock


def _over_blocks(model: SDEBNN, change: Callable[[SDEBlock], SDEBlock]) -> SDEBNN:
    layers = tuple(
        change(layer) if isinstance(layer, SDEBlock) else layer
        for layer in model.layers
    )
    return eqx.tree_at(lambda m: m.layers, model, layers)


class NoDrift(eqx.Module):
    r"""$NN_\phi = 0$: the posterior's paths are the prior's."""

    def __call__(
        self, t: RealScalar, w: Params, summary: Float[Array, " summary"]
    ) -> Params:
        """Zeros like `w`."""
        del t, summary
        return jax.tree.map(jnp.zeros_like, w)


def without_drift(model: SDEBNN) -> SDEBNN:
    r"""The model with $NN_\phi$ zeroed: weights move as under the prior.

    What this costs on held-out data is what the posterior of the path does.
    """
    # In place of the drift, not its parameters times 0: a drift of one's own may have
    # none, or be no zero map without them.
    return _over_blocks(
        model, lambda block: eqx.tree_at(lambda b: b.drift, block, NoDrift())
    )


def without_noise(model: SDEBNN) -> SDEBNN:
    r"""The $\sigma = 0$ twin: a point $w_0$, the same drift, no noise, no KL."""

    def silence(block: SDEBlock) -> SDEBlock:
        fields = {f: getattr(block, f) for f in block.__dataclass_fields__}
        return SDEBlock(**{**fields, "rho": None, "is_noisy": False})

    return _over_blocks(model, silence)


def prior_of(model: SDEBNN) -> SDEBNN:
    r"""The same network with weights drawn from the prior, $w_0$ included.

    What is a point has no prior, and stays where it is: $w_0$ without a Gaussian start,
    and the weights that `where` did not choose.
    """

    def forget(block: SDEBlock) -> SDEBlock:
        if block.rho is None:
            return block
        prior_rho = jax.tree.map(
            lambda r, s: jnp.full_like(r, softplus_inverse(s)),
            block.rho,
            block.initial_scale,
        )
        random, points = split_where(block.dynamics, block.where)
        centred = eqx.combine(scale_parameters(random, 0.0), points)
        return eqx.tree_at(lambda b: (b.dynamics, b.rho), block, (centred, prior_rho))

    return _over_blocks(without_drift(model), forget)
