"""torchvision's weights in our networks, against the same layers written in PyTorch."""

from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein import nn
from ornstein.interop import load_torchvision

torch = pytest.importorskip("torch", reason="PyTorch (extra `torch`)")
save_file = pytest.importorskip("safetensors.torch").save_file
tnn = torch.nn


class Block(tnn.Module):
    """`BasicBlock` and `Bottleneck` of torchvision, names included."""

    def __init__(self, size: int, planes: int, stride: int, kernels: tuple[int, ...]):
        super().__init__()
        out = planes * (4 if len(kernels) == 3 else 1)
        sizes = (size, *[planes] * (len(kernels) - 1), out)
        strided = kernels.index(3)
        for i, kernel in enumerate(kernels):
            conv = tnn.Conv2d(
                sizes[i],
                sizes[i + 1],
                kernel,
                stride=stride if i == strided else 1,
                padding=kernel // 2,
                bias=False,
            )
            self.add_module(f"conv{i + 1}", conv)
            self.add_module(f"bn{i + 1}", tnn.BatchNorm2d(sizes[i + 1]))
        self.num, self.out, self.downsample = len(kernels), out, None
        if stride > 1 or size != out:
            conv = tnn.Conv2d(size, out, 1, stride=stride, bias=False)
            self.downsample = tnn.Sequential(conv, tnn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i in range(1, self.num + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = torch.relu(y) if i < self.num else y
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(tnn.Module):
    def __init__(self, kernels: tuple[int, ...], nums: tuple[int, ...], classes: int):
        super().__init__()
        self.conv1 = tnn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = tnn.BatchNorm2d(64)
        size = 64
        for stage, (planes, num) in enumerate(
            zip((64, 128, 256, 512), nums, strict=True)
        ):
            blocks = []
            for i in range(num):
                stride = 2 if stage and not i else 1
                blocks.append(Block(size, planes, stride, kernels))
                size = blocks[-1].out
            self.add_module(f"layer{stage + 1}", tnn.Sequential(*blocks))
        self.fc = tnn.Linear(size, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.max_pool2d(x, 3, stride=2, padding=1)
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


class Plain(tnn.Module):
    """VGG-16 and AlexNet: features, an average, and a classifier."""

    def __init__(self, features: list, side: int, classifier: list):
        super().__init__()
        self.features = tnn.Sequential(*features)
        self.avgpool = tnn.AdaptiveAvgPool2d(side)
        self.classifier = tnn.Sequential(*classifier)

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def vgg16(unit: int, hidden: int, classes: int, norm: bool) -> Plain:
    features, size = [], 3
    for factor in (1, 1, 0, 2, 2, 0, 4, 4, 4, 0, 8, 8, 8, 0, 8, 8, 8, 0):
        if not factor:
            features.append(tnn.MaxPool2d(2))
            continue
        features.append(tnn.Conv2d(size, factor * unit, 3, padding=1))
        size = factor * unit
        features += [tnn.BatchNorm2d(size)] * norm + [tnn.ReLU()]
    classifier = [
        *(tnn.Linear(49 * size, hidden), tnn.ReLU(), tnn.Dropout()),
        *(tnn.Linear(hidden, hidden), tnn.ReLU(), tnn.Dropout()),
        tnn.Linear(hidden, classes),
    ]
    return Plain(features, 7, classifier)


def alexnet(c: tuple[int, ...], hidden: int, classes: int) -> Plain:
    features = [
        *(tnn.Conv2d(3, c[0], 11, stride=4, padding=2), tnn.ReLU()),
        tnn.MaxPool2d(3, 2),
        *(tnn.Conv2d(c[0], c[1], 5, padding=2), tnn.ReLU()),
        tnn.MaxPool2d(3, 2),
        *(tnn.Conv2d(c[1], c[2], 3, padding=1), tnn.ReLU()),
        *(tnn.Conv2d(c[2], c[3], 3, padding=1), tnn.ReLU()),
        *(tnn.Conv2d(c[3], c[4], 3, padding=1), tnn.ReLU()),
        tnn.MaxPool2d(3, 2),
    ]
    classifier = [
        *(tnn.Dropout(), tnn.Linear(36 * c[4], hidden), tnn.ReLU()),
        *(tnn.Dropout(), tnn.Linear(hidden, hidden), tnn.ReLU()),
        tnn.Linear(hidden, classes),
    ]
    return Plain(features, 6, classifier)


def randomised(module):
    """Random statistics and affine parts, too; in evaluation mode."""
    torch.manual_seed(0)
    for m in module.modules():
        if isinstance(m, tnn.BatchNorm2d):
            tnn.init.uniform_(m.weight, 0.5, 1.5)
            tnn.init.normal_(m.bias, std=0.2)
            tnn.init.normal_(m.running_mean, std=0.2)
            tnn.init.uniform_(m.running_var, 0.5, 2.0)
        elif isinstance(m, tnn.Conv2d | tnn.Linear):
            tnn.init.kaiming_normal_(m.weight)
            if m.bias is not None:
                tnn.init.normal_(m.bias, std=0.2)
    return module.eval()


def ours(make: Callable[..., eqx.Module], *args, **kwargs) -> eqx.Module:
    """The network without its numbers: all of them must come from the file."""
    return eqx.filter_eval_shape(make, *args, **kwargs, key=jr.key(0))


@eqx.filter_jit
def logits_of(network: eqx.Module, x: jax.Array) -> jax.Array:
    network = eqx.nn.inference_mode(network)
    if isinstance(network, nn.AlexNet):
        return network(x)
    return network(x, eqx.nn.State(network))[0]


CASES = {
    "resnet18": (
        lambda: ResNet((3, 3), (2, 2, 2, 2), 7),
        lambda: ours(nn.ResNet, 18, 7),
        64,
    ),
    "resnet50": (
        lambda: ResNet((1, 3, 1), (3, 4, 6, 3), 7),
        lambda: ours(nn.ResNet, 50, 7),
        64,
    ),
    # Two pixels a side are averaged to seven, which overlap; an eighth as wide.
    "vgg16": (
        lambda: vgg16(8, 512, 7, norm=False),
        lambda: ours(nn.VGG16, 7, width=1 / 8, head=nn.IMAGENET_HEAD, norm=None),
        64,
    ),
    "vgg16_bn": (
        lambda: vgg16(8, 512, 7, norm=True),
        lambda: ours(nn.VGG16, 7, width=1 / 8, head=nn.IMAGENET_HEAD),
        64,
    ),
    "alexnet": (
        lambda: alexnet((16, 48, 96, 64, 64), 1024, 7),
        lambda: ours(nn.AlexNet, 7, width=1 / 4),
        128,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_logits_are_pytorchs(name: str, tmp_path: Path):
    """Catches exchanged taps, a lost permutation, mean and variance exchanged."""
    make_twin, make_ours, side = CASES[name]
    twin = randomised(make_twin())
    save_file(twin.state_dict(), tmp_path / "weights.safetensors")
    network = load_torchvision(make_ours(), tmp_path / "weights.safetensors")
    x = np.random.default_rng(0).normal(size=(2, side, side, 3)).astype("float32")
    with torch.no_grad():
        theirs = twin(torch.from_numpy(x.transpose(0, 3, 1, 2))).numpy()
    assert theirs.std() > 0.1
    found = np.asarray(logits_of(network, jnp.asarray(x)))
    np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-4)
