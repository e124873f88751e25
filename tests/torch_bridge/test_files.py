"""Weights on disk, for PyTorch and for JAX."""

from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.interop import load_safetensors, save_safetensors
from ornstein.nn import MLP

torch = pytest.importorskip("torch", reason="PyTorch (extra `torch`)")
from safetensors.torch import load_file  # noqa: E402

import ornstein.torch  # noqa: E402


def model(seed: int) -> orn.MeanField:
    return orn.MeanField(MLP(3, 2, (4,), key=jr.key(seed)), orn.GaussianPrior(1.0))


def test_one_file_for_both(tmp_path: Path):
    """Catches names or numbers that only one of the two can read."""
    path, x = tmp_path / "m.safetensors", torch.randn(5, 3)
    module = orn.torch.RandomFunction(model(0))
    expected = module(x, seed=1).output.detach()
    module.save(path)

    in_jax = load_safetensors(path, model(1))
    output = in_jax(jnp.asarray(x.numpy()), key=jr.key(1)).output
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)

    by_hand = orn.torch.RandomFunction(model(1))
    by_hand.load_state_dict(load_file(path))
    assert torch.equal(by_hand(x, seed=1).output, expected)

    save_safetensors(path, in_jax)
    loaded = orn.torch.RandomFunction(model(2))
    before = [p.data_ptr() for p in loaded.parameters()]
    loaded.load(path)
    assert torch.equal(loaded(x, seed=1).output, expected)
    assert before == [p.data_ptr() for p in loaded.parameters()]  # an optimiser's own


def test_double_precision_stays(tmp_path: Path):
    """Catches weights that are rounded on their way to a file and back."""
    module = orn.torch.RandomFunction(model(0)).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1e-12)
    kept = [p.detach().clone() for p in module.parameters()]
    module.save(tmp_path / "m.safetensors")
    twin = orn.torch.RandomFunction(model(1)).double()
    twin.load(tmp_path / "m.safetensors")
    assert all(map(torch.equal, kept, twin.parameters()))
