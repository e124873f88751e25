"""Plain networks by name: what the families but the SDE-BNN are built around."""

import functools
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import nn
from ..._sentence import OptionError
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


class NetworkKind(NamedTuple):
    """One kind of plain network.

    Attributes:
        build: from a recipe, data and a key.
        options: of `NETWORK_OPTIONS`, those that it reads.
        takes_images: whether it takes nothing else.
        has_depth: whether it solves an equation over depth.
    """

    build: Callable[..., Network]
    options: frozenset[str]
    takes_images: bool = True
    has_depth: bool = False


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
    "lenet": NetworkKind(_lenet, frozenset({"network_width"})),
    "alexnet": NetworkKind(_alexnet, _PRETRAINED | {"network_width"}),
    "vgg16": NetworkKind(_vgg16, _PRETRAINED | _SHAPED),
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
    network: Any = kind.build(recipe, data, key=key)
    options = recipe.network
    if options.pretrained is None:
        return network
    source, head = options.pretrained, options.pretrained_head
    return load_torchvision(network, source, head=head)
