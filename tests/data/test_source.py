"""What counts as a change of the files that data came from."""

import dataclasses
import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ornstein.data as od
from ornstein.data import Source


@pytest.fixture
def images(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("cat", "_dog"):
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True)
        for number in range(6):
            pixels = rng.integers(0, 255, (4, 4, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
    return tmp_path / "images"


def digest_of_all(folder: Path) -> str:
    """As it was of all versions, and is of folders of nothing else."""
    found = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        found.update(f"{file.relative_to(folder).as_posix()}\n".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


@pytest.mark.parametrize(
    "name", [".DS_Store", "cat/._1.png", "cat/Thumbs.db", "desktop.ini", ".git/x"]
)
def test_files_of_other_programs_change_nothing(images: Path, name: str):
    """Catches that a look into a folder ends a run (seen of each)."""
    source = Source.of([images], num_rows=12)
    assert source.sha256 == digest_of_all(images)
    (images / name).parent.mkdir(exist_ok=True)
    (images / name).write_text("other")
    source.check_unchanged()
    assert source.is_same(Source.of([images], num_rows=12))


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux")
def test_a_name_that_is_no_text_has_a_fingerprint(images: Path):
    """Catches (seen) a traceback for a note beside the images."""
    (images / os.fsdecode(b"\xe9.txt")).write_text("other")
    Source.of([images], num_rows=12).check_unchanged()


def test_images_that_change_are_noticed(images: Path):
    """Of a class whose name is not like others' as well."""
    source = Source.of([images], num_rows=12)
    (images / "_dog" / "0.png").write_bytes(b"other")
    assert not source.is_same(Source.of([images], num_rows=12))
    with pytest.raises(od.DataError, match="has changed since"):
        source.check_unchanged()


def test_marks_beside_shards_change_nothing(tmp_path: Path):
    """Catches a `_SUCCESS` that is written later (seen)."""
    for number in range(2):
        x = np.arange(8.0).reshape(4, 2) + number
        np.savez(tmp_path / f"{number}.npz", x=x, y=x[:, 0])
    source = Source.of([tmp_path], num_rows=8)
    (tmp_path / "_SUCCESS").touch()
    source.check_unchanged()
    (tmp_path / "2.npz").write_bytes((tmp_path / "1.npz").read_bytes())
    with pytest.raises(od.DataError, match="has changed since"):
        source.check_unchanged()


def test_fingerprints_of_earlier_versions_hold(images: Path):
    """They are of hidden files, too."""
    (images / ".DS_Store").write_text("other")
    now = Source.of([images], num_rows=12)
    before = dataclasses.replace(now, sha256=digest_of_all(images))
    assert before.sha256 != now.sha256
    before.check_unchanged()
    assert before.is_same(now)


@pytest.mark.parametrize("is_folder", [True, False])
def test_built_in_data_have_no_source(tmp_path: Path, monkeypatch, is_folder: bool):
    """Catches a file or folder of the same name that is taken for it (seen)."""
    monkeypatch.chdir(tmp_path)
    path = Path("digits")
    path.mkdir() if is_folder else path.write_text("other")
    assert od.load("digits").source is None
