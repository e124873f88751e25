"""The paper's networks at full width: one step, and a checkpoint there and back."""

import functools

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.functions._network import initial_state
from ornstein.train import RunFolder, load_model, save_model

NETWORKS = {
    "vgg16": functools.partial(orn.nn.VGG16, 10),
    "wide-resnet-28-10": functools.partial(orn.nn.WideResNet, 28, 10, 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_one_step_and_a_checkpoint_round_trip(name, tmp_path):
    network = NETWORKS[name](key=jr.key(0))
    model = orn.ImplicitBNN(network, num_components=4, key=jr.key(1))
    rng = np.random.default_rng(0)
    split = Split(rng.normal(size=(8, 32, 32, 3)).astype(np.float32), np.arange(8) % 10)
    options = orn.implicit_options(learning_rate=1e-3, num_draws=1, weight_decay=0.0)
    run = RunFolder.create(tmp_path / "run", {})
    fit = orn.fit(
        model,
        split,
        orn.Categorical(),
        key=jr.key(2),
        num_epochs=1,
        batch_size=8,
        run=run,
        clip_norm=None,
        **options,
    )
    is_array = eqx.is_inexact_array
    before = jax.tree.leaves(eqx.filter(model.network, is_array))
    after = jax.tree.leaves(eqx.filter(fit.model.network, is_array))
    moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert np.mean(moved) > 0.6  # all but the first values of batch statistics
    assert np.isfinite(fit.history["loss"]).all()

    path = tmp_path / "final.npz"
    save_model(path, (fit.model, fit.likelihood, fit.state))
    other = orn.ImplicitBNN(
        NETWORKS[name](key=jr.key(5)), num_components=4, key=jr.key(6)
    )
    like = (other, orn.Categorical(), initial_state(other))
    loaded = load_model(path, like)
    for ours, theirs in zip(
        jax.tree.leaves(eqx.filter((fit.model, fit.state), is_array)),
        jax.tree.leaves(eqx.filter((loaded[0], loaded[2]), is_array)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)

    resumed = orn.fit(
        model,
        split,
        orn.Categorical(),
        key=jr.key(2),
        num_epochs=1,
        batch_size=8,
        run=run,
        resume=True,
        clip_norm=None,
        **options,
    )
    for ours, theirs in zip(
        jax.tree.leaves(eqx.filter((fit.model, fit.state), is_array)),
        jax.tree.leaves(eqx.filter((resumed.model, resumed.state), is_array)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
