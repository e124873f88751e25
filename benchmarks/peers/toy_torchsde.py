"""The toy SDE-BNN by torchsde: one flat state (w, h, KL) for each weight path."""

import math

import jax
import numpy as np
import torch
import torchsde

from . import toy
from ._torch import GivenIncrements, from_jax

_NUM_HIDDEN = toy.NUM_INPUTS * toy.SIZE


class ToySDE(torch.nn.Module):
    """Drift and diffusion of the flat state; initialised from JAX's parameters."""

    noise_type = "diagonal"

    def __init__(self, params: toy.Params, *, sde_type: str):
        super().__init__()
        self.sde_type = sde_type
        self.w0 = torch.nn.Parameter(from_jax(params.w0))
        self.matrices = torch.nn.ParameterList(from_jax(a) for a, _ in params.net)
        self.biases = torch.nn.ParameterList(from_jax(b) for _, b in params.net)
        self.register_buffer("h0", from_jax(toy.inputs()).reshape(1, -1))

    def f(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        num_paths = y.shape[0]
        w = y[:, : toy.NUM_WEIGHTS]
        h = y[:, toy.NUM_WEIGHTS : -1].reshape(-1, toy.NUM_INPUTS, toy.SIZE)
        n, column = w, t.expand(num_paths, 1)
        for i, (matrix, bias) in enumerate(
            zip(self.matrices, self.biases, strict=True)
        ):
            n = torch.addmm(bias, torch.cat([n, column], 1), matrix)
            n = n if i == len(self.matrices) - 1 else torch.tanh(n)
        arrays = torch.split(w, [math.prod(shape) for shape in toy.SHAPES], dim=1)
        for i in (0, 2, 4):
            matrix = arrays[i].reshape(-1, *toy.SHAPES[i])
            h = torch.cat([h, t.expand(num_paths, toy.NUM_INPUTS, 1)], -1)
            h = torch.baddbmm(arrays[i + 1][:, None], h, matrix)
            h = h if i == 4 else torch.tanh(h)
        half_square = (n / toy.SIGMA).pow(2).sum(1, keepdim=True) / 2
        return torch.cat([n - w, h.reshape(-1, _NUM_HIDDEN), half_square], 1)

    def g(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        del t
        noise = torch.full((y.shape[0], toy.NUM_WEIGHTS), toy.SIGMA)
        return torch.cat([noise, torch.zeros(y.shape[0], _NUM_HIDDEN + 1)], 1)


def loss(
    sde: ToySDE,
    *,
    method: str,
    adjoint_method: str | None = None,
    use_adjoint: bool = False,
    path: GivenIncrements | None = None,
) -> torch.Tensor:
    """The loss, on torchsde's own noise unless a `path` is given."""
    num_paths = toy.NUM_PATHS
    y0 = torch.cat([sde.w0, sde.h0[0], torch.zeros(1)]).expand(num_paths, -1)
    ts, dt = torch.tensor([0.0, 1.0]), 1 / toy.NUM_STEPS
    if use_adjoint:
        y = torchsde.sdeint_adjoint(
            sde, y0, ts, bm=path, method=method, dt=dt, adjoint_method=adjoint_method
        )[-1]
    else:
        y = torchsde.sdeint(sde, y0, ts, bm=path, method=method, dt=dt)[-1]
    h = y[:, toy.NUM_WEIGHTS : -1].reshape(-1, toy.NUM_INPUTS, toy.SIZE)
    fit = (h[..., 0] - from_jax(toy.targets())).pow(2).mean()
    return fit + toy.KL_WEIGHT * y[:, -1].mean()


def given(increments: jax.Array) -> GivenIncrements:
    """Increments (paths, steps, weights), with zeros for h and the KL."""
    wide = np.pad(np.asarray(increments), ((0, 0), (0, 0), (0, _NUM_HIDDEN + 1)))
    return GivenIncrements(torch.from_numpy(wide.swapaxes(0, 1).copy()))


def grads(sde: ToySDE) -> toy.Params:
    """What `backward` left, in the structure of the parameters."""
    numbers = lambda p: p.grad.numpy()
    net = zip(map(numbers, sde.matrices), map(numbers, sde.biases), strict=True)
    return toy.Params(numbers(sde.w0), tuple(net))
