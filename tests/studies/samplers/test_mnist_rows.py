"""`reproduce mnist-rows`: a posterior, its twins, and what they are compared by."""

from pathlib import Path

import jax
import numpy as np
import pytest

from ornstein.data import Data, Split
from ornstein.functions import SDEBNN, Integrator, LevyCiesielski, WeightPrior, whiten
from ornstein.sde import EulerMaruyama, Fixed
from ornstein.studies import Study
from ornstein.studies.samplers import _mnist_methods, _mnist_rows

STEPS = 60
NUM_STEPS = 62  # rounded up to whole passes of 40 rows in 25s


def images(num_rows: int, seed: int) -> Split:
    """Two classes: the upper or the lower half is bright."""
    rng = np.random.default_rng(seed)
    y = (np.arange(num_rows) % 2).astype("i4")
    x = 0.3 * rng.standard_normal((num_rows, 4, 4, 1))
    x[y == 0, :2] += 1
    x[y == 1, 2:] += 1
    return Split(x.astype(np.float32), y)


def tiny(own_sigma: float):
    def network(*, sigma=own_sigma, key):
        model = SDEBNN.for_images(
            (4, 4, 1),
            2,
            width=3,
            is_normalised=True,
            prior=WeightPrior(sigma=sigma, scale=2.0),
            integrator=Integrator(EulerMaruyama(), Fixed(0.5)),
            key=key,
        )
        return whiten(model, LevyCiesielski(2), point_scale=2.0)

    return network


@pytest.fixture
def small(monkeypatch):
    """The study with images of 4 by 4 and few steps."""
    names = ("top", "bottom")
    data = Data("mnist", "classification", images(40, 0), images(30, 1), None, 2, names)
    monkeypatch.setattr(_mnist_rows, "load", lambda name: data)
    monkeypatch.setattr(_mnist_methods, "network", tiny(0.5))
    monkeypatch.setattr(_mnist_rows, "_NUM_TURNED", 10)
    monkeypatch.setattr(_mnist_methods, "_NUM_PATHS", 3)
    monkeypatch.setattr(_mnist_methods, "_THIN", 4)
    monkeypatch.setattr(_mnist_rows, "_ROWS", {"quick": (40,)})
    monkeypatch.setattr(_mnist_rows, "_SEEDED_ROWS", 40)
    monkeypatch.setattr(_mnist_rows, "STEPS", {"quick": STEPS})


def test_methods_are_compared_in_pairs(small, tmp_path: Path):
    """Catches differences of another method."""
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    rows = {row["method"]: row for row in _mnist_rows.MNIST_ROWS.run(study)}
    assert list(rows) == [
        "variational paths",
        "paths at their prior",
        "one path at its prior",
        "without noise",
        "five modes",
        "sampled",
    ]
    paths, chain = rows["variational paths"], rows["sampled"]
    assert paths["paths_minus"] == chain["sampled_minus"] == 0
    for row in rows.values():
        assert (row["rows"], row["num_steps"], row["num_seeds"]) == (40, NUM_STEPS, 1)
        assert row["nll"] < np.log(2)  # the halves are told apart
        difference = paths["nll"] - row["nll"]
        assert row["paths_minus"] == pytest.approx(difference, abs=1e-9)
        assert row["paths_minus_se"] > 0 or row is paths
        difference = chain["nll"] - row["nll"]
        assert row["sampled_minus"] == pytest.approx(difference, abs=1e-9)
        assert 0 <= row["auroc_rotated"] <= 1


def test_numbers_of_rows_are_chosen(tmp_path: Path):
    """In their order, and another is refused."""
    of = {"scale": "full", "seed": 0, "say": print}
    assert _mnist_rows._sizes(Study(tmp_path, models=("3000", "300"), **of)) == (
        300,
        3_000,
    )
    with pytest.raises(ValueError, match="500 is no number of rows of.*300, 1000, 3"):
        _mnist_rows._sizes(Study(tmp_path, models=("500",), **of))


def test_a_row_is_the_mean_of_its_seeds():
    """Means of scores and of errors; the spread over seeds of scores alone."""
    found = [
        {"a": {"nll": nll, "nll_se": se}} for nll, se in ((0.1, 0.02), (0.3, 0.04))
    ]
    (row,) = _mnist_rows._summary(found, rows=40)
    assert row["nll"] == pytest.approx(0.2)
    assert row["nll_se"] == pytest.approx(0.03)
    assert row["nll_sd"] == pytest.approx(0.1 * 2**0.5)
    assert "nll_se_sd" not in row
    assert row["nll_seeds"] == [0.1, 0.3]


def test_a_network_without_noise_has_no_sigma(small, monkeypatch):
    """Catches (seen) a path that is left where a twin should have none."""

    def modes(path: str):
        train, inputs = images(40, 0), [images(10, 1).x]
        how = {"key": jax.random.key(0), "path": path, "num_members": 1}
        return _mnist_methods._modes(train, inputs, STEPS, **how)[0]

    before = {path: modes(path) for path in ("zero", "prior")}
    monkeypatch.setattr(_mnist_methods, "network", tiny(1.0))
    np.testing.assert_allclose(modes("zero"), before["zero"], atol=1e-6)
    assert abs(modes("prior") - before["prior"]).max() > 1e-3


def test_a_narrower_prior_is_narrower(small, monkeypatch):
    """Catches a twin that has the posterior's own sigma."""
    sigmas = []
    network = _mnist_methods.network

    def heard(**own):
        sigmas.append(own.get("sigma"))
        return network(**own)

    monkeypatch.setattr(_mnist_methods, "network", heard)
    for method in _mnist_methods.NARROWER:
        key = jax.random.key(0)
        _mnist_rows.scores(method, images(40, 0), images(30, 1), STEPS, key=key)
    assert set(sigmas) == {0.2}
