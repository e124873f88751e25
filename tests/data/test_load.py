"""Each source against its files, read a second way, or against its definition."""

import io
import sys
import types

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ornstein.data as od


def raw_x(data, split):
    return data.x_scaling.undo(split.x)


def raw_y(data, split):
    return data.y_scaling.undo(split.y)


def scales(data):
    """Mean and scale of the inputs."""
    return data.x_scaling.mean, data.x_scaling.scale


def encode(pixels, kind="PNG", **options):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


def write_images(path, column, images, labels, names=None):
    cells = [{"bytes": image, "path": None} for image in images]
    table = pa.table({column: cells, "label": pa.array(labels, pa.int64())})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def grey(rng, rows):
    return rng.integers(0, 256, (rows, 28, 28), dtype=np.uint8)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def hub_folder(tmp_path, rng):
    """MNIST as the hub's repositories nest it, training rows in two shards."""
    images, labels = grey(rng, 30), np.arange(30) % 10
    for part, rows in (
        ("train-00000-of-00002", slice(0, 10)),
        ("train-00001-of-00002", slice(10, 20)),
        ("test-00000-of-00001", slice(20, 30)),
    ):
        path = tmp_path / "mnist" / "mnist" / f"{part}.parquet"
        write_images(path, "image", [encode(i) for i in images[rows]], labels[rows])
    return tmp_path, images, labels


def test_digits_are_scikit_learns_split():
    """Catches another split, another order, or scaling that saw the test rows."""
    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
    x0, x1, y0, y1 = map(np.asarray, parts)
    data = od.load("digits", seed=7)
    assert data.example_shape == (8, 8, 1)
    np.testing.assert_array_equal(data.train.y, y0)
    np.testing.assert_array_equal(data.test.y, y1)
    expected = (x1 - x0.mean()) / x0.std()
    np.testing.assert_allclose(data.test.x.reshape(len(x1), 64), expected, rtol=2e-6)
    raw = raw_x(data, data.train).reshape(len(x0), 64)
    np.testing.assert_allclose(raw, x0, atol=1e-5)
    assert data.train.x.dtype == np.float32
    assert data.train.y.dtype == np.int32


@pytest.mark.parametrize(
    ("name", "num_train", "low", "high", "noise"),
    [
        ("toy/cos", 40, 0, 8, 0.1),
        ("toy/cos2", 80, 0, 8, 0.1),
        ("toy/coscos", 20, 0, 4, 0.1),
        ("toy/b20", 20, -2, 2, 3.0),
        ("toy/b40", 56, -4, 4, 3.0),
        ("toy/b40gap", 40, -4, 4, 3.0),
        ("toy/cubic", 30, -4, 4, 3.0),
    ],
)
def test_toy_residuals_have_the_noise_of_the_definition(
    name, num_train, low, high, noise
):
    """Catches a wrong curve or noise, and scaling that does not undo."""
    curve = {"cos": np.cos, "cosc": lambda x: np.sqrt(x + 1)}.get(
        name[4:8].rstrip("2"), lambda x: x**3
    )
    data = od.load(name)
    assert len(data.train) == num_train
    for split in (data.train, data.test):
        x = raw_x(data, split)
        y = raw_y(data, split)
        assert x.min() >= low - 1e-5
        assert x.max() <= high + 1e-5
        signs = (1, -1) if name in ("toy/cos2", "toy/coscos") else (1,)
        halves = zip(np.split(x, len(signs)), np.split(y, len(signs)), strict=True)
        residual = np.concatenate(
            [y - sign * curve(x) for sign, (x, y) in zip(signs, halves, strict=True)]
        )
        z = np.sum((residual / noise) ** 2) - len(residual)
        assert abs(z) < 4.5 * np.sqrt(2 * len(residual))


def test_toy_cos_is_the_papers_own_sample():
    """The source's points: NumPy's generator of seed 0, inputs (x - 4) / 4."""
    data = od.load("toy/cos")
    x = np.concatenate([np.linspace(0, 2, 20), np.linspace(6, 8, 20)])
    y = np.cos(x) + 0.1 * np.random.RandomState(0).randn(40)
    np.testing.assert_allclose(data.train.x[:, 0], (x - 4) / 4, rtol=1e-6)
    np.testing.assert_allclose(data.train.y[:, 0], y, rtol=1e-6)


def test_hub_folder_decodes_every_pixel(hub_folder):
    """Catches shuffled shards, a lost channel axis, or a scaling of the wrong rows."""
    folder, images, labels = hub_folder
    data = od.load("mnist", data_dir=folder)
    np.testing.assert_array_equal(data.train.y, labels[:20])
    raw = raw_x(data, data.test)[..., 0]
    np.testing.assert_allclose(raw, images[20:], atol=1e-3)
    mean, scale = images[:20].mean(), images[:20].std()
    np.testing.assert_allclose(scales(data)[0].ravel(), [mean], rtol=1e-6)
    np.testing.assert_allclose(scales(data)[1].ravel(), [scale], rtol=1e-6)
    assert data.notes == ()


def test_environment_names_the_folder(hub_folder, monkeypatch):
    monkeypatch.setenv("ORNSTEIN_DATA", str(hub_folder[0]))
    assert len(od.load("mnist").train) == 20


def test_the_hub_is_asked_for_what_no_folder_has(hub_folder, monkeypatch, tmp_path):
    folder, _, labels = hub_folder
    asked = []

    def snapshot_download(repository, **options):
        asked.append((repository, options["repo_type"]))
        return str(folder / "mnist")

    module = types.SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    data = od.load("mnist", data_dir=tmp_path / "nothing")
    assert asked == [("ylecun/mnist", "dataset")]
    np.testing.assert_array_equal(data.test.y, labels[20:])


@pytest.mark.parametrize("quality", [20, 50, 75, 90])
def test_jpeg_quality_is_noted(tmp_path, rng, quality):
    """Pillow wrote them with a known quality. Catches a wrong table or formula."""
    images = [
        encode(
            rng.integers(0, 256, (32, 32, 3), dtype=np.uint8), "JPEG", quality=quality
        )
        for _ in range(20)
    ]
    for part in ("train", "test"):
        path = tmp_path / "cifar10" / f"{part}-00000-of-00001.parquet"
        write_images(path, "img", images, np.arange(20) % 10)
    data = od.load("cifar10", data_dir=tmp_path)
    assert data.notes == (
        f"Images went through JPEG (quality {quality}): accuracies run below "
        "published ones.",
    )
    assert scales(data)[0].shape == (1, 1, 3)
    np.testing.assert_allclose(data.train.x.mean((0, 1, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(data.train.x.std((0, 1, 2)), 1, rtol=1e-4)


def test_csv_regression(tmp_path, rng):
    """Rows stay together through the split; a spread on a large offset is kept."""
    x = rng.normal(size=(50, 2)) * [1, 1e-3] + [0, 1e6]
    y = x[:, 0] * 2 + 5
    path = tmp_path / "own.csv"
    np.savetxt(path, np.c_[x, y], "%.17g", ",", header="a,b,y", comments="")
    data = od.load(str(path), target="y", seed=3)
    assert (len(data.train), len(data.test)) == (40, 10)
    assert data.feature_names == ("a", "b")
    for split in (data.train, data.test):
        a = raw_x(data, split)[:, 0]
        np.testing.assert_allclose(raw_y(data, split)[:, 0], 2 * a + 5, rtol=1e-5)
    np.testing.assert_allclose(data.train.x.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(data.train.x.std(0), 1, rtol=1e-5)
    assert data.task == "regression"
    again = od.load(str(path), target="y", seed=4)
    assert not np.array_equal(again.train.x, data.train.x)


def test_csv_classes_by_name_and_parquet_alike(tmp_path, rng):
    """Text is classes; the test has each class's share."""
    names = np.array(["cat", "ant"])[np.arange(50) % 5 // 4]
    x = np.where(names == "cat", 1, -1) * rng.uniform(1, 2, 50)
    table = pa.table({"kind": names, "x": x, "flag": [True, False] * 25})
    pq.write_table(table, tmp_path / "own.parquet")
    lines = [
        f"{k},{x.as_py()!r},{f}"
        for k, x, f in zip(names, table["x"], [1, 0] * 25, strict=True)
    ]
    (tmp_path / "own.csv").write_text("\n".join(["kind,x,flag", *lines]) + "\n")
    data = od.load(str(tmp_path / "own.parquet"), target="kind")
    assert data.class_names == ("ant", "cat")
    np.testing.assert_array_equal(np.bincount(data.test.y), [2, 8])
    for split in (data.train, data.test):
        np.testing.assert_array_equal(split.y, raw_x(data, split)[:, 0] > 0)
    other = od.load(str(tmp_path / "own.csv"), target="kind")
    np.testing.assert_array_equal(data.train.x, other.train.x)
    np.testing.assert_array_equal(data.train.y, other.train.y)


def test_whole_numbers_are_taken_for_what_a_note_says(tmp_path, rng):
    x = rng.normal(size=(40, 3))
    for y, task in (
        (np.arange(40) % 4, "classification"),
        (np.arange(40), "regression"),
    ):
        path = tmp_path / "own.npz"
        np.savez(path, x=x, y=y)
        data = od.load(str(path))
        assert data.task == task
        assert "was taken for " + task in data.notes[0]
    np.savez(path, x=x, y=np.arange(40) % 4)
    assert od.load(str(path), task="regression").num_outputs == 1
    assert od.load(str(path), task="regression").notes == ()


def test_folder_of_images(tmp_path, rng):
    """Grey value = class: catches a label that left its image."""
    for number, name in enumerate(("ant", "bee", "cat")):
        (tmp_path / name).mkdir()
        for i in range(5):
            image = np.full((6, 7), 80 * number + i, np.uint8)
            (tmp_path / name / f"{i}.png").write_bytes(encode(image))
    data = od.load(str(tmp_path))
    assert data.example_shape == (6, 7, 1)
    assert data.class_names == ("ant", "bee", "cat")
    for split in (data.train, data.test):
        raw = raw_x(data, split)[:, 0, 0, 0]
        np.testing.assert_array_equal(np.round(raw) // 80, split.y)
    np.testing.assert_array_equal(np.bincount(data.test.y), [1, 1, 1])


def test_folder_of_images_with_its_own_test(tmp_path):
    for part, count in (("train", 3), ("test", 2)):
        for number, name in enumerate(("ant", "bee")):
            (tmp_path / part / name).mkdir(parents=True)
            for i in range(count):
                image = np.full((4, 4, 3), 100 * number + i, np.uint8)
                (tmp_path / part / name / f"{i}.png").write_bytes(encode(image))
    data = od.load(str(tmp_path))
    assert (len(data.train), len(data.test)) == (6, 4)
    assert data.example_shape == (4, 4, 3)
    raw = raw_x(data, data.test)[:, 0, 0, 0]
    np.testing.assert_allclose(raw, [0, 1, 100, 101], atol=1e-4)


def test_new_inputs_follow_the_training_scale(tmp_path, rng):
    """Columns by name, not by place."""
    x = rng.normal(size=(20, 2)) * 3 + 1
    path = tmp_path / "own.csv"
    np.savetxt(path, np.c_[x, x.sum(1)], "%.17g", ",", header="a,b,y", comments="")
    data = od.load(str(path), target="y")
    new = tmp_path / "new.csv"
    np.savetxt(new, x[:, ::-1], "%.17g", ",", header="b,a", comments="")
    expected = (x - scales(data)[0]) / scales(data)[1]
    np.testing.assert_allclose(od.read_inputs(new, data).x, expected, rtol=1e-6)


def test_validation_rows_leave_training_and_its_scale(tmp_path, rng):
    """Scaled by the rows that are left, as if the others had never been there."""
    x = rng.gamma(1.0, size=(200, 3)) + 2
    np.savez(tmp_path / "own.npz", x=x, y=x[:, :1])
    whole = od.load(str(tmp_path / "own.npz"))
    data = od.load(str(tmp_path / "own.npz"), validation_fraction=0.25)
    assert data.validation is not None
    assert (len(data.train), len(data.validation), len(data.test)) == (120, 40, 40)
    train, validation, test = (
        raw_x(data, s) for s in (data.train, data.validation, data.test)
    )
    np.testing.assert_allclose(train.mean(0), scales(data)[0], rtol=1e-6)
    np.testing.assert_allclose(train.std(0), scales(data)[1], rtol=1e-5)
    np.testing.assert_allclose(data.train.y.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(test, raw_x(whole, whole.test), rtol=1e-5)
    together = np.sort(np.concatenate([train, validation, test]), axis=0)
    np.testing.assert_allclose(together, np.sort(x, axis=0), rtol=1e-5)
    np.testing.assert_allclose(
        raw_y(data, data.validation)[:, 0], validation[:, 0], rtol=1e-5
    )


def test_validation_keeps_the_share_of_each_class_and_a_given_scale():
    data = od.load("digits", validation_fraction=0.1)
    assert data.validation is not None
    share = np.bincount(data.validation.y) / np.bincount(data.train.y)
    np.testing.assert_allclose(share, 1 / 9, atol=0.02)
    toy = od.load("toy/cos", validation_fraction=0.1)
    np.testing.assert_array_equal(scales(toy)[0], [4.0])


def test_constant_features_become_zero():
    x = np.array([[1e8, 0.1], [1e8, 0.2], [1e8, 0.3]])
    scaling = od.Standardisation.fit(x)
    np.testing.assert_array_equal(scaling.apply(x)[:, 0], 0)
    np.testing.assert_allclose(scaling.apply(x)[:, 1].std(), 1, rtol=1e-6)


def test_moments_over_blocks_are_those_of_the_whole(rng):
    """More rows than a block has; bytes and floats."""
    x = rng.integers(0, 256, (3000, 2, 2, 3), dtype=np.uint8)
    for values in (x, x.astype(np.float32)):
        scaling = od.Standardisation.fit(values, (0, 1, 2))
        np.testing.assert_allclose(scaling.mean[0, 0], x.mean((0, 1, 2)), rtol=1e-12)
        np.testing.assert_allclose(scaling.scale[0, 0], x.std((0, 1, 2)), rtol=1e-12)


def test_list_names_what_load_takes():
    names = od.list_data()
    for name in ("digits", "toy/cos", "mnist", "cifar100", "uci/NAME", "FILE.npz"):
        assert names[name]
