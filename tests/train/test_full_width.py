"""The paper's networks at full width: one step, and a checkpoint there and back."""

import functools

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.network import initial_state
from ornstein.train import RunFolder, load_model, save_model

NETWORKS = {
    "vgg16": functools.partial(orn.nn.VGG16, 10),
    "wide-resnet-28-10": functools.partial(orn.nn.WideResNet, 28, 10, 10),
}


def make_model(name: str, seed: int) -> orn.ImplicitBNN:
    network = NETWORKS[name](key=jr.key(seed))
    return orn.ImplicitBNN(network, num_components=4, key=jr.key(seed + 1))


def assert_same(ours, theirs):
    arrays = lambda tree: jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    for a, b in zip(arrays(ours), arrays(theirs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_and_a_checkpoint_round_trip(name, tmp_path):
    """One step, and from its checkpoint a second: the same as two steps at once."""
    model = make_model(name, 0)
    rng = np.random.default_rng(0)
    split = Split(rng.normal(size=(8, 32, 32, 3)).astype(np.float32), np.arange(8) % 10)
    options = orn.implicit_options(learning_rate=1e-3, num_draws=1, weight_decay=0.0)
    train = functools.partial(
        orn.fit,
        model,
        split,
        orn.Categorical(),
        key=jr.key(2),
        num_epochs=2,
        batch_size=8,
        clip_norm=None,
        **options,
    )
    run = RunFolder.create(tmp_path / "run", {})
    with pytest.raises(KeyboardInterrupt):
        train(run=orn.Run(run, checkpoint_every=0.0), callbacks=[StopInTheSecondStep()])
    resumed, whole = train(run=orn.Run(run, resume=True)), train()
    assert_same((resumed.model, resumed.state), (whole.model, whole.state))
    assert np.isfinite(whole.history["loss"]).all()
    arrays = lambda m: jax.tree.leaves(eqx.filter(m.network, eqx.is_inexact_array))
    pairs = zip(arrays(model), arrays(whole.model), strict=True)
    moved = [not np.array_equal(a, b) for a, b in pairs]
    assert np.mean(moved) > 0.6  # all but the first values of batch statistics

    path = tmp_path / "final.npz"
    save_model(path, (whole.model, whole.likelihood, whole.state))
    other = make_model(name, 5)
    loaded = load_model(path, (other, orn.Categorical(), initial_state(other)))
    assert_same((whole.model, whole.state), (loaded[0], loaded[2]))


class StopInTheSecondStep:
    """A callback that interrupts as Ctrl-C does, before that step is kept."""

    def start(self, plan):
        pass

    def advance(self, step, record):
        if step == 2:
            raise KeyboardInterrupt

    def epoch(self, record):
        pass

    def stop(self):
        pass
