"""The README's tables hold what the files in `results` hold, digit for digit."""

import itertools
import json
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table(header: str, nth: int = 0) -> dict[str, list[str]]:
    """The cells of the nth table whose first line has `header`, by their first."""
    groups = itertools.groupby(README.splitlines(), lambda line: line[:1] == "|")
    tables = [list(lines) for is_table, lines in groups if is_table]
    lines = [lines for lines in tables if header in lines[0]][nth]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows[2:]}


def check(cell: str, *values: float | None) -> None:
    """Each number in a cell is that value, rounded to the digits printed."""
    plain = cell.replace("**", "").replace(",", "").replace("−", "-").replace("+", "")
    shown = re.findall(r"-?\d+\.?\d*", plain)
    wanted = [value for value in values if value is not None]
    assert len(shown) == len(wanted), (cell, values)
    for text, value in zip(shown, wanted, strict=True):
        half = 0.5 * 10.0 ** -len(text.partition(".")[2])
        # Scores are kept in single precision: a tie may have fallen to either side.
        assert float(text) == pytest.approx(value, abs=half + 3e-7 * abs(value)), (
            cell,
            values,
        )


def read(path: str):
    return json.loads((RESULTS / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("row", "name"), [("digits", "digits"), ("MNIST", "mnist"), ("`toy", "toy_cos")]
)
def test_first_table(row: str, name: str):
    """Catches a number of an earlier run, and an error of another quantity."""
    found = read(f"{name}.json")
    cells = table("path KL, nats")
    (cells,) = (cells[label] for label in cells if label.startswith(row))
    zeroed = found["without_drift"]
    if name == "toy_cos":
        check(cells[1], found["nll"], found["nll_se"])
        check(cells[4], zeroed["nll"], zeroed["nll_se"])
    else:
        check(cells[0], 100 * found["accuracy"])
        check(cells[1], found["nll"])
        check(cells[2], 100 * found["ece"])
        check(cells[4], zeroed["nll"])
    check(cells[3], found["kl_path"])
    seconds = found["train_seconds"]
    check(cells[5], seconds / 60 if "min" in cells[5] else seconds)
    assert found["kl_weight"] == 1.0


MODELS = {
    "SDE-BNN": "sdebnn",
    "SDE-BNN, sticking the landing": "sdebnn-stl",
    "SDE-BNN, noise on the last layer of f_h": "partial-sdebnn",
    "SDE-BNN, 8 inducing images": "inducing-sdebnn",
    "ResNet-32 (Fixup)": "resnet-32",
    "ODE net": "odenet",
    "hyper-ODE net": "hyper-odenet",
    "ResNet-32, mean field": "mean-field-resnet-32",
    "ODE net, mean field": "mean-field-odenet",
    "hyper-ODE net, mean field": "mean-field-hyper-odenet",
    "five narrow ResNet-32": "deep-ensemble",
    "five narrow ResNet-32, 10 epochs each": "deep-ensemble",
    "HMC on a network of 10 hidden units, 1,000 images": "hmc",
}


@pytest.mark.parametrize(("nth", "data"), [(0, "mnist"), (1, "cifar10")])
def test_table1(nth: int, data: str):
    """Catches a mean over other seeds, and a deviation of one seed."""
    files = (RESULTS / "table1" / f"{data}-quick").glob("*-[0-9].json")
    records = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    cells = table("epistemic share", nth)
    assert {MODELS[label] for label in cells} == {run["model"] for run in records}
    for label, row in cells.items():
        runs = [run for run in records if run["model"] == MODELS[label]]
        check(row[0], runs[0]["num_parameters"])
        for cell, name, scale in zip(
            row[1:4], ("accuracy", "ece", "nll"), (100, 100, 1), strict=True
        ):
            values = [scale * run[name] for run in runs]
            sd = statistics.stdev(values) if len(values) > 1 else None
            check(cell, statistics.mean(values), sd)
        if row[4] != "–":
            check(row[4], statistics.mean(run["kl"] for run in runs))
        check(row[5], statistics.mean(run["epistemic_share"] for run in runs))
        assert {run["kl_weight"] for run in runs} <= {None, 1.0}


def test_pruning():
    rows = {row["removed"]: row for row in read("bbb_pruning.json")["rows"]}
    rows = [rows[fraction] for fraction in (0, 0.75, 0.95, 0.98)]
    cells = table("weights removed by")
    for cell, row in zip(cells["file, MB"], rows, strict=True):
        check(cell, row["file_bytes"] / 1e6)
    (errors,) = (row for label, row in cells.items() if label.startswith("test error"))
    for cell, row in zip(errors, rows, strict=True):
        check(cell, row["test_error"])


def sentence(start: str, end: str) -> str:
    """What stands in the README between two phrases."""
    return README.split(start)[1].split(end)[0]


def test_inducing_inputs():
    rows = read("inducing.json")["rows"]
    for drift, end in (("plain", "to **"), ("8 inducing inputs", "at equal")):
        elbos = [r["elbo"] for r in rows if r["drift"] == drift and "elbo" in r]
        start = "`toy/cos` from" if drift == "plain" else "17.6) to"
        check(sentence(start, end), statistics.mean(elbos), *elbos)


def test_depth_on_cubic():
    """Catches one noise's numbers under the other's name."""
    rows = read("ibnn_fig1.json")["rows"]

    def nll(method: str, noise: str) -> list[float]:
        return [r["nll"] for r in rows if (r["method"], r["noise"]) == (method, noise)]

    rise = lambda values: (values[-1] - values[0], values[0], values[-1])
    implicit, mean_field = nll("iBNN", "known"), nll("BNN-VI", "known")
    known = sentence("NLL of new points rises by", "), which")
    check(known, *rise(implicit), *rise(mean_field))
    assert all(a < b for a, b in zip(implicit, mean_field, strict=True))
    check(sentence("learned it rises by", "),"), *rise(nll("iBNN", "learned")))
    straight = nll("BNN-VI", "learned")
    check(sentence("every depth (", ", a noise"), min(straight), max(straight))


METHODS = {
    "`HMC`": "hmc",
    "`PartialHMC`": "partial-hmc",
    "`MCDropout`": "mc-dropout",
    "`MeanField`": "mean-field",
}


def test_uci():
    """Catches bold where a method is worse, and a cell without a row behind it."""
    rows = {(row["data"], row["method"]): row for row in read("uci.json")["rows"]}
    sets = ("concrete", "yacht", "wine-quality-red", "kin8nm")
    cells = table("wine-quality-red")
    for label, method in METHODS.items():
        for cell, data in zip(cells[label], sets, strict=True):
            row = rows.get((data, method))
            assert (row is None or row["num_splits"] < 20) == (cell == "–"), cell
            if cell != "–":
                check(cell, row["rmse"], row["log_likelihood"])
                assert row["at_or_better"] == cell.startswith("**")


NETWORKS = {
    "SGD": ("lenet", "sgd"),
    "MC dropout": ("lenet", "mc-dropout"),
    "mean field (Adam)": ("lenet", "bnn-vi"),
    "implicit, K = 8": ("lenet", "ibnn-8"),
    "VGG-16 at a quarter of its width, SGD": ("vgg16-quarter", "sgd"),
    "WideResNet-16-2, SGD": ("wide-resnet-16-2", "sgd"),
}


def test_implicit():
    """Two tables; "the same, implicit" is of the network above it."""
    found = read("ibnn_benchmark.json")["rows"]
    rows = {(row["network"], row["method"]): row for row in found}
    lines = [line for line in README.splitlines() if line.startswith("| the same, imp")]
    same = [[cell.strip() for cell in line.strip("|").split("|")[1:]] for line in lines]
    cells = list((table("error, %", 0) | table("error, %", 1)).items())
    cells = [(NETWORKS[label], row) for label, row in cells if label in NETWORKS]
    assert len(cells) == len(NETWORKS)
    networks = ("vgg16-quarter", "wide-resnet-16-2")
    ours = zip(networks, same, strict=True)
    cells += [((network, "ibnn-4"), row) for network, row in ours]
    for key, row in cells:
        scores = rows[key]
        check(row[0], scores["error_percent"])
        check(row[1], scores["nll"])
        check(row[2], 100 * scores["ece"])
        if len(row) == 4:
            check(row[3], scores["epistemic_share"])
