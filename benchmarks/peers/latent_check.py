"""torchsde's latent SDE computes what ours does: loss and gradient."""

from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np

from . import latent_ornstein as ours, latent_torchsde
from .check import check_grads, check_loss

_PEER = "torchsde, Euler, on motion capture"


def check_latent_peer(*, num_frames: int = ours.NUM_FRAMES, key: jax.Array) -> None:
    """On our parameters and our noise.

    Raises:
        PeerDiffersError: if it differs.
    """
    model_key, data_key, noise_key = jr.split(key, 3)
    model = ours.make_model(key=model_key)
    x = ours.make_series(num_frames, key=data_key)
    both = eqx.filter_jit(eqx.filter_value_and_grad(ours.loss))
    value, grads = both(model, x, noise_key)
    peer = latent_torchsde.LatentPath(model)
    given = latent_torchsde.Given(ours.noise_of(model, x, noise_key))
    found = latent_torchsde.loss(peer, *latent_torchsde.to_torch(x), given=given)
    check_loss(_PEER, found.item(), float(value))
    found.backward()
    theirs: Any = [_layers(net) for net in (peer.encoder, peer.prior, peer.posterior)]
    written: Any = (peer.read, peer.write)
    theirs += [[p.grad.numpy() for p in written], _layers(peer.decoder)]
    nets = (grads.recognition.net, grads.prior_drift.net, grads.posterior_drift.net)
    expected: Any = [_ours(net) for net in nets]
    expected += [[grads.diffusion.read, grads.diffusion.write], _ours(grads.decoder)]
    check_grads(_PEER, theirs, expected)


def _layers(net: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Gradients of a network's layers in our layout."""
    layers = list(net)[::2]
    return [(a.weight.grad.numpy().T, a.bias.grad.numpy()) for a in layers]


def _ours(net: Any) -> list[tuple[jax.Array, jax.Array]]:
    return [(layer.weight, layer.bias) for layer in net.layers]
