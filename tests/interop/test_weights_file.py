"""Weights that do not fit, files that are none, and names of the hub."""

import pickle
import sys
import types
import zipfile
from pathlib import Path

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest
from safetensors.numpy import save_file

from ornstein import nn
from ornstein.interop import load_torchvision
from ornstein.interop._torchvision_names import named_parts

WIDTH = 1 / 16


def resnet(num_classes: int = 3, **kwargs) -> nn.ResNet:
    return eqx.filter_eval_shape(
        nn.ResNet, 18, num_classes, width=WIDTH, key=jr.key(0), **kwargs
    )


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    """Of a ResNet-18 with three classes, as torchvision writes them."""
    rng = np.random.default_rng(0)
    shapes = {n: s for p in named_parts(resnet()) for n, s in p.shapes().items()}
    found = {n: rng.uniform(0.5, 1, s).astype("float32") for n, s in shapes.items()}
    return found | {"bn1.num_batches_tracked": np.array(7)}


def saved(tensors: dict[str, np.ndarray], folder: Path) -> Path:
    save_file(tensors, folder / "w.safetensors")
    return folder / "w.safetensors"


@pytest.mark.parametrize(
    ("make", "num_tensors", "num_parameters"),
    [
        (lambda key: nn.ResNet(18, 1000, key=key), 102, 11_689_512),
        (lambda key: nn.ResNet(34, 1000, key=key), 182, 21_797_672),
        (lambda key: nn.ResNet(50, 1000, key=key), 267, 25_557_032),
        (
            lambda key: nn.VGG16(1000, head=nn.IMAGENET_HEAD, norm=None, key=key),
            32,
            138_357_544,
        ),
        (lambda key: nn.AlexNet(1000, key=key), 16, 61_100_840),
    ],
)
def test_counts_are_torchvisions(make, num_tensors: int, num_parameters: int):
    """Parameters as its documentation prints them; tensors as its files hold them.

    Catches a stage or a shortcut without a name. `num_batches_tracked` not counted.
    """
    network = eqx.filter_eval_shape(make, jr.key(0))
    shapes = {n: s for p in named_parts(network) for n, s in p.shapes().items()}
    assert len(shapes) == num_tensors
    statistics = [n for n in shapes if n.split(".")[-1].startswith("running")]
    sizes = {n: int(np.prod(s)) for n, s in shapes.items()}
    assert sum(sizes.values()) - sum(sizes[n] for n in statistics) == num_parameters


def test_statistics_start_the_state(tensors, tmp_path: Path):
    """Catches statistics left at 0 and 1, and numbers of another type."""
    tensors["bn1.running_mean"] = tensors["bn1.running_mean"].astype("float16")
    network = load_torchvision(resnet(), saved(tensors, tmp_path))
    norm = network.stem[1]
    mean, variance = eqx.nn.State(network).get(norm.index)
    np.testing.assert_array_equal(mean, tensors["bn1.running_mean"])
    np.testing.assert_array_equal(variance, tensors["bn1.running_var"])
    np.testing.assert_array_equal(norm.scale, tensors["bn1.weight"])
    np.testing.assert_array_equal(norm.offset, tensors["bn1.bias"])
    dtypes = {a.dtype for a in jax.tree.leaves(network) if hasattr(a, "dtype")}
    assert dtypes == {np.dtype("float32")}


def test_all_that_does_not_fit_is_listed(tensors, tmp_path: Path):
    """Catches a check that stops at the first tensor."""
    del tensors["layer1.0.conv1.weight"], tensors["bn1.running_mean"]
    tensors["layer9.weight"] = np.zeros(1, "float32")
    conv = tensors["layer4.0.downsample.0.weight"]
    tensors["layer4.0.downsample.0.weight"] = conv.transpose(1, 0, 2, 3).copy()
    tensors["fc.bias"] = np.zeros(3, "int8")
    message = (
        r"w\.safetensors does not fit this `ResNet`\. Tensors missing: "
        r"bn1\.running_mean \(4,\); layer1\.0\.conv1\.weight \(4, 4, 3, 3\)\. "
        r"extra: layer9\.weight \(1,\)\. of another shape: "
        r"layer4\.0\.downsample\.0\.weight \(16, 32, 1, 1\), not \(32, 16, 1, 1\)\. "
        r"of whole numbers: fc\.bias\.$"
    )
    with pytest.raises(ValueError, match=message):
        load_torchvision(resnet(), saved(tensors, tmp_path))


def test_another_number_of_classes(tensors, tmp_path: Path):
    path = saved(tensors, tmp_path)
    with pytest.raises(
        ValueError, match=r"has 3 classes and the network's 5: build .* `head=False`"
    ):
        load_torchvision(resnet(5), path)
    own = nn.Linear(32, 5, key=jr.key(1))
    network = eqx.tree_at(lambda network: network.classifier, resnet(5), own)
    loaded = load_torchvision(network, path, head=False)
    assert eqx.tree_equal(loaded.classifier, own)
    weight = tensors["conv1.weight"].transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(loaded.stem[0].weight, weight)
    del tensors["fc.weight"], tensors["fc.bias"]
    again = load_torchvision(network, saved(tensors, tmp_path), head=False)
    assert eqx.tree_equal(loaded, again)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda key: nn.LeNet(key=key), "knows the layouts of .* got `LeNet`"),
        (lambda key: nn.ResNet(20, 10, key=key), "no `ResNet` of the forms for CIFAR"),
        (
            lambda key: nn.ResNet(18, 10, norm=nn.FilterResponseNorm, key=key),
            "This `ResNet` has parameters beside .* `norm=nn.BatchNorm`",
        ),
        (
            lambda key: nn.ResNet(18, 10, norm=None, initialise=nn.fixup, key=key),
            "This `ResNet` has parameters beside",
        ),
        (
            lambda key: nn.VGG16(10, activation=nn.ThresholdedLinear, key=key),
            "This `VGG16` has parameters beside",
        ),
    ],
)
def test_networks_without_a_counterpart(make, message: str, tmp_path: Path):
    network = eqx.filter_eval_shape(make, jr.key(0))
    with pytest.raises(TypeError, match=message):
        load_torchvision(network, tmp_path / "none.safetensors")


class Trap:
    """Marks the folder when it is loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("name", ["w.pth", "w.safetensors", "w.pt", "w.bin"])
@pytest.mark.parametrize("is_zip", [False, True])
def test_pickles_are_refused_unopened(name: str, is_zip: bool, tmp_path: Path):
    data = pickle.dumps(Trap(tmp_path / "sprung"))
    if is_zip:  # as `torch.save` writes
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr("archive/data.pkl", data)
    else:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match="is a pickle, which runs code .* save_file"):
        load_torchvision(resnet(), tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_headers_that_begin_like_pickles(tensors, tmp_path: Path):
    """Catches safetensors refused for the length of their header: 0x80 is a pickle's.

    Headers are padded to a multiple of 8 bytes, so that one of 16 names hits it.
    """
    for length in range(256):
        path = tmp_path / f"{length}.safetensors"
        save_file({"a": np.zeros(1, "float32"), "b" * length: np.zeros(1)}, path)
        if path.read_bytes()[0] == 0x80:
            break
    else:
        pytest.fail("no header of that length")
    with pytest.raises(ValueError, match=r"missing: conv1\.weight"):
        load_torchvision(resnet(), path)


def test_damaged_and_missing_files(tensors, tmp_path: Path):
    path = saved(tensors, tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        load_torchvision(resnet(), path)
    (tmp_path / "text.txt").write_text("nothing of the kind")
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        load_torchvision(resnet(), tmp_path / "text.txt")
    for source in (tmp_path / "none.safetensors", "none.safetensors", tmp_path, "none"):
        with pytest.raises(FileNotFoundError, match="There is no file"):
            load_torchvision(resnet(), source)


def hub(hf_hub_download) -> types.ModuleType:
    module = types.ModuleType("huggingface_hub")
    module.hf_hub_download = hf_hub_download
    return module


def test_names_of_the_hub(tensors, tmp_path: Path, monkeypatch):
    path = saved(tensors, tmp_path)
    asked = []

    def download(*args):
        asked.append(args)
        return str(path)

    monkeypatch.setitem(sys.modules, "huggingface_hub", hub(download))
    network = resnet()
    by_path = load_torchvision(network, path)
    for source in ("timm/resnet18.tv_in1k", "a/b/weights/w.safetensors"):
        assert eqx.tree_equal(load_torchvision(network, source), by_path)
    assert asked == [
        ("timm/resnet18.tv_in1k", "model.safetensors"),
        ("a/b", "weights/w.safetensors"),
    ]
    with pytest.raises(ValueError, match="is a pickle"):
        load_torchvision(resnet(), "a/b/pytorch_model.bin")
    assert len(asked) == 2


def test_hub_out_of_reach(monkeypatch):
    def refuse(*args):
        raise OSError("no network")

    monkeypatch.setitem(sys.modules, "huggingface_hub", hub(refuse))
    with pytest.raises(FileNotFoundError, match=r"did not give .* \(OSError\)"):
        load_torchvision(resnet(), "owner/name")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(FileNotFoundError, match="huggingface_hub, .* not installed"):
        load_torchvision(resnet(), "owner/name")
