"""Table 1 counted, and table 7 on a stand-in for ImageNet and its ResNet-50."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from ornstein import nn
from ornstein.data import DataError, DataNotFoundError
from ornstein.interop._torchvision_names import named_parts
from ornstein.studies import Study
from ornstein.studies.implicit import _pretrained as _ibnn_pretrained
from ornstein.studies.implicit._photographs import (
    OfBytes,
    RandomResizedCrop,
    read_photographs,
)
from ornstein.studies.implicit._pretrained import IBNN_PRETRAINED, Budget
from ornstein.studies.implicit._table1 import IBNN_TABLE1

COLOURS = {"blue": (20, 20, 230), "green": (20, 230, 20), "red": (230, 20, 20)}


def study_in(folder: Path, said: list[str]) -> Study:
    return Study(folder, "quick", seed=0, say=said.append)


def test_table1(tmp_path: Path):
    """Catches a layer counted twice or not at all; the paper's own numbers but for
    LeNet's nodes, of which it prints the convolutions'."""
    rows = {r["network"]: r for r in IBNN_TABLE1.run(study_in(tmp_path, []))}
    lenet = rows.pop("LeNet")
    assert (lenet["nodes"], lenet["nodes_of_convolutions"]) == (207, 23)
    assert "207" in lenet["note"]
    assert round(lenet["weights"] / 1e3) == int(lenet["weights_printed"][:-1])
    assert lenet["posterior_of_8"] == 2 * 8 * 207
    for row in rows.values():
        assert row["nodes"] == row["nodes_printed"], row
        assert abs(row["weights"] / 1e6 - int(row["weights_printed"][:-1])) < 0.6, row
        ratio = int(row["ratio_printed"][:-1])
        assert abs(row["ratio"] / ratio - 1) < 0.05, row
        assert not row["note"]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three classes of plain colours, of unequal sizes and shapes."""
    rng = np.random.default_rng(0)
    for part, num in (("train", 4), ("val", 2)):
        for name, colour in COLOURS.items():
            folder = tmp_path / "imagenet" / part / name
            folder.mkdir(parents=True)
            for i in range(num):
                noise = rng.integers(-20, 20, (50 + 10 * i, 90 - 15 * i, 3))
                pixels = (np.array(colour) + noise).astype("uint8")
                Image.fromarray(pixels).save(folder / f"{i}.png")
    return tmp_path / "imagenet"


def test_photographs_are_cut_from_the_middle(images: Path, tmp_path: Path):
    """Catches exchanged sides, classes out of order and a stale file."""
    stripes = np.zeros((64, 128, 3), "uint8")
    stripes[:, 32:96] = 200  # what a square from the middle sees
    path = images / "val" / "blue" / "0.png"
    Image.fromarray(stripes).save(path)

    def read(num_test=None):
        return read_photographs(
            images, tmp_path / "c", side=56, num_train=6, num_test=num_test, seed=0
        )

    found = read()
    assert found.class_names == ["blue", "green", "red"]
    assert found.train.x.shape == (6, 64, 64, 3)
    assert found.test.x.shape == (6, 56, 56, 3)
    np.testing.assert_array_equal(found.test.y, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(found.test.x[0], np.full((56, 56, 3), 200))
    strongest = {"blue": 2, "green": 1, "red": 0}
    for split in (found.train, read(3).test):
        for x, y in zip(split.x, split.y, strict=True):
            if x.min() < 200:
                colour = strongest[found.class_names[y]]
                assert np.argmax(x.mean((0, 1))) == colour
    images_again = read()
    np.testing.assert_array_equal(images_again.test.x, found.test.x)
    assert len([*(tmp_path / "c").glob("*.npy")]) == 3


def test_bytes_are_standardised_as_torchvision_does():
    identity = OfBytes(eqx.nn.Lambda(lambda x: x))
    white = jnp.full((1, 1, 1, 3), 255, jnp.uint8)
    expected = [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    np.testing.assert_allclose(identity(white)[0, 0, 0], expected, rtol=1e-6)


def test_crops_are_parts_of_the_image():
    """Catches a scale or a place that is not the part's: on a ramp, a part of it.

    A part's mean on both ramps is its centre, and its range its size.
    """
    ramp = np.broadcast_to(np.arange(64.0)[:, None], (64, 64))
    image = np.stack([ramp, ramp.T, np.zeros_like(ramp)], -1).astype("float32")
    x = jnp.asarray(np.broadcast_to(image, (256, *image.shape)))
    found = np.asarray(RandomResizedCrop(32)(x, key=jr.key(0)))
    assert found.shape == (256, 32, 32, 3)
    heights = found[:, -1, 0, 0] - found[:, 0, 0, 0]
    widths = found[:, 0, -1, 1] - found[:, 0, 0, 1]
    assert (heights > 0).all()
    assert 0.35 < np.mean(widths < 0) < 0.65  # mirrored
    # From the first to the last of 32 middles of pixels, in pixels of the image.
    area = heights * np.abs(widths) / (64 * 31 / 32) ** 2
    assert 0.05 < area.min() < 0.15 < 0.85 < area.max() <= 1.05
    assert np.abs(found[..., 2]).max() == 0
    assert found[..., :2].min() >= 0
    assert found[..., :2].max() <= 63


def standin(tmp_path: Path) -> Path:
    """A ResNet-18, an eighth as wide, in torchvision's layout."""
    network = nn.ResNet(18, 3, width=1 / 8, key=jr.key(0))
    shapes = {n: s for p in named_parts(network) for n, s in p.shapes().items()}
    rng = np.random.default_rng(0)
    tensors = {}
    for name, shape in shapes.items():
        if name.endswith(("running_mean", "bias")):
            tensors[name] = rng.normal(0, 0.1, shape).astype("float32")
        elif len(shape) == 1:
            tensors[name] = rng.uniform(0.5, 1.5, shape).astype("float32")
        else:
            scale = (2 / np.prod(shape[1:])) ** 0.5
            tensors[name] = rng.normal(0, scale, shape).astype("float32")
    save_file(tensors, tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


@pytest.mark.slow
def test_table7(images: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(
        _ibnn_pretrained,
        "NETWORK",
        lambda num_classes, key: nn.ResNet(18, num_classes, width=1 / 8, key=key),
    )
    monkeypatch.setattr(_ibnn_pretrained, "SIDE", 56)
    budget = Budget((4,), 2, batch_size=6, num_draws=1, num_each=2)
    monkeypatch.setitem(_ibnn_pretrained.BUDGETS, "quick", budget)
    monkeypatch.setenv("ORNSTEIN_IMAGENET", str(images))
    monkeypatch.setenv("ORNSTEIN_RESNET50", str(standin(tmp_path)))
    said: list[str] = []
    rows = IBNN_PRETRAINED.run(study_in(tmp_path / "out", said))
    assert [row["method"] for row in rows] == ["sgd", "ibnn-4"]
    assert [row["num_draws"] for row in rows] == [1, 8]
    assert all(np.isfinite(row["nll"]) for row in rows)
    assert rows[0]["error_printed"] == 23.87
    assert "12 training and 6 test images of 3 classes" in said[0]
    assert rows == IBNN_PRETRAINED.run(study_in(tmp_path / "out", said))
    assert "ibnn-4: kept from before" in said
    # Without the piece, the finished run is gone on from.
    (tmp_path / "out" / "pieces" / "ibnn-4.json").unlink()
    assert rows == IBNN_PRETRAINED.run(study_in(tmp_path / "out", said))


def test_what_is_not_there_is_asked_for(images: Path, tmp_path: Path, monkeypatch):
    monkeypatch.delenv("ORNSTEIN_IMAGENET", raising=False)
    monkeypatch.setenv("ORNSTEIN_RESNET50", "w.safetensors")
    message = "ORNSTEIN_IMAGENET is not set: .* ORNSTEIN_RESNET50, a safetensors"
    with pytest.raises(DataNotFoundError, match=message):
        IBNN_PRETRAINED.run(study_in(tmp_path, []))
    monkeypatch.setenv("ORNSTEIN_IMAGENET", str(images / "train"))
    with pytest.raises(DataNotFoundError, match="no folders `train` and `val`"):
        IBNN_PRETRAINED.run(study_in(tmp_path, []))
    monkeypatch.setenv("ORNSTEIN_IMAGENET", str(images))
    (images / "val" / "yellow").mkdir()
    with pytest.raises(DataError, match="the unknown class yellow"):
        IBNN_PRETRAINED.run(study_in(tmp_path, []))
    (images / "val" / "yellow").rmdir()
    (images / "val" / "red" / "0.png").write_text("no image")
    with pytest.raises(DataError, match=r"0\.png cannot be read as an image"):
        IBNN_PRETRAINED.run(study_in(tmp_path, []))
