"""Every bad input meets one sentence that names it and the remedy."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import ornstein.data as od


def csv(folder, text):
    path = folder / "own.csv"
    path.write_text(text)
    return str(path)


def npz(folder, **arrays):
    path = folder / "own.npz"
    np.savez(path, **arrays)
    return str(path)


def load_csv(text, target: str | None = "y", **options):
    options["target"] = target
    return lambda folder: od.load(csv(folder, text), **options)


def load_npz(x, y, **options):
    return lambda folder: od.load(npz(folder, x=np.array(x), y=np.array(y)), **options)


def truncated(suffix):
    def make(folder):
        path = folder / f"own{suffix}"
        if suffix == ".npz":
            np.savez_compressed(path, x=np.ones((50, 2)), y=np.arange(50))
        else:
            pq.write_table(pa.table({"x": list(range(50)), "y": [0.5] * 50}), path)
        path.write_bytes(path.read_bytes()[:-60])
        return od.load(str(path), target=None if suffix == ".npz" else "y")

    return make


def images(folder, sizes, suffix=".png", garbage=False):
    for number, (height, width) in enumerate(sizes):
        (folder / f"class{number % 2}").mkdir(exist_ok=True)
        path = folder / f"class{number % 2}" / f"{number}{suffix}"
        Image.fromarray(np.zeros((height, width), np.uint8)).save(path)
    if garbage:
        path.write_bytes(path.read_bytes()[:40])
    return od.load(str(folder))


def uci(folder, *, split=0, name="boat", **files):
    texts = {
        "data": "1 2\n3 4\n5 6\n7 9\n",
        "index_features": "0\n",
        "index_target": "1\n",
        "index_train_0": "0\n1\n2\n",
        "index_test_0": "3\n",
    }
    (folder / "uci" / "boat").mkdir(parents=True)
    for stem, text in (texts | files).items():
        (folder / "uci" / "boat" / f"{stem}.txt").write_text(text)
    return od.load(f"uci/{name}", data_dir=folder, split=split)


def mnist(folder, labels=(0, 1), column="image", files=("train", "test"), data=None):
    (folder / "mnist").mkdir()
    Image.fromarray(np.eye(28, dtype=np.uint8)).save(folder / "one.png")
    data = (folder / "one.png").read_bytes() if data is None else data
    cells = [{"bytes": data, "path": None} for _ in labels]
    table = pa.table({column: cells, "label": list(labels)})
    for name in files:
        pq.write_table(table, folder / "mnist" / f"{name}-00000-of-00001.parquet")
    return od.load("mnist", data_dir=folder)


def cut_shard(folder):
    (folder / "mnist").mkdir()
    for part in ("train", "test"):
        path = folder / "mnist" / f"{part}-00000-of-00001.parquet"
        path.write_bytes(b"PAR1 and then the connection broke")
    return od.load("mnist", data_dir=folder)


def lost_shard(folder):
    (folder / "mnist").mkdir()
    (folder / "mnist" / "train-00000-of-00002.parquet").write_bytes(b"")
    return od.load("mnist", data_dir=folder)


TEN = "\n".join(f"{i},{i}.5" for i in range(10)) + "\n"
GOOD = "x,y\n" + TEN

BAD = [
    (
        "infinite",
        load_csv("x,y\n1,2.5\ninf,3.5\n3,1\n"),
        r"'x' has 'inf' in row 1,.*no finite number",
    ),
    ("nan_x", load_npz([[1, np.nan]] * 9, [0.5] * 9), r"9 NaN or .* row 0 \(column 1"),
    ("nan_y", load_npz(np.ones((3, 1)), [1, np.nan, np.inf]), r"2 NaN or .* row 1"),
    ("empty", load_csv(""), "is empty: give a header"),
    ("no_rows", load_csv("x,y\n"), "has a header and no rows"),
    ("ragged", load_csv("x,y\n1,2\n1\n"), "cannot be read as CSV .*Expected 2"),
    ("same_names", load_csv("x,x,y\n1,2,3\n"), "two columns of one name"),
    (
        "a_word",
        load_csv("x,y\n1,1.5\nblue,2.5\n" + 20 * "3,1\n"),
        "'x' has 'blue' in row 1",
    ),
    ("no_target", load_csv(GOOD, None), "needs a target: .* the columns are x, y"),
    ("lost_column", load_csv("x,price\n" + TEN, "prize"), "mean 'price'.* x, price"),
    ("only_target", load_csv("y\n1.5\n2.5\n"), "no column beside y"),
    (
        "words_as_numbers",
        load_csv("x,y\n1,a\n2,b\n", task="regression"),
        "not a number",
    ),
    ("floats_as_classes", load_csv(GOOD, task="classification"), "0.5, which is no cl"),
    ("task", load_csv(GOOD, task="ranking"), "one of classification, regression"),
    ("one_row", load_csv("x,y\n1,2.5\n"), "holding out 20% of 1 rows"),
    ("lonely", load_npz(np.ones((9, 1)), ["a"] * 8 + ["b"]), "Class 'b' has one exam"),
    ("one_class", load_npz(np.ones((9, 1)), ["a"] * 9), "has one class, a: give"),
    ("many_classes", load_npz(np.ones((8, 1)), [*"aabbccdd"]), "fewer rows than the 4"),
    ("fraction", load_csv(GOOD, test_fraction=1.5), "between 0 and 1, got 1.5"),
    ("validation", load_csv(GOOD, validation_fraction=-1.0), "between 0 and 1, got -1"),
    ("lengths", load_npz(np.ones((9, 1)), [0.5] * 8), "x has 9 rows and y has 8"),
    (
        "flat_x",
        load_npz([1.0] * 9, [0.5] * 9),
        r"x has shape \(9,\); give \(rows, feat",
    ),
    ("no_channel", load_npz(np.ones((9, 8, 8)), [0.5] * 9), "1 channel for grey"),
    ("no_columns", load_npz(np.ones((9, 0)), [0.5] * 9), r"x has shape \(9, 0\)"),
    ("text_x", load_npz([["a"]] * 9, [0.5] * 9), "x has type <U1, which is text; gi"),
    ("cube_y", load_npz(np.ones((9, 1)), np.ones((9, 1, 1))), "y has shape"),
    ("no_y", lambda f: od.load(npz(f, x=np.ones(3))), "no array 'y', only x: write"),
    ("pickled", load_npz([[1.0]], np.array([{}])), "has pickled objects"),
    ("cut_npz", truncated(".npz"), "bytes.* cannot be read as .npz"),
    ("cut_parquet", truncated(".parquet"), "bytes.* cannot be read as parquet"),
    (
        "npz_target",
        load_npz(np.ones((9, 1)), [0.5] * 9, target="y"),
        "leave `target` o",
    ),
    ("sizes", lambda f: images(f, [(4, 4), (4, 5)]), "4 × 5 pixels .* 4 × 4: bring"),
    (
        "cut_image",
        lambda f: images(f, [(9, 9)] * 2, garbage=True),
        "1.png cannot be re",
    ),
    ("one_folder", lambda f: images(f, [(4, 4)]), "1 sub-folders and 1 images"),
    ("empty_folder", lambda f: od.load(str(f)), "0 sub-folders and 0 images"),
    ("name", lambda f: od.load("mnst"), "no data set 'mnst' .*mean 'mnist'.*digits"),
    ("lost_file", lambda f: od.load(str(f / "no.csv"), target="y"), "There is no file"),
    ("kind", lambda f: od.load(__file__), "is of no kind that can be read"),
    ("split_of_digits", lambda f: od.load("digits", split=1), "no numbered splits"),
    ("task_of_digits", lambda f: od.load("digits", task="regression"), "its own task"),
    ("uci_split", lambda f: uci(f, split=20), "no split 20: give one of 0 … 0"),
    ("uci_name", lambda f: uci(f, name="boot"), "mean 'uci/boat'.* has uci/boat"),
    ("uci_no_folder", lambda f: od.load("uci/boat"), "with `data_dir` or ORNSTEIN"),
    ("uci_cut", lambda f: uci(f, data="1 2\n3\n"), "not a table of numbers"),
    ("uci_empty", lambda f: uci(f, data=""), "data.txt is empty"),
    ("uci_index", lambda f: uci(f, index_test_0="4\n"), "whole numbers of 0 … 3"),
    ("uci_shared", lambda f: uci(f, index_test_0="2\n"), "row 2 is both"),
    ("label", lambda f: mnist(f, labels=(0, 10)), "1 of the labels out of .* 10 in r"),
    ("no_label", lambda f: mnist(f, labels=(-1, 0)), "the first -1 in row 0.*withheld"),
    ("hub_column", lambda f: mnist(f, column="img"), "no column 'image', only img, la"),
    ("hub_test", lambda f: mnist(f, files=["train"]), r"no test-\*.parquet"),
    ("hub_image", lambda f: mnist(f, data=b"GIF"), "image 0 cannot be read as an im"),
    ("hub_cut", cut_shard, "34 bytes.*cannot be read as parquet"),
    ("hub_lost_shard", lost_shard, "has 1 of the 2 files"),
]


@pytest.mark.parametrize(
    ("make", "match"), [b[1:] for b in BAD], ids=[b[0] for b in BAD]
)
def test_bad_input(make, match, tmp_path, monkeypatch):
    monkeypatch.delenv("ORNSTEIN_DATA", raising=False)
    with pytest.raises(od.DataError, match=match) as caught:
        make(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_what_is_not_there_is_a_file_not_found_too(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.delenv("ORNSTEIN_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError, match=r"no `data_dir` was given.*pip install"
    ):
        od.load("mnist")
    with pytest.raises(FileNotFoundError, match=r"nothing.*copy huggingface\.co"):
        od.load("cifar10", data_dir=tmp_path / "nothing")


def test_new_inputs_must_fit(tmp_path):
    data = od.load("digits")
    with pytest.raises(od.DataError, match=r"shape \(3,\) and the model learned"):
        od.read_inputs(npz(tmp_path, x=np.ones((2, 3))), data)
    with pytest.raises(od.DataError, match="x has type <U1, which is text; give num"):
        od.read_inputs(npz(tmp_path, x=np.full((2, 8, 8, 1), "a")), data)
    with pytest.raises(FileNotFoundError, match="There is no"):
        od.read_inputs(tmp_path / "lost.dat", data)
    with pytest.raises(od.DataError, match="model learned from rows of 1 numbers"):
        od.read_inputs(tmp_path, od.load("toy/cos"))


def test_a_split_of_several_arrays():
    split = od.Split({"a": np.arange(3), "b": np.ones((3, 2))}, np.arange(3))
    assert len(split) == 3
    some = split.rows(np.array([2, 0]))
    assert (some.x["a"].tolist(), some.x["b"].shape) == ([2, 0], (2, 2))


def test_splits_and_validation_guard_themselves():
    with pytest.raises(od.DataError, match="x has 3 rows and y has 2"):
        od.Split(np.zeros((3, 1), np.float32), np.zeros(2, np.int32))
    with pytest.raises(od.DataError, match="x must be arrays with rows first, got"):
        od.Split(np.zeros(()), np.zeros(2, np.int32))
    with pytest.raises(od.DataError, match=r"arrays of x have \[2, 3\] rows"):
        od.Split({"a": np.zeros((3, 1)), "b": np.zeros((2, 1))}, np.zeros(3, np.int32))
    with pytest.raises(od.DataError, match="has 144 validation rows already"):
        od.load("digits", validation_fraction=0.1).with_validation(0.1)
