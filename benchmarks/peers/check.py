"""The peers compute what we compute: on our parameters and our Brownian increments."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

from ornstein import sde

from . import (
    image_ornstein,
    image_torchsde,
    toy,
    toy_diffrax,
    toy_ornstein,
    toy_scan,
    toy_torchsde,
)

TOLERANCE = 1e-3  # relative; float32 sums in another order differ by 1e-6


class PeerDiffersError(Exception):
    """A peer does not compute our loss: its time would say nothing."""


def check_loss(peer: str, found: float, ours: float) -> None:
    """Refuse a peer's loss that is not ours."""
    if not abs(found - ours) <= TOLERANCE * abs(ours):
        raise PeerDiffersError(
            f"{peer} gives a loss of {found:.6g} on our parameters and noise, and ours "
            f"is {ours:.6g}: it does not solve the same problem."
        )


def check_grads(peer: str, found: toy.Params, ours: toy.Params) -> None:
    """Refuse a peer's gradient that is not ours, by the norm of the difference."""
    # Torch's parameters are in another order, but in the same structure.
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(ours), strict=True):
        error = np.linalg.norm(np.asarray(a) - np.asarray(b))
        if not error <= TOLERANCE * np.linalg.norm(np.asarray(b)):
            raise PeerDiffersError(
                f"{peer} gives another gradient than ours for an array of shape "
                f"{np.shape(b)}: relative error {error / np.linalg.norm(b):.2g}."
            )


def check_toy_peers(params: toy.Params, *, key: jax.Array) -> None:
    """All of the toy's peers, loss and gradient.

    Raises:
        PeerDiffersError: the first that differs.
    """
    increments = jax.jit(toy_ornstein.increments)(key)

    def both(loss: Callable, *args: jax.Array) -> tuple[float, toy.Params]:
        value, grads = jax.jit(jax.value_and_grad(loss))(params, *args)
        return float(value), grads

    ours, our_grads = both(toy_ornstein.loss, key)
    for name, peer in (
        ("The hand-written scan", toy_scan.loss_on),
        ("diffrax", toy_diffrax.loss_on),
    ):
        value, grads = both(peer, increments)
        check_loss(name, value, ours)
        check_grads(name, grads, our_grads)
    _check_torch("torchsde, Euler", params, increments, ours, our_grads, method="euler")
    # Its gradient is that of the continuous adjoint, which is another.
    _check_torch(
        "torchsde, Euler, stochastic adjoint",
        params,
        increments,
        ours,
        None,
        method="euler",
        use_adjoint=True,
    )

    ours, our_grads = both(
        lambda params, key: toy_ornstein.loss(
            params, key, solver=sde.ReversibleHeun(), gradient=sde.Reversible()
        ),
        key,
    )
    _check_torch(
        "torchsde, reversible Heun",
        params,
        increments,
        ours,
        our_grads,
        sde_type="stratonovich",
        method="reversible_heun",
        adjoint_method="adjoint_reversible_heun",
        use_adjoint=True,
    )


def _check_torch(
    peer: str,
    params: toy.Params,
    increments: jnp.ndarray,
    ours: float,
    our_grads: toy.Params | None,
    *,
    sde_type: str = "ito",
    **how,
) -> None:
    model = toy_torchsde.ToySDE(params, sde_type=sde_type)
    loss = toy_torchsde.loss(model, path=toy_torchsde.given(increments), **how)
    check_loss(peer, loss.item(), ours)
    if our_grads is not None:
        loss.backward()
        check_grads(peer, toy_torchsde.grads(model), our_grads)


def check_image_peer(*, key: jax.Array) -> None:
    """The image SDE-BNN's peer, by its loss.

    Raises:
        PeerDiffersError: if it differs.
    """
    noise_key, batch_key = jax.random.split(jax.random.key(3))
    model = image_ornstein.make_model(key=key)
    x, y = image_ornstein.make_batch(key=batch_key)
    ours = float(eqx.filter_jit(image_ornstein.loss)(model, x, y, noise_key))
    increments = image_ornstein.increments(noise_key, model_key=key)
    path = image_torchsde.given(increments)
    images, labels = image_torchsde.to_torch(x, y)
    with torch.no_grad():
        loss = image_torchsde.loss(
            image_torchsde.ImageSDE(model), images, labels, use_adjoint=False, path=path
        )
    check_loss("torchsde, midpoint, on images", loss.item(), ours)
