"""Photographs as people have them: sizes, turns, modes."""

import json

import numpy as np
import pytest
from PIL import Image

import ornstein.data as od


def gradient(height: int, width: int) -> np.ndarray:
    """Dark at the top, bright at the bottom; red at the left, and not at the right."""
    rows = np.linspace(0, 255, height)[:, None].repeat(width, 1)
    columns = np.linspace(255, 0, width)[None].repeat(height, 0)
    return np.stack([columns, rows, rows], -1).astype(np.uint8)


def save(folder, name: str, image: Image.Image, **options):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


@pytest.fixture
def photos(tmp_path):
    """Two classes of six, no two of one size."""
    for i in range(12):
        pixels = gradient(40 + i, 60 + 2 * i)
        save(tmp_path, f"photos/c{i % 2}/{i}.png", Image.fromarray(pixels))
    return tmp_path / "photos"


def test_any_sizes_are_brought_to_one(photos):
    """The middle of each, scaled. Catches a squeezed image, or a corner."""
    data = od.load(str(photos), image_size=16)
    assert data.example_shape == (16, 16, 3)
    assert data.image_size == 16
    x = data.x_scaling.undo(np.concatenate([data.train.x, data.test.x]))
    # 60 + 2i columns of which the middle 40 + i stay: red from 5/6 to 1/6 of white.
    red = x[..., 0].mean((0, 1))
    np.testing.assert_allclose(red[[0, -1]], [255 * 0.82, 255 * 0.18], atol=10)
    assert x[:, 0, :, 1].mean() < 15
    assert x[:, -1, :, 1].mean() > 240


def test_predictions_are_brought_to_the_size_of_training(photos, tmp_path):
    data = od.load(str(photos), image_size=16)
    od.save_schema(tmp_path / "data.json", data)
    known = od.load_schema(tmp_path / "data.json")
    one = save(tmp_path, "one.png", Image.fromarray(gradient(100, 300)))
    found = od.read_inputs(one, known)
    assert found.x.shape == (1, 16, 16, 3)
    assert found.labels == {"file": ["one.png"]}


def test_sizes_that_differ_say_what_to_do(photos):
    with pytest.raises(od.DataError, match=r"one size, for instance by `image_size` 4"):
        od.load(str(photos))
    with pytest.raises(od.DataError, match=r"`image_size` must be from 1 to 4096 pix"):
        od.load(str(photos), image_size=0)
    with pytest.raises(od.DataError, match="`image_size` is for a folder of images"):
        od.load("digits", image_size=8)


def inputs(tmp_path, image, name="one.png", *, channels=3, **options):
    """An image as it is read, in bytes."""
    split = od.Split(np.zeros((2, 8, 8, channels), np.float32), np.zeros(2, np.int32))
    data = od.Data("own", "classification", split, split, image_size=8)
    return od.read_inputs(save(tmp_path, name, image, **options), data).x[0]


def test_exif_turns(tmp_path):
    """As a phone writes an upright picture. Catches pixels as they are stored."""
    exif = Image.Exif()
    exif[0x0112] = 6  # stored turned by 90° to the left
    stored = Image.fromarray(np.rot90(gradient(32, 32)).copy())
    found = inputs(tmp_path, stored, "one.jpg", exif=exif, quality=95)
    assert found[0, :, 1].mean() < 60
    assert found[-1, :, 1].mean() > 195


def test_sixteen_bits_are_scaled(tmp_path):
    """Catches Pillow's clip at 255, after which nearly all is white."""
    values = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
    found = inputs(tmp_path, Image.fromarray(values), channels=1)
    np.testing.assert_allclose(found[..., 0], values // 257, atol=1)


def test_transparent_is_white(tmp_path):
    clear = np.zeros((8, 8, 4), np.uint8)
    clear[:4, :, 3] = 255
    found = inputs(tmp_path, Image.fromarray(clear))
    assert found[0].max() == 0
    assert found[-1].min() == 255


def test_one_colour_photograph_makes_all_colour(tmp_path):
    """Catches channels that are the first file's."""
    for i in range(8):
        image = Image.fromarray(gradient(8, 8))
        image = image if i == 5 else image.convert("L")
        save(tmp_path, f"photos/c{i % 2}/{i}.png", image)
    assert od.load(str(tmp_path / "photos")).example_shape == (8, 8, 3)


def test_padding_keeps_the_whole_image(tmp_path):
    """The same bits in predictions. Catches a crop, and a fit that is not kept."""
    for i in range(12):
        white = np.full((40, 20, 3), 255, np.uint8)
        white[:3], white[-3:] = (200, 0, 0), (0, 0, 200)  # ends, which a crop cuts
        save(tmp_path, f"photos/c{i % 2}/{i}.png", Image.fromarray(white))
    data = od.load(str(tmp_path / "photos"), image_size=16, image_fit="pad")
    x = data.x_scaling.undo(data.train.x)
    assert x[:, :, [0, 3, 12, 15]].max() < 5  # black at both sides
    assert x[:, 8, 5:11].min() > 250
    assert min(x[:, 0, 8, 0].min(), x[:, -1, 8, 2].min()) > 150  # both ends
    cropped = od.load(str(tmp_path / "photos"), image_size=16)
    assert cropped.x_scaling.undo(cropped.train.x).min() > 250
    od.save_schema(tmp_path / "data.json", data)
    known = od.load_schema(tmp_path / "data.json")
    found = od.read_inputs(tmp_path / "photos/c0/0.png", known)
    np.testing.assert_array_equal(found.x[0], data.train.x[0])


def test_a_fit_that_cannot_be(photos, unchecked):
    with pytest.raises(od.DataError, match="`image_fit` pad is how .* `image_size`"):
        od.load(str(photos), image_fit="pad")
    with pytest.raises(od.DataError, match="`image_fit` must be one of crop, pad"):
        od.load(str(photos), image_size=8, image_fit="stretch")  # type: ignore[arg-type]


def test_what_is_known_of_data_of_before(photos, tmp_path):
    """Files of before say nothing of a fit. Catches a run that cannot be read."""
    od.save_schema(tmp_path / "data.json", od.load(str(photos), image_size=8))
    saved = json.loads((tmp_path / "data.json").read_text())
    del saved["image_fit"]
    (tmp_path / "data.json").write_text(json.dumps(saved))
    assert od.load_schema(tmp_path / "data.json").image_fit == "crop"


def split_folder(folder, splits):
    for split in splits:
        for kind in ("cats", "dogs"):
            for i in range(3):
                save(folder, f"{split}/{kind}/{i}.png", Image.new("L", (8, 8), 40 * i))


@pytest.mark.parametrize("splits", ["train val", "Train Test", "train val test"])
def test_splits_are_no_classes(splits, tmp_path):
    """Catches `train` and `val` learned as two classes, with a report on them."""
    split_folder(tmp_path, splits.split())
    with pytest.raises(od.DataError, match="are splits and no classes"):
        od.load(str(tmp_path))


def test_a_class_may_be_called_train(tmp_path):
    for i in range(12):
        kind = ("bus", "train")[i % 2]
        save(tmp_path, f"{kind}/{i}.png", Image.new("L", (8, 8), 10 * i))
    assert od.load(str(tmp_path)).class_names == ("bus", "train")


def test_a_class_without_training_images(tmp_path):
    """Catches a class that the model has and nothing teaches it."""
    split_folder(tmp_path, ["train", "test"])
    assert od.load(str(tmp_path)).num_classes == 2
    for path in (tmp_path / "train" / "dogs").iterdir():
        path.unlink()
    with pytest.raises(od.DataError, match="dogs has no image"):
        od.load(str(tmp_path))


def test_a_stray_folder_is_no_class(photos):
    (photos / "__MACOSX").mkdir()
    with pytest.raises(od.DataError, match="__MACOSX has no image"):
        od.load(str(photos), image_size=16)
