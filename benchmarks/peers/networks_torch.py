"""VGG-16 and WideResNet of `nn`, written in PyTorch, with given weights."""

import jax
import torch
import torch.nn.functional as F
from torch import nn

from ornstein.nn import Conv2d, Linear

from ._torch import from_jax

_VGG_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512,) * 3, (512,) * 3)


def _conv(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)


class VGG16(nn.Module):
    """Batch-normalised, with a head of two hidden layers."""

    def __init__(self, num_classes: int, *, width: float):
        super().__init__()
        layers: list[nn.Module] = []
        size = 3
        for stage in _VGG_STAGES:
            for channels in stage:
                channels = round(channels * width)
                layers += [_conv(size, channels), nn.BatchNorm2d(channels), nn.ReLU()]
                size = channels
            layers += [nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers)
        hidden = round(512 * width)
        self.head = nn.Sequential(
            *(nn.Linear(size, hidden), nn.ReLU()),
            *(nn.Linear(hidden, hidden), nn.ReLU()),
            nn.Linear(hidden, num_classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).flatten(1))


class _Block(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = _conv(in_channels, out_channels, stride)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = _conv(out_channels, out_channels)
        self.shortcut = None
        if in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(self.norm1(x))
        y = self.conv2(F.relu(self.norm2(self.conv1(h))))
        return y + (x if self.shortcut is None else self.shortcut(h))


class WideResNet(nn.Module):
    """Of pre-activation blocks, two convolutions each."""

    def __init__(self, depth: int, widen: int, num_classes: int):
        super().__init__()
        self.stem = _conv(3, 16)
        blocks: list[nn.Module] = []
        size = 16
        for i, channels in enumerate((16, 32, 64)):
            for j in range((depth - 4) // 6):
                stride = 2 if i > 0 and j == 0 else 1
                blocks.append(_Block(size, channels * widen, stride))
                size = channels * widen
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(size)
        self.classifier = nn.Linear(size, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(self.norm(self.blocks(self.stem(x))))
        return self.classifier(h.mean((2, 3)))


def copy_weights(network: object, module: nn.Module) -> None:
    """Those of convolutions and linear layers, in their order; norms are as made."""
    is_layer = lambda node: isinstance(node, Conv2d | Linear)
    ours = filter(is_layer, jax.tree.leaves(network, is_leaf=is_layer))
    theirs = (m for m in module.modules() if isinstance(m, nn.Conv2d | nn.Linear))
    with torch.no_grad():
        for layer, peer in zip(ours, theirs, strict=True):
            weight = from_jax(layer.weight)
            order = (3, 2, 0, 1) if weight.ndim == 4 else (1, 0)
            peer.weight.copy_(weight.permute(*order))
            if peer.bias is not None:
                peer.bias.copy_(from_jax(layer.bias))
