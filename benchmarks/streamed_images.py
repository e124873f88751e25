"""Photographs from disk: how many a second are read, beside the loader of memory.

    python -m benchmarks.streamed_images [--photographs 400] [--size 64] [--json PATH]

Pieces of two photographs of scikit-learn's, enlarged to 1000 × 800 and written as JPEG,
are loaded into memory and left on disk (`stream=True`, whose one pass comes before
training), and an epoch of batches is read by one thread and by one for each core. The
target compares the pass with what loading into memory takes: both decode every file
once. Decoding is nearly all of it, so that cores that others use leave fewer.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import tyro
from PIL import Image
from sklearn.datasets import load_sample_image

from ornstein.data import Streamed, load

from ._timing import Target, print_table, print_targets, write_json

_WIDTH, _HEIGHT = 1000, 800
_BATCH = 32


def write_photographs(folder: Path, number: int) -> int:
    """Two classes, the photographs that pieces are of; their bytes on disk."""
    rng = np.random.default_rng(0)
    size = 0
    for i in range(number):
        name = ("china", "flower")[i % 2]
        photo = Image.fromarray(load_sample_image(f"{name}.jpg"))
        left, top = rng.integers(0, [photo.width - 400, photo.height - 320])
        piece = photo.crop((left, top, left + 400, top + 320))
        path = folder / name / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        piece.resize((_WIDTH, _HEIGHT)).save(path, quality=90)
        size += path.stat().st_size
    return size


def epoch_seconds(rows: Streamed) -> float:
    """To read all batches of an epoch, with nothing beside it."""
    batches = rows.batches(_BATCH, seed=[0], start=0)
    begin = time.perf_counter()
    for _ in range(rows.steps_per_epoch(_BATCH)):
        next(batches)
    seconds = time.perf_counter() - begin
    batches.close()
    return seconds


def main(
    photographs: int = 400, size: int = 64, repeats: int = 3, json: Path | None = None
) -> None:
    """Write photographs, and read them in each way.

    Args:
        photographs: how many.
        size: of the sides to which they are brought.
        repeats: of each, of which the fastest counts.
        json: where to write the results.
    """
    num_cores = len(os.sched_getaffinity(0))
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as root:
        num_bytes = write_photographs(Path(root), photographs)
        for _ in range(repeats):
            for name, stream in (("into memory", False), ("one pass", True)):
                begin = time.perf_counter()
                data = load(root, image_size=size, stream=stream)
                seconds.setdefault(name, []).append(time.perf_counter() - begin)
            assert isinstance(data.train, Streamed)
            for num_readers in sorted({1, num_cores}):
                train = data.train
                rows = Streamed(train.shards, train.sample, 64, num_readers)
                name = f"an epoch, {num_readers} at a time"
                per_row = epoch_seconds(rows) / (len(rows) // _BATCH * _BATCH)
                seconds.setdefault(name, []).append(per_row * photographs)
    rates = {name: photographs / min(times) for name, times in seconds.items()}
    table = {name: {"images_per_second": rate} for name, rate in rates.items()}
    table["photographs"] = {"number": photographs, "bytes": num_bytes, "size": size}
    print_table(
        f"{photographs} photographs of {num_bytes / photographs / 1e3:.0f} kB to {size}"
        f" x {size}, {num_cores} cores",
        ("", "images a second"),
        [(name, f"{rate:.0f}") for name, rate in rates.items()],
    )
    ratio = rates["into memory"] / rates["one pass"]
    targets = [Target("one pass / into memory", ratio, at_most=1.2)]
    print_targets(targets)
    if json is not None:
        write_json(json, table, targets)


if __name__ == "__main__":
    tyro.cli(main)
