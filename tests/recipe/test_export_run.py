"""A prediction as a program that a process without ornstein runs."""

import json
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import ornstein as orn
from ornstein.cli import main
from ornstein.data import Standardisation
from ornstein.recipe._export_run import _standard

NUM_ROWS = 60

# Without a finder of ours: it fails where the program needs the package after all.
WITHOUT = """
import sys
sys.modules["ornstein"] = sys.modules["equinox"] = sys.modules["diffrax"] = None
import numpy as np
from jax import export
with open(sys.argv[1], "rb") as file:
    program = export.deserialize(bytearray(file.read()))
said = program.call(np.load(sys.argv[2]))
np.savez(sys.argv[3], **{name: np.asarray(value) for name, value in said.items()})
"""


def elsewhere(program: Path, x: np.ndarray) -> dict[str, np.ndarray]:
    """What a fresh process says that cannot import the package."""
    given, said = program.with_suffix(".npy"), program.with_suffix(".npz")
    np.save(given, x)
    line = [sys.executable, "-c", WITHOUT, *map(str, (program, given, said))]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(np.load(said))


def as_matrix(frame: pd.DataFrame, columns: list[dict]) -> np.ndarray:
    """By the JSON file alone."""
    parts = []
    for column in columns:
        cells = frame[column["name"]]
        if column["kind"] == "category":
            places = {text: i for i, text in enumerate(column["categories"])}
            cells = cells.fillna("(empty)").map(places).fillna(-1)
        if column["kind"] == "date":
            cells = (pd.to_datetime(cells) - pd.Timestamp(0)).dt.days
        parts.append(cells.astype(float))
    return np.stack(parts, axis=1).astype(np.float32)


@pytest.mark.parametrize("constant", [20240131.0, 1700000001.0, 8388609.5, 0.1])
def test_a_constant_column_stays_0(constant: float):
    """Of numbers that single precision cannot hold. Catches (seen) a program that
    moves them by the last bits of the mean, where `predict` does not."""
    column = np.full(6, constant)
    spread = constant + np.arange(6.0) * 1e-3 * constant
    x = np.stack([column, spread], axis=1)
    scaling = Standardisation.fit(x)
    found = np.asarray(_standard(scaling)(jnp.asarray(x, jnp.float32)))
    np.testing.assert_allclose(found[:, 0], 0, atol=1e-6)
    np.testing.assert_allclose(found[:, 1], scaling.apply(x)[:, 1], atol=1e-3)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rooms = rng.integers(1, 9, NUM_ROWS)
    gaps = rng.random(NUM_ROWS) < 0.2
    days = pd.date_range("2020-01-01", periods=NUM_ROWS).strftime("%Y-%m-%d")
    return pd.DataFrame(
        {
            "rooms": rooms,
            "age": np.where(gaps, np.nan, rng.integers(0, 99, NUM_ROWS)),
            "town": rng.choice(["Ulm", "Bonn", "Trier", None], NUM_ROWS),
            "sold": days,
            "price": 1000.0 + 50 * rooms + rng.normal(0, 9, NUM_ROWS),
        }
    )


@pytest.fixture(scope="module")
def table_run(frame: pd.DataFrame, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    frame.to_csv(folder / "own.csv", index=False)
    line = f"train --data {folder / 'own.csv'} --target price --model mean-field"
    line += f" --width 5 --steps 20 --test-draws 4 --out {folder / 'run'}"
    assert main(line.split()) == 0
    return folder / "run"


def test_a_table_is_predicted_without_the_package(table_run, frame, tmp_path):
    """Gaps, no town or an unknown one, dates. Catches an encoding, a unit, a draw or a
    file that is another than `predict`'s.
    """
    run, path = orn.load_run(table_run), tmp_path / "houses.hlo"
    assert main(["export", str(table_run), "-o", str(path)]) == 0
    said = json.loads(Path(f"{path}.json").read_text())
    rows = frame.iloc[:7].copy()
    rows.loc[3, "town"], rows.loc[4, "town"] = "Rom", None
    theirs = elsewhere(path, as_matrix(rows, said["inputs"]["columns"]))
    ours = run.predict(rows)
    near = {"rtol": 1e-6, "atol": 1e-6 * float(ours.mean.max())}
    np.testing.assert_allclose(theirs["mean"], ours.mean, **near)
    np.testing.assert_allclose(theirs["std"], ours.std, **near)
    for level, values in zip(said["quantile_levels"], theirs["quantiles"], strict=True):
        np.testing.assert_allclose(values, ours.quantile(level), **near)
    levels = np.asarray(said["quantile_levels"])  # rows are padded behind them
    np.testing.assert_allclose(ours.quantile(levels), theirs["quantiles"], **near)
    assert said["target_names"] == ["price"]
    assert set(said["outputs"]) == set(theirs)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("ensemble", "--num-members 2"),
        ("implicit", "--network mlp --num-components 2"),
        ("chains", ""),
        ("sdebnn", "--drift-widths 3 --dt 0.5"),
    ],
)
def test_classes_of_any_number_of_rows(model, options, tmp_path):
    """Catches a number of rows that the program keeps, and draws of another key."""
    rng = np.random.default_rng(1)
    x = rng.normal(100, 3, (NUM_ROWS, 3)).astype(np.float32)
    np.savez(tmp_path / "own.npz", x=x, y=rng.integers(0, 3, NUM_ROWS))
    line = f"train --data {tmp_path / 'own.npz'} --out {tmp_path / 'run'}"
    line += " --task classification"
    if model == "chains":
        line = line.replace("train", "sample", 1) + " --kernel sgld --num-samples 2"
        line += " --num-warmup 2 --num-chains 2 --start-from prior --test-draws 4"
    else:
        line += f" --model {model} --steps 4 --test-draws 4 {options}"
    assert main([*line.split(), "--width", "4"]) in (0, 1)
    run = orn.load_run(tmp_path / "run")
    run.export(tmp_path / "own.hlo")
    for num_rows in (1, 5):
        theirs = elsewhere(tmp_path / "own.hlo", x[:num_rows])
        ours = run.predict(x[:num_rows])
        near = {"rtol": 1e-6, "atol": 1e-6}
        np.testing.assert_allclose(theirs["probs"], ours.probs, **near)
        for name in ("entropy", "epistemic", "aleatoric"):
            value = np.asarray(getattr(ours.prediction, name))
            np.testing.assert_allclose(theirs[name], value, **near)


def test_what_cannot_be_exported_is_refused(table_run, tmp_path, capsys, monkeypatch):
    """Catches files that are replaced, and what fails after the work was done."""
    path = tmp_path / "a.hlo"
    Path(f"{path}.json").write_text("mine")
    assert main(["export", str(table_run), "-o", str(path)]) == 2
    assert "a.hlo.json exists: replace it" in capsys.readouterr().err
    assert main(["export", str(table_run), "-o", str(path), "--num-rows", "0"]) == 2
    assert "--num-rows must be at least 1" in capsys.readouterr().err
    own = table_run / "result.json"
    assert main(["export", str(table_run), "-o", str(own), "--overwrite"]) == 2
    assert not path.exists()
    run = orn.load_run(table_run)
    with pytest.raises(ValueError, match="`num_draws` must be at least 1, got 0"):
        run.export(path, num_draws=0)
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'ornstein\[export\]'"):
        run.export(path)
