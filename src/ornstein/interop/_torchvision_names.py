"""What torchvision calls the layers of our networks, and how it lays them out.

Its kernels are (out, in, height, width) and its matrices (out, in), ours the reverse
with pixels first; it flattens images as (channels, height, width), we as (height,
width, channels).
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..nn import VGG16, AlexNet, BatchNorm, Chain, Conv2d, Linear, ResNet

Module: TypeAlias = Conv2d | Linear | BatchNorm
Shape: TypeAlias = tuple[int, ...]


class Part(NamedTuple):
    """A layer or normalisation, and its tensors in torchvision's layout.

    Attributes:
        name: that its tensors' names begin with.
        module: ours.
        num_pixels: a side of the images that are flattened in front of a linear layer.
        absorbs: the bias of the convolution before a normalisation, which ours does
            not have: it shifts the running mean instead.
    """

    name: str
    module: Module
    num_pixels: int = 1
    absorbs: str | None = None

    def shapes(self) -> dict[str, Shape]:
        """The tensors' shapes by their full names."""
        module = self.module
        if isinstance(module, BatchNorm):
            names = [f"{self.name}.{name}" for name in _OF_NORM]
            names += [] if self.absorbs is None else [self.absorbs]
            return dict.fromkeys(names, tuple(module.scale.shape))
        *taps, in_size, out_size = module.weight.shape
        shapes: dict[str, Shape] = {f"{self.name}.weight": (out_size, in_size, *taps)}
        if module.bias is not None:
            shapes[f"{self.name}.bias"] = (out_size,)
        return shapes

    def filled(self, read: Callable[[str], np.ndarray]) -> Module:
        """The module with the tensors that `read` gives for their names."""
        get = lambda name: read(f"{self.name}.{name}")
        module = self.module
        if isinstance(module, BatchNorm):
            scale, offset, mean, variance = map(get, _OF_NORM)
            if self.absorbs is not None:
                mean = mean - read(self.absorbs)
            where = lambda norm: (norm.scale, norm.offset, *norm.index.init)
            new = (scale, offset, mean, variance)
            dtype = module.scale.dtype
        else:
            weight, dtype = get("weight"), module.weight.dtype
            if isinstance(module, Linear):
                weight = weight.reshape(len(weight), -1, *2 * (self.num_pixels,))
            weight = weight.transpose(2, 3, 1, 0).reshape(module.weight.shape)
            where, new = lambda layer: (layer.weight,), (weight,)
            if module.bias is not None:
                where = lambda layer: (layer.weight, layer.bias)
                new = (weight, get("bias"))
        return eqx.tree_at(where, module, tuple(jnp.asarray(a, dtype) for a in new))


_OF_NORM = ("weight", "bias", "running_mean", "running_var")
_ALEXNET_HEAD = (1, 4, 6)  # dropout stands before the first and the second


def named_parts(network: VGG16 | AlexNet | ResNet) -> list[Part]:
    """The network's parts, each with torchvision's name; the classifier is the last."""
    if isinstance(network, ResNet):
        return [*_of_resnet(network)]
    linears = [layer for layer in network.head if isinstance(layer, Linear)]
    convs = [layer for layer in network.features if isinstance(layer, Conv2d)]
    # In VGG-16 activation and dropout follow each.
    is_alexnet = isinstance(network, AlexNet)
    numbers = _ALEXNET_HEAD if is_alexnet else range(0, 3 * len(linears), 3)
    sides = [1] * len(linears)
    sides[0] = math.isqrt(linears[0].in_size // convs[-1].out_size)
    head = [
        Part(f"classifier.{number}", layer, num_pixels)
        for number, layer, num_pixels in zip(numbers, linears, sides, strict=True)
    ]
    return [*_by_place("features.", network.features, is_biased=True), *head]


def _of_resnet(network: ResNet) -> Iterator[Part]:
    yield from _by_kind("", network.stem)
    stage, number = 1, 0
    for block in network.blocks:
        if any(isinstance(m, Conv2d) and m.stride > 1 for m in block.branch):
            stage, number = stage + 1, 0
        name = f"layer{stage}.{number}."
        yield from _by_kind(name, block.branch)
        yield from _by_place(f"{name}downsample.", block.shortcut)
        number += 1
    if isinstance(network.classifier, Linear):
        yield Part("fc", network.classifier)


def _by_place(prefix: str, chain: Chain, *, is_biased: bool = False) -> Iterator[Part]:
    """Numbered by their places in the chain, which are torchvision's."""
    for i, module in enumerate(chain):
        if isinstance(module, Conv2d):
            yield Part(f"{prefix}{i}", module)
        elif isinstance(module, BatchNorm):
            absorbs = f"{prefix}{i - 1}.bias" if is_biased else None
            yield Part(f"{prefix}{i}", module, absorbs=absorbs)


def _by_kind(prefix: str, chain: Chain) -> Iterator[Part]:
    """Numbered from 1, convolutions and normalisations each by themselves."""
    for kind, word in ((Conv2d, "conv"), (BatchNorm, "bn")):
        modules = [module for module in chain if isinstance(module, kind)]
        for number, module in enumerate(modules, start=1):
            yield Part(f"{prefix}{word}{number}", module)
