"""Methods side by side on a table."""

import json
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import ornstein as orn
from ornstein.cli import main
from ornstein.comparison import Comparison, MethodScores
from ornstein.comparison._compare import OWN, _with_effort
from ornstein.recipe import KernelName, SampleRecipe, table_methods, table_recipe

TINY = {"steps": 20, "test_draws": 1}
FEW = {"mean-field": {"steps": 200, "test_draws": 4}}


def test_scores_are_scikit_learns():
    """Catches rows that are scored in another order, or of another fold."""
    from sklearn.linear_model import LogisticRegression

    x, y = load_iris(return_X_y=True)
    found = orn.compare(x, y, methods=["linear"], num_folds=3)
    probs = np.zeros((150, 3))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for kept, held in folds.split(x, y):
        scaler = StandardScaler().fit(x[kept])
        model = LogisticRegression(max_iter=10_000)
        model.fit(scaler.transform(x[kept]), y[kept])
        probs[held] = model.predict_proba(scaler.transform(x[held]))
    (linear,) = found.methods
    assert linear.mean_nll == pytest.approx(log_loss(y, probs), rel=1e-4)
    assert linear.scores["accuracy"] == np.mean(probs.argmax(1) == y)
    auroc = roc_auc_score(y, probs, multi_class="ovr")
    assert linear.scores["auroc"] == pytest.approx(auroc, abs=1e-6)


def test_kinds_of_columns_are_those_of_all_rows():
    """Of a floor that is a number in 37 rows of 40, as `ornstein train` reads it, and a
    column with a gap. Catches (seen) folds that are refused, for one `G` among numbers
    is a slip and none makes the next `G` one; and medians or categories of held rows.
    """
    rng = np.random.default_rng(0)
    floor = np.array([*(["1", "2", "3"] * 13)[:37], "G", "G", "G"])
    area = rng.lognormal(size=40)
    area[[3, 17]] = np.nan
    y = (floor == "G") + rng.normal(size=40)
    frame = pd.DataFrame({"floor": floor, "area": area})
    found = orn.compare(
        frame, y, methods=["linear", "deterministic"], options={"deterministic": TINY}
    )
    nll = np.zeros(40)
    for kept, held in KFold(5, shuffle=True, random_state=0).split(floor):
        fill = np.nanmedian(area[kept])
        columns = [np.where(np.isnan(area), fill, area)]
        columns += [np.isnan(area)] * int(np.isnan(area[kept]).any())
        counts = {text: np.sum(floor[kept] == text) for text in "123G"}
        columns += [floor == text for text, count in counts.items() if count > 1]
        x = np.stack(columns, axis=1).astype(float)
        scaler = StandardScaler().fit(x[kept])
        model = BayesianRidge().fit(scaler.transform(x[kept]), y[kept])
        mean, std = model.predict(scaler.transform(x[held]), return_std=True)
        nll[held] = -norm.logpdf(y[held], mean, std)
    linear, ours = found.methods
    np.testing.assert_allclose(linear.nll, nll, rtol=1e-3, atol=1e-4)
    assert np.isfinite(ours.nll).all()


def test_all_families_of_tables_are_compared():
    """Seen failing: `map` came, and was left out."""
    assert set(table_methods()) - set(get_args(KernelName)) <= set(OWN)
    x = np.random.default_rng(0).normal(size=(40, 2))
    found = orn.compare(x, x[:, 0], methods=["map"], effort=0.01, num_folds=2)
    assert np.isfinite(found.methods[0].nll).all()


def test_columns_of_one_name_are_said():
    """Catches an error of pandas', for kinds are seen before a method looks."""
    frame = pd.DataFrame(np.zeros((9, 2)), columns=[1, "1"])
    with pytest.raises(ValueError, match="two columns of one name, '1'"):
        orn.compare(frame, np.arange(9) / 2, methods=["linear"])


def test_scores_of_numbers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    y = 100 + 5 * x[:, 0] + rng.normal(size=90)
    found = orn.compare(
        x, y, methods=["linear", "mean-field"], num_folds=3, options=FEW
    )
    nll = np.zeros(90)
    for kept, held in KFold(3, shuffle=True, random_state=0).split(x):
        scaler = StandardScaler().fit(x[kept])
        model = BayesianRidge().fit(scaler.transform(x[kept]), y[kept])
        mean, std = model.predict(scaler.transform(x[held]), return_std=True)
        nll[held] = -norm.logpdf(y[held], mean, std)
    linear, ours = found.methods
    np.testing.assert_allclose(linear.nll, nll, rtol=1e-5)
    assert 0.8 < linear.scores["coverage"] <= 1
    assert np.isfinite(ours.nll).all()
    assert found.best is linear
    assert found.advice.startswith("Take linear: its NLL of ")


def scores(name, nll, seconds=1.0):
    return MethodScores(name, True, np.asarray(nll), {}, seconds)


def test_advice_names_what_is_level():
    """Catches an advice that knows means alone."""
    rng = np.random.default_rng(0)
    each = rng.normal(size=400)
    off = rng.normal(size=400)
    near = each + 0.01 + off - off.mean()
    methods = [scores("a", each, 50.0), scores("b", near, 2.0), scores("c", each + 1)]
    found = Comparison("classification", 400, 5, methods)
    assert "b is level with it, of which b takes 2 seconds for 50." in found.advice
    alone = Comparison("classification", 400, 5, [methods[0], methods[2]])
    assert "the other is more than a standard error behind" in alone.advice


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"methods": ["forrest"]}, "`methods` has forrest"),
        ({"num_folds": 1}, "from 2 to the 150 rows"),
        ({"effort": 0.0}, "`effort` must be positive"),
        ({"task": "ranking"}, "'classification' or 'regression'"),
        ({"y": np.zeros(150)}, "one class alone"),
        ({"y": np.r_[np.zeros(149), 1]}, "A class has 1 rows"),
        (
            {"x": np.ones((3, 1)), "y": np.array([0.5, 1.5, 2.5]), "num_folds": 2},
            "`num_folds` 2 of 3 rows leave a single one to learn from",
        ),
    ],
)
def test_wrong_arguments_are_said(change, said):
    x, y = load_iris(return_X_y=True)
    arguments = {"x": x, "y": y} | change
    with pytest.raises(ValueError, match=said):
        orn.compare(**arguments)


def test_the_command(tmp_path, capsys):
    """Catches a table that the door to Python takes and the shell's does not."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Wien", "Graz"], 60)
    frame = pd.DataFrame({"city": city, "area": rng.normal(size=60)})
    frame["price"] = frame["area"] + (city == "Wien") + rng.normal(size=60) / 3
    frame.loc[3, "area"] = np.nan
    path = tmp_path / "flats.csv"
    frame.to_csv(path, index=False, sep=";")
    output, figure = tmp_path / "scores.json", tmp_path / "scores.png"
    args = ["compare", "--data", str(path), "--target", "price", "--num-folds", "2"]
    args += ["--methods", "linear", "deterministic", "--effort", "0.01"]
    assert main([*args, "-o", str(output), "--figure", str(figure)]) == 0
    said = capsys.readouterr()
    assert "Take linear: its NLL" in said.out
    assert "step 0" not in said.out + said.err  # of each fold's training (seen)
    saved = json.loads(output.read_bytes())
    assert {row["method"] for row in saved["methods"]} == {"linear", "deterministic"}
    assert len(saved["nll_of_rows"]["linear"]) == 60
    assert figure.stat().st_size > 5_000
    assert main([*args, "-o", str(output)]) == 2  # it is there
    assert "--overwrite" in capsys.readouterr().err


@pytest.mark.filterwarnings("error")
def test_a_line_through_all_points_has_a_width():
    """Catches a root of what rounding made negative (seen): NaN in place of an NLL."""
    rng = np.random.default_rng(0)
    city = rng.choice([-1.0, 1.0], 60)
    x = np.stack([rng.normal(size=60), city, -city], axis=1).astype(np.float32)
    found = orn.compare(x, x[:, 0] + city, methods=["linear"], num_folds=2)
    assert np.isfinite(found.methods[0].nll).all()


@pytest.mark.parametrize("method", OWN)
def test_effort_scales_what_a_method_reads(method):
    """Catches an option that a kernel refuses (seen), or another share of steps."""

    def gradients(effort):
        options = _with_effort(method, 300, effort, {})
        recipe = table_recipe(method, 300, options, seed=0)
        if not isinstance(recipe, SampleRecipe):
            return recipe.training.steps or 0
        own = recipe.sampling
        steps = own.num_warmup + own.thin * own.num_samples
        length = own.num_integration_steps if own.kernel == "hmc" else 1
        assert length is not None
        return steps * length

    assert gradients(0.1) == pytest.approx(0.1 * gradients(1.0), rel=0.01)


def test_a_guess_without_an_error_has_a_likelihood(tmp_path):
    """Of a copied target. Catches (seen) a perfect forest that is last, by NaN."""
    y = np.repeat([0.0, 1.0], 60)
    path = tmp_path / "copied.csv"
    pd.DataFrame({"x": y, "y": y}).to_csv(path, index=False)
    args = f"compare --data {path} --target y --task regression --num-folds 2"
    args += f" --methods forest linear -o {tmp_path / 'out.json'}"
    assert main(args.split()) == 0
    text = (tmp_path / "out.json").read_text()
    rows = json.loads(text, parse_constant=pytest.fail)["methods"]
    assert all(np.isfinite(row["nll"]) for row in rows)


def test_a_method_that_is_too_slow_is_named():
    """Catches (seen) one that was asked for and is not there."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4_100, 1)), rng.normal(size=4_100)
    methods = ["gaussian-process", "linear"]
    found = orn.compare(x, y, methods=methods, num_folds=2)
    assert [method.name for method in found.methods] == ["linear"]
    assert "left out" in found.failed["gaussian-process"]


def test_a_method_that_fails_is_told_and_the_others_are_kept():
    x, y = load_iris(return_X_y=True)
    wild = {"sghmc": {"step_size": 1e3, "num_warmup": 5, "num_samples": 2}}
    said = []
    found = orn.compare(
        x,
        y,
        methods=["sghmc", "linear"],
        num_folds=2,
        options=wild,
        say=said.append,
    )
    assert [method.name for method in found.methods] == ["linear"]
    assert "step size" in found.failed["sghmc"]
    assert said[0].startswith("sghmc failed: ")


def test_numbers_are_no_classes():
    x = np.arange(60.0)[:, None]
    found = orn.compare(x, np.arange(60), methods=["linear"], num_folds=2)
    assert found.task == "regression"


def test_what_is_no_number_does_not_win():
    """Catches a NaN that stands first."""
    methods = [scores("a", [np.nan] * 9), scores("b", np.arange(9.0))]
    found = Comparison("regression", 9, 3, methods)
    assert found.best.name == "b"
    assert [row["method"] for row in found.rows()] == ["b", "a"]
