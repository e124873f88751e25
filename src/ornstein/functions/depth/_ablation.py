"""Relatives of a trained SDE-BNN, to compare it with: what does its posterior do?"""

import equinox as eqx
import jax
import jax.numpy as jnp

from ...network import split_where
from ...nn import scale_parameters
from .._softplus import softplus_inverse
from ._sde_block import SDEBlock
from ._sdebnn import SDEBNN
from ._weight_drift import drop_drift


def without_drift(model: SDEBNN) -> SDEBNN:
    r"""The model with $NN_\phi$ zeroed: weights move as under the prior.

    What this costs on held-out data is what the posterior of the path does.
    """
    return model.over_blocks(drop_drift)


def without_noise(model: SDEBNN) -> SDEBNN:
    r"""The $\sigma = 0$ twin: a point $w_0$, the same drift, no noise, no KL."""

    def silence(block: SDEBlock) -> SDEBlock:
        fields = {f: getattr(block, f) for f in block.__dataclass_fields__}
        return SDEBlock(**{**fields, "rho": None, "is_noisy": False})

    return model.over_blocks(silence)


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

    return without_drift(model).over_blocks(forget)
