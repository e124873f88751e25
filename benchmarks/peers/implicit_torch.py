"""The implicit LeNet written for PyTorch by hand, in the reference's way.

Layers multiply their inputs by each row's own numbers; several noises a row are several
copies of the row, side by side in one larger batch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jax import Array

from ornstein.data import Split
from ornstein.functions import ImplicitBNN

from . import implicit
from ._torch import from_jax

_NUM_CONVS = 3


class ImplicitLeNet(torch.nn.Module):
    """The network of `ours`, with its weights and its mixture."""

    def __init__(self, ours: ImplicitBNN):
        super().__init__()
        network: Any = ours.network
        layers = [m for m in (*network.features, *network.head) if hasattr(m, "weight")]
        kinds = list(map(_layer, layers))
        self.layers = torch.nn.ModuleList(kinds)
        self.mean = torch.nn.Parameter(from_jax(ours.mixture.mean))
        self.rho = torch.nn.Parameter(from_jax(ours.mixture.rho))
        self.sizes = [kind.weight.shape[1] for kind in kinds]

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Logits of rows, each with its own noise."""
        z = self.mean + F.softplus(self.rho) * noise
        scales = z.reshape(len(x), -1).split(self.sizes, 1)
        for i, (layer, scale) in enumerate(zip(self.layers, scales, strict=True)):
            if i < _NUM_CONVS:
                x = F.relu(layer(x * scale[:, :, None, None]))
                x = F.max_pool2d(x, 2) if i < 2 else x.flatten(1)
            else:
                x = layer(x * scale)
                x = F.relu(x) if i == _NUM_CONVS else x
        return x

    def kl(self) -> torch.Tensor:
        """Of the components' mean, nats."""
        variance = F.softplus(self.rho).square().sum(0) / len(self.rho) ** 2
        ratio = variance / implicit.PRIOR_SCALE**2
        distance = ((self.mean.mean(0) - 1) / implicit.PRIOR_SCALE).square()
        return 0.5 * (distance + ratio - 1 - ratio.log()).sum()


def _layer(ours: Any) -> Any:
    weight = from_jax(ours.weight)
    if weight.ndim == 4:
        *taps, num_in, num_out = weight.shape
        layer = torch.nn.Conv2d(num_in, num_out, (taps[0], taps[1]))
        layer.weight.data = weight.permute(3, 2, 0, 1).contiguous()
    else:
        layer = torch.nn.Linear(weight.shape[0], weight.shape[1])
        layer.weight.data = weight.T.contiguous()
    layer.bias = torch.nn.Parameter(from_jax(ours.bias))
    return layer


def to_torch(data: Split) -> tuple[torch.Tensor, torch.Tensor]:
    """Images, channels first, and classes."""
    images = np.moveaxis(np.array(data.x), -1, 1)
    return torch.from_numpy(images.copy()), torch.from_numpy(np.array(data.y)).long()


def loss(
    model: ImplicitLeNet, x: torch.Tensor, y: torch.Tensor, noise: torch.Tensor
) -> torch.Tensor:
    """The bound in nats per example, of rows repeated for each draw."""
    num_draws = implicit.NUM_DRAWS
    logits = model(x.repeat(num_draws, 1, 1, 1), noise)
    fit = F.cross_entropy(logits, y.repeat(num_draws))
    return fit + model.kl() / implicit.DIGITS.num_data


def draw(model: ImplicitLeNet) -> torch.Tensor:
    """Fresh noise for a step."""
    num_hands = implicit.NUM_DRAWS * implicit.BATCH_SIZE // implicit.NUM_COMPONENTS
    return torch.randn(num_hands, *model.mean.shape)


def steps(model: ImplicitLeNet, data: Split) -> Callable[[], None]:
    """A function that takes a step of SGD on a batch of its own."""
    x, y = to_torch(data)
    noise_params = [model.mean, model.rho]
    sgd = torch.optim.SGD(
        [
            {"params": model.layers.parameters(), "lr": implicit.LEARNING_RATE},
            {"params": noise_params, "lr": implicit.NOISE_LEARNING_RATE},
        ],
        momentum=implicit.MOMENTUM,
        nesterov=True,
    )

    def run() -> None:
        rows = torch.randint(0, len(x), (implicit.BATCH_SIZE,))
        value = loss(model, x[rows], y[rows], draw(model))
        sgd.zero_grad()
        value.backward()
        sgd.step()

    return run


def given(noise: Array) -> torch.Tensor:
    """Our normals, draws one after another."""
    return from_jax(noise.reshape(-1, *noise.shape[2:]))
