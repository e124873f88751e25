"""One small valid file of every format that is read, and its reader.

`READERS` has a line for each: `make(folder)` writes what the reader wants and returns
the file to damage; `read(folder)` reads it as a user's call does.
"""

import functools
import io
import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy
import scipy.io
from PIL import Image

import ornstein as orn
import ornstein.data as od
from ornstein.cli._calls import Calls, read_calls
from ornstein.data.corruptions import _cifar_c
from ornstein.data.corruptions._corrupted_images import GeneratedCorruptions
from ornstein.functions import MeanField, prune
from ornstein.interop._weights_file import WeightsFile
from ornstein.mcmc import HMC
from ornstein.prior import GaussianPrior
from ornstein.recipe import (
    Recipe,
    final_path,
    load_run,
    prepare,
    preset_recipe,
    read_recipe,
)
from ornstein.recipe._published import load_row
from ornstein.report import (
    ChainRecord,
    Example,
    JudgedRows,
    KeptRows,
    load_rows,
    save_rows,
)
from ornstein.sampling import load_samples, sample
from ornstein.studies import Study
from ornstein.studies.implicit._photographs import _stored
from ornstein.studies.sdebnn._table1_runs import read_record
from ornstein.train import (
    RunFolder,
    load_hyperparameters,
    load_model,
    load_sparse,
    save_model,
    save_sparse,
)
from ornstein.train.saving._checkpoint import (
    _digest,
    _record_digest,
    load_checkpoint,
    save_checkpoint,
)


class Reader(NamedTuple):
    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    layer: str = (
        ""  # what a mutation may look into: "npz", "png", "json", "mat", "meta"
    )


def table(folder: Path) -> Path:
    rows = [f"{i},{i % 3},{'ab'[i % 2]},{i}.5" for i in range(12)]
    return write(folder / "own.csv", "\n".join(["x,count,name,y", *rows, ""]))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read_table(folder: Path) -> Any:
    return od.load(str(folder / "own.csv"), target="name")


def numbers(folder: Path) -> Path:
    rows = [f"{i},{i % 3},{i}.5" for i in range(12)]
    return write(folder / "own.csv", "\n".join(["x,count,y", *rows, ""]))


def model_data(*, image: bool = False) -> od.Data:
    x = np.zeros((4, 5, 5, 1) if image else (4, 3), np.float32)
    split = od.Split(x, np.zeros((4, 1), np.float32))
    return od.Data("own", "regression", split, split)


def long_table(times: list[Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        rows = [f"{s},{t},{i}.25" for s in "ab" for i, t in enumerate(times)]
        return write(folder / "long.csv", "\n".join(["s,t,v", *rows, ""]))

    return make


def read_long(folder: Path) -> Any:
    return od.load_series_csv(
        folder / "long.csv", time="t", value="v", series="s", test_fraction=0.5
    )


def parquet(folder: Path) -> Path:
    columns = {"x": [float(i) for i in range(12)], "y": [i + 0.5 for i in range(12)]}
    pq.write_table(pa.table(columns), folder / "own.parquet")
    return folder / "own.parquet"


def hub(folder: Path) -> Path:
    (folder / "mnist").mkdir()
    cells = [{"bytes": encoded("PNG", 28), "path": None} for _ in range(12)]
    labels = [*range(10), 1, 2]
    frame = pa.table({"image": cells, "label": labels})
    names = {"info": {"features": {"label": {"names": [str(i) for i in range(10)]}}}}
    frame = frame.replace_schema_metadata({"huggingface": json.dumps(names)})
    for part in ("train", "test"):
        path = folder / "mnist" / f"{part}-00000-of-00001.parquet"
        pq.write_table(frame, path)
    return path


def npz(save: Callable[..., None]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        x = np.arange(24, dtype=np.float32).reshape(12, 2)
        save(folder / "own.npz", x=x, y=np.arange(12) % 2)
        return folder / "own.npz"

    return make


def encoded(form: str, size: int = 5) -> bytes:
    file = io.BytesIO()
    pixels = np.arange(size * size, dtype=np.uint8).reshape(size, size)
    Image.fromarray(pixels).convert("RGB").save(file, form)
    return file.getvalue()


def images(form: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        for number in range(6):
            path = folder / "images" / f"class{number % 2}" / f"{number}.{form.lower()}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(form))
        return folder / "images" / "class0" / f"0.{form.lower()}"

    return make


def read_image_input(folder: Path) -> Any:
    return od.read_inputs(folder / "one.png", model_data(image=True))


def image_input(folder: Path) -> Path:
    (folder / "one.png").write_bytes(encoded("PNG"))
    return folder / "one.png"


def uci(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        texts = {
            "data": "1 2\n3 4\n5 6\n7 9\n2 8\n",
            "index_features": "0\n",
            "index_target": "1\n",
            "index_train_0": "0\n1\n2\n4\n",
            "index_test_0": "3\n",
        }
        for stem, text in texts.items():
            write(folder / "uci" / "boat" / f"{stem}.txt", text)
        return folder / "uci" / "boat" / f"{name}.txt"

    return make


def mat(*, is_packed: bool) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "mocap").mkdir()
        path = folder / "mocap" / "mocap35.mat"
        sizes = {"Xtr": 16, "Xval": 3, "Xtest": 4}
        arrays = {name: np.ones((n, 300, 50), "f4") for name, n in sizes.items()}
        scipy.io.savemat(path, arrays, do_compression=is_packed)
        return path

    return make


def cifar_c(folder: Path) -> Path:
    np.save(folder / "labels.npy", np.zeros(10, np.uint8))
    np.save(folder / "fog.npy", np.zeros((10, 32, 32, 3), np.uint8))
    return folder / "fog.npy"


def read_cifar_c(folder: Path) -> Any:
    with mock.patch.object(_cifar_c, "ROWS", 2):
        found = _cifar_c.PublishedCorruptions(folder, 1)
        found.check(["fog"], np.zeros(1, np.int32))
        return found.images("fog", 5)


CLEAN = np.zeros((1, 8, 8, 3), np.uint8)


def corrupted(folder: Path) -> Path:
    GeneratedCorruptions(CLEAN, folder, 0).images("contrast", 1)
    return folder / "contrast-1-seed0.npy"


def photograph(folder: Path) -> Path:
    (folder / "one.png").write_bytes(encoded("PNG", 9))
    read_photograph(folder)
    (path,) = folder.glob("*.npy")
    return path


def read_photograph(folder: Path) -> Any:
    return np.array(_stored([folder / "one.png"], 8, 8, folder))


def weights(folder: Path) -> Path:
    arrays = {"a.weight": np.ones((3, 2), np.float32), "b": np.arange(4)}
    safetensors.numpy.save_file(arrays, folder / "w.safetensors", {"format": "pt"})
    return folder / "w.safetensors"


def read_weights(folder: Path) -> Any:
    file = WeightsFile(folder / "w.safetensors")
    return [file.read(name) for name in file.shapes]


LINEAR = eqx.nn.Linear(2, 1, key=jr.key(0))
FIELD = MeanField(orn.nn.Linear(4, 3, key=jr.key(0)))


def model(folder: Path) -> Path:
    save_model(folder / "m.npz", LINEAR, hyperparameters={"sigma": 0.1})
    return folder / "m.npz"


def read_model(folder: Path) -> Any:
    return load_hyperparameters(folder / "m.npz"), load_model(folder / "m.npz", LINEAR)


def sparse(folder: Path) -> Path:
    save_sparse(folder / "s.npz", prune(FIELD, 0.5))
    return folder / "s.npz"


TREE = {"w": jnp.arange(6.0), "step": jnp.asarray(3)}


def checkpoint(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        meta = {"identity": {"seed": 1}, "history": [1.0, 2.0]}
        step = save_checkpoint(folder, 3, TREE, meta)
        return step / "meta.json" if name == "meta" else next(step.rglob("d/*"))

    return make


def read_checkpoint(folder: Path) -> Any:
    return load_checkpoint(folder, TREE, identity={"seed": 1})


def run_folder(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        config = {"command": "ornstein train", "recipe": Recipe().to_json()}
        run = RunFolder.create(folder / "run", config)
        run.write_result({"nll": 0.5, "notes": []})
        return run.path / name

    return make


def made_by_calls(folder: Path) -> Path:
    run = RunFolder.create(folder / "run", {})
    Calls(run, "ornstein train", seed=0, is_first=True)
    return run.path / "calls.json"


@functools.cache
def trained() -> tuple[dict[str, Any], bytes]:
    """The configuration and the model of a finished run."""
    recipe = preset_recipe("toy/cos", model="deterministic").changed(width="2")
    prepared = prepare(recipe)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "final.npz"
        save_model(path, (prepared.model, prepared.likelihood, None))
        return {"recipe": prepared.recipe.to_json()}, path.read_bytes()


def trained_run(folder: Path) -> Path:
    config, model = trained()
    path = final_path(RunFolder.create(folder / "run", config))
    path.write_bytes(model)
    return path


@functools.cache
def sampled() -> dict[str, bytes]:
    """The files of a folder of samples: running chains takes seconds.

    Without a state before, to which readers turn from a damaged one.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "samples"
        sample(
            LINEAR,
            od.Split(np.ones((6, 2), np.float32), np.ones((6, 1), np.float32)),
            orn.Gaussian(0.5),
            kernel=HMC(2, adapt_step_size=False, adapt_mass=False),
            prior=GaussianPrior(1.0),
            key=jr.key(0),
            num_samples=4,
            num_warmup=2,
            num_chains=2,
            folder=folder,
        )
        files = [path for path in folder.iterdir() if "before" not in path.name]
        return {path.name: path.read_bytes() for path in files}


def samples(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "samples").mkdir()
        for file, content in sampled().items():
            (folder / "samples" / file).write_bytes(content)
        return folder / "samples" / name

    return make


def read_samples(folder: Path) -> Any:
    found = load_samples(folder / "samples", LINEAR, orn.Gaussian(0.5))
    return jax.tree.map(np.array, (found.positions, found.info))


def recipe(folder: Path) -> Path:
    entry = {"seeds": [0, 1], "options": {"epochs": 3, "network": "mlp", "sigma": 0.2}}
    content = {"about": "mine", "quick": entry, "gpu": entry, "full": entry}
    return write(folder / "mine.json", json.dumps(content))


def study(folder: Path) -> Study:
    return Study(folder, "quick", seed=0, say=lambda text: None)


def piece(folder: Path) -> Path:
    study(folder).piece("one", {"a": 1}, lambda: [1, 2, 3])
    return folder / "pieces" / "one.json"


def record(folder: Path) -> Path:
    content = {"version": orn.__version__, "data": "mnist", "scale": "quick"}
    return write(folder / "record.json", json.dumps(content | {"nll": 0.5}))


def kept_rows(folder: Path) -> Path:
    column = np.linspace(0.1, 0.9, 6).astype(np.float32)
    names = ("log_prob", "squared_error", "width")
    example = Example(0, "a", True, "1", "2", None, (("x", "1"),), encoded("PNG"))
    rows = JudgedRows(
        "numbers",
        6,
        np.arange(6),
        dict.fromkeys(names, column),
        column,
        {"rmse": 0.1},
        {"rmse": 1.0},
        (example,),
    )
    traces = np.zeros((1, 2, 5), np.float32)
    chain = {"divergences": [0.0, 1.0]}
    chains = ChainRecord(
        traces, ("output",), 1, column, column, column, traces[0], chain, "apart"
    )
    return save_rows(folder, KeptRows(rows, chains))


READERS = {
    "csv": Reader(table, read_table),
    "csv inputs": Reader(
        numbers, lambda f: od.read_inputs(f / "own.csv", model_data(image=False))
    ),
    "long csv": Reader(long_table([0, 1, 2, 3]), read_long),
    "long csv of dates": Reader(
        long_table(["2024-01-01", "2024-01-03", "2024-02-01", "2024-05-01"]), read_long
    ),
    "parquet": Reader(
        parquet, lambda f: od.load(str(f / "own.parquet"), target="y"), "parquet"
    ),
    "hub": Reader(hub, lambda f: od.load("mnist", data_dir=f), "parquet"),
    "npz": Reader(npz(np.savez), lambda f: od.load(str(f / "own.npz")), "npz"),
    "packed npz": Reader(
        npz(np.savez_compressed), lambda f: od.load(str(f / "own.npz")), "npz"
    ),
    **{
        form: Reader(images(form), lambda f: od.load(str(f / "images")), layer)
        for form, layer in (("PNG", "png"), ("JPEG", ""), ("BMP", ""), ("WEBP", ""))
    },
    "image input": Reader(image_input, read_image_input, "png"),
    **{
        f"uci {name}": Reader(uci(name), lambda f: od.load("uci/boat", data_dir=f))
        for name in ("data", "index_train_0", "index_features")
    },
    "mat": Reader(mat(is_packed=False), lambda f: od.load("mocap", data_dir=f)),
    "packed mat": Reader(
        mat(is_packed=True), lambda f: od.load("mocap", data_dir=f), "mat"
    ),
    "cifar-10-c": Reader(cifar_c, read_cifar_c),
    "corruptions": Reader(
        corrupted, lambda f: GeneratedCorruptions(CLEAN, f, 0).images("contrast", 1)
    ),
    "photographs": Reader(photograph, read_photograph),
    "safetensors": Reader(weights, read_weights),
    "model": Reader(model, read_model, "npz"),
    "sparse": Reader(sparse, lambda f: load_sparse(f / "s.npz", FIELD), "npz"),
    "checkpoint meta": Reader(checkpoint("meta"), read_checkpoint, "meta"),
    "checkpoint arrays": Reader(checkpoint("arrays"), read_checkpoint),
    "config": Reader(
        run_folder("config.json"),
        lambda f: read_recipe(RunFolder.open(f / "run")),
        "json",
    ),
    "result": Reader(
        run_folder("result.json"),
        lambda f: RunFolder.open(f / "run").read_result(),
        "json",
    ),
    "calls": Reader(
        made_by_calls, lambda f: read_calls(RunFolder.open(f / "run")), "json"
    ),
    "test rows": Reader(kept_rows, load_rows, "npz"),
    "trained run": Reader(trained_run, lambda f: load_run(f / "run"), "npz"),
    "samples header": Reader(samples("samples.json"), read_samples, "json"),
    "samples array": Reader(samples("0.npy"), read_samples),
    "samples state": Reader(samples("state.npz"), read_samples, "npz"),
    "recipe": Reader(
        recipe, lambda f: load_row("digits", str(f / "mine.json"), "quick"), "json"
    ),
    "piece": Reader(
        piece, lambda f: study(f).piece("one", {"a": 1}, lambda: 1), "json"
    ),
    "table1 record": Reader(
        record, lambda f: read_record(f / "record.json", study(f), "mnist"), "json"
    ),
}


def repacked_npz(data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """With its members changed and their checksums right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, change(info.filename, old.read(info)))
    return out.getvalue()


def rechecked_png(data: bytes) -> bytes:
    """With the checksum of every whole chunk right."""
    out, at = bytearray(data), 8
    while at + 12 <= len(out):
        (length,) = struct.unpack_from(">I", out, at)
        end = at + 8 + length
        if end + 4 > len(out):
            break
        struct.pack_into(">I", out, end, zlib.crc32(out[at + 4 : end]))
        at = end + 4
    return bytes(out)


def repacked_mat(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """With what its first packed element holds changed."""
    kind, length = struct.unpack_from("<II", data, 128)
    inner = zlib.compress(change(zlib.decompress(data[136 : 136 + length])))
    rest = data[136 + length :]
    return data[:128] + struct.pack("<II", kind, len(inner)) + inner + rest


def redigested(step: Path, text: bytes) -> bytes:
    """A checkpoint's `meta.json` with the digest that belongs to its `meta`."""
    try:
        content = json.loads(text)
        meta = json.dumps(content["meta"], sort_keys=True, allow_nan=False)
        content["digest"] = _digest(step / "arrays", meta)
        content["of_record"] = _record_digest(content)
        return json.dumps(content).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return text
