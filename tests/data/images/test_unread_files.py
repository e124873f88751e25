"""Files beside images that are no images: a note says how many, and of which kinds."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ornstein.data as od


def photos(folder: Path, parts: tuple[str, ...] = (".",), others=()) -> str:
    """Two classes of six images in each part, and files of other names."""
    for i in range(12):
        for part in parts:
            path = folder / part / "ab"[i % 2] / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((8, 8), 20 * i, np.uint8)).save(path)
    for name in others:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"none")
    return str(folder)


def said(data: od.Data) -> list[str]:
    return [str(note) for note in data.notes if "left out" in str(note)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("parts", [(".",), ("train", "test")])
def test_kinds_that_are_not_read_are_named(stream, parts, tmp_path):
    """Once, of all classes and parts. Catches (seen) photographs that nobody misses."""
    others = [f"{part}/a/{i}.HEIC" for i in range(3) for part in parts]
    others += [f"{parts[-1]}/b/far/down/0.gif", f"{parts[-1]}/b/1.gif"]
    others += [f"{parts[-1]}/a/notes"]
    folder = photos(tmp_path / "own", parts, others)
    (note,) = said(od.load(folder, stream=stream))
    counts = 3 * len(parts) + 3
    assert note.startswith(f"{folder}: {counts} files are left out, of kinds")
    assert f".heic ({3 * len(parts)}), .gif (2), without a suffix (1);" in note
    assert ".bmp, .jpeg, .jpg, .png, .webp" in note


@pytest.mark.parametrize("stream", [False, True])
def test_what_programs_leave_is_not_named(stream, tmp_path):
    """Nor what is hidden, nor what stands beside the classes."""
    others = ["a/.DS_Store", "b/Thumbs.db", "b/desktop.ini", "a/._1.png", "README.md"]
    folder = photos(tmp_path / "own", others=[*others, "a/.cache/x.bin"])
    assert not said(od.load(folder, stream=stream))


def test_many_kinds_are_not_all_named(tmp_path):
    folder = photos(tmp_path / "own", others=[f"a/x.k{i:02d}" for i in range(30)])
    (note,) = said(od.load(folder))
    assert "30 files are" in note
    assert ".k04 (1) and 25 other kinds" in note
    (only,) = said(od.load(photos(tmp_path / "one", others=["a/x.gif"])))
    assert "1 file is left out, of kinds that are not read: .gif (1);" in only


def test_new_images_say_it_too(tmp_path):
    """Catches predictions of fewer images than a folder seems to have."""
    data = od.load(photos(tmp_path / "own"))
    folder = Path(photos(tmp_path / "new", others=["a/x.gif"]))
    for found in (od.read_inputs(folder, data), od.read_labelled(folder, data).inputs):
        assert len(found.x) == 12
        (note,) = found.notes
        assert str(note).startswith(f"{folder}: 1 file is left out")
