"""What a recipe makes of a trained network: which weights, and at which rate."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.data import Split
from ornstein.functions import SWAG, Deterministic
from ornstein.likelihood import (
    AbstractLikelihood,
    Categorical,
    Gaussian,
    Laplace,
    Weighted,
    WeightedTargets,
)
from ornstein.nn import MLP
from ornstein.recipe import Recipe, prepare, preset_recipe
from ornstein.recipe._table_fit import _at_mean_weight
from ornstein.recipe.models import _posthoc, laplace_structure
from ornstein.train import DiagonalGGN, Fit, FullGGN, LastLayer

MAKE = _posthoc.SWAG_OF.make
WIDTHS = {"small": [4], "large": [60, 60], "wide": [4, 700]}


@pytest.mark.parametrize(
    ("width", "likelihood", "kind"),
    [
        ("small", Gaussian(0.5), FullGGN),
        ("small", Categorical(), LastLayer),
        ("large", Gaussian(0.5), LastLayer),
        ("wide", Categorical(), DiagonalGGN),
    ],
)
def test_auto_is_a_covariance_that_can_be(width, likelihood, kind):
    """Catches (seen) a last layer of 7,010 weights, refused once training is over."""
    network = MLP(3, 10, WIDTHS[width], key=jr.key(0))
    recipe = Recipe().changed(model="laplace")
    structure = laplace_structure(recipe, Deterministic(network), likelihood)
    assert isinstance(structure, kind)


def swag_recipe(**options) -> Recipe:
    recipe = preset_recipe("toy/cos", model="swag")
    return recipe.changed(width="8", epochs=1, **options)


@pytest.mark.parametrize(
    "likelihood", [Gaussian(0.01), Weighted(Gaussian(0.01)), Laplace(0.01)]
)
def test_swag_stays_near_the_mode_of_small_noise(likelihood: AbstractLikelihood):
    """Catches (seen) a rate for squared errors on a loss of 10,000 times the curvature.

    Targets are the network's own outputs: it is at the mode, up to the noise.
    """
    prepared = prepare(swag_recipe(swag_rate=0.01, swag_epochs=5))
    rows = prepared.data.train.in_memory()
    x, noise = rows.x, np.random.default_rng(0).normal(size=rows.y.shape)
    network = prepared.model.network  # type: ignore[attr-defined]
    outputs = np.asarray(network(jnp.asarray(x)))
    y = outputs + 0.01 * noise.reshape(outputs.shape).astype(np.float32)
    targets = y
    if isinstance(likelihood, Weighted):
        targets = WeightedTargets(y, np.full(len(y), 3.0, np.float32))
    data = dataclasses.replace(prepared.data, train=Split(x, targets))
    fit = Fit(prepared.model, likelihood, None, {})
    found = MAKE(prepared.recipe, data, fit, key=jr.key(1), augmentation=None).model
    assert isinstance(found, SWAG)
    mean = eqx.combine(found.mean, network)
    errors = np.asarray(mean(jnp.asarray(x))) - outputs
    assert 0 < np.sqrt(np.mean(errors**2)) < 0.01
    assert all(np.max(leaf) > 0 for leaf in jax.tree.leaves(found.scale))


@pytest.mark.parametrize("optimiser", ["adam", "nesterov"])
@pytest.mark.parametrize("case", ["four times", "padded"])
def test_swag_does_not_depend_on_the_unit_of_weights(optimiser: str, case: str):
    """Catches (seen) a decay that is not, as gradients are, of weighted rows' mean."""
    recipe = swag_recipe(
        optimiser=optimiser, weight_decay=0.5, swag_rate=0.05, batch_size=1000
    )
    prepared = prepare(recipe)
    rows = prepared.data.train.in_memory()
    x, y = rows.x, np.asarray(rows.y)
    num_rows = len(x)

    def mean_of(x, y, weight) -> np.ndarray:
        data = dataclasses.replace(
            prepared.data,
            train=Split(x, WeightedTargets(y, np.asarray(weight, np.float32))),
        )
        fit = Fit(prepared.model, Weighted(Gaussian(0.5)), None, {})
        own = _at_mean_weight(recipe, float(np.mean(weight)))
        swag = MAKE(own, data, fit, key=jr.key(1), augmentation=None).model
        leaves = jax.tree.leaves(swag.mean)
        return np.concatenate([np.ravel(leaf) for leaf in leaves])

    once = mean_of(x, y, np.ones(num_rows))
    if case == "four times":
        other = mean_of(x, y, np.full(num_rows, 4.0))
    else:
        twice = lambda a: np.concatenate([a, np.zeros_like(a)])
        other = mean_of(twice(x), twice(y), twice(np.ones(num_rows)))
    np.testing.assert_allclose(other, once, rtol=1e-3, atol=1e-5)
    start = jax.tree.leaves(eqx.filter(prepared.model, eqx.is_inexact_array))
    start = np.concatenate([np.ravel(leaf) for leaf in start])
    assert np.abs(once - start).max() > 0.01


@pytest.mark.parametrize("optimiser", ["adam", "muon"])
def test_swag_does_not_take_a_decay_that_is_no_gradient(optimiser: str):
    """Catches (seen) AdamW's as the gradient of a prior, which leaves what it found."""

    def mean_of(decay: float, optimiser: str) -> list[np.ndarray]:
        recipe = swag_recipe(optimiser=optimiser, weight_decay=decay)
        ready = prepare(recipe)
        fit = Fit(ready.model, ready.likelihood, None, {})
        swag = MAKE(recipe, ready.data, fit, key=jr.key(1), augmentation=None).model
        return [np.asarray(leaf) for leaf in jax.tree.leaves(swag.mean)]

    plain, own = mean_of(0.0, optimiser), mean_of(0.5, optimiser)
    for a, b in zip(plain, own, strict=True):
        np.testing.assert_array_equal(a, b)
    decayed = mean_of(0.5, "nesterov")
    assert any((a != b).any() for a, b in zip(plain, decayed, strict=True))
