"""What SDE-BNNs are compared with: dropout, ensembles, SWAG, a plain network.

Seen failing: masks shared by rows in training, or not scaled; the first layer dropped;
an ensemble's members in another order; SWAG without its halves, with K for K - 1, or
with deviations from the final mean.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from functions.small_networks import Chain, Normalised, identities

from ornstein.data._base import Split
from ornstein.functions import SWAG, Deterministic, Ensemble, MCDropout, MeanField
from ornstein.likelihood import Gaussian
from ornstein.nn import MLP, ChannelsFirst, Conv2d, PerExample
from ornstein.prior import GaussianPrior
from ornstein.train import Constant, fit


@eqx.filter_jit
def outputs(function: Any, x: Any, key: Any, index: Any = None) -> jax.Array:
    return function(jnp.asarray(x), key=key, index=index).output


@eqx.filter_jit
def many(function: Any, x: Any, key: Any, num_draws: int) -> jax.Array:
    draw = lambda i: function(jnp.asarray(x), key=key, index=i).output
    return jax.vmap(draw)(jnp.arange(num_draws))


def pixel_identities(channels: int, *, is_ours: bool) -> Chain:
    kernel = jnp.eye(channels)
    if is_ours:
        layer = Conv2d(channels, channels, 1, use_bias=False, key=jr.key(0))
        layer = eqx.tree_at(lambda a: a.weight, layer, kernel[None, None])
        return Chain((layer, layer))
    layer = eqx.nn.Conv2d(channels, channels, 1, use_bias=False, key=jr.key(0))
    layer = eqx.tree_at(lambda a: a.weight, layer, kernel[:, :, None, None])
    return Chain((ChannelsFirst(layer), ChannelsFirst(layer)))


def small_split(num_rows: int = 20) -> Split:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((num_rows, 3)).astype(np.float32)
    return Split(x, np.sin(x.sum(1, keepdims=True)))


def small_mlp(*, key: Any) -> MLP:
    return MLP(3, 1, (6,), key=key)


def test_deterministic_is_its_network(getkey):
    network = small_mlp(key=getkey())
    x = small_split().x
    draw = Deterministic(network)(jnp.asarray(x), key=getkey(), index=3)
    np.testing.assert_array_equal(draw.output, network(jnp.asarray(x)))
    assert float(draw.kl) == 0
    np.testing.assert_array_equal(draw.local_kl, np.zeros(len(x)))


def test_dropout_masks_of_rows_and_of_draws():
    rate, x = 0.25, np.ones((300, 40), np.float32)
    function = MCDropout(identities(40, depth=2), rate=rate)
    by_row = np.asarray(outputs(function, x, jr.key(1)))
    np.testing.assert_allclose(np.unique(by_row), [0, 1 / (1 - rate)], rtol=1e-6)
    kept = np.mean(by_row > 0)
    assert abs(kept - 0.75) < 4.5 * np.sqrt(0.75 * 0.25 / by_row.size)
    assert len(np.unique(by_row, axis=0)) > 290
    shared = np.asarray(outputs(function, x, jr.key(1), 2))
    np.testing.assert_array_equal(shared, shared[:1].repeat(300, axis=0))
    block = outputs(function, x[:7], jr.key(1), jnp.asarray(2))
    np.testing.assert_array_equal(block, shared[:7])
    draws = np.asarray(many(function, x[:1], jr.key(1), 300))
    assert len(np.unique(draws[:, 0], axis=0)) > 290
    assert abs(np.mean(draws > 0) - 0.75) < 4.5 * np.sqrt(0.1875 / draws.size)


def test_dropout_of_inputs_and_of_layers_multiply():
    """Three layers: the first keeps its inputs unless `input_rate` is given."""
    x = np.ones((1, 2000), np.float32)
    function = MCDropout(identities(2000, depth=3), rate=0.5)
    kept = np.mean(np.asarray(outputs(function, x, jr.key(1), 0)) == 4.0)
    assert abs(kept - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / 2000)
    function = MCDropout(identities(2000, depth=2), rate=0.0, input_rate=0.2)
    kept = np.mean(np.asarray(outputs(function, x, jr.key(1), 0)) == 1.25)
    assert abs(kept - 0.8) < 4.5 * np.sqrt(0.16 / 2000)


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "equinox"])
def test_dropout_of_whole_channels(is_ours: bool):
    function = MCDropout(pixel_identities(30, is_ours=is_ours), rate=0.5)
    x = np.ones((4, 3, 2, 30), np.float32)
    for index in (None, 1):
        found = np.asarray(outputs(function, x, jr.key(2), index))
        by_channel = found[:, :1, :1]
        np.testing.assert_array_equal(found, np.broadcast_to(by_channel, found.shape))
        np.testing.assert_allclose(np.unique(found), [0, 2])
        num_masks = len(np.unique(by_channel.reshape(4, 30), axis=0))
        assert num_masks == (4 if index is None else 1)


def test_dropout_has_the_moments_of_its_masks():
    r"""$E y = w^\top h$ and $\mathrm{Var}\, y = \sum (w h)^2 p / (1 - p)$."""
    rate, num_draws = 0.3, 20_000
    network = MLP(3, 1, (20,), key=jr.key(0))
    x = jnp.asarray(small_split().x[:1])
    hidden = network.activations[0](network.layers[0](x))
    terms = hidden[0] * network.layers[1].weight[:, 0]
    mean, variance = float(terms.sum()), float((terms**2).sum() * rate / (1 - rate))
    draws = np.asarray(many(MCDropout(network, rate=rate), x, jr.key(1), num_draws))
    z_mean = (draws.mean() - mean) / np.sqrt(variance / num_draws)
    squares = (draws.ravel() - mean) ** 2
    z_variance = (squares.mean() - variance) / (squares.std() / np.sqrt(num_draws))
    assert max(abs(z_mean), abs(z_variance)) < 4.5, (z_mean, z_variance)


def test_dropout_of_equinox_layers_is_that_of_ours():
    """One network in both spellings, with the same keys: also inside `Sequential`."""
    ours = MLP(3, 2, (5, 4), activation=jax.nn.relu, key=jr.key(0))
    linears = [eqx.nn.Linear(*a.weight.shape, key=jr.key(0)) for a in ours.layers]
    pairs = zip(linears, ours.layers, strict=True)
    linears = [
        eqx.tree_at(lambda a: (a.weight, a.bias), theirs, (a.weight.T, a.bias))
        for theirs, a in pairs
    ]
    relu = eqx.nn.Lambda(jax.nn.relu)
    layers = [linears[0], relu, linears[1], relu, linears[2]]
    theirs = PerExample(eqx.nn.Sequential(layers))
    x = small_split().x
    for index in (None, 4):
        found, expected = (
            outputs(MCDropout(n, rate=0.4, input_rate=0.2), x, jr.key(3), index)
            for n in (theirs, ours)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_ensemble_takes_its_members_in_turn(getkey):
    networks = [small_mlp(key=getkey()) for _ in range(3)]
    ensemble, x = Ensemble(networks), small_split().x
    assert (ensemble.num_strata, ensemble.num_members) == (3, 3)
    for index in range(5):
        expected = networks[index % 3](jnp.asarray(x))
        found = outputs(ensemble, x, getkey(), jnp.asarray(index))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    found = outputs(ensemble, x, getkey())
    gaps = [float(jnp.max(jnp.abs(found - n(jnp.asarray(x))))) for n in networks]
    assert min(gaps) < 1e-5


def test_ensemble_of_random_functions_draws_from_each(getkey):
    """Index i is member i mod n and its own draw i // n; its KL is the member's."""
    members = [MeanField(small_mlp(key=getkey()), init_scale=0.3) for _ in range(2)]
    ensemble, x = Ensemble(members), small_split().x
    key = getkey()
    for index in range(4):
        draw = ensemble(jnp.asarray(x), key=key, index=index)
        member_key = jr.fold_in(key, index % 2)
        expected = members[index % 2](jnp.asarray(x), key=member_key, index=index // 2)
        np.testing.assert_allclose(draw.output, expected.output, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(draw.kl, expected.kl, rtol=1e-5)
    nested = Ensemble([ensemble, ensemble])
    assert (nested.num_strata, nested.num_members) == (4, 4)
    for number in range(4):
        found = nested.member(jnp.asarray(number))
        assert eqx.tree_equal(found, members[number // 2])


def test_an_ensemble_has_no_other_members():
    """Seen failing: member 3 of 3 was member 0, and member -1 the last."""
    ensemble = Ensemble.of(small_mlp, 3, key=jr.key(0))
    for number in (3, -1, jnp.asarray(4)):
        with pytest.raises(IndexError, match=rf"no member {number} of 3: .* 0 to 2"):
            ensemble.member(number)
    nested = Ensemble([ensemble, ensemble])
    with pytest.raises(IndexError, match=r"no member 6 of 6: .* 0 to 5"):
        nested.member(6)
    x, key = jnp.asarray(small_split().x), jr.key(1)
    by_index = lambda index: ensemble(x, key=key, index=index).output
    np.testing.assert_array_equal(by_index(5), by_index(2))


def test_ensemble_trains_each_member_as_if_alone():
    """Plain SGD at n times the rate: the mean over members divides gradients by n."""
    split, rate = small_split(), 0.1
    options = {
        "key": jr.key(5),
        "num_epochs": 4,
        "batch_size": 5,
        "optimiser": optax.sgd,
        "schedule": Constant(),
        "clip_norm": None,
    }
    ensemble = Ensemble.of(small_mlp, 2, key=jr.key(0))
    likelihood = Gaussian(0.5)
    together = fit(ensemble, split, likelihood, learning_rate=2 * rate, **options)
    for index in range(2):
        alone = fit(
            ensemble.member(index), split, likelihood, learning_rate=rate, **options
        )
        pairs = zip(
            jax.tree.leaves(eqx.filter(together.model.member(index), eqx.is_array)),
            jax.tree.leaves(eqx.filter(alone.model, eqx.is_array)),
            strict=True,
        )
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    start = jax.tree.leaves(ensemble.member(0))[0]
    assert float(jnp.max(jnp.abs(jax.tree.leaves(alone.model)[0] - start))) > 1e-3


def test_frozen_leaves_do_not_move():
    make = lambda *, key: MeanField(small_mlp(key=key), GaussianPrior(0.7))
    ensemble = Ensemble.of(make, 2, key=jr.key(0))
    found = fit(ensemble, small_split(), Gaussian(0.5), key=jr.key(1), num_epochs=2)
    before, after = ensemble.members, found.model.members
    np.testing.assert_array_equal(after.prior.scale, before.prior.scale)
    assert not np.allclose(
        jax.tree.leaves(after.family)[0], jax.tree.leaves(before.family)[0]
    )


def swag_by_hand(iterates: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 of Maddox et al., one iterate after another."""
    mean, square, columns = np.zeros(iterates.shape[1]), 0.0, []
    for n, theta in enumerate(iterates):
        mean = (n * mean + theta) / (n + 1)
        square = (n * square + theta**2) / (n + 1)
        columns = [*columns, theta - mean][-rank:]
    deviations = np.stack(columns, axis=1)
    low_rank = deviations @ deviations.T / (rank - 1)
    return mean, 0.5 * np.diag(square - mean**2) + 0.5 * low_rank


def test_swag_has_the_moments_of_its_iterates():
    num_draws, rank = 20_000, 4
    network = MLP(2, 1, (2,), key=jr.key(0))
    params = eqx.filter(network, eqx.is_inexact_array)
    leaves, treedef = jax.tree.flatten(params)
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((9, 9))
    walk = np.cumsum(rng.standard_normal((12, 9)) @ mixing, axis=0)
    cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(walk, cuts, axis=1)
    iterates = treedef.unflatten(
        jnp.asarray(p.reshape(12, *leaf.shape), jnp.float32)
        for p, leaf in zip(parts, leaves, strict=True)
    )
    swag = SWAG.from_iterates(network, iterates, rank=rank)
    mean, covariance = swag_by_hand(walk.astype(np.float32).astype(np.float64), rank)
    draws = jax.jit(jax.vmap(lambda key: swag.draw_params(key=key)))(
        jr.split(jr.key(1), num_draws)
    )
    flat = [
        np.asarray(d, np.float64).reshape(num_draws, -1) for d in jax.tree.leaves(draws)
    ]
    flat = np.concatenate(flat, axis=1).astype(np.float64) - mean
    variance = np.diag(covariance)
    z_mean = flat.mean(0) / np.sqrt(variance / num_draws)
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / num_draws)
    z_covariance = (flat.T @ flat / num_draws - covariance) / error
    assert np.abs(z_mean).max() < 4.5, z_mean
    assert np.abs(z_covariance).max() < 4.5, z_covariance


def test_swag_draws_one_function_for_all_rows(getkey):
    network = eqx.nn.MLP(3, 1, 4, 1, key=getkey())
    params = eqx.filter(network, eqx.is_inexact_array)
    stack = lambda a: a[None] + 0.1 * jr.normal(jr.key(7), (25, *a.shape))
    swag = SWAG.from_iterates(network, jax.tree.map(stack, params))
    x, key = small_split().x, getkey()
    whole = outputs(swag, x, key, 3)
    np.testing.assert_allclose(outputs(swag, x[:4], key, 3), whole[:4], rtol=1e-5)
    assert not np.allclose(outputs(swag, x, key, 4), whole)
    first = lambda n: (n.layers[0].weight, n.layers[0].bias)
    last = eqx.tree_at(first, params, replace=(None, None))
    swag = SWAG.from_iterates(network, jax.tree.map(stack, last), rank=2)
    drawn = swag.draw_params(key=key)
    assert [a.weight is None for a in drawn.module.layers] == [True, False]
    with pytest.raises(ValueError, match="Nothing is to be trained"):
        fit(swag, small_split(), Gaussian(0.5), key=key, num_epochs=1)


BAD = {
    "rate 1": (lambda n: MCDropout(n, rate=1.0), "`rate` is the fraction.*got 1.0"),
    "rate below 0": (lambda n: MCDropout(n, input_rate=-0.1), "`input_rate`.*-0.1"),
    "one layer": (lambda n: MCDropout(n.layers[0], rate=0.1), "has 1 linear"),
    "no layer": (lambda n: MCDropout(jnp.tanh, rate=0.1), "has 0 linear"),
    "members with batch state": (
        lambda n: Ensemble([Normalised(key=jr.key(0))] * 2),
        "The members keep batch statistics",
    ),
    "iterates with batch state": (
        lambda n: SWAG.from_iterates(
            Normalised(key=jr.key(0)), stacked(Normalised(key=jr.key(0)), 5)
        ),
        "The network keeps batch statistics",
    ),
    "one member": (lambda n: Ensemble([n]), "at least 2 members, got 1"),
    "of no members": (
        lambda n: Ensemble.of(small_mlp, 0, key=jr.key(0)),
        "at least 2 members, got 0",
    ),
    "members of other widths": (
        lambda n: Ensemble([n, MLP(3, 1, (7,), key=jr.key(0))]),
        r"Member 1 has float32\[3, 7\] at .*member 0 float32\[3, 6\]",
    ),
    "members of other depths": (
        lambda n: Ensemble([n, MLP(3, 1, (6, 6), key=jr.key(0))]),
        "Member 1 is a Deterministic of another structure",
    ),
    "members of other activations": (
        lambda n: Ensemble([n, MLP(3, 1, (6,), activation=jnp.sin, key=jr.key(0))]),
        "Member 1 has .*sin",
    ),
    "members of other rates": (
        lambda n: Ensemble([MCDropout(n, rate=0.1), MCDropout(n, rate=0.2)]),
        "Member 1 is a MCDropout of another structure",
    ),
    "rank above the iterates": (
        lambda n: SWAG.from_iterates(n, stacked(n, 5)),
        "of the 5 iterates.*got 20",
    ),
    "rank 1": (
        lambda n: SWAG.from_iterates(n, stacked(n, 5), rank=1),
        "at least 2 of them, got 1",
    ),
    "iterates of another network": (
        lambda n: SWAG.from_iterates(n, stacked(MLP(3, 1, (7,), key=jr.key(0)), 5)),
        "`iterates` must be the network's own tree",
    ),
    "iterates without an axis": (
        lambda n: SWAG.from_iterates(n, eqx.filter(n, eqx.is_inexact_array)),
        "`iterates` must be the network's own tree",
    ),
}


def stacked(network: Any, num: int) -> Any:
    params = eqx.filter(network, eqx.is_inexact_array)
    return jax.tree.map(lambda a: jnp.stack([a] * num), params)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case: str):
    build, match = BAD[case]
    with pytest.raises(ValueError, match=match):
        build(small_mlp(key=jr.key(0)))
