"""MILE as its authors have it: sklearn-contrib-bde on UCI's splits, to compare with.

Its settings are those of its README for a regression: 8 members of two layers of 16,
noise of each row's own (a second output), 5,000 steps of warm-up, 1,000 draws of each
member kept. Inputs and targets are standardised by the training rows; scores are in the
targets' units. It wants another blackjax than ornstein, and so an environment of its
own, and nothing of ornstein:

    python -m venv bde && bde/bin/pip install sklearn-contrib-bde==1.0.2
    bde/bin/python benchmarks/peers/mile_bde.py FOLDER-OF-UCI results/bde.json
"""

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # one a member

import jax
import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

NAMES, SPLITS = ("yacht", "concrete", "wine-quality-red"), (1, 2, 3)
SETTINGS: dict[str, Any] = {
    "hidden_layers": [16, 16],
    "n_members": 8,
    "seed": 0,
    "epochs": 200,
    "validation_split": 0.15,
    "lr": 1e-3,
    "weight_decay": 1e-4,
    "warmup_steps": 5000,
    "n_samples": 2000,
    "n_thinning": 2,
    "patience": 10,
}


def load(folder: Path, split: int) -> dict[str, np.ndarray]:
    """Rows of a split, in their own units."""
    read = lambda name, **how: np.loadtxt(folder / f"{name}.txt", **how)
    data = read("data")
    features, target = (
        read("index_features", dtype=int),
        read("index_target", dtype=int),
    )
    found = {}
    for part in ("train", "test"):
        rows = data[read(f"index_{part}_{split}", dtype=int)]
        found |= {f"x_{part}": rows[:, features], f"y_{part}": rows[:, int(target)]}
    return found


def scores(rows: dict[str, np.ndarray]) -> dict[str, float]:
    """RMSE and negative log likelihood of the mixture over members and draws."""
    from bde import BdeRegressor

    mean, scale = rows["x_train"].mean(0), rows["x_train"].std(0)
    scale = np.where(scale > 0, scale, 1)
    x = {part: (rows[f"x_{part}"] - mean) / scale for part in ("train", "test")}
    y_mean, y_scale = rows["y_train"].mean(), rows["y_train"].std()
    started = time.monotonic()
    model = BdeRegressor(**SETTINGS)
    model.fit(x=x["train"], y=(rows["y_train"] - y_mean) / y_scale)
    raw = np.asarray(model.predict(x["test"], raw=True), np.float64)
    raw = raw.reshape(-1, *raw.shape[2:])  # draws, rows, (location, raw scale)
    location = raw[..., 0] * y_scale + y_mean
    sigma = (np.logaddexp(0, raw[..., 1]) + 1e-6) * y_scale
    log_density = norm.logpdf(rows["y_test"], location, sigma)
    nll = -(logsumexp(log_density, axis=0) - np.log(len(raw))).mean()
    rmse = np.sqrt(np.mean((location.mean(0) - rows["y_test"]) ** 2))
    seconds = time.monotonic() - started
    return {"rmse": float(rmse), "nll": float(nll), "seconds": round(seconds, 1)}


def main(folder: Path, out: Path) -> None:
    """Run what the file has not yet."""
    kept = json.loads(out.read_text())["pieces"] if out.exists() else {}
    for name in NAMES:
        for split in SPLITS:
            piece = f"{name}_{split}"
            if piece not in kept:
                kept[piece] = scores(load(folder / name, split))
                print(piece, kept[piece], flush=True)
            write(out, kept)


def write(out: Path, kept: dict[str, dict[str, float]]) -> None:
    rows = []
    for name in NAMES:
        found = [kept[f"{name}_{s}"] for s in SPLITS if f"{name}_{s}" in kept]
        if found:
            row: dict[str, Any] = {"data": name, "num_splits": len(found)}
            for score in ("rmse", "nll", "seconds"):
                row[score] = float(np.mean([value[score] for value in found]))
            rows.append(row | {"nlls": [round(value["nll"], 4) for value in found]})
    provenance = {
        "command": "python benchmarks/peers/mile_bde.py",
        "versions": {n: version(n) for n in ("sklearn-contrib-bde", "jax", "blackjax")},
        "device": jax.devices()[0].device_kind,
        "settings": SETTINGS,
        "splits": SPLITS,
    }
    found = {"name": "bde", "rows": rows, "pieces": kept, "provenance": provenance}
    out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
