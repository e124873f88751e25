"""Weights that others trained, in torchvision's layout, for our networks."""

from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax

from ..nn import VGG16, AlexNet, MaxPool, ResNet, num_parameters
from ._torchvision_names import Part, Shape, named_parts
from ._weights_file import WeightsFile, find_weights

_Network = TypeVar("_Network", bound=eqx.Module)


def load_torchvision(
    network: _Network, source: str | Path, *, head: bool = True
) -> _Network:
    """A network with the weights and batch statistics of a torchvision state dict.

    Every tensor must be there, and no other but `num_batches_tracked`, which nothing
    here uses. Kernels and matrices are transposed to our layout, and so are the inputs
    of a linear layer that follows the images; numbers are cast to the network's type.
    Running statistics become those that `eqx.nn.State(network)` starts with, and
    that `fit` and `predict` start from. torchvision's VGG-16 with batch normalisation
    (`vgg16_bn`) has biases in front of it, which ours keeps as shifts of the running
    means: the same function.

    Images are (height, width, channels), and ImageNet's weights expect the channels
    (red, green, blue) in [0, 1], less (0.485, 0.456, 0.406), over (0.229, 0.224,
    0.225).

    Args:
        network: a `ResNet` of depth 18, 34, 50, 101 or 152, a `VGG16` (original or with
            batch normalisation; ImageNet's files need `head=nn.IMAGENET_HEAD`) or an
            `AlexNet`. From `eqx.filter_eval_shape` it needs no memory of its own.
        source: a safetensors file; or `owner/name` (its `model.safetensors`) or
            `owner/name/file.safetensors` on the Hugging Face hub.
        head: load the last linear layer, too. `False` keeps the network's own, for
            another number of classes.

    Returns:
        The network.

    Raises:
        FileNotFoundError: if the file is not there, nor on the hub.
        TypeError: for a network that has no counterpart in torchvision.
        ValueError: for a pickle, a damaged file, or tensors that do not fit: all of
            them, by name.
    """
    parts = _parts_of(network)
    file = WeightsFile(find_weights(source))
    _check(parts, file, type(network).__name__, head=head)
    if not head:
        parts = parts[:-1]
    new = {id(part.module): part.filled(file.read) for part in parts}
    is_part = lambda node: id(node) in new
    swap = lambda node: new[id(node)] if is_part(node) else node
    return jax.tree.map(swap, network, is_leaf=is_part)


def _parts_of(network: eqx.Module) -> list[Part]:
    name = type(network).__name__
    if not isinstance(network, ResNet | VGG16 | AlexNet):
        raise TypeError(
            "`load_torchvision` knows the layouts of `ResNet`, `VGG16` and `AlexNet`, "
            f"got `{name}`."
        )
    if isinstance(network, ResNet) and not isinstance(network.stem[-1], MaxPool):
        raise TypeError(
            "torchvision has no `ResNet` of the forms for CIFAR: give one of depth 18, "
            "34, 50, 101 or 152."
        )
    parts = named_parts(network)
    if num_parameters(network) != num_parameters([part.module for part in parts]):
        raise TypeError(
            f"This `{name}` has parameters beside those of convolutions, linear layers "
            "and `BatchNorm`, and torchvision has no names for them: build it with "
            "`norm=nn.BatchNorm` or `None` and a function as activation."
        )
    return parts


def _check(parts: list[Part], file: WeightsFile, network: str, *, head: bool) -> None:
    """Refuse tensors that do not fit, all at once."""
    *body, last = parts
    expected = {n: s for part in body for n, s in part.shapes().items()}
    of_head = last.shapes()
    if head:
        expected |= of_head
    given = {
        name: shape
        for name, shape in file.shapes.items()
        if not name.endswith(".num_batches_tracked") and (head or name not in of_head)
    }
    both = [name for name in expected if name in given]
    wrong = [name for name in both if given[name] != expected[name]]
    lists = {
        "missing": [f"{n} {expected[n]}" for n in expected if n not in given],
        "extra": [f"{n} {given[n]}" for n in given if n not in expected],
        "of another shape": [f"{n} {given[n]}, not {expected[n]}" for n in wrong],
        "of whole numbers": [n for n in both if "F" not in file.dtypes[n]],
    }
    bad = [f"{kind}: {'; '.join(found)}" for kind, found in lists.items() if found]
    if not bad:
        return
    message = f"{file.name} does not fit this `{network}`. Tensors {'. '.join(bad)}."
    weight = f"{last.name}.weight"
    if weight in wrong and _same_but_classes(given[weight], expected[weight]):
        theirs, ours = given[weight][0], expected[weight][0]
        message += (
            f" The file's classifier has {theirs} classes and the network's {ours}: "
            f"build the network with {theirs}, or keep its own classifier with "
            "`head=False`."
        )
    raise ValueError(message)


def _same_but_classes(given: Shape, expected: Shape) -> bool:
    return len(given) == 2 and given[1:] == expected[1:]
