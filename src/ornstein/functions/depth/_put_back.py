"""One solve with parts of its posterior put back to the prior, or without noise."""

from dataclasses import fields

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import PyTree
from ...network import split_where
from ...nn import scale_parameters
from .._softplus import softplus_inverse
from ._sde_block import SDEBlock


def silence(block: SDEBlock) -> SDEBlock:
    r"""The solve at $\sigma = 0$: a point $w_0$, the same drift, no noise, no KL."""
    own = {field.name: getattr(block, field.name) for field in fields(block)}
    own |= {"rho": None, "integrator": block.integrator.without_noise()}
    return SDEBlock(**{**own, "is_noisy": False})


def start_at_prior(block: SDEBlock) -> SDEBlock:
    """The solve with q(w₀) put back to its prior; a point, which has none, stays."""
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


def held_of_start(block: SDEBlock) -> PyTree:
    """The arrays of q(w₀); none of a point's."""
    if block.rho is None:
        return ()
    return split_where(block.dynamics, block.where)[0], block.rho
