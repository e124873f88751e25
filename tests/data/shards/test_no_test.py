"""Rows on disk of which none is held out: all are for the training."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import ornstein.data as od

N = 30
RNG = np.random.default_rng(0)


def tables(folder: Path) -> Path:
    """Two files, of numbers with gaps, texts, dates and truths."""
    folder.mkdir()
    for part in range(2):
        frame = pd.DataFrame(
            {
                "id": np.arange(N),
                "a": np.where(RNG.random(N) < 0.3, np.nan, RNG.normal(size=N)),
                "town": RNG.choice(list("abc"), N),
                "day": pd.date_range("2020-01-01", periods=N),
                "new": RNG.random(N) < 0.5,
                "y": RNG.normal(size=N),
                "z": RNG.normal(size=N),
                "kind": RNG.choice(["u", "v"], N),
            }
        )
        frame.to_parquet(folder / f"{part}.parquet", row_group_size=7)
    return folder


def arrays(folder: Path, *, of_classes: bool) -> Path:
    folder.mkdir()
    for part in range(2):
        x = RNG.integers(0, 255, (N, 4, 4, 1), np.uint8)
        y = np.arange(N) % 3 if of_classes else RNG.normal(size=(N, 2))
        np.savez(folder / f"{part}.npz", x=x, y=y)
    return folder


def photos(folder: Path) -> Path:
    for i in range(2 * N):
        path = folder / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RNG.integers(0, 255, (8, 8, 3), np.uint8)).save(path)
    return folder


KINDS = {
    "classes of a table": (tables, {"target": "kind", "id_column": "id"}),
    "numbers of a table": (tables, {"target": ("y", "z")}),
    "classes of arrays": (lambda path: arrays(path, of_classes=True), {}),
    "numbers of arrays": (lambda path: arrays(path, of_classes=False), {}),
    "photographs": (photos, {}),
}


@pytest.mark.parametrize("validation_fraction", [0.0, 0.25])
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_held_out(kind, validation_fraction, tmp_path):
    make, options = KINDS[kind]
    path = make(tmp_path / "data")
    how = {"validation_fraction": validation_fraction, **options}
    data = od.load(str(path), stream=True, test_fraction=0.0, **how)
    num_held = round(2 * N * validation_fraction)
    assert (len(data.train), len(data.test)) == (2 * N - num_held, 0)
    assert data.test.x.shape[1:] == data.example_shape
    assert not data.test_names
    od.save_schema(tmp_path / "data.json", data)
    assert od.load_schema(tmp_path / "data.json").class_names == data.class_names
