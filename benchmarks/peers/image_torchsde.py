"""The image SDE-BNN by torchsde, as Xu et al.'s PyTorch code writes it.

One flat state (h of the whole batch, w, KL), time as a channel concatenated to the
images, torch's own convolutions. Torch pads a strided convolution before the image's
first pixel and ours after its last, so that images and kernels here are ours mirrored.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
import torchsde
from jax import Array

from ornstein.functions import SDEBNN

from . import image_ornstein as ours
from ._torch import GivenIncrements, from_jax

_WIDTH = 32
_CHANNELS = 3
_SIDE = ours.SHAPE[0]
# Kernels with time as channel 0, then biases; the transposed one is (in, out, 3, 3).
_SHAPES = (
    ((_WIDTH, _CHANNELS + 1, 3, 3), (_WIDTH,)),
    ((_WIDTH, _WIDTH + 1, 3, 3), (_WIDTH,)),
    ((_WIDTH + 1, _WIDTH, 3, 3), (_WIDTH,)),
    ((_CHANNELS, _WIDTH + 1, 3, 3), (_CHANNELS,)),
)
_SIZES = [math.prod(shape) for pair in _SHAPES for shape in pair]
NUM_WEIGHTS = sum(_SIZES)
_TRANSPOSED = 2


def _flatten(weights: Any) -> np.ndarray:
    """A tree like our `ConvBlock` in torch's order."""
    parts = []
    for i, time_layer in enumerate(weights.layers):
        layer = time_layer.layer
        kernel = np.concatenate([time_layer.time_weight, layer.weight], axis=2)
        kernel = kernel[::-1, ::-1]
        axes = (2, 3, 0, 1) if i == _TRANSPOSED else (3, 2, 0, 1)
        parts += [kernel.transpose(axes).ravel(), np.ravel(layer.bias)]
    return np.concatenate(parts)


def _flatten_columns(matrices: Any, like: Any, axis: int) -> np.ndarray:
    """A tree of matrices, entries of w along the other axis than `axis`."""
    num_columns = jax.tree.leaves(matrices)[0].shape[axis]
    return np.stack(
        [
            _flatten(
                jax.tree.map(
                    lambda m, w, j=j: jnp.take(m, j, axis=axis).reshape(w.shape),
                    matrices,
                    like,
                )
            )
            for j in range(num_columns)
        ],
        axis=axis,
    )


class ImageSDE(torch.nn.Module):
    """Drift and diffusion of the flat state, and the readout."""

    noise_type = "diagonal"
    sde_type = "stratonovich"

    def __init__(self, model: SDEBNN):
        super().__init__()
        block = ours.block_of(model)
        w0 = eqx.filter(block.dynamics, eqx.is_inexact_array)
        drift = block.drift
        of_w0 = lambda tree: jax.tree.map(jnp.broadcast_to, tree, _shapes(w0))
        parameter = lambda x: torch.nn.Parameter(torch.from_numpy(np.array(x)))
        sigma = _flatten(of_w0(block.process.scale))
        into = _flatten(of_w0(drift.input_scale))[:, None]
        out = _flatten(of_w0(drift.output_scale))

        self.w0 = parameter(_flatten(w0))
        self.register_buffer("sigma", torch.from_numpy(sigma))
        self.rate = float(block.process.rate)
        reads = into * _flatten_columns(drift.reads, w0, 1)
        (rest,) = drift.read_rest.layers
        self.reads = parameter(np.concatenate([reads, rest.weight]))
        self.reads_bias = parameter(rest.bias)
        self.hidden = torch.nn.ModuleList(map(_linear, drift.hidden.layers))
        self.writes = parameter(out * _flatten_columns(drift.writes, w0, 0))
        self.writes_bias = parameter(out * _flatten(drift.biases))
        self.readout = torch.nn.ModuleList(map(_linear, model.readout.network.layers))
        first = self.readout[0]
        # Rows of the first matrix are pixels, mirrored, channels first.
        pixels = first.weight.data.reshape(-1, _SIDE, _SIDE, _CHANNELS)
        pixels = pixels.flip(1, 2).permute(0, 3, 1, 2)
        first.weight.data = pixels.reshape(len(first.weight), -1).contiguous()

    def f(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h, w, _ = _split(y)
        z = torch.cat([w, t.reshape(1)])[None]
        z = torch.tanh(torch.addmm(self.reads_bias, z, self.reads))
        for layer in self.hidden:
            z = torch.tanh(layer(z))
        nn = torch.addmm(self.writes_bias, z, self.writes)[0]
        half_square = (nn / self.sigma).pow(2).sum() / 2
        f_w = nn - self.rate * w
        f_h = _block(t, h, w)
        return torch.cat([f_h.reshape(-1), f_w, half_square[None]])[None]

    def g(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        del t
        h, _, ell = _split(y)
        zeros = torch.zeros
        return torch.cat([zeros(h.numel()), self.sigma, zeros(ell.numel())])[None]

    def logits(self, h: torch.Tensor) -> torch.Tensor:
        first, last = self.readout
        return last(torch.relu(first(h.flatten(1))))


def _shapes(tree: Any) -> Any:
    return jax.tree.map(jnp.shape, tree)


def _linear(layer: Any) -> torch.nn.Linear:
    num_in, num_out = layer.weight.shape
    linear = torch.nn.Linear(num_in, num_out)
    linear.weight.data = from_jax(layer.weight.T).contiguous()
    linear.bias.data = from_jax(layer.bias)
    return linear


def _split(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    h, w, ell = y[0].split([y.shape[1] - NUM_WEIGHTS - 1, NUM_WEIGHTS, 1])
    return h.reshape(-1, _CHANNELS, _SIDE, _SIDE), w, ell


def _block(t: torch.Tensor, h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    arrays = w.split(_SIZES)
    for i, (kernel_shape, _) in enumerate(_SHAPES):
        kernel, bias = arrays[2 * i].reshape(kernel_shape), arrays[2 * i + 1]
        h = torch.cat([t.expand(len(h), 1, *h.shape[2:]), h], 1)
        if i == _TRANSPOSED:
            h = F.conv_transpose2d(
                h, kernel, bias, stride=2, padding=1, output_padding=1
            )
        else:
            h = F.conv2d(h, kernel, bias, stride=2 if i == 1 else 1, padding=1)
        h = h if i == 3 else torch.tanh(h)
    return h


def to_torch(x: Array, y: Array) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch, mirrored, channels first."""
    images = np.asarray(x)[:, ::-1, ::-1].transpose(0, 3, 1, 2)
    return torch.from_numpy(images.copy()), from_jax(y).long()


def loss(
    model: ImageSDE,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    use_adjoint: bool,
    path: GivenIncrements | None = None,
) -> torch.Tensor:
    """Cross-entropy plus KL, nats an example; torchsde's noise unless given a path."""
    h0 = F.pad(x, (0, 0, 0, 0, 0, _CHANNELS - x.shape[1]))
    y0 = torch.cat([h0.reshape(-1), model.w0, torch.zeros(1)])[None]
    solve = torchsde.sdeint_adjoint if use_adjoint else torchsde.sdeint
    ts, dt = torch.tensor([0.0, 1.0]), 1 / ours.NUM_STEPS
    last = solve(model, y0, ts, bm=path, method="midpoint", dt=dt)[-1]
    h, _, ell = _split(last)
    return F.cross_entropy(model.logits(h), y) + ours.KL_WEIGHT * ell[0]


def given(increments: Any) -> GivenIncrements:
    """Our increments, with zeros for h and the KL."""
    num_hidden = ours.BATCH_SIZE * _CHANNELS * _SIDE**2
    rows = [
        _flatten(jax.tree.map(lambda dw, k=k: dw[k], increments))
        for k in range(ours.NUM_STEPS)
    ]
    wide = np.pad(np.stack(rows), ((0, 0), (num_hidden, 1)))
    return GivenIncrements(torch.from_numpy(wide)[:, None])
