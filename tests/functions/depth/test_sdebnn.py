"""`SDEBNN` as a random function: its KL, its draws, its batches, its labels."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import (
    DEPTHS,
    X,
    away_from_prior,
    blocks_of,
    draw,
    small_model,
    trajectory,
    two_blocks,
)

from ornstein.data._base import Split
from ornstein.functions import SDEBNN, Integrator, WeightPrior
from ornstein.likelihood import Gaussian
from ornstein.sde import Fixed, FullMonteCarlo
from ornstein.train import elbo_loss, fit


def numpy_kl_initial(model: SDEBNN, prior_scales: dict[str, float]) -> float:
    """KL of q(w0), leaf by leaf, from the prior scale of each named leaf."""
    (block,) = blocks_of(model)
    total = 0.0
    for number in (0, 1):
        mean, rho = block.dynamics.layers[number], block.rho.layers[number]
        for m, r, name in (
            (mean.layer.weight, rho.layer.weight, f"layer {number}"),
            (mean.layer.bias, rho.layer.bias, f"layer {number}"),
            (mean.time_weight, rho.time_weight, f"layer {number}"),
        ):
            m, scale = np.asarray(m, float), np.logaddexp(0, np.asarray(r, float))
            prior = prior_scales[name]
            total += np.sum(
                np.log(prior / scale) + (scale**2 + m**2) / (2 * prior**2) - 0.5
            )
    return float(total)


@pytest.mark.parametrize("is_relative", [True, False])
def test_the_posterior_starts_as_the_prior(is_relative):
    """The path KL is 0.0, to the last bit, and KL(w0) the closed form. Catches (seen)
    a prior variance of 1 / fan-in squared."""
    prior = WeightPrior(scale=1.5, is_relative=is_relative)
    model = small_model(prior=prior)
    found = draw(model, X, jr.key(1))
    assert float(found.terms["kl_path"]) == 0.0
    # Inputs of a layer: 2 and an augmented one, or 5 hidden, and time.
    sizes = {"layer 0": 3 + 1, "layer 1": 5 + 1}
    scales = {k: 1.5 / math.sqrt(n) if is_relative else 1.5 for k, n in sizes.items()}
    exact = numpy_kl_initial(model, scales)
    assert float(found.terms["kl_initial"]) == pytest.approx(exact, rel=1e-5)
    assert float(found.kl) == pytest.approx(exact, rel=1e-5)


def test_a_point_start_costs_nothing():
    found = draw(small_model(start_width=None), X, jr.key(1))
    assert float(found.terms["kl_initial"]) == float(found.kl) == 0.0


def test_one_index_is_one_function_for_all_rows_and_blocks_of_rows():
    """With paths of their own in training too. Catches (seen) an index that does not
    count."""
    model = away_from_prior(small_model(is_path_per_row=True))
    key, three = jr.key(1), jnp.array(3)
    whole = draw(model, X, key, three).output
    halves = [draw(model, x, key, three).output for x in (X[:3], X[3:])]
    np.testing.assert_allclose(whole, np.concatenate(halves), rtol=1e-4, atol=1e-5)
    assert np.abs(draw(model, X, key, jnp.array(4)).output - whole).min() > 1e-3
    # The same input six times: one function gives one answer.
    same = np.broadcast_to(X[:1], X.shape)
    assert np.ptp(draw(model, same, key, three).output) < 1e-5
    in_training = np.sort(draw(model, same, key).output[:, 0])
    assert np.diff(in_training).min() > 1e-4
    shared = away_from_prior(small_model())
    assert np.ptp(draw(shared, same, key).output) < 1e-5


def test_halving_the_batch_leaves_the_loss_unchanged():
    """Catches (seen) a KL per row of the batch in place of the data's."""
    model = away_from_prior(small_model())
    y = np.sin(X.sum(axis=1, keepdims=True)) + 0.3

    @eqx.filter_jit
    def loss(x, y):
        batch = (jnp.asarray(x), jnp.asarray(y))
        return elbo_loss(model, Gaussian(0.1), batch, num_data=6, key=jr.key(2))

    whole, info = loss(X, y)
    halves = [loss(X[i : i + 3], y[i : i + 3])[0] for i in (0, 3)]
    assert float(info.kl) > 1.0
    assert float(np.mean(halves)) == pytest.approx(float(whole), rel=1e-5)


def test_a_path_per_row_leaves_the_expected_kl_unchanged():
    """The KL of a batch is the mean of its rows', not their sum (seen):
    400 draws each."""
    shared = away_from_prior(small_model(estimator=FullMonteCarlo()))
    per_row = eqx.tree_at(
        lambda m: m.inducing,
        away_from_prior(small_model(estimator=FullMonteCarlo(), is_path_per_row=True)),
        shared.inducing,
    )

    @eqx.filter_jit
    def kls(model, keys):
        found = jax.lax.map(lambda k: model(jnp.asarray(X), key=k), keys)
        return found.kl, found.terms["kl_path"]

    keys = jr.split(jr.key(3), 400)
    for a, b in zip(kls(shared, keys), kls(per_row, keys), strict=True):
        error = math.sqrt((np.var(a) + np.var(b)) / 400)
        assert abs(np.mean(a) - np.mean(b)) < 4.5 * error
        # Six rows with paths of their own.
        assert 3.5 < np.var(a) / np.var(b) < 10


def test_a_trajectory_ends_in_the_draw():
    """Two blocks: the second starts where the first ends, on paths of its own.
    Catches (seen) a trajectory of another index."""
    model = two_blocks()
    index = jnp.array(2)
    first, second = trajectory(model, X, jr.key(4), index)
    found = draw(model, X, jr.key(4), index)
    out = model.readout(second.hidden[-1])
    np.testing.assert_allclose(out, found.output, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(first.hidden[-1], second.hidden[0])
    np.testing.assert_array_equal(first.inducing[-1], second.inducing[0])
    starts = (ys.weights.layers[0].layer.weight[0] for ys in (first, second))
    assert np.abs(np.subtract(*starts)).max() > 0.1


def test_hidden_units_move_by_f_h_with_the_weights_of_the_moment():
    """Euler's steps of h and of the inducing inputs, by hand. Catches (seen) inducing
    inputs that stay where they are."""
    model = away_from_prior(small_model())
    (ys,) = trajectory(model, X, jr.key(4))
    (block,) = blocks_of(model)
    static = eqx.filter(block.dynamics, eqx.is_inexact_array, inverse=True)
    for k in range(5):
        w = jax.tree.map(lambda a, k=k: a[k], ys.weights)
        f_h = eqx.combine(w, static)
        for moved in (ys.hidden, ys.inducing):
            here = moved[k]
            after = here + 0.2 * f_h(jnp.asarray(DEPTHS[k], here.dtype), here)
            np.testing.assert_allclose(moved[k + 1], after, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ys.inducing[0, :, :2], model.inducing)


def test_kl_adds_up_over_blocks():
    """Catches (seen) the last block's in place of the sum."""
    model = two_blocks()
    total = draw(model, X, jr.key(5))
    augment, first, second = model.layers
    keys = jr.split(jr.key(5), 3)
    run = eqx.filter_jit(lambda block, h, z, key: block(h, z, key=key))
    a = run(first, augment(jnp.asarray(X)), augment(model.inducing), keys[1])
    b = run(second, a.states.hidden, a.states.inducing, keys[2])
    for name in ("kl_path", "kl_initial"):
        exact = float(getattr(a, name) + getattr(b, name))
        assert float(total.terms[name]) == pytest.approx(exact, rel=1e-4)
        assert float(getattr(b, name)) > 0.1
    assert float(total.kl) == pytest.approx(float(a.kl + b.kl), rel=1e-4)


def test_fit_moves_what_is_not_frozen():
    """The prior and the drift's units stay to the last bit; all else moves. Catches
    (seen) a process that is trained."""
    model = away_from_prior(small_model())
    split = Split(X, np.sin(X.sum(axis=1, keepdims=True)))
    found = fit(
        model,
        split,
        Gaussian(0.3),
        key=jr.key(6),
        num_epochs=2,
        batch_size=3,
        learning_rate=1e-2,
        in_memory=False,
    ).model
    labels = jax.tree.leaves(model.labels())
    before, after = (jax.tree.leaves(m) for m in (model, found))
    for label, a, b in zip(labels, before, after, strict=True):
        if not eqx.is_inexact_array(a):
            continue
        if label == "frozen":
            np.testing.assert_array_equal(a, b)
        else:
            assert not np.array_equal(a, b)
    (was,), (now,) = blocks_of(model), blocks_of(found)
    for where in (
        lambda b: b.process,
        lambda b: b.initial_scale,
        lambda b: (b.drift.input_scale, b.drift.output_scale),
    ):
        assert eqx.tree_equal(where(was), where(now))
    for where in (lambda b: b.dynamics, lambda b: b.rho, lambda b: b.drift.writes):
        assert not eqx.tree_equal(where(was), where(now))
    assert np.abs(model.inducing - found.inducing).min() > 1e-4


@pytest.mark.slow
def test_images_at_two_scales():
    """Blocks (2, 2) on 8 by 8: four solves, of 4 and 16 features a pixel, that do
    what their layers do one after another."""
    model = SDEBNN.for_images(
        (8, 8, 2),
        3,
        blocks=(2, 2),
        width=3,
        drift_widths=(2, 3, 2),
        num_inducing=2,
        start_width=0.02,
        integrator=Integrator(stepsize=Fixed(0.5)),
        key=jr.key(7),
    )
    model = away_from_prior(model, scale=0.2)
    x = jr.normal(jr.key(8), (2, 8, 8, 2))
    found = draw(model, x, jr.key(9))
    assert found.output.shape == (2, 3)

    run = eqx.filter_jit(lambda block, h, z, key: block(h, z, key=key))
    h, z, kl, shapes = x, model.inducing, 0.0, []
    keys = jr.split(jr.key(9), len(model.layers))
    for layer, key in zip(model.layers, keys, strict=True):
        if layer in blocks_of(model):
            out = run(layer, h, z, key)
            h, z = out.states.hidden, out.states.inducing
            kl += float(out.kl)
            shapes.append(h.shape)
        else:
            h, z = layer(h), layer(z)
    assert shapes == [(2, 8, 8, 4)] * 2 + [(2, 4, 4, 16)] * 2
    np.testing.assert_allclose(found.output, model.readout(h), rtol=1e-3, atol=1e-4)
    assert float(found.kl) == pytest.approx(kl, rel=1e-4)
    assert float(found.terms["kl_path"]) > 0.1
