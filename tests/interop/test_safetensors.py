"""Our models as safetensors, without PyTorch."""

import pickle
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import ornstein as orn
from ornstein.interop import load_safetensors, save_safetensors
from ornstein.network import with_named_state
from ornstein.nn import MLP, BatchNorm


def model(seed: int = 0, width: int = 4) -> orn.MeanField:
    network = MLP(3, 2, (width,), key=jr.key(seed))
    return orn.MeanField(network, orn.GaussianPrior(1.0))


def arrays(tree) -> list[np.ndarray]:
    return [np.asarray(a) for a in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def test_a_model_comes_back(tmp_path: Path):
    """Catches arrays that change places: all of them are different."""
    path = tmp_path / "m.safetensors"
    save_safetensors(path, model(1))
    assert load_file(path)
    found = load_safetensors(path, model(2))
    for a, b in zip(arrays(found), arrays(model(1)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(arrays(found), arrays(model(2))))  # noqa: B905


def test_keys_and_scalars_come_back(tmp_path: Path):
    """Catches a number that gets an axis (seen), and a key that is lost."""
    path = tmp_path / "m.safetensors"
    tree = {"scale": jnp.asarray(2.0), "key": jr.key(3), "count": jnp.arange(3)}
    save_safetensors(path, tree)
    like = {"scale": jnp.asarray(0.0), "key": jr.key(0), "count": jnp.zeros(3, int)}
    found = load_safetensors(path, like)
    assert found["scale"].shape == ()
    assert float(found["scale"]) == 2
    assert jr.key_data(found["key"]).tolist() == jr.key_data(jr.key(3)).tolist()
    assert found["count"].tolist() == [0, 1, 2]


def test_files_that_do_not_fit(tmp_path: Path):
    """Catches weights that are put into another network without a word."""
    path = tmp_path / "m.safetensors"
    save_safetensors(path, model())
    with pytest.raises(
        ValueError, match=r"does not fit this `MeanField`.*, not \(3, 5"
    ):
        load_safetensors(path, model(width=5))
    tensors = load_file(path)
    first, *_ = tensors
    tensors["other"] = tensors.pop(first)
    save_file(tensors, path)
    with pytest.raises(ValueError, match=f"missing: {first}. extra: other"):
        load_safetensors(path, model())
    path.write_bytes(pickle.dumps({}))
    with pytest.raises(ValueError, match="is a pickle, which runs code"):
        load_safetensors(path, model())
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load_safetensors(tmp_path / "none.safetensors", model())


class Normed(eqx.Module):
    norm: BatchNorm

    def __call__(self, x, state):
        return self.norm(x, state)


def test_batch_statistics_are_written_if_they_are_given(tmp_path):
    """Catches (seen) a fit's that are lost, so that a model which is read again
    predicts by means of 0."""
    norm = with_named_state(BatchNorm(2))
    index = norm.index
    state = eqx.nn.State(norm)
    state = state.set(index, (jnp.array([1.1, 0.2]), jnp.array([2.0, 3.0])))
    path = tmp_path / "norm.safetensors"
    save_safetensors(path, norm, state=state)
    found = eqx.nn.State(load_safetensors(path, norm)).get(index)
    np.testing.assert_allclose(found, state.get(index))
    fitted = orn.MeanField(Normed(BatchNorm(2)), orn.GaussianPrior(1.0))
    save_safetensors(path, fitted, state=eqx.nn.State(fitted))
    load_safetensors(path, fitted)  # (seen) refused: its weights' means have none
    save_safetensors(path, norm)
    first = eqx.nn.State(load_safetensors(path, norm)).get(index)
    np.testing.assert_allclose(first, [[0, 0], [1, 1]])
