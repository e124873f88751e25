"""A finished run is judged by rows of another file, or in memory."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import ornstein as orn
from ornstein.cli import main

TINY = "--model mean-field --width 4 --steps 30 --test-draws 4".split()


def frame(num_rows: int, seed: int, target: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    area = rng.normal(100, 20, num_rows).round(2)
    town = rng.choice(["Ulm", "Bonn"], num_rows)
    prices = (3 * area + rng.normal(0, 5, num_rows)).round(2)
    y = {"price": prices, "grade": np.where(prices > 300, "high", "low")}[target]
    return pd.DataFrame({"area": area, "town": town, target: y})


@pytest.fixture(scope="module", params=["price", "grade"])
def trained(request, tmp_path_factory) -> tuple[Path, str]:
    """Runs that were tested on `later.csv` when they were trained."""
    folder = tmp_path_factory.mktemp(request.param)
    frame(60, 0, request.param).to_csv(folder / "own.csv", index=False)
    frame(30, 1, request.param).to_csv(folder / "later.csv", index=False)
    args = ["--data", str(folder / "own.csv"), "--test", str(folder / "later.csv")]
    args += ["--target", request.param, "--out", str(folder / "run")]
    assert main(["train", *args, *TINY]) == 0
    return folder, request.param


def test_the_scores_are_those_of_test_rows(trained, tmp_path, capsys):
    """Those that training found on the same rows. Catches targets in other units,
    classes in another order, other draws, and a training file that is read.
    """
    folder, target = trained
    own = folder / "own.csv"
    text = own.read_text()
    own.unlink()
    try:
        args = ["evaluate", str(folder / "run"), "--test", str(folder / "later.csv")]
        assert main([*args, "--json"]) == 0
    finally:
        own.write_text(text)
    found = json.loads(capsys.readouterr().out)
    wanted = json.loads((folder / "run" / "result.json").read_text())
    names = {"price": "rmse nll crps coverage_90 nll_in_target_units"}
    names["grade"] = "accuracy nll ece brier"
    for name in [*names[target].split(), "nll_se", "epistemic"]:
        assert found[name] == pytest.approx(wanted[name], rel=1e-4, abs=1e-6), name
    assert found["num_rows"] == 30
    kept = folder / "run" / "evaluations" / "later.json"
    assert json.loads(kept.read_text())["nll"] == found["nll"]
    run = orn.load_run(folder / "run")
    rows = frame(30, 1, target)
    in_memory = run.evaluate(rows[[target, "town", "area"]])
    assert in_memory.scores["nll"] == pytest.approx(found["nll"], rel=1e-4)
    x, y = rows[["area", "town"]].to_numpy(object), rows[target].to_numpy()
    as_arrays = run.evaluate(x, y)
    assert as_arrays.scores["nll"] == pytest.approx(found["nll"], rel=1e-4)


def test_scores_of_two_files_of_one_name_are_kept(trained, tmp_path, capsys):
    """Catches scores that others replace; the same file's are written again."""
    folder, target = trained
    other = tmp_path / "later.csv"
    frame(20, 2, target).to_csv(other, index=False)
    for test in (folder / "later.csv", other, other):
        assert main(["evaluate", str(folder / "run"), "--test", str(test)]) == 0
    kept = folder / "run" / "evaluations"
    rows = {p.name: json.loads(p.read_text())["num_rows"] for p in kept.iterdir()}
    assert rows == {"later.json": 30, "later-2.json": 20}


def test_what_a_plain_network_has_no_use_for(trained, capsys):
    """Catches words of Python at the shell."""
    folder, _ = trained
    args = ["evaluate", str(folder / "run"), "--test", str(folder / "later.csv")]
    for option, said in (
        ("--dt 0.1", "which has no solver"),
        ("--draws 0", "at least"),
    ):
        assert main([*args, *option.split()]) == 2
        error = capsys.readouterr().err
        assert said in " ".join(error.split())
        assert "`" not in error


def test_the_solver_is_turned_and_the_draws_are_counted(trained, capsys):
    """Catches options that are passed over beside --test."""
    folder, _ = trained
    args = ["evaluate", str(folder / "run"), "--test", str(folder / "later.csv")]
    assert main([*args, "--draws", "9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_draws"] == 9
    assert main([*args, "--dt", "0.5"]) == 2
    assert "solver" in capsys.readouterr().err


def test_a_row_without_a_target_is_left_out_and_said(trained):
    folder, target = trained
    rows = frame(30, 1, target).astype({target: object})
    rows.loc[3, target] = None
    found = orn.load_run(folder / "run").evaluate(rows)
    assert found.num_rows == 29
    assert any(f"1 row has no {target}" in note for note in found.notes)


def test_rows_that_cannot_judge(trained, tmp_path, capsys):
    """One sentence each, in the words of the shell."""
    folder, target = trained
    rows = frame(30, 1, target)
    files = {
        "none.csv": (rows.drop(columns=target), f"no column '{target}', the target"),
        "lack.csv": (rows.drop(columns="town"), "no column 'town': its columns are"),
        "word.csv": (
            rows.assign(**{target: "middling"}),
            "'middling' in row 0, counting from 0, which training had not: its classes "
            "are high, low."
            if target == "grade"
            else "'middling' in row 0, counting from 0, which is no number",
        ),
        "same.csv": (frame(60, 0, target), "is what the run learned from"),
    }
    for name, (table, sentence) in files.items():
        table.to_csv(tmp_path / name, index=False)
        args = ["evaluate", str(folder / "run"), "--test", str(tmp_path / name)]
        assert main(args) == 2
        said = capsys.readouterr().err
        assert sentence in said, name
        assert said.count("\n") == 1, name
    for options, sentence in {
        "--test no.csv": "There is no no.csv: check the path.",
        f"--test {folder / 'later.csv'} --ood": "--ood is about the run's own test",
        "--separator ,": "--separator is of the file that --test names",
    }.items():
        assert main(["evaluate", str(folder / "run"), *options.split()]) == 2
        assert sentence in capsys.readouterr().err


def test_arrays_that_cannot_judge(trained):
    folder, target = trained
    run, rows = orn.load_run(folder / "run"), frame(30, 1, target)
    x = rows[["area", "town"]].to_numpy(object)
    with pytest.raises(ValueError, match=r"give `evaluate\(x, y\)` or"):
        run.evaluate(x)
    with pytest.raises(ValueError, match=r"give `evaluate\(x, y\)` or"):
        run.evaluate(rows, rows[target].to_numpy())
    with pytest.raises(ValueError, match="x has 30 rows and y has 29"):
        run.evaluate(x, rows[target].to_numpy()[1:])
    y = np.array(["middling"] * 30)
    sentence = "'middling' in row 0.*not" if target == "grade" else "give numbers"
    with pytest.raises(ValueError, match=sentence):
        run.evaluate(x, y)


def test_images_in_folders_and_arrays(tmp_path, capsys):
    """Catches class numbers by the folders that are there, of which one is missing."""
    rng = np.random.default_rng(0)

    def write(folder: Path, names: str, number: int) -> Path:
        for name in names:
            (folder / name).mkdir(parents=True)
            low = 150 if name == "c" else 0
            for i in range(number):
                pixels = rng.integers(low, low + 100, (8, 8), np.uint8)
                Image.fromarray(pixels).save(folder / name / f"{i}.png")
        return folder

    own = write(tmp_path / "own", "abc", 8)
    args = ["--data", str(own), "--model", "mean-field", "--network", "mlp"]
    args += [
        "--width",
        "8",
        "--steps",
        "200",
        "--learning-rate",
        "0.01",
        "--test-draws",
        "8",
    ]
    assert main(["train", *args, "--out", str(tmp_path / "run")]) == 0
    run = orn.load_run(tmp_path / "run")
    found = run.evaluate(write(tmp_path / "later", "c", 5))
    assert found.num_rows == 5
    wanted = np.mean([name == "c" for name in found.prediction.classes])
    assert found.scores["accuracy"] == pytest.approx(wanted)
    assert wanted > 0.5
    pixels = rng.integers(0, 255, (3, 8, 8, 1), np.uint8)
    np.savez(tmp_path / "later.npz", x=pixels, y=np.array(["a", "c", "b"]))
    assert run.evaluate(tmp_path / "later.npz").num_rows == 3
    wrong = write(tmp_path / "wrong", "d", 1)
    with pytest.raises(ValueError, match=re.escape("the sub-folder 'd', which train")):
        run.evaluate(wrong)


def test_what_is_epistemic_is_said(trained, tmp_path, capsys):
    """Variances, or nats. Catches roots of them in a file, or another unit."""
    folder, target = trained
    out = tmp_path / "out.csv"
    args = ["predict", str(folder / "run"), str(folder / "later.csv"), "-o", str(out)]
    assert main(args) == 0
    said = capsys.readouterr().out
    found = pd.read_csv(out)
    total = found["epistemic"] + found["aleatoric"]
    predicted = orn.load_run(folder / "run").predict(folder / "later.csv")
    if target == "price":
        np.testing.assert_allclose(total, predicted.std[:, 0] ** 2, rtol=1e-3)
        assert "epistemic and aleatoric are variances, in the target's unit sq" in said
    else:
        np.testing.assert_allclose(total, found["entropy"], rtol=1e-3)
        assert "epistemic and aleatoric are in nats, and add up to the entropy" in said
