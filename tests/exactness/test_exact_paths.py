"""Whitened SDE-BNNs in the exactness table: their oracle, and faults that show."""

import equinox as eqx
import jax
import numpy as np
import pytest

from ornstein.exactness import (
    best_diagonal,
    function_rows,
    path_cases,
    path_function_cases,
    path_posterior,
    path_rows,
    path_split,
    whitened_regression,
)
from ornstein.exactness._function_cases import SDEBNN_SCALE
from ornstein.functions import GridIncrements, LevyCiesielski, MeanField
from ornstein.functions.depth import _path_coordinates
from ornstein.likelihood import Gaussian
from ornstein.prior import GaussianPrior
from ornstein.train import fit

CASES = {case.method: case for case in path_cases()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_chains_over_coordinates_have_the_posterior(case):
    rows = path_rows(case, seed=1)
    assert all(row["within_bound"] and row["power"] < 0.1 for row in rows), rows


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_wrong_transition_shows(case, monkeypatch):
    """Paths that do not revert, where the prior's do."""
    right = _path_coordinates._integrated
    wrong = lambda times, units, rate: right(times, units, 0.0)
    monkeypatch.setattr(_path_coordinates, "_integrated", wrong)
    jax.clear_caches()
    rows = path_rows(case, seed=1)
    jax.clear_caches()
    assert not all(row["within_bound"] for row in rows)


def kl_of_diagonals(mean, scale, other_mean, other_scale) -> float:
    """KL(q || r) of diagonal normals, nats."""
    ratio = scale / other_scale
    shift = (mean - other_mean) / other_scale
    return float(0.5 * np.sum(ratio**2 + shift**2 - 1 - 2 * np.log(ratio)))


def test_mean_field_over_coordinates_is_the_best_diagonal_normal():
    """To 0.02 nats in 42 numbers, by the bound alone. Catches (seen) a path whose
    means are not trained."""
    mean, scale = best_diagonal(GridIncrements(), 20)
    network = whitened_regression(GridIncrements(), 20, key=jax.random.key(1))
    model = MeanField(network, GaussianPrior(1.0), init_scale=0.5)
    fitted = fit(
        model,
        path_split(),
        Gaussian(SDEBNN_SCALE),
        key=jax.random.key(2),
        num_epochs=4000,
        num_draws=32,
        learning_rate=0.02,
    )
    flat = lambda tree: np.concatenate([np.ravel(a) for a in jax.tree.leaves(tree)])
    family = fitted.model.family
    found = flat(eqx.filter(family.mean, eqx.is_array)), flat(family.scale)
    assert kl_of_diagonals(*found, mean, scale) < 0.02


def test_ivon_over_coordinates_is_the_best_diagonal_normal():
    """To 0.01 nats in 34 numbers. Catches (seen) a curvature of half the size."""
    mean, scale = best_diagonal(LevyCiesielski(16), 16)
    (case,) = path_function_cases()
    fitted = fit(
        case.make(key=jax.random.key(1)),
        case.split,
        case.likelihood,
        key=jax.random.key(2),
        **case.options,
    )
    flat = lambda tree: np.concatenate([np.ravel(a) for a in jax.tree.leaves(tree)])
    family = fitted.model.family
    found = flat(eqx.filter(family.mean, eqx.is_array)), flat(family.scale)
    assert kl_of_diagonals(*found, mean, scale) < 0.01


def test_the_row_of_ivon_is_green():
    (case,) = path_function_cases()
    rows = function_rows(case, seed=1)
    assert all(row["within_bound"] and row["power"] < 0.1 for row in rows), rows


def test_the_posterior_is_that_of_the_linear_map_too():
    """Two derivations: from the process's covariance, and from the network's
    Jacobian."""
    mean, scale = best_diagonal(GridIncrements(), 20)
    exact = path_posterior(20)
    assert mean.shape == scale.shape == (42,)  # the last step moves no output
    assert np.all(scale[:-2] < 1)
    network = whitened_regression(GridIncrements(), 20, key=jax.random.key(0))
    params, rest = eqx.partition(network, eqx.is_inexact_array)
    leaves, treedef = jax.tree.flatten(params)
    ends = np.cumsum([a.size for a in leaves])[:-1]
    parts = [
        jax.numpy.asarray(p.reshape(a.shape), jax.numpy.float32)
        for p, a in zip(np.split(mean, ends), leaves, strict=True)
    ]
    at = eqx.combine(jax.tree.unflatten(treedef, parts), rest)
    found = at(jax.numpy.asarray(path_split().x))[[0, 4], 0]
    np.testing.assert_allclose(found, exact.mean, atol=1e-5)
