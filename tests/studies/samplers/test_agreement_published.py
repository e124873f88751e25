"""The published reference of CIFAR-10, and its network."""

import os
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from ornstein.agreement import _problems
from ornstein.agreement._compare import scores
from ornstein.agreement._effort import Effort
from ornstein.agreement._predictive import of_probabilities
from ornstein.agreement._published import cifar10_rows
from ornstein.data import DataError, DataNotFoundError, Split
from ornstein.network import has_batch_state
from ornstein.nn import MLP, Flattened, num_parameters
from ornstein.studies import Study
from ornstein.studies.samplers import _agreement as _study

LABELS = np.arange(20) % 10


def write(folder: Path, rows: np.ndarray, probs: np.ndarray) -> None:
    (folder / "hmc").mkdir(exist_ok=True)
    np.savez(folder / "hmc/cifar10.npz", rows=rows, probs=probs)


def right(rows: np.ndarray) -> np.ndarray:
    return 0.9 * np.eye(10)[LABELS[rows]] + 0.01


def test_reads_what_fits(tmp_path: Path, monkeypatch):
    """Catches rows and probabilities of different orders."""
    monkeypatch.setenv("ORNSTEIN_DATA", str(tmp_path))
    rows = np.array([3, 0, 18], np.int32)
    write(tmp_path, rows, right(rows))
    found, probs = cifar10_rows(LABELS)
    np.testing.assert_array_equal(found, rows)
    np.testing.assert_array_equal(probs.argmax(axis=1), [3, 0, 8])


@pytest.mark.parametrize(
    ("rows", "probs", "said"),
    [
        (np.arange(20), right(np.arange(20))[::-1], "of other rows, or of rows in ano"),
        (np.arange(20) + 1, right(np.arange(20)), "from 0 to 19"),
        (np.arange(20.0), right(np.arange(20)), "must be numbers of test rows"),
        (np.array([1, 1]), right(np.array([1, 1])), "has a row twice"),
        (np.arange(20), 2 * right(np.arange(20)), "whose rows sum to 1"),
        (np.arange(20), right(np.arange(19)), "must be 20 by 10 probabilities"),
    ],
)
def test_refuses_another_reference(
    tmp_path: Path, monkeypatch, rows: np.ndarray, probs: np.ndarray, said: str
):
    """Catches agreement with probabilities of other rows."""
    monkeypatch.setenv("ORNSTEIN_DATA", str(tmp_path))
    write(tmp_path, rows, probs)
    with pytest.raises(DataError, match=said):
        cifar10_rows(LABELS)


def test_says_where_the_reference_belongs(tmp_path: Path, monkeypatch):
    """Catches a traceback without the file, and with half of it."""
    monkeypatch.setenv("ORNSTEIN_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match="ORNSTEIN_DATA names"):
        cifar10_rows(LABELS)
    (tmp_path / "hmc").mkdir()
    np.savez(tmp_path / "hmc/cifar10.npz", rows=np.arange(3))
    with pytest.raises(DataError, match="needs arrays `rows` and `probs`"):
        cifar10_rows(LABELS)


@pytest.mark.skipif(
    not (Path(os.environ.get("ORNSTEIN_DATA", "")) / "hmc/cifar10.npz").is_file(),
    reason="the published reference is not there",
)
def test_published_scores():
    """Accuracy and NLL as published, on half of the rows. Catches rows of another
    order, which have the labels of others."""
    path = Path(os.environ["ORNSTEIN_DATA"]) / "hmc/cifar10.npz"
    with np.load(path) as arrays:
        num_rows = len(arrays["rows"])
    problem = _problems.PROBLEMS["cifar10"]()
    assert problem.published is not None
    assert len(problem.test) == num_rows
    found = scores(of_probabilities(problem.published, problem.test.y), problem)
    assert found["accuracy"] == pytest.approx(0.914, abs=0.012)
    assert found["nll"] == pytest.approx(0.277, abs=0.02)


def test_network_is_the_published_one():
    """By shapes. Catches batch statistics, which have no posterior, and thresholds,
    which SiLU does without. 21 of the parameters are the norms' learned ε."""
    network = eqx.filter_eval_shape(_problems.resnet20, key=jax.random.key(0))
    assert not has_batch_state(network)
    assert num_parameters(network) == 272_495
    images = jax.ShapeDtypeStruct((2, 32, 32, 3), np.float32)
    assert eqx.filter_eval_shape(network, images).shape == (2, 10)


def test_a_step_on_images(tmp_path: Path, monkeypatch):
    """The prior and methods of scale gpu, on a few rows and a small network.

    Catches a prior in units of the fan-in, and chains that need Adam on all rows first.
    """
    rng = np.random.default_rng(0)
    rows = Split(
        rng.normal(size=(8, 8, 8, 3)).astype(np.float32), np.arange(8, dtype=np.int32)
    )
    network = lambda *, key: Flattened(MLP(192, 10, [], key=key))
    probs = np.full((8, 10), 0.02)
    probs[np.arange(8), np.arange(8)] = 0.82
    problem = _problems.Problem(
        name="cifar10",
        train=rows,
        validation=rows,
        remainder=rows,
        test=rows,
        network=network,
        edges=None,
        has_fan_in=False,
        published=probs,
    )
    params = network(key=jax.random.key(0))
    variances = problem.prior_variances(params, 2.0)
    assert {float(np.max(a)) for a in jax.tree.leaves(variances)} == {4.0}
    monkeypatch.setattr(_study, "PROBLEMS", {"cifar10": lambda: problem})
    effort = Effort(4, 1, 0, 1, 20, 1, 0)
    monkeypatch.setattr(_study, "EFFORTS", {("cifar10", "gpu"): effort})
    monkeypatch.setattr(_study.jax, "clear_caches", lambda: None)
    study = Study(
        tmp_path, "gpu", seed=0, say=lambda text: None, models=("sgd", "sghmc-cyclic")
    )
    published, *methods = _study.AGREEMENT.run(study)
    assert published["method"] == "hmc, as published"
    assert published["accuracy"] == 1
    assert "agreement" not in published
    assert [row["method"] for row in methods] == ["sgd", "sghmc-cyclic"]
    assert all(0 < row["total_variation"] < 1 for row in methods)
