"""What two known networks would cost, by the formulas of `model`: nothing is run."""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ornstein as orn
from ornstein import nn

from . import model
from .model import Cost, Network


class Hardware(NamedTuple):
    """What devices can do: assumptions, of an H100.

    Attributes:
        flops_a_second: that a training step reaches: two fifths of the dense peaks, of
            989 TFLOP a second in bfloat16 and 495 in float32 by TF32.
        within: bytes a second from a device to the next of its node, one way.
        between: the same where a ring leaves the node, which all of it waits for.
        devices_a_node: in a node.
    """

    flops_a_second: float = 400e12
    within: float = 450e9
    between: float = 50e9
    devices_a_node: int = 8

    def seconds(self, cost: Cost, devices: int) -> tuple[float, float]:
        """Of computing and of sending, neither behind the other; without latency."""
        link = self.within if devices <= self.devices_a_node else self.between
        return cost.flops / self.flops_a_second, cost.sent_bytes / link


BF16 = Hardware()
FLOAT32 = Hardware(flops_a_second=200e12)


class Known(NamedTuple):
    """A network and the set it is trained on.

    Attributes:
        make: it, given a `key`.
        shape: of an image.
        num_data: images.
        repeated: its residual blocks that keep their shape: of each stage the number of
            them, weights of one, and pixels of an image there.
    """

    make: Callable[..., Any]
    shape: tuple[int, int, int]
    num_data: int
    repeated: tuple[tuple[int, int, int], ...]


KNOWN = {
    "WideResNet-28x10": Known(
        partial(nn.WideResNet, 28, 10, 10),
        (32, 32, 3),
        50_000,
        # Two convolutions of 3 by 3.
        tuple((3, 18 * c**2, s**2) for c, s in ((160, 32), (320, 16), (640, 8))),
    ),
    "ResNet-50": Known(
        partial(nn.ResNet, 50, 1000),
        (224, 224, 3),
        1_281_167,
        # From 4 c channels to c, 3 by 3, and back.
        tuple(
            (n, 17 * c**2, s**2)
            for n, c, s in ((2, 64, 56), (3, 128, 28), (5, 256, 14), (2, 512, 7))
        ),
    ),
}
ROWS, LEAPFROG, COMPONENTS, IMPLICIT_DRAWS = 128, 10, 8, 2
SDE_STEPS = 8
DRIFT_WIDTHS, DRIFT_HIDDEN = (2, 2), 2 * 128 + 128 * 2  # of `SDEBNN.for_images`
DEVICES = (8, 64)


@functools.cache
def sizes(known: Known) -> Network:
    """Of a network: its convolutions are recorded as they are traced, on shapes."""
    make = lambda key: orn.ImplicitBNN(known.make(key=key), key=key)
    implicit = eqx.filter_eval_shape(make, jax.random.key(0))
    network = implicit.network

    image = jax.ShapeDtypeStruct((1, *known.shape), jnp.float32)

    def run(network: Any, x: jax.Array) -> Any:
        return network(x, eqx.nn.State(network))[0]

    with nn.conv.recorded_convs() as calls:
        eqx.filter_eval_shape(run, network, image)
    products, inputs = [], []
    for one in calls:
        pixels = np.prod(one.geometry.out_shape)
        taps = np.prod(one.geometry.kernel_shape)
        products.append(int(pixels * taps * one.num_in * one.num_out))
        inputs.append(int(np.prod(one.geometry.image_shape) * one.num_in))
    is_linear = lambda node: isinstance(node, nn.Linear)
    for layer in filter(is_linear, jax.tree.leaves(network, is_leaf=is_linear)):
        products.append(layer.weight.size)
        inputs.append(layer.weight.size // layer.bias.size)
    return Network(
        num_weights=nn.num_parameters(network),
        num_products=sum(products),
        num_first=products[0],
        num_nodes=implicit.num_nodes,
        num_kept=sum(inputs),
    )


def parts(known: Known, whole: Network) -> tuple[Network, Network]:
    """The network as an SDE-BNN: of each stage one block, repeated in depth; the rest.

    The blocks of a stage that keep its shape become one, whose weights an SDE moves.
    Weights of normalisations count as the rest.
    """
    weights = sum(n for _, n, _ in known.repeated)
    products = sum(n * pixels for _, n, pixels in known.repeated)
    num_gone = sum(times * n for times, n, _ in known.repeated)
    products_gone = sum(times * n * pixels for times, n, pixels in known.repeated)
    kept_for_each = whole.num_kept / whole.num_products  # about: alike in all blocks
    dynamics = Network(weights, products, 0, 0, int(kept_for_each * products))
    rest = whole._replace(
        num_weights=whole.num_weights - num_gone,
        num_products=whole.num_products - products_gone,
        num_kept=int(whole.num_kept - kept_for_each * products_gone),
    )
    return dynamics, rest


def costs(known: Known, network: Network, devices: int) -> dict[str, Cost]:
    """A step of each method on this many devices.

    Of the rows of HMC those are left out that the devices do not share evenly: with
    them `sample` says that all do the same, and they do.
    """
    dynamics, rest = parts(known, network)
    alike = {"rows": ROWS, "devices": devices}
    num_blocks = len(known.repeated)
    hmc = partial(model.hmc, network, num_leapfrog=LEAPFROG)
    return {
        "mean field by Adam": model.mean_field(network, **alike),
        "mean field by Adam, fsdp": model.mean_field_cut(
            network, reduces_whole=False, **alike
        ),
        "mean field by IVON": model.ivon(network, **alike),
        "implicit, 2 draws": model.implicit(
            network, components=COMPONENTS, draws=IMPLICIT_DRAWS, **alike
        ),
        "SDE-BNN": model.sde_bnn(
            dynamics,
            rest,
            num_steps=SDE_STEPS,
            drift_widths=DRIFT_WIDTHS,
            num_hidden=num_blocks * DRIFT_HIDDEN,
            num_blocks=num_blocks,
            is_start_random=False,
            **alike,
        ),
        "HMC, data": hmc(rows=known.num_data // devices, devices=devices),
        "HMC, chains": hmc(rows=known.num_data),
        "SGLD, chains": model.sgld(network, rows=ROWS),
    }


def arithmetic() -> tuple[dict[str, Network], list[dict[str, Any]]]:
    """The sizes of each network, and a row for each network, method and number."""
    found, rows = {}, []
    for name, known in KNOWN.items():
        found[name] = network = sizes(known)
        for devices in DEVICES:
            for method, cost in costs(known, network, devices).items():
                compute, sending = BF16.seconds(cost, devices)
                slower, _ = FLOAT32.seconds(cost, devices)
                rows.append(
                    {"network": name, "method": method, "devices": devices}
                    | cost._asdict()
                    | {
                        "compute_ms": 1e3 * compute,
                        "sending_ms": 1e3 * sending,
                        "sending_over_compute": sending / compute,
                        "sending_over_compute_float32": sending / slower,
                    }
                )
    return found, rows
