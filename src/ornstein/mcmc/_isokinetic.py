r"""Dynamics of constant speed: the momentum is a direction $u$, $|u| = 1$.

$dq = u\, dt$, $du = -(I - u u^\top) \nabla U / (d - 1)\, dt$: noise that turns u makes
it forget where it came from, and then positions have the law $e^{-U}$ (Robnik et al.
2023, section 2; Ver Steeg & Galstyan 2021). An exact path keeps U + K, where K is d - 1
times the log of what the momentum's length would be.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from .._tree import normal_like
from .._types import Array, Float, Params, PRNGKeyArray

# McLachlan's (1995) two stages of least error: b, 1/2, 1 - 2 b, 1/2, b.
_B = 0.1931833275037836
NUM_GRADIENTS = 2
"""Of one step."""


class Place(NamedTuple):
    """Where a chain is, as an integrator sees it.

    Attributes:
        position: q.
        direction: u.
        log_density: $-U(q)$, nats.
        gradient: of it.
    """

    position: Params
    direction: Params
    log_density: Float[Array, ""]
    gradient: Params


def integrate(
    log_density_fn: Callable[[Params], Float[Array, ""]],
    place: Place,
    step_size: Float[Array, ""],
) -> tuple[Place, Float[Array, ""]]:
    """One step of McLachlan's integrator.

    Args:
        log_density_fn: q to -U(q).
        place: where it starts.
        step_size: the distance that it goes.

    Returns:
        its end; and its error in energy, nats.
    """
    position, direction, log_density, gradient = place
    direction, kinetic = turn(direction, gradient, _B * step_size)

    def stage(carry: tuple[Place, Float[Array, ""]], part: Float[Array, ""]):
        (position, direction, *_), kinetic = carry
        half = lambda q, u: q + (step_size / 2).astype(q.dtype) * u
        position = jax.tree.map(half, position, direction)
        log_density, gradient = jax.value_and_grad(log_density_fn)(position)
        direction, change = turn(direction, gradient, part * step_size)
        place = Place(position, direction, log_density, gradient)
        return (place, kinetic + change), None

    # Scanned, so that the potential is compiled once.
    parts = jnp.asarray([1 - 2 * _B, _B], kinetic.dtype)
    start = Place(position, direction, log_density, gradient)
    (end, kinetic), _ = lax.scan(stage, (start, kinetic), parts)
    return end, kinetic - (end.log_density - place.log_density)


def turn(
    direction: Params, gradient: Params, time: Float[Array, ""]
) -> tuple[Params, Float[Array, ""]]:
    r"""The exact flow of u at a fixed gradient $g = |g| e$ of the log density.

    $u' \propto e (1 - \zeta) (1 + \zeta + c (1 - \zeta)) + 2 \zeta u$ with
    $\zeta = e^{-\delta}$, $\delta = t |g| / (d - 1)$, $c = e \cdot u$; and
    $\Delta K = (d - 1) (\delta + \log \tfrac12 (1 + c + (1 - c) \zeta^2))$, in which
    nothing overflows.

    Args:
        direction: u.
        gradient: g.
        time: t.

    Returns:
        u', and ΔK.
    """
    dim = sum(leaf.size for leaf in jax.tree.leaves(direction))
    size = norm(gradient)
    over = jnp.where(size > 0, size, 1.0)
    unit = jax.tree.map(lambda g: g / over.astype(g.dtype), gradient)
    cosine = _dot(unit, direction)
    delta = time * size / (dim - 1)
    zeta = jnp.exp(-delta)
    ahead = (1 - zeta) * (1 + zeta + cosine * (1 - zeta))
    both = lambda e, u: ahead.astype(u.dtype) * e + (2 * zeta).astype(u.dtype) * u
    turned = jax.tree.map(both, unit, direction)
    growth = 1 + cosine + (1 - cosine) * zeta**2
    return normalised(turned), (dim - 1) * (delta + jnp.log(growth / 2))


def refresh(direction: Params, over_length: Float[Array, ""], noise: Params) -> Params:
    r"""A direction that forgets itself: $u' \propto u + \nu \xi$, $\xi \sim N(0, I)$.

    $\nu^2 = (e^{2 t / L} - 1) / d$ after a distance t.

    Args:
        direction: u.
        over_length: t / L.
        noise: ξ.
    """
    dim = sum(leaf.size for leaf in jax.tree.leaves(direction))
    scale = jnp.sqrt(jnp.expm1(2 * over_length) / dim)
    return normalised(
        jax.tree.map(lambda u, xi: u + scale.astype(u.dtype) * xi, direction, noise)
    )


def random_direction(like: Params, *, key: PRNGKeyArray) -> Params:
    """Uniform on the sphere."""
    return normalised(normal_like(like, key=key))


def normalised(tree: Params) -> Params:
    """Of length 1."""
    size = norm(tree)
    return jax.tree.map(lambda leaf: leaf / size.astype(leaf.dtype), tree)


def norm(tree: Params) -> Float[Array, ""]:
    """The length of a tree, as of one vector; no square of it overflows before it."""
    leaves = jax.tree.leaves(tree)
    largest = jnp.max(jnp.stack([jnp.max(abs(leaf)) for leaf in leaves]))
    unit = jnp.where(largest > 0, largest, 1.0)
    scaled = jax.tree.map(lambda leaf: leaf / unit.astype(leaf.dtype), tree)
    return unit * jnp.sqrt(_dot(scaled, scaled))


def _dot(one: Params, other: Params) -> Float[Array, ""]:
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), one, other)
    return jax.tree.reduce(operator.add, products)
