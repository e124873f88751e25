"""Draw the figures of `docs/results` from `results/*.json`: `make pages`.

A figure carries a checksum of the numbers in it, by which `tests/test_pages.py` sees
one that is older than its file. `bands.png` is drawn from draws, which results do not
hold: first `ornstein reproduce fig2 --out runs/fig2`, then
`python -m docs.figures runs/fig2`, which refuses draws of other bands than the file's.
"""

import hashlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import ornstein as orn
from docs.records import Entry, read
from docs.render import RESULTS, ROOT
from ornstein.plot import BAND_QUANTILES, band_panels, method_curves

FOLDER = ROOT / "docs" / "results"
CHECKSUM = "ornstein-data"
Data = dict[str, Any]


def dial(results: Path) -> Data:
    """Scores of one fit over the drift evaluations of its solver."""
    rows = sorted(read(results / "fig11.json").rows, key=lambda r: -r.dt)[1:]
    return {
        "curves": {
            "error, %": [100 * (1 - row.accuracy) for row in rows],
            "ECE × 10⁻²": [100 * row.ece for row in rows],
            "10 × NLL": [10 * row.nll for row in rows],
        },
        "xs": [row.num_drift_evaluations for row in rows],
        "xlabel": "drift evaluations a prediction (trained at 6)",
        "ylabel": "scores",
        "title": "MNIST: one fit, other solver steps",
    }


def corruptions(results: Path) -> Data:
    """The error of each model over the severity of corruptions."""
    found = read(results / "fig7.json")
    labels = {
        "sdebnn": "SDE-BNN",
        "resnet-32": "ResNet-32",
        "mean-field-resnet-32": "ResNet-32, mean field",
        "odenet": "ODE net",
    }
    return {
        "curves": {
            label: [100 * e for e in found.rows.where(model=model).all("error")]
            for model, label in labels.items()
        },
        "xs": [0, 1, 2, 3, 4, 5],
        "xlabel": "severity of 19 corruptions",
        "ylabel": "test error, %",
        "title": "CIFAR-10, 1,000 images",
    }


def gbm(results: Path) -> Data:
    """The share of paths in the 90 % band, time by time past the data."""
    rows = [row for row in read(results / "latent_gbm.json").rows if row.has("time")]
    names = list(dict.fromkeys(row.of for row in rows))
    return {
        "curves": {
            name: [row.coverage_90 for row in rows if row.of == name] for name in names
        },
        "xs": [row.time for row in rows if row.of == names[0]],
        "xlabel": "time (data end at 0.6)",
        "ylabel": "share in the 90 % band",
        "ylim": (0.0, 1.0),
        "title": "geometric Brownian motion, continued",
    }


def implicit_depth(results: Path) -> Data:
    """The NLL of new points over the number of hidden layers."""
    rows = read(results / "ibnn_fig1.json").rows
    methods = {"iBNN": "implicit", "BNN-VI": "mean field"}
    return {
        "curves": {
            f"{label}, noise {noise}": list(
                rows.where(method=method, noise=noise).all("nll")
            )
            for noise in ("known", "learned")
            for method, label in methods.items()
        },
        "xlabel": "hidden layers",
        "ylabel": "NLL of new points, nats",
        "title": "x³, 30 points",
    }


def mnist_rows(results: Path) -> Data:
    """The NLL of each method over the rows of MNIST that it was trained on."""
    rows = read(results / "mnist_rows.json").rows.lacking("is_augmented")
    names = dict.fromkeys(rows.all("method"))
    return {
        "curves": {name: list(rows.where(method=name).all("nll")) for name in names},
        "xs": list(dict.fromkeys(rows.all("rows"))),
        "xlabel": "training rows, not augmented",
        "ylabel": "test NLL, nats",
        "has_log_x": True,
        "has_log_y": True,
        "title": "MNIST, first rows, equal gradients",
    }


def pruning(results: Path) -> Data:
    """The test error over the weights that were removed."""
    rows = read(results / "bbb_pruning.json").rows
    return {
        "curves": {"Bayes by Backprop": list(rows.all("test_error"))},
        "xs": [100 * share for share in rows.all("removed")],
        "xlabel": "weights removed, %",
        "ylabel": "test error, %",
        "ylim": (0.0, 2.0),
        "title": "MNIST, 2.4 million weights",
    }


FIGURES: dict[str, Callable[[Path], Data]] = {
    drawn.__name__: drawn
    for drawn in (corruptions, dial, gbm, implicit_depth, mnist_rows, pruning)
}


def checksum(data: Data) -> str:
    """Of everything that a figure shows."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def band_widths(path: Path) -> Data:
    """What is measured of the bands, by which draws are known.

    Args:
        path: of a result of `ornstein reproduce fig2`.
    """
    rows = read(path).rows
    return {f"{row.of}, {row.where}": round(row.width_of_90_percent, 3) for row in rows}


def bands(folder: Path) -> Figure:
    """Prior and posterior of toy/cos, from what `reproduce fig2` leaves.

    Args:
        folder: that it wrote to.

    Raises:
        ValueError: for a run that did not make `results/fig2.json`.
    """
    if band_widths(folder / "result.json") != band_widths(RESULTS / "fig2.json"):
        raise ValueError(f"{folder} has other bands than results/fig2.json")
    toy = orn.data.load("toy/cos")
    grid = np.linspace(-2.0, 2.0, 121)
    panels = {}
    for name in ("prior", "posterior"):
        kept: Entry = read(folder / "pieces" / f"{name}.json")
        outputs = jnp.asarray(kept.value, jnp.float32)
        likelihood = orn.Gaussian(0.1)
        prediction = orn.Prediction(outputs, likelihood)
        panels[name] = np.asarray(prediction.quantile(BAND_QUANTILES))[:, :, 0]
    data = (toy.train.x, np.asarray(toy.train.y))
    return band_panels(grid, {"toy/cos": panels}, data=data, ylim=(-4.5, 4.5))


def save(figure: Figure, path: Path, sum_of_data: str) -> None:
    """A small PNG file with the checksum of its numbers.

    Args:
        figure: any.
        path: of the file.
        sum_of_data: see `checksum`.
    """
    content = io.BytesIO()
    figure.savefig(content, format="png")
    note = PngInfo()
    note.add_text(CHECKSUM, sum_of_data)
    image = Image.open(content).convert("RGB").quantize(64)
    image.save(path, optimize=True, pnginfo=note)
    sys.stdout.write(f"Wrote {path.relative_to(ROOT)}\n")


def main(folders: list[str]) -> None:
    """Draw those whose numbers have changed, and the bands if their folder is given.

    Args:
        folders: what `ornstein reproduce fig2` wrote, or none.
    """
    for name, data_of in FIGURES.items():
        path, data = FOLDER / f"{name}.png", data_of(RESULTS)
        if sum_in(path) != checksum(data):
            save(method_curves(**data), path, checksum(data))
    for folder in folders:
        widths = checksum(band_widths(RESULTS / "fig2.json"))
        save(bands(Path(folder)), FOLDER / "bands.png", widths)


def sum_in(path: Path) -> str | None:
    """The checksum that a figure carries.

    Args:
        path: of the file, which may be missing.
    """
    if not path.is_file():
        return None
    with Image.open(path) as image:
        return image.info.get(CHECKSUM)


if __name__ == "__main__":
    main(sys.argv[1:])
