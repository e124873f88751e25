"""PyTorch's layers in JAX."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.nn import MLP

torch = pytest.importorskip("torch", reason="PyTorch (extra `torch`)")
import ornstein.torch  # noqa: E402

nn = torch.nn


def images() -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1, dilation=1, groups=2),
        nn.Sequential(nn.GELU(), nn.MaxPool2d(2), nn.Identity()),
        nn.Conv2d(4, 4, (1, 2), bias=False),
        nn.ELU(0.5),
        nn.AvgPool2d(2, stride=1, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(4 * 4 * 3, 3),
        nn.Softplus(),
    )


def lines() -> Any:
    return nn.Sequential(
        nn.Conv1d(2, 3, 3), nn.SiLU(), nn.GELU("tanh"), nn.Flatten(), nn.Linear(18, 2)
    )


def vectors() -> Any:
    layers = (nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 5), nn.Tanh())
    return nn.Sequential(*layers, nn.Sigmoid())


def repeated() -> Any:
    """A layer that stands twice, a subclass, and windows past the border."""

    class Block(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Conv2d(2, 2, 3), act, nn.MaxPool2d(3, 2))

    act = nn.SiLU()
    ceil = nn.MaxPool2d(3, (2, 1), (1, 0), ceil_mode=True)
    return nn.Sequential(Block(), act, ceil, act, nn.Flatten(), nn.Linear(12, 2), act)


class Residual(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Doubled(nn.GELU):
    def forward(self, x):
        return 2 * super().forward(x)


class Negated(nn.Identity):
    def forward(self, x):
        return -x


CASES = {
    "twice": (repeated, (3, 2, 12, 12)),
    "images": (images, (3, 2, 12, 12)),
    "lines": (lines, (3, 2, 8)),
    "vectors": (vectors, (3, 4)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_function(case: str):
    """Catches a kernel that is transposed, and an option that is left out."""
    make, shape = CASES[case]
    torch.manual_seed(0)
    network, x = make(), torch.randn(shape)
    found = orn.torch.from_torch(network)(jnp.asarray(x.numpy()))
    expected = network(x).detach()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_an_implicit_network_of_torchs_layers():
    """Catches weights that are not PyTorch's, and noise that is not there."""
    torch.manual_seed(0)
    network = images()
    module = orn.torch.implicit(
        network, num_components=2, init_spread=0.0, init_scale=1e-4
    )
    x = torch.randn(4, 2, 12, 12)
    draw = module(x)
    torch.testing.assert_close(draw.output, network(x), rtol=0.01, atol=0.01)
    assert not torch.equal(draw.output, module(x).output)
    draw.output.sum().backward()
    noise = list(module.parameters_labelled("noise"))
    weights = list(module.parameters_labelled("weights"))
    assert len(noise) == 2
    numbers = sum(p.numel() for p in network.parameters())
    assert sum(p.numel() for p in weights) == numbers
    assert all(float(p.grad.abs().max()) > 0 for p in [*noise, *weights])


def test_a_network_of_torchs_becomes_mean_field():
    """Catches a network that other random functions do not take."""
    model = orn.MeanField(orn.torch.from_torch(vectors()), orn.GaussianPrior(1.0))
    draw = orn.torch.RandomFunction(model)(torch.randn(3, 4))
    assert draw.kl.item() > 0


@pytest.mark.parametrize(
    ("layer", "kind", "match"),
    [
        (nn.Dropout(), TypeError, "layer 0, a `Dropout`, has no counterpart"),
        (nn.Softplus(2.0), TypeError, "layer 0, a `Softplus`, has no counterpart"),
        (nn.Flatten(0), TypeError, "layer 0, a `Flatten`, has no counterpart"),
        (Residual(nn.Linear(2, 2)), TypeError, "layer 0, a `Residual`, has no counter"),
        (Doubled(), TypeError, "layer 0, a `Doubled`, has no counterpart"),
        (Negated(), TypeError, "layer 0, a `Negated`, has no counterpart"),
        (nn.AvgPool2d(2, ceil_mode=True), ValueError, "ceil_mode=True, whose means at"),
        (
            nn.MaxPool2d(2, 2, 1, ceil_mode=True),
            ValueError,
            "padding 1 and stride 2",
        ),
        (nn.MaxPool2d(2, dilation=2), ValueError, "has dilation=2"),
        (nn.AvgPool2d(2, count_include_pad=False), ValueError, "count_include_pad=Fal"),
        (nn.Conv2d(1, 1, 3, padding="same"), ValueError, "pads by zeros, same"),
        (nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular"), ValueError, "circula"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_without_a_counterpart(layer, kind, match):
    """Catches another function under the same weights."""
    with pytest.raises(kind, match=match):
        orn.torch.from_torch(nn.Sequential(layer))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("network", "kind", "match"),
    [
        (nn.Linear(4, 3).double(), TypeError, r"float64, .* write network\.float\(\)"),
        (nn.Linear(4, 3).bfloat16(), TypeError, "weights of torch.bfloat16, which JAX"),
        (nn.Linear(4, 3, device="meta"), ValueError, "weights on the device meta"),
        (
            MLP(4, 3, (2,), key=jr.key(0)),
            TypeError,
            "`network` must be a `Module`, got",
        ),
    ],
    ids=["double", "bfloat16", "meta", "of JAX"],
)
def test_weights_that_cannot_be_copied(network, kind, match):
    """Catches (seen) double precision that is rounded without a word, and what would
    be an error of PyTorch's or JAX's."""
    with pytest.raises(kind, match=match):
        orn.torch.from_torch(network)


def test_weights_of_double_precision_are_copied_where_jax_has_them():
    with jax.enable_x64(True):
        layer = nn.Linear(4, 3).double()
        weight = orn.torch.from_torch(layer).module.layers[0].weight
        np.testing.assert_array_equal(weight, layer.weight.detach().numpy())


@pytest.mark.parametrize("wrap", [orn.torch.from_torch, orn.torch.implicit])
def test_weights_of_two_layers_are_refused(wrap):
    """Catches weights that are one in PyTorch and two here, or a layer left out."""
    layer = nn.Linear(3, 3)
    with pytest.raises(ValueError, match="layer 2, a `Linear`, has the weights of lay"):
        wrap(nn.Sequential(layer, nn.ReLU(), layer))
    other = nn.Linear(3, 3)
    other.weight = layer.weight
    with pytest.raises(ValueError, match=r"layer 1.0, a `Linear`, has the weights of"):
        wrap(nn.Sequential(layer, nn.Sequential(other)))


def test_what_hooks_compute_is_not_left_out():
    """Catches (seen) an output hook left out, and weights of before the last step."""
    layer = nn.Linear(3, 3)
    layer.register_forward_hook(lambda module, given, output: 2 * output)
    with pytest.raises(
        ValueError, match="layer 1, a `Linear`, has the forward hook `<"
    ):
        orn.torch.from_torch(nn.Sequential(nn.ReLU(), layer))
    with pytest.warns(FutureWarning, match="deprecated"):
        normed = nn.utils.weight_norm(nn.Linear(3, 3))
    with pytest.raises(
        ValueError, match="^A `Linear`, has the forward hook `WeightNorm`, wh"
    ):
        orn.torch.from_torch(normed)


def test_a_pruned_layer_is_as_pytorch_calls_it():
    """Catches weights as they were at the last call, and a refusal."""
    from torch.nn.utils import prune

    layer = prune.random_unstructured(nn.Linear(3, 3), "weight", amount=4)
    with torch.no_grad():
        layer.weight_orig.add_(1.0)
        x = torch.randn(5, 3)
        found = orn.torch.from_torch(layer)(jnp.asarray(x.numpy()))
        np.testing.assert_allclose(found, layer(x).numpy(), rtol=1e-5, atol=1e-6)
