"""Figures 1 to 4 and table 6 of Trinh et al. (2020): arithmetic, and tiny runs."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein.data import Data, DataNotFoundError, Split
from ornstein.functions import ImplicitBNN
from ornstein.nn import MLP
from ornstein.studies import Study
from ornstein.studies.implicit import (
    _components as _ibnn_components,
    _fig1 as _ibnn_fig1,
    _fig2 as _ibnn_fig2,
    _fig3 as _ibnn_fig3,
    _fig4 as _ibnn_fig4,
    _lenet as _ibnn_lenet,
    _trained_networks,
)


def _model(num_components: int) -> ImplicitBNN:
    network_key, key = jax.random.split(jax.random.key(0))
    network = MLP(4, 3, [5], activation=jax.nn.relu, key=network_key)
    move = lambda leaf: leaf + 0.1 if eqx.is_array(leaf) else leaf
    network = jax.tree.map(move, network)  # biases, too, that are not 0
    return ImplicitBNN(network, num_components=num_components, key=key)


def _numpy_weights(model: ImplicitBNN, z: np.ndarray) -> list[np.ndarray]:
    """By hand: matrices of (in, out), whose lines are the inputs, and biases."""
    first, second = model.network.layers
    return [
        np.asarray(first.weight) * z[:4, None],
        np.asarray(first.bias),
        np.asarray(second.weight) * z[4:, None],
        np.asarray(second.bias),
    ]


def _numpy_losses(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray):
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    logits = hidden @ weights[2] + weights[3]
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    nll = -log_probs[np.arange(len(y)), y].mean()
    return nll, 100 * np.mean(logits.argmax(axis=1) != y)


def test_component_plane():
    """Against eigenvectors of the moves' P by P matrix.

    Catches moves that are centred on their mean instead of U, coordinates without their
    sizes, and shares of sizes rather than their squares.
    """
    model = _model(5)
    ones = _numpy_weights(model, np.ones(9))
    flat = lambda weights: np.concatenate([w.ravel() for w in weights])
    means = np.asarray(model.mixture.mean)
    moves = np.stack([flat(_numpy_weights(model, z)) - flat(ones) for z in means])
    values, vectors = np.linalg.eigh(moves.T @ moves)
    best = vectors[:, ::-1][:, :2]

    plane = _ibnn_fig2.component_plane(model)
    # `ravel_pytree` may order the leaves otherwise: what does not depend on it is held.
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-5)
    assert plane.origin.shape == (43,)
    np.testing.assert_allclose(
        jnp.sum(plane.origin**2), np.sum(flat(ones) ** 2), rtol=1e-5
    )
    np.testing.assert_allclose(np.abs(plane.points), np.abs(moves @ best), atol=1e-4)
    shares = values[::-1][:5] / values.sum()
    np.testing.assert_allclose(plane.shares, shares, atol=1e-5)


def test_two_components_lie_in_their_plane():
    """Their distances from U and each other are those of the whole space."""
    model = _model(2)
    plane = _ibnn_fig2.component_plane(model)
    flat = [
        np.concatenate([w.ravel() for w in _numpy_weights(model, z)])
        for z in [np.ones(9), *np.asarray(model.mixture.mean)]
    ]
    points = np.concatenate([np.zeros((1, 2)), plane.points])
    for i in range(3):
        for j in range(i):
            assert np.linalg.norm(points[i] - points[j]) == pytest.approx(
                np.linalg.norm(flat[i] - flat[j]), rel=1e-4
            )


def test_losses_at_components():
    """The surface at U and at components in the plane is the folded networks' loss.

    Catches an origin left out, axes exchanged, and the loss of the noisy network.
    """
    model = _model(2)
    plane = _ibnn_fig2.component_plane(model)
    x = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    y = np.random.default_rng(1).integers(0, 3, 40).astype(np.int32)
    where = jnp.concatenate([jnp.zeros((1, 2)), plane.points])
    network = model.to_deterministic("ones").network
    nll, error = _ibnn_fig2.losses(
        network, plane, where, jnp.asarray(x), jnp.asarray(y)
    )
    zs = [np.ones(9), *np.asarray(model.mixture.mean)]
    for i, z in enumerate(zs):
        expected = _numpy_losses(_numpy_weights(model, z), x, y)
        assert nll[i] == pytest.approx(expected[0], rel=1e-4)
        assert error[i] == pytest.approx(expected[1], rel=1e-4)
    assert len({float(value) for value in nll}) == 3


def test_extremes():
    """Catches rows counted within a class, and the ends exchanged."""
    entropy = np.array([0.3, 0.1, 0.2, 0.9, 0.5, 0.4])
    y = np.array([0, 1, 0, 1, 0, 2])
    found = _ibnn_fig3.extremes(entropy, y, 2)
    assert found == {"lowest": [2, 1], "highest": [4, 3]}


def test_parameters_of_widths():
    """The source's 41,806 parameters, and about 4, 16 and 64 times as many."""
    cases = [_ibnn_fig4._case(width, "quick") for width in _ibnn_fig4.WIDTHS]
    sizes = [_ibnn_fig4._num_parameters(case, 10) for case in cases]
    assert sizes[0] == 41_806
    np.testing.assert_allclose(np.array(sizes) / sizes[0], [1, 4, 16, 64], rtol=0.1)


def _digits(name: str, *args: object, **kwargs: object) -> Data:
    """28 x 28 images whose class is a bright line; only MNIST is at hand."""
    del args, kwargs
    if name != "mnist":
        raise DataNotFoundError(f"{name} was not found")
    y = (np.arange(120) % 10).astype(np.int32)
    x = np.random.default_rng(0).normal(size=(120, 28, 28, 1)).astype(np.float32)
    x[np.arange(120), 2 * y] += 3
    split = Split(x, y)
    return Data(
        name=name,
        task="classification",
        train=split,
        test=split.rows(np.arange(60)),
        num_classes=10,
        class_names=tuple("abcdefghij"),
    )


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(_trained_networks, "load", _digits)
    monkeypatch.setattr(_trained_networks, "BATCH_SIZE", 40)
    small = {"epochs": 1, "train_rows": 80, "test_rows": 50, "num_draws": 1}
    lenet = _ibnn_lenet.LENET["quick"]._replace(**small)
    monkeypatch.setitem(_ibnn_lenet.LENET, "quick", lenet)
    monkeypatch.setitem(_ibnn_fig4._SIZES, "quick", small)
    components = lenet._replace(data="mnist", methods=("ibnn-4",))
    monkeypatch.setitem(_ibnn_components._CASES, "quick", components)
    monkeypatch.setitem(_ibnn_fig2._GRID, "quick", 3)
    return Study(tmp_path, "quick", seed=0, say=lambda text: None)


def test_load_or_instead(study: Study):
    """Catches a replacement that is not owned up to, or an absent one passed over."""
    lenet = _ibnn_lenet.LENET["quick"]
    case, data, notes = _ibnn_lenet.load_or_instead(lenet, "mnist")
    assert case.data == data.name == "mnist"
    assert notes == ["on mnist, for fashion_mnist was not found"]
    kept, _, notes = _ibnn_lenet.load_or_instead(case, "cifar10")
    assert (kept, notes) == (case, [])
    with pytest.raises(DataNotFoundError, match="cifar10"):
        _ibnn_lenet.load_or_instead(lenet, "cifar10")
    del study


def test_surfaces_and_samples(study: Study, monkeypatch: pytest.MonkeyPatch):
    """Figures 2 and 3 of one network, trained once."""
    rows = _ibnn_fig2.IBNN_FIG2.run(study)
    assert [row["weights"] for row in rows][::9] == ["U", "mixture"]
    assert rows[0]["distance"] == 0
    for row in rows[1:-1]:  # projected
        assert np.hypot(row["first"], row["second"]) <= row["distance"] * (1 + 1e-5)
        assert row["notes"] == ["on mnist, for fashion_mnist was not found"]
    assert (study.folder / "components.png").is_file()

    monkeypatch.setattr(_trained_networks, "fit", None)
    rows = _ibnn_fig3.IBNN_FIG3.run(study)
    assert [row["class"] for row in rows] == list("abcdabcd")
    test = _digits("mnist").test
    assert [test.y[row["row"]] for row in rows] == [0, 1, 2, 3] * 2
    for low, high in zip(rows[:4], rows[4:], strict=True):
        assert low["entropy"] < high["entropy"]
    assert (study.folder / "softmax_samples.png").is_file()


def test_another_seed_leaves_networks_and_scores_as_they_were(
    study: Study, monkeypatch: pytest.MonkeyPatch
):
    """Seen failing: seed 1 took the place of seed 0's network and scores."""
    case = _ibnn_components._CASES["quick"]._replace(methods=("sgd",))
    data, scores, networks = _trained_networks.load_case(case), {}, {}
    of = lambda s: Study(study.folder, "quick", seed=s, say=lambda text: None)
    for seed in (0, 1):
        scores[seed] = _trained_networks.scored(of(seed), case, "sgd", data)
        networks[seed], _ = _trained_networks.trained(of(seed), case, "sgd", data)
    assert scores[0]["nll"] != scores[1]["nll"]
    monkeypatch.setattr(_trained_networks, "fit", None)
    for seed in (0, 1):
        assert _trained_networks.scored(of(seed), case, "sgd", data) == scores[seed]
        fit, _ = _trained_networks.trained(of(seed), case, "sgd", data)
        assert eqx.tree_equal(fit.model, networks[seed].model)


def test_components(study: Study):
    (row,) = _ibnn_components.IBNN_COMPONENTS.run(study)
    assert row["num_components"] == 4
    assert row["num_draws"] == 20
    assert (study.folder / "components_ece.png").is_file()


@pytest.mark.slow
def test_widths(study: Study):
    rows = _ibnn_fig4.IBNN_FIG4.run(study)
    assert len(rows) == len(_ibnn_fig4.WIDTHS) * 3
    sizes = [row["num_network_parameters"] for row in rows]
    assert sizes == sorted(sizes)
    assert (study.folder / "width_nll.png").is_file()


def test_depths_in_raw_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A few steps on the data: bands, scores and targets are in the same units."""
    monkeypatch.setattr(_ibnn_fig1, "DEPTHS", (1,))
    monkeypatch.setattr(_ibnn_fig1, "_WIDTH", 8)
    monkeypatch.setitem(_ibnn_fig1._STEPS, "quick", 40)
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    rows = _ibnn_fig1.IBNN_FIG1.run(study)
    assert [row["method"] for row in rows] == ["BNN-VI", "iBNN"] * 2
    data = _ibnn_fig1.load("toy/cubic")
    targets = data.y_scaling.undo(data.test.y)
    for row in rows:
        assert row["nll_over_one_layer"] == 0
        assert (row["noise_scale"] == pytest.approx(3)) == (row["noise"] == "known")
        # Hardly trained, a network predicts about nothing.
        assert row["rmse"] == pytest.approx(np.std(targets), rel=0.6)
    outside = _ibnn_fig1._outside(data, seed=0)
    x = data.x_scaling.undo(outside.x)
    residuals = data.y_scaling.undo(outside.y) - x**3
    assert np.abs(x).min() > 4
    assert np.abs(x).max() == pytest.approx(6, rel=1e-5)
    assert np.std(residuals) == pytest.approx(3, rel=0.25)
    assert (tmp_path / "depth.png").is_file()


@pytest.mark.slow
def test_depth_costs_the_implicit_network_half_a_nat_at_most(tmp_path: Path):
    """The claim: within half a nat of one layer, where mean field fails.

    It fits worse with depth where it knows the noise, and returns to its prior where it
    learns it.
    """
    study = Study(tmp_path, "quick", seed=0, say=lambda text: None)
    rows = _ibnn_fig1.IBNN_FIG1.run(study)
    of = lambda *which: [r for r in rows if (r["method"], r["noise"]) == which]
    for noise in _ibnn_fig1.NOISES:
        for row in of("iBNN", noise):
            assert row["nll_over_one_layer"] <= 0.5, row
    one, *_, five = of("BNN-VI", "known")
    assert five["nll"] > one["nll"] + 0.2, (one, five)
    assert five["rmse"] > 1.3 * one["rmse"], (one, five)
    pairs = zip(of("BNN-VI", "learned"), of("iBNN", "learned"), strict=True)
    for mean_field, implicit in pairs:
        assert mean_field["nll"] > implicit["nll"] + 1, (mean_field, implicit)
        assert mean_field["noise_scale"] > 10, mean_field
