"""The hand-written implicit LeNet computes what ours does: loss and gradient."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ornstein.data import Split
from ornstein.nn import layers_of

from . import implicit, implicit_ornstein as ours, implicit_torch
from .check import check_grads, check_loss


def check_implicit_peer(*, key: jax.Array) -> None:
    """On our parameters and our noise.

    Raises:
        PeerDiffersError: if it differs.
    """
    model_key, data_key, noise_key = jr.split(key, 3)
    model = ours.make_implicit(ours.make_lenet, key=model_key)
    data = implicit.make_data(implicit.DIGITS, key=data_key)
    batch = Split(data.x[: implicit.BATCH_SIZE], data.y[: implicit.BATCH_SIZE])
    value, grads = ours.loss_and_gradient(
        model, jnp.asarray(batch.x), jnp.asarray(batch.y), key=noise_key
    )
    peer = implicit_torch.ImplicitLeNet(model)
    noise = implicit_torch.given(ours.normals_of(model, key=noise_key))
    found = implicit_torch.loss(peer, *implicit_torch.to_torch(batch), noise)
    check_loss("The LeNet in PyTorch", found.item(), float(value))
    found.backward()
    theirs: Any = [_ours_from(layer) for layer in peer.layers]
    theirs += [[array.grad for array in (peer.mean, peer.rho)]]
    layers = layers_of(grads.network)
    expected: Any = [(layer.weight, layer.bias) for layer in layers]
    expected += [[grads.mixture.mean, grads.mixture.rho]]
    check_grads("The LeNet in PyTorch", theirs, expected)


def _ours_from(layer: Any) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of a layer in our layout."""
    weight = layer.weight.grad.numpy()
    axes = (2, 3, 1, 0) if weight.ndim == 4 else (1, 0)
    return weight.transpose(axes), layer.bias.grad.numpy()
