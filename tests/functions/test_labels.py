"""What is trained is told by its place in the tree, not by the array that stands there.

An array may stand in two places: `GaussianPrior(0.5, mean=w)` keeps `w`, and a
posterior that begins at `w` had its means frozen with the prior's, without a word.
"""

import inspect
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import X, blocks_of, small_model
from functions.small_networks import Normalised

from ornstein.data._base import Split
from ornstein.functions import (
    Deterministic,
    LatentODE,
    LatentSDE,
    LatentStart,
    MeanField,
    NoRecognition,
    ProcessDrift,
)
from ornstein.functions._base import label_tree
from ornstein.likelihood import Gaussian
from ornstein.network import split_where
from ornstein.nn import MLP, PerExample
from ornstein.potential import Potential
from ornstein.prior import ByLeaf, GaussianPrior
from ornstein.sde import OrnsteinUhlenbeck
from ornstein.train import fit

SPLIT = Split(X, np.sin(X.sum(axis=1, keepdims=True)))


def network() -> MLP:
    return MLP(2, 1, (4,), key=jr.key(0))


def with_copies(tree: Any) -> Any:
    """The tree whose arrays are all arrays of their own."""
    return jax.tree.map(lambda a: jnp.array(a, a.dtype) if eqx.is_array(a) else a, tree)


def fitted(model: Any, num_epochs: int = 3) -> Any:
    options = {"batch_size": 3, "learning_rate": 1e-2, "in_memory": False}
    return fit(
        model, SPLIT, Gaussian(0.3), key=jr.key(6), num_epochs=num_epochs, **options
    ).model


def assert_trained_as_copies(model: Any, where: Any) -> None:
    """To the last bit, and what `where` finds has moved in every entry."""
    found = fitted(model)
    assert eqx.tree_equal(found, fitted(with_copies(model)))
    arrays = lambda m: jax.tree.leaves(eqx.filter(where(m), eqx.is_array))
    assert arrays(model)
    for before, after in zip(arrays(model), arrays(found), strict=True):
        assert np.all(np.asarray(before) != np.asarray(after))


def centred() -> MeanField:
    """Bayes by Backprop whose prior's means are the network's own arrays."""
    net = network()
    params = eqx.filter(net, eqx.is_inexact_array)
    prior = ByLeaf(jax.tree.map(lambda w: GaussianPrior(0.5, mean=w), params))
    return MeanField(net, prior)


def test_a_prior_centred_on_the_networks_own_arrays():
    """Catches (seen) posterior means that are frozen with the prior's."""
    model = centred()
    means = jax.tree.leaves(model.family.mean)  # pyright: ignore
    priors = jax.tree.leaves(model.prior)
    assert any(m is p for m in means for p in priors), "no array is shared"
    assert_trained_as_copies(model, lambda m: m.family)
    assert set(jax.tree.leaves(model.labels().prior)) == {"frozen"}


def process_of_own_weights() -> Any:
    """An SDE-BNN whose prior reverts to the arrays that q(w0) has as its means."""
    model = small_model()
    (block,) = blocks_of(model)
    weights, _ = split_where(block.dynamics, None)
    process = OrnsteinUhlenbeck(1.0, weights, block.process.scale)
    return eqx.tree_at(lambda m: m.layers[-1].process, model, process)


@pytest.mark.slow
def test_a_process_that_reverts_to_the_networks_own_arrays():
    """Catches (seen) weights that are frozen with the process."""
    where = lambda m: m.layers[-1].dynamics
    assert_trained_as_copies(process_of_own_weights(), where)


def latent_start(kind: Any) -> Any:
    """A latent model whose process reverts to the learned mean of p(z0)."""
    start = LatentStart(2, mean=0.3, is_learned=True)
    process = OrnsteinUhlenbeck(1.0, start.mean, 0.5)
    drift = {"prior": process} if kind is LatentSDE else {}
    model = kind.make(NoRecognition(2), 1, start=start, key=jr.key(0), **drift)
    if kind is LatentODE:
        model = eqx.tree_at(lambda m: m.drift, model, ProcessDrift(process))
    return model


def normalised() -> Deterministic:
    """Batch statistics that begin with the array that a bias has."""
    net = Normalised(key=jr.key(0))
    first: Any = net.norm.index.init
    return eqx.tree_at(lambda m: m.network.norm.offset, Deterministic(net), first[0])


def tied() -> Deterministic:
    """One array at two places, both trained."""
    net = MLP(2, 1, (4, 4, 4), key=jr.key(0))
    weight = net.layers[1].weight
    return Deterministic(eqx.tree_at(lambda n: n.layers[2].weight, net, weight))


SHARING: dict[str, Any] = {
    "mean field": centred,
    "sde-bnn": process_of_own_weights,
    "latent sde": lambda: latent_start(LatentSDE),
    "latent ode": lambda: latent_start(LatentODE),
    "batch statistics": normalised,
    "tied weights": tied,
}


@pytest.mark.parametrize("name", SHARING)
def test_labels_are_those_of_copies(name: str):
    """Catches (seen in all but the last) labels that go with the array."""
    model = SHARING[name]()
    arrays = [a for a in jax.tree.leaves(model) if eqx.is_inexact_array(a)]
    assert len({id(a) for a in arrays}) < len(arrays), "no array is shared"
    labels = jax.tree.leaves(model.labels())
    assert labels == jax.tree.leaves(with_copies(model).labels())
    assert "weights" in labels


def test_one_array_at_two_places_is_two_parameters():
    """They start as one and part; `where` chooses one of them. Catches (seen) both
    chosen, where one was asked for."""
    model = tied()
    found = fitted(model)
    assert eqx.tree_equal(found, fitted(with_copies(model)))
    first, second = found.network.layers[1].weight, found.network.layers[2].weight
    assert np.all(first != second)
    last = lambda net: net.layers[2]
    chosen, _ = split_where(model.network, last)
    assert jax.tree.leaves(chosen.layers[1]) == []
    assert len(jax.tree.leaves(chosen.layers[2])) == 2
    potential = Potential(
        model.network, SPLIT, Gaussian(0.3), prior=GaussianPrior(1.0), where=last
    )
    assert jax.tree.leaves(potential.start[0].layers[1]) == []


def test_what_is_chosen_is_a_part():
    """Catches (seen) arrays that were looked for by identity, and not found."""
    net = network()
    where = lambda net: (net.layers[1], net.layers[0].weight[0])
    with pytest.raises(ValueError, match="gave an array that is no part of the MLP"):
        MeanField(net, where=where)
    with pytest.raises(ValueError, match="no part of the Deterministic"):
        label_tree(Deterministic(net), "weights", frozen=lambda m: jnp.zeros(2))
    frozen = lambda m: (m.network.layers[0], None, 3.0)
    labels = label_tree(Deterministic(net), "weights", frozen=frozen).network
    assert set(jax.tree.leaves(labels.layers[0])) == {"frozen"}
    assert "weights" in jax.tree.leaves(labels.layers[1])


def test_a_place_that_is_not_there_is_said():
    """Catches (seen) Python's own words for a network inside an adapter."""
    net = PerExample(network())
    with pytest.raises(ValueError, match=r"shown a PerExample.*`lambda net: net.modu"):
        MeanField(net, where=lambda net: net.layers[-1])
    assert MeanField(net, where=lambda net: net.module.layers[-1])
    with pytest.raises(ValueError, match="shown a MLP, which has layers.*give fields"):
        MeanField(network(), where=lambda net: net.layers[9])


def test_the_old_spelling_of_frozen_is_told_the_new_one():
    model = MeanField(MLP(1, 1, (2,), key=jr.key(0)))
    unchecked: Any = inspect.unwrap(label_tree)  # types are checked in tests alone
    with pytest.raises(TypeError, match=r"is a function of the module .* got a `list`"):
        unchecked(model, "weights", frozen=[model.prior])
