"""Plain networks by name: what the families but the SDE-BNN are built around."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import nn
from ..._sentence import OptionError, Sentence
from ..._types import PRNGKeyArray
from ...data import Data
from ...interop import load_torchvision
from ...network import Network
from .._recipe import Recipe, sizes
from ..options import NormName
from ._depth_networks import (
    HYPER_OPTIONS,
    ODE_OPTIONS,
    WHITENED_OPTIONS,
    build_hyper_odenet,
    build_odenet,
    build_whitened,
)

_SHAPED = frozenset({"network_width", "norm"})
_PRETRAINED = frozenset({"pretrained", "pretrained_head"})
_LAYERED = frozenset({"width", "activation"})
NETWORK_OPTIONS = _LAYERED | _SHAPED | _PRETRAINED | HYPER_OPTIONS | WHITENED_OPTIONS
"""Options that only some networks read."""

WHITENED = "sdebnn"
HIERARCHICAL = "hierarchical"
STANDARD_NORMAL = (WHITENED, HIERARCHICAL)
"""Networks whose parameters are N(0, 1) a priori, and take no other prior."""

# Filter response normalisation comes with an activation of its own.
NORMS: dict[NormName, dict[str, Any]] = {
    "batch": {"norm": nn.BatchNorm},
    "frn": {"norm": nn.FilterResponseNorm, "activation": nn.ThresholdedLinear},
    "none": {"norm": None},
}

_IMAGENET_SIDE = 224


class Sides(NamedTuple):
    """Which images a network takes, by the pixels of a side.

    Attributes:
        said: in words.
        nearest: the side that it takes in place of another; the same if it takes that.
    """

    said: str
    nearest: Callable[[int], int]


class NetworkKind(NamedTuple):
    """One kind of plain network.

    Attributes:
        build: from a recipe, data and a key.
        options: of `NETWORK_OPTIONS`, those that it reads.
        takes_images: whether it takes nothing else.
        has_depth: whether it solves an equation over depth.
        sides: of the images that it takes; `None` for any.
    """

    build: Callable[..., Network]
    options: frozenset[str]
    takes_images: bool = True
    has_depth: bool = False
    sides: Sides | None = None


def _of_vectors(
    make: Callable[..., Network], recipe: Recipe, data: Data, *, key: PRNGKeyArray
) -> Network:
    """A network of flattened inputs."""
    shape = data.example_shape
    network = make(
        math.prod(shape),
        data.num_outputs,
        sizes(recipe.model.width, "width"),
        activation=nn.activation_from_name(recipe.model.activation),
        key=key,
    )
    return network if len(shape) == 1 else nn.Flattened(network, len(shape))


_mlp = functools.partial(_of_vectors, nn.MLP)
_hierarchical = functools.partial(_of_vectors, nn.HierarchicalMLP)


def _of_width(
    make: Callable[..., Network], recipe: Recipe, data: Data, *, key: PRNGKeyArray
) -> Network:
    return make(
        data.num_outputs,
        in_channels=data.example_shape[-1],
        width=recipe.network.network_width,
        key=key,
    )


_lenet = functools.partial(_of_width, nn.LeNet)
_alexnet = functools.partial(_of_width, nn.AlexNet)


def _vgg16(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> Network:
    is_large = min(data.example_shape[:2]) >= _IMAGENET_SIDE
    return nn.VGG16(
        data.num_outputs,
        in_channels=data.example_shape[-1],
        width=recipe.network.network_width,
        head=nn.IMAGENET_HEAD if is_large else nn.CIFAR_HEAD,
        **NORMS[recipe.network.norm],
        key=key,
    )


def _resnet(depth: int, recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> Network:
    return nn.ResNet(
        depth,
        data.num_outputs,
        in_channels=data.example_shape[-1],
        width=recipe.network.network_width,
        **NORMS[recipe.network.norm],
        **_residual_start(recipe),
        key=key,
    )


def _wide_resnet(
    depth: int, widen: int, recipe: Recipe, data: Data, *, key: PRNGKeyArray
) -> Network:
    return nn.WideResNet(
        depth,
        widen,
        data.num_outputs,
        in_channels=data.example_shape[-1],
        **NORMS[recipe.network.norm],
        **_residual_start(recipe),
        key=key,
    )


def _residual_start(recipe: Recipe) -> dict[str, Any]:
    """Fixup where nothing normalises, which many residual blocks do not survive."""
    return {"initialise": nn.fixup} if recipe.network.norm == "none" else {}


_BY_NAME = {
    "mlp": NetworkKind(_mlp, _LAYERED, takes_images=False),
    HIERARCHICAL: NetworkKind(_hierarchical, _LAYERED, takes_images=False),
    "lenet": NetworkKind(
        _lenet, frozenset({"network_width"}), sides=Sides("28 by 28", lambda side: 28)
    ),
    "alexnet": NetworkKind(
        _alexnet,
        _PRETRAINED | {"network_width"},
        sides=Sides("at least 63 by 63", lambda side: max(side, 63)),
    ),
    "vgg16": NetworkKind(
        _vgg16,
        _PRETRAINED | _SHAPED,
        sides=Sides("multiples of 32", lambda side: 32 * math.ceil(side / 32)),
    ),
    "odenet": NetworkKind(
        build_odenet, ODE_OPTIONS, takes_images=False, has_depth=True
    ),
    "hyper-odenet": NetworkKind(
        build_hyper_odenet, HYPER_OPTIONS, takes_images=False, has_depth=True
    ),
    WHITENED: NetworkKind(
        build_whitened, WHITENED_OPTIONS, takes_images=False, has_depth=True
    ),
}
_BY_SIZE = (
    (r"resnet-(18|34|50|101|152)", _resnet, _PRETRAINED | _SHAPED),
    (r"resnet-(\d+)", _resnet, _SHAPED),
    (r"wide-resnet-(\d+)-(\d+)", _wide_resnet, frozenset({"norm"})),
)


def network_kind(name: str) -> NetworkKind:
    """What `--network NAME` stands for.

    Raises:
        ValueError: for another name.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    for pattern, build, options in _BY_SIZE:
        if match := re.fullmatch(pattern, name):
            numbers = map(int, match.groups())
            return NetworkKind(functools.partial(build, *numbers), options)
    raise OptionError(
        "{network} {!r} is not one of {}, resnet-DEPTH (such as resnet-20) and "
        "wide-resnet-DEPTH-WIDTH (such as wide-resnet-28-10).",
        name,
        ", ".join(_BY_NAME),
    )


def check_sides(name: str, sides: Sequence[int], data: str, *, are_own: bool) -> None:
    """Refuse images of a size that a network does not take.

    Args:
        name: of the network.
        sides: height and width of the images, in pixels.
        data: their name.
        are_own: whether they are photographs of the user's own, of any size.

    Raises:
        ValueError: saying which sizes it takes.
    """
    taken = network_kind(name).sides
    if taken is None or all(taken.nearest(side) == side for side in sides):
        return
    size = Sentence("give {image_size} {}, or ", taken.nearest(max(sides)))
    raise OptionError(
        "{network} {} takes images of {} pixels, and those of {} have {} by {}: {}use "
        "{network} resnet-20, which takes any.",
        *(name, taken.said, data, *sides, size if are_own else ""),
    )


def build_network(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> Network:
    """The plain network of a recipe, for these data.

    Raises:
        ValueError: for a network of images and data that are none, a size that the
            network cannot have, or pretrained weights that do not fit.
        FileNotFoundError: for pretrained weights that are not there.
    """
    name = recipe.network.network
    kind = network_kind(name)
    if kind.takes_images and len(data.example_shape) != 3:
        raise OptionError(
            "{network} {} takes images, and the rows of {} are {} numbers: use "
            "{network} mlp.",
            name,
            data.name,
            data.example_shape[0],
        )
    if kind.takes_images:
        sides, is_own = data.example_shape[:2], data.image_size is not None
        check_sides(name, sides, data.name, are_own=is_own)
    network: Any = kind.build(recipe, data, key=key)
    options = recipe.network
    if options.pretrained is None:
        return network
    source, head = options.pretrained, options.pretrained_head
    return load_torchvision(network, source, head=head)
