"""Table 1 of Trinh, Kaski & Heinonen (2020): how few nodes networks have."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax

from ... import nn
from ...functions import ImplicitBNN
from ...network import Network
from .._experiment import Experiment, Study

_COMPONENTS = (4, 8, 16)


class _Printed(NamedTuple):
    """A network, and its row as printed."""

    make: Callable[..., Network]
    layers: int
    weights: str
    nodes: int
    ratio: str


_NETWORKS = {
    "LeNet": _Printed(lambda key: nn.LeNet(10, key=key), 5, "42K", 23, "1800x"),
    "AlexNet": _Printed(
        lambda key: nn.AlexNet(1000, key=key), 8, "61M", 18_307, "3300x"
    ),
    "VGG16-small": _Printed(
        lambda key: nn.VGG16(10, key=key), 16, "15M", 5_251, "2900x"
    ),
    "VGG16-large": _Printed(
        lambda key: nn.VGG16(1000, head=nn.IMAGENET_HEAD, norm=None, key=key),
        16,
        "138M",
        36_995,
        "3700x",
    ),
    "ResNet50": _Printed(
        lambda key: nn.ResNet(50, 1000, key=key), 50, "26M", 24_579, "1000x"
    ),
    "WideResNet-28x10": _Printed(
        lambda key: nn.WideResNet(28, 10, 10, key=key), 28, "36M", 9_475, "3800x"
    ),
}
_LENET_NOTE = (
    "By the paper's definition, input channels and features of all layers, LeNet has "
    "207 nodes (and 1 : 202); the 23 printed are the convolutions' alone."
)


def _run(study: Study) -> list[dict[str, Any]]:
    del study  # nothing is trained, drawn or kept
    return [_row(name, printed) for name, printed in _NETWORKS.items()]


def _row(name: str, printed: _Printed) -> dict[str, Any]:
    """Counted from shapes: the numbers themselves are never made."""
    key = jax.random.key(0)
    network = eqx.filter_eval_shape(printed.make, key=key)
    num_weights, num_nodes = nn.num_parameters(network), nn.num_nodes(network)
    convs = [a for a in nn.layers_of(network) if isinstance(a, nn.Conv2d)]
    row: dict[str, Any] = {
        "network": name,
        "layers": printed.layers,
        "weights": num_weights,
        "weights_printed": printed.weights,
        "nodes": num_nodes,
        "nodes_printed": printed.nodes,
        "nodes_of_convolutions": sum(nn.num_inputs(layer) for layer in convs),
        "ratio": num_weights / num_nodes,
        "ratio_printed": printed.ratio,
    }
    for num_components in _COMPONENTS:
        size = _posterior_size(printed, num_components)
        assert size == 2 * num_components * num_nodes
        row[f"posterior_of_{num_components}"] = size
    return row | {"note": _LENET_NOTE if name == "LeNet" else ""}


def _posterior_size(printed: _Printed, num_components: int) -> int:
    """Means and scales of the nodes of an `ImplicitBNN`."""

    def make(key):
        network = printed.make(key=key)
        return ImplicitBNN(network, num_components=num_components, key=key).mixture

    return nn.num_parameters(eqx.filter_eval_shape(make, jax.random.key(0)))


IBNN_TABLE1 = Experiment(
    "weights and nodes of six networks, and the size of their implicit posteriors",
    "Trinh et al. (2020), table 1: the columns that end in _printed.",
    _run,
)
