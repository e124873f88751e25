"""Photographs by class as networks of ImageNet take them, from a folder of any size."""

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Num, UInt8
from PIL import Image

from ..._files import UnreadableError, check_npy
from ..._types import Array, Float, PRNGKeyArray
from ...data import (
    DataError,
    DataNotFoundError,
    Split,
    images_below,
    open_image,
    read_encoded,
)
from ...network import Network

_MEAN, _SCALE = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_TEST_NAMES = ("val", "test")


class Photographs(NamedTuple):
    """Bytes, kept on disk, and class numbers.

    Attributes:
        train: squares an eighth larger than the network's, to cut from.
        test: squares of the network's size.
        class_names: sorted, which is ImageNet's order of the usual folder names.
    """

    train: Split
    test: Split
    class_names: list[str]


class OfBytes(eqx.Module):
    """A network that is given bytes and gets what torchvision's networks expect."""

    network: Network

    def __call__(
        self,
        x: Num[Array, "rows height width 3"],
        state: eqx.nn.State | None = None,
    ):
        """The network's output, with the state if one is given."""
        x = x.astype(jnp.float32) / 255
        x = (x - jnp.asarray([[[_MEAN]]])) / jnp.asarray([[[_SCALE]]])
        return self.network(x) if state is None else self.network(x, state)


class RandomResizedCrop(eqx.Module):
    """A random part of each image, in the network's size, mirrored or not.

    The part's area is uniform between 0.08 and 1 of the image's, its ratio of sides
    log-uniform between 3 : 4 and 4 : 3 (where the image has the room).

    Attributes:
        side: pixels that come out.
    """

    side: int = eqx.field(static=True)

    def __call__(
        self, x: Num[Array, "rows height width 3"], *, key: PRNGKeyArray
    ) -> Float[Array, "rows side side 3"]:
        """Cut each image."""
        keys = jr.split(key, x.shape[0])
        return jax.vmap(self._cut)(x.astype(jnp.float32), keys)

    def _cut(self, image: Array, key: PRNGKeyArray) -> Array:
        area_key, ratio_key, place_key, mirror_key = jr.split(key, 4)
        area = jr.uniform(area_key, minval=0.08)
        bound = math.log(4 / 3)
        root = jnp.exp(0.5 * jr.uniform(ratio_key, minval=-bound, maxval=bound))
        size = jnp.array(image.shape[:2], jnp.float32)
        fraction = jnp.sqrt(area) * jnp.stack([root, 1 / root])
        cut = size * jnp.minimum(fraction, 1.0)
        start = jr.uniform(place_key, (2,)) * (size - cut)
        scale = self.side / cut
        image = jax.image.scale_and_translate(
            image, (self.side, self.side, 3), (0, 1), scale, -start * scale, "linear"
        )
        return jnp.where(jr.bernoulli(mirror_key), image[:, ::-1], image)


def read_photographs(
    folder: Path,
    cache: Path,
    *,
    side: int,
    num_train: int | None,
    num_test: int | None,
    seed: int,
) -> Photographs:
    """Decode, resize and cut the photographs, once: as bytes in a file of `cache`.

    Shorter sides become 8/7 of the network's (256 for 224), and the middle is kept.
    Only what is asked for is read; all of ImageNet's training images are 250 GB.

    Args:
        folder: with `train/CLASS/...` and `val/CLASS/...` (or `test/CLASS/...`).
        cache: of the files of bytes.
        side: of the network's images.
        num_train: so many, drawn at random; `None` for all.
        num_test: so many of the held-out ones; `None` for all.
        seed: decides which.

    Raises:
        DataNotFoundError: if those folders are not there.
        DataError: for classes without training images, or files that are no images.
    """
    tests = [name for name in _TEST_NAMES if (folder / name).is_dir()]
    if not tests or not (folder / "train").is_dir():
        raise DataNotFoundError(
            f"{folder} has no folders `train` and `val` (or `test`): put images there "
            "as train/CLASS/image.jpeg and val/CLASS/image.jpeg."
        )
    classes = sorted(p.name for p in (folder / "train").iterdir() if p.is_dir())
    shorter = side * 8 // 7
    splits = []
    parts = (("train", num_train, shorter), (tests[0], num_test, side))
    for number, (part, num_rows, kept) in enumerate(parts):
        paths, y = _listed(folder / part, classes)
        if num_rows is not None and num_rows < len(paths):
            rng = np.random.default_rng([seed, number])
            rows = np.sort(rng.choice(len(paths), num_rows, replace=False))
            paths, y = [paths[row] for row in rows], y[rows]
        splits.append(Split(_stored(paths, shorter, kept, cache), y))
    return Photographs(*splits, classes)


def _listed(folder: Path, classes: list[str]) -> tuple[list[Path], np.ndarray]:
    unknown = {p.name for p in folder.iterdir() if p.is_dir()} - set(classes)
    found = [images_below(folder / name) for name in classes]
    if unknown or not any(found):
        which = f"the unknown class {min(unknown)}" if unknown else "no images"
        raise DataError(
            f"{folder} has {which}: give it sub-folders of images, named as those of "
            "`train`."
        )
    paths = [path for images in found for path in images]
    return paths, np.repeat(np.arange(len(classes)), [*map(len, found)]).astype("int32")


def _stored(paths: list[Path], shorter: int, side: int, cache: Path) -> np.ndarray:
    """The images, from a file that is made once."""
    asked = "\n".join([*map(str, paths), f"{shorter} {side}"])
    name = hashlib.sha256(asked.encode()).hexdigest()[:16]
    path = cache / f"{name}.npy"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        shape = (len(paths), side, side, 3)
        images = np.lib.format.open_memmap(unfinished, "w+", np.uint8, shape)

        def fill(row: int) -> None:
            images[row] = _read(paths[row], shorter, side)

        with ThreadPoolExecutor() as pool:  # Pillow decodes outside Python's lock
            for _ in pool.map(fill, range(len(paths))):
                pass
        images.flush()
        unfinished.replace(path)
    try:
        check_npy(path)
    except UnreadableError as error:
        raise DataError(
            f"{path} cannot be read: {error}; delete it, and it is made again."
        ) from error
    return np.load(path, mmap_mode="r")


def _read(path: Path, shorter: int, side: int) -> UInt8[np.ndarray, "side side 3"]:
    with open_image(read_encoded(path), str(path)) as opened:
        image = opened.convert("RGB")
    factor = shorter / min(image.size)
    width, height = (max(side, round(factor * n)) for n in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - side) // 2, (height - side) // 2
    return np.asarray(image.crop((left, top, left + side, top + side)))
