"""Blocks and wrappers as PyTorch's users make them: in one call, seeded by PyTorch."""

from typing import Any

import jax

from .._types import PRNGKeyArray
from ..functions import SDEBNN, ImplicitBNN
from ..network import Network
from ._extra import torch
from ._from_torch import from_torch
from ._program import KEYS
from ._random_function import RandomFunction


def sdebnn(
    in_size: int, out_size: int, *, seed: int | None = None, **options: Any
) -> RandomFunction:
    """An infinitely deep Bayesian network of rows of numbers, as a module.

    Args:
        in_size: features; standardise them.
        out_size: the likelihood's parameters.
        seed: of the initial weights; from PyTorch's generator without one.
        options: of `SDEBNN.for_vectors`, such as `width_sizes=(32,)`.
    """
    model = SDEBNN.for_vectors(in_size, out_size, key=_key(seed), **options)
    return RandomFunction(model, example_shape=(in_size,))


def sdebnn_for_images(
    example_shape: tuple[int, int, int],
    num_outputs: int,
    *,
    seed: int | None = None,
    **options: Any,
) -> RandomFunction:
    """An infinitely deep Bayesian network of images, as a module.

    Args:
        example_shape: of an image as PyTorch has it: (channels, height, width).
        num_outputs: classes.
        seed: of the initial weights; from PyTorch's generator without one.
        options: of `SDEBNN.for_images`, such as `blocks=(1, 1)`.

    Raises:
        ValueError: sizes that cannot be halved as often as `blocks` asks.
    """
    channels, *sides = example_shape
    model = SDEBNN.for_images(
        (*sides, channels), num_outputs, key=_key(seed), **options
    )
    return RandomFunction(
        model, example_shape=tuple(example_shape), channels_first=True
    )


def implicit(
    network: "torch.nn.Module | Network",
    *,
    seed: int | None = None,
    **options: Any,
) -> RandomFunction:
    """A network with noise on the inputs of its layers: `ImplicitBNN`, as a module.

    Its parameters are of two kinds, the network's "weights" and the "noise", which
    learns at rates of its own: see `RandomFunction.parameters_labelled`.

    Args:
        network: of PyTorch (see `from_torch`, which copies its weights), or any that
            `ImplicitBNN` takes.
        seed: of the first means and scales; from PyTorch's generator without one.
        options: of `ImplicitBNN`, such as `num_components=8`.

    Raises:
        TypeError: for a layer of PyTorch that has no counterpart here.
        ValueError: for a network without a layer whose inputs could be random.
    """
    if isinstance(network, torch.nn.Module):
        network = from_torch(network)
    return RandomFunction(ImplicitBNN(network, key=_key(seed), **options))


def _key(seed: int | None) -> PRNGKeyArray:
    seed = int(torch.randint(2**31, ())) if seed is None else seed
    return jax.random.key(seed, impl=KEYS)
