"""Chains go on with the network that they are of, and with no other."""

import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import small_model
from sampling.test_sample import run

from ornstein.functions import Integrator, LevyCiesielski, WeightPrior, whiten
from ornstein.mcmc import HMC
from ornstein.sde import EulerMaruyama, Fixed, Heun
from ornstein.train import CheckpointError


def mlp(activation=jax.nn.relu):
    return eqx.nn.MLP(2, 1, 3, 1, activation, key=jr.key(0))


def paths(sigma=0.2, dt=0.25, solver=None):
    how = Integrator(EulerMaruyama() if solver is None else solver, Fixed(dt))
    prior = WeightPrior(sigma=sigma)
    model = small_model(prior=prior, num_inducing=0, integrator=how)
    return whiten(model, LevyCiesielski(2))


NETWORKS = {"mlp": mlp, "paths": paths}


def go(model, folder):
    counts = {"num_samples": 3, "num_warmup": 2}
    return run(HMC(2), model=model, folder=folder, resume=True, **counts)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Of finished chains of each network."""
    home = tmp_path_factory.mktemp("networks")
    for name, make in NETWORKS.items():
        go(make(), home / name)
    return home


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mlp", {"activation": jnp.tanh}),
        ("paths", {"sigma": 0.3}),
        ("paths", {"dt": 0.125}),
        ("paths", {"solver": Heun()}),
    ],
    ids=["activation", "scale", "steps", "solver"],
)
def test_another_network_of_the_same_arrays_is_refused(name, change, folders, tmp_path):
    """Whose samples would be of two posteriors; and what is there stays as it is.

    Catches (seen) settings without the network: starts and data have one checksum.
    """
    make, folder = NETWORKS[name], tmp_path / "samples"
    arrays = lambda model: jax.tree.leaves(eqx.filter(model, eqx.is_array))
    jax.tree.map(np.testing.assert_array_equal, arrays(make()), arrays(make(**change)))
    shutil.copytree(folders / name, folder)
    contents = lambda: {p.name: p.read_bytes() for p in folder.iterdir()}
    before = contents()
    with pytest.raises(CheckpointError, match="its network is .*; pass the same argum"):
        go(make(**change), folder)
    assert contents() == before


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_network_built_again_is_not(name, folders, tmp_path):
    """Catches settings with the address of an activation in them."""
    shutil.copytree(folders / name, tmp_path / "samples")
    again = go(NETWORKS[name](), tmp_path / "samples")
    for i, leaf in enumerate(jax.tree.leaves(again.positions)):
        np.testing.assert_array_equal(leaf, np.load(folders / name / f"{i}.npy"))
