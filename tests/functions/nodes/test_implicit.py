"""Implicit networks: the layer of equation 11, Algorithm 1's dealing, and prediction.

Seen failing: a scale on the layer's outputs, of the wrong group of a convolution, of
the next layer's slice of the nodes; a bias outside its scale; one noise for all rows;
components dealt in blocks at one place and in turn at another, or the remainder always
to the first; a component of each layer's own; an index that forgets the key.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from functions.small_networks import (
    Chain,
    Normalised,
    equinox_images,
    equinox_vectors,
    identities,
    with_moments,
)

from ornstein import nn
from ornstein.functions import ImplicitBNN, MCDropout, MeanField, ODENet
from ornstein.functions._layers import (
    ScaledInputs,
    replace_layers,
    with_inputs_scaled,
)
from ornstein.likelihood import Gaussian
from ornstein.nn._nodes import layers_of
from ornstein.prediction import predict
from ornstein.train import Fit, elbo_loss

X = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)


def convolve(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Windows of 3 by 3, two pixels apart, of an image with a border of zeros."""
    x = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    windows = [
        [np.einsum("hwc,hwco->o", x[i : i + 3, j : j + 3], weight) for j in (0, 2, 4)]
        for i in (0, 2, 4)
    ]
    return np.asarray(windows)


def without_groups(weight: np.ndarray, num_groups: int) -> np.ndarray:
    """Equinox's (out, in / groups, height, width) as (height, width, in, out)."""
    num_out, per_group, *taps = weight.shape
    full = np.zeros((num_out, per_group * num_groups, *taps))
    for i in range(num_out):
        start = per_group * (i // (num_out // num_groups))
        full[i, start : start + per_group] = weight[i]
    return full.transpose(2, 3, 1, 0)


def one_layer(name: str) -> tuple[Any, tuple[int, ...], np.ndarray]:
    """A network of one layer to 6 features, its input's shape, its weights."""
    k, size = jr.key(0), 1 if "of one" in name else 4
    if name.startswith("linear"):
        layer = nn.Linear(size, 6, key=k)
        return layer, (size,), np.asarray(layer.weight)
    if name.startswith("Equinox's linear"):
        layer = eqx.nn.Linear(size, 6, key=k)
        return nn.PerExample(layer), (size,), np.asarray(layer.weight).T
    if name.startswith("convolution"):
        layer = nn.Conv2d(size, 6, 3, stride=2, padding=1, key=k)
        return layer, (5, 5, size), np.asarray(layer.weight)
    groups = 2 if "groups" in name else 1
    layer = eqx.nn.Conv2d(size, 6, 3, stride=2, padding=1, groups=groups, key=k)
    weight = without_groups(np.asarray(layer.weight), groups)
    if "by example" in name:
        channels_first = lambda x: jnp.moveaxis(x, -1, 0)
        chain = Chain((channels_first, layer, lambda x: jnp.moveaxis(x, 0, -1)))
        return nn.PerExample(chain, num_axes=3), (5, 5, size), weight
    return nn.ChannelsFirst(layer), (5, 5, size), weight


NAMES = [
    "linear",
    "linear of one",
    "Equinox's linear",
    "Equinox's linear of one",
    "convolution",
    "convolution of one",
    "Equinox's convolution",
    "Equinox's convolution of one",
    "Equinox's convolution by example",
    "Equinox's convolution of two groups",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_is_dense_with_scaled_weights(name: str):
    r"""Equation 11, by numpy: $U \mathrm{diag}(z)$ and $b \circ z_b$, for noise that
    all rows share, folded into the weights or not, and for noise of each row."""
    network, shape, weight = one_layer(name)
    (layer,) = layers_of(network)
    keys = jr.split(jr.key(1), 4)
    bias = jr.normal(keys[0], (6,))
    layer = eqx.tree_at(lambda a: a.bias, layer, bias.reshape(layer.bias.shape))
    network = replace_layers(network, [layer])
    x = np.asarray(jr.normal(keys[1], (3, *shape)))
    z, z_bias = (
        1 + jr.normal(keys[2], (3, shape[-1])),
        1 + jr.normal(keys[3], (3, 6)),
    )

    def by_hand(x: np.ndarray, z: np.ndarray, z_bias: np.ndarray) -> np.ndarray:
        dense = weight * z[:, None]
        linear = x @ dense if x.ndim == 1 else convolve(x, dense)
        return linear + np.asarray(bias) * z_bias

    def check(new: Any, zs: np.ndarray, z_biases: np.ndarray) -> None:
        found = replace_layers(network, [new])(jnp.asarray(x))
        parts = zip(x, np.asarray(zs), np.asarray(z_biases), strict=True)
        expected = np.stack([by_hand(*part) for part in parts])
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)

    of_all = np.broadcast_to(z[0], z.shape), np.broadcast_to(z_bias[0], z_bias.shape)
    ones = np.ones_like(of_all[1])
    check(ScaledInputs(layer, z[0], z_bias[0]), *of_all)
    check(with_inputs_scaled(layer, z[0], z_bias[0]), *of_all)
    check(ScaledInputs(layer, z[0]), of_all[0], ones)
    check(with_inputs_scaled(layer, z[0]), of_all[0], ones)
    check(ScaledInputs(layer, nn.PerRow(z), nn.PerRow(z_bias)), z, z_bias)
    check(ScaledInputs(layer, nn.PerRow(z)), z, ones)


def test_transposed_convolutions_fold_too():
    layer = nn.ConvTranspose2d(4, 6, 2, key=jr.key(0))
    x, z = jr.normal(jr.key(1), (2, 3, 3, 4)), jr.normal(jr.key(2), (4,))
    found = with_inputs_scaled(layer, z)(x)
    np.testing.assert_allclose(found, layer(x * z[None, None, None]), rtol=1e-4)
    np.testing.assert_allclose(found, ScaledInputs(layer, z)(x), rtol=1e-4)


NETWORKS: dict[str, Any] = {
    "vectors": (lambda key: nn.MLP(3, 2, (4,), key=key), (3,)),
    "Equinox's vectors": (lambda key: eqx.nn.MLP(3, 2, 4, 1, key=key), (3,)),
    "Equinox's images": (
        lambda key: equinox_images(is_normalised=False, key=key),
        (5, 5, 2),
    ),
}


def implicit(network: Any, **options: Any) -> ImplicitBNN:
    return ImplicitBNN(network, num_components=3, **options, key=jr.key(5))


@eqx.filter_jit
def outputs(function: Any, x: Any, key: Any, index: Any = None) -> jax.Array:
    return function(jnp.asarray(x), key=key, index=index).output


@pytest.mark.parametrize("bias_noise", [False, True], ids=["inputs", "biases too"])
@pytest.mark.parametrize("name", NETWORKS)
def test_without_noise_a_row_meets_its_components_own_network(name, bias_noise):
    """Row i of 6 has component i mod 3, as `to_deterministic` folds it; so has draw i.
    By hand for the first layer and the last. Catches nodes in another order."""
    build, shape = NETWORKS[name]
    model = with_moments(implicit(build(jr.key(0)), bias_noise=bias_noise), scale=0.0)
    biases = lambda net: [a.bias for a in layers_of(net)]
    drawn = [jr.normal(jr.key(9), b.shape) for b in biases(model.network)]
    model = eqx.tree_at(lambda m: biases(m.network), model, drawn)
    sizes = [a.weight.shape for a in layers_of(model.network)]
    num_biases = sum(b.size for b in drawn) if bias_noise else 0
    inputs = {"vectors": 7, "Equinox's vectors": 7, "Equinox's images": 38}[name]
    assert model.num_nodes == inputs + num_biases, sizes
    x = jr.normal(jr.key(1), (6, *shape))
    folded = [model.to_deterministic(k) for k in range(3)]
    expected = [outputs(f, x, jr.key(0)) for f in folded]
    found = outputs(model, x, jr.key(2))
    for i in range(6):
        np.testing.assert_allclose(found[i], expected[i % 3][i], rtol=1e-4, atol=1e-5)
        drawn_i = outputs(model, x, jr.key(2), jnp.asarray(i))
        np.testing.assert_allclose(drawn_i, expected[i % 3], rtol=1e-4, atol=1e-5)
    assert float(jnp.max(abs(expected[0] - expected[1]))) > 0.1
    if name == "vectors":
        first, last = jax.tree.map(np.asarray, layers_of(model.network))
        z = np.asarray(model.mixture.mean[1])
        z_b = z[7:] if bias_noise else np.ones(6)
        dense = [
            a.weight * z[s, None] for a, s in ((first, np.s_[:3]), (last, np.s_[3:7]))
        ]
        hidden = np.asarray(x) @ dense[0] + first.bias * z_b[:4]
        hidden = np.asarray(model.network.activations[0](jnp.asarray(hidden)))
        by_hand = hidden @ dense[1] + last.bias * z_b[4:]
        np.testing.assert_allclose(expected[1], by_hand, rtol=1e-5, atol=1e-6)


def test_to_deterministic_of_the_mean_and_of_ones():
    network = nn.MLP(3, 2, (4,), key=jr.key(0))
    model = implicit(network)
    plain = model.to_deterministic("ones")
    expected = network(jnp.asarray(X))
    np.testing.assert_allclose(outputs(plain, X, jr.key(0)), expected, atol=1e-6)
    mean = jnp.mean(model.mixture.mean, axis=0)
    centred = with_moments(model, mean, 0.0)
    expected = outputs(centred, X, jr.key(0), 0)
    for folded in (model.to_deterministic(), centred.to_deterministic(2)):
        found = outputs(folded, X, jr.key(0))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for which in (3, -1):
        with pytest.raises(ValueError, match=f"a component below 3.*got {which}"):
            model.to_deterministic(which)


def components_of(z: np.ndarray) -> np.ndarray:
    return np.rint(z[..., 0]).astype(int)


def test_rows_are_dealt_evenly_and_each_to_one_component():
    """8 rows to 3 components: each gets two or three, and over keys each as often the
    third. A component serves all layers: no product of two components' means."""
    model = with_moments(implicit(identities(1, depth=2)), [[2.0], [3.0], [5.0]], 0.0)
    num_keys = 3_000
    keys = jr.split(jr.key(0), num_keys)
    draw = jax.jit(jax.vmap(lambda key: model(jnp.ones((8, 1)), key=key).output))
    found = np.asarray(draw(keys))[..., 0]
    np.testing.assert_allclose(np.unique(np.rint(found)), [4, 9, 25])
    counts = np.stack([np.rint(found) == value for value in (4, 9, 25)]).sum(2)
    assert set(np.unique(counts)) == {2, 3}
    # The extra rows leave out one component, each in a third of the keys.
    left_out = (counts == 2).sum(1)
    assert left_out.sum() == num_keys
    assert scipy.stats.chisquare(left_out).pvalue > 1e-5, left_out


def test_a_row_keeps_its_component_in_all_draws():
    """Where K divides the batch; the noise is fresh in each."""
    mean = np.array([[-50.0], [0.0], [50.0]])
    model = with_moments(implicit(identities(1)), mean, 1.0)
    batch = (jnp.ones((6, 1)), jnp.zeros((6, 1)))
    options = {"num_data": 6, "key": jr.key(0), "num_draws": 4}
    _, info = elbo_loss(model, Gaussian(1.0), batch, **options)
    found = np.asarray(info.output)[0, :, :, 0]
    expected = np.broadcast_to(np.tile(mean[:, 0], 2), (4, 6))
    np.testing.assert_allclose(found, expected, atol=6)
    assert len(np.unique(found)) == 24


@pytest.mark.parametrize("num_rows", [6, 8])
def test_a_component_learns_from_its_rows_alone(num_rows: int):
    """The gradient of row i's likelihood is zero but for one component; with 6 rows
    it is i mod 3, with 8 some component of two rows and two of three."""
    model = implicit(nn.MLP(3, 2, (4,), key=jr.key(0)))
    x = jr.normal(jr.key(1), (num_rows, 3))

    def log_likelihoods(mixture: Any) -> jax.Array:
        noisy = eqx.tree_at(lambda m: m.mixture, model, mixture)
        output = noisy(x, key=jr.key(2)).output
        return Gaussian(0.5).log_prob(output, jnp.zeros((num_rows, 2)))

    grads = jax.jit(jax.jacrev(log_likelihoods))(model.mixture)
    for grad in (grads.mean, grads.rho):
        by_row = np.any(np.asarray(grad) != 0, axis=-1)
        np.testing.assert_array_equal(by_row.sum(1), 1)
        assert sorted(by_row.sum(0)) == ([2, 2, 2] if num_rows == 6 else [2, 3, 3])
        if num_rows == 6:
            np.testing.assert_array_equal(
                by_row, np.tile(np.eye(3, dtype=bool), (2, 1))
            )


def test_outputs_have_the_moments_of_their_noise():
    """The identity's output is its noise: mean and variance of each component, rows
    independent in training and equal in a draw, draws independent of each other."""
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(1, 1, (2, 3)), rng.uniform(0.2, 1.5, (2, 3))
    model = ImplicitBNN(identities(3), num_components=2, key=jr.key(0))
    model = with_moments(model, mean, scale)
    x, num_draws = jnp.ones((4, 3)), 20_000

    @jax.jit
    def draws(keys: jax.Array) -> tuple:
        training = lambda key: model(x, key=key).output
        predicted = lambda index: model(x, key=keys[0], index=index).output
        indices = jnp.arange(2 * num_draws)
        return jax.vmap(training)(keys), jax.vmap(predicted)(indices)

    by_row, by_index = map(np.asarray, draws(jr.split(jr.key(1), num_draws)))
    assert np.all(by_index == by_index[:, :1])
    one_of_each = by_index[:, 0].reshape(num_draws, 2, 3)
    for found, components in ((by_row, [0, 1, 0, 1]), (one_of_each, [0, 1])):
        errors = (found - mean[components]) / scale[components]
        errors = errors.reshape(num_draws, -1).astype(np.float64)
        covariance = errors.T @ errors / num_draws - np.eye(errors.shape[1])
        assert np.max(abs(errors.mean(0))) * np.sqrt(num_draws) < 4.5
        assert np.max(abs(covariance)) * np.sqrt(num_draws / 2) < 4.5


def fit_of(model: ImplicitBNN, state: Any = None) -> Fit:
    return Fit(model, Gaussian(0.5), state, {}, None)


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "Equinox's"])
def test_prediction_is_one_function_of_key_and_index(is_ours: bool):
    """Whatever the blocks, with batch statistics too, which training renews and
    prediction only reads. Draws i and i + K share a component and no noise."""
    make = Normalised if is_ours else equinox_vectors
    options = {} if is_ours else {"is_normalised": True}
    model = implicit(make(key=jr.key(0), **options))
    state = eqx.nn.State(model)
    trained = model(jnp.asarray(3 * X + 1), key=jr.key(1), state=state).state
    fit = fit_of(model, trained)
    whole = np.asarray(predict(fit, X, key=jr.key(3), num_draws=6).outputs)
    for batch_size in (1, 3):
        blocks = predict(fit, X, key=jr.key(3), num_draws=6, batch_size=batch_size)
        np.testing.assert_allclose(blocks.outputs, whole, rtol=1e-5, atol=1e-6)
    silent = eqx.nn.inference_mode(with_moments(model, scale=0.0))
    key = jr.key(3)
    for i in range(6):
        folded = eqx.nn.inference_mode(silent.to_deterministic(i % 3))
        expected = folded(jnp.asarray(X), key=key, state=copy(trained)).output
        found = silent(jnp.asarray(X), key=key, index=i, state=copy(trained))
        np.testing.assert_allclose(found.output, expected, rtol=1e-4, atol=1e-5)
        assert eqx.tree_equal(found.state, trained)
    assert np.min(np.abs(whole[:3] - whole[3:]).max((1, 2))) > 1e-3
    other = predict(fit, X, key=jr.key(4), num_draws=6).outputs
    assert not np.allclose(other, whole)


def copy(state: eqx.nn.State) -> eqx.nn.State:
    """A state may be used only once."""
    return jax.tree.map(lambda leaf: leaf, state)


def test_only_training_depends_on_the_other_rows():
    model = implicit(Normalised(key=jr.key(0)))
    x = jnp.asarray(X[:6])
    changed = x.at[5].add(3.0)
    for is_training in (True, False):
        function = eqx.nn.inference_mode(model, value=not is_training)
        first, second = (
            function(a, key=jr.key(1), state=eqx.nn.State(model)).output[0]
            for a in (x, changed)
        )
        assert np.allclose(first, second) != is_training


class OneExample(eqx.Module):
    """A user's own module, of one example, with a skip connection."""

    first: eqx.nn.Linear
    last: eqx.nn.Linear
    gain: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        h = self.gain * jax.nn.relu(self.first(x))
        return self.last(h + x)


def test_a_users_own_module_has_a_noise_on_each_layer():
    """A loop over rows, each with its component's multipliers, by hand."""
    keys = jr.split(jr.key(0), 2)
    first, last = eqx.nn.Linear(3, 3, key=keys[0]), eqx.nn.Linear(3, 2, key=keys[1])
    own = OneExample(first, last, jnp.asarray(1.5))
    model = with_moments(implicit(nn.PerExample(own)), scale=0.0)
    assert model.num_nodes == 6
    found = outputs(model, X[:6], jr.key(1))
    for i, x in enumerate(X[:6]):
        z = np.asarray(model.mixture.mean[i % 3])
        h = 1.5 * np.maximum(first.weight @ (z[:3] * x) + first.bias, 0)
        expected = last.weight @ (z[3:] * (h + x)) + last.bias
        np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-5)


class OfOurLayers(eqx.Module):
    """A user's own module of this package's layers, which take rows, or one."""

    first: nn.Linear
    last: nn.Linear

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.last(jax.nn.relu(self.first(x)))


@pytest.mark.parametrize("adapted", [lambda n: n, nn.PerExample], ids=["own", "vmap"])
@pytest.mark.parametrize("function", [MCDropout, implicit])
def test_rows_of_an_own_module_of_our_layers_meet_their_own_noise(
    function, adapted, unchecked
):
    """As the package's network of the same layers. Catches (seen) each row with the
    noise of all, in an output of (rows, rows, outputs) that training takes for draws.
    """
    mlp = nn.MLP(3, 2, [4], activation=jax.nn.relu, key=jr.key(0))
    own = adapted(OfOurLayers(*mlp.layers))
    with jax.numpy_rank_promotion("allow"):  # as users have it
        found, expected = (outputs(function(n), X[:6], jr.key(2)) for n in (own, mlp))
    assert found.shape == (6, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


class VmappedOurs(eqx.Module):
    """Hides the rows from a layer of ours."""

    inner: nn.Linear

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.vmap(self.inner)(x)


def test_a_map_over_rows_inside_a_module_hides_their_noise():
    """Catches (seen) an output of (rows, rows, outputs)."""
    hidden = VmappedOurs(nn.Linear(3, 2, key=jr.key(0)))
    with pytest.raises(ValueError, match=r"shape \(3,\), and noise of each of 6 rows"):
        implicit(hidden)(jnp.asarray(X[:6]), key=jr.key(1))


@pytest.mark.parametrize("function", [MCDropout, implicit])
def test_a_network_that_solves_over_depth_is_refused(function):
    with pytest.raises(ValueError, match="`ODENet` solves over depth"):
        function(ODENet.for_vectors(3, 1, key=jr.key(0)))


class Vmapped(eqx.Module):
    """Maps over its rows by itself; as many features as the batch has rows."""

    inner: eqx.nn.Linear

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.vmap(self.inner)(x)


def test_labels_are_of_weights_of_noise_and_of_nothing_else():
    """The first values of batch statistics are no parameters, and nothing random."""
    for network in (
        Normalised(key=jr.key(0)),
        equinox_vectors(is_normalised=True, key=jr.key(0)),
    ):
        model = implicit(network)
        labels = model.labels()
        assert jax.tree.leaves(labels.mixture) == ["noise", "noise"]
        pairs = zip(
            jax.tree.leaves(model.network), jax.tree.leaves(labels.network), strict=True
        )
        weights = [leaf for leaf, label in pairs if label == "weights"]
        assert sum(w.size for w in weights) == 3 * 4 + 4 + 4 + 4 + 4 * 2 + 2
        is_index = lambda node: isinstance(node, eqx.nn.StateIndex)
        random = MeanField(network)
        nodes = jax.tree.leaves(
            (labels.network, random.labels().rest, random.family), is_leaf=is_index
        )
        indices = [node for node in nodes if is_index(node)]
        assert {*jax.tree.leaves(indices[0])} == {"frozen"}
        assert {*jax.tree.leaves(indices[1:])} <= {"frozen"}
        num_random = sum(a.size for a in jax.tree.leaves(random.family)) // 2
        assert num_random == sum(w.size for w in weights)


NETWORK = nn.MLP(3, 1, (4,), key=jr.key(0))
BAD: dict[str, tuple[Any, str]] = {
    "no layer": (lambda: implicit(eqx.nn.Identity()), "`Identity` has no linear or"),
    "no components": (
        lambda: ImplicitBNN(NETWORK, num_components=0, key=jr.key(0)),
        "`num_components` must be at least 1, got 0",
    ),
    "prior scale 0": (
        lambda: implicit(NETWORK, prior_scale=0.0),
        "`prior_scale` is a standard deviation and must be positive, got 0.0",
    ),
    "prior scale below 0": (
        lambda: implicit(NETWORK, prior_scale=-0.3),
        "`prior_scale` .* got -0.3",
    ),
    "first scale 0": (lambda: implicit(NETWORK, init_scale=0.0), "`init_scale` is"),
    "first spread below 0": (
        lambda: implicit(NETWORK, init_spread=-1.0),
        "`init_spread` .* not be negative, got -1.0",
    ),
    "more components than rows": (
        lambda: implicit(NETWORK)(jnp.ones((2, 3)), key=jr.key(0)),
        "2 rows cannot be dealt to 3 components: give larger batches",
    ),
    "no batch statistics": (
        lambda: implicit(Normalised(key=jr.key(0)))(jnp.ones((4, 3)), key=jr.key(0)),
        "`Normalised` keeps batch statistics and was given none: pass `state=",
    ),
    "rows mapped inside": (
        lambda: implicit(Vmapped(eqx.nn.Linear(3, 3, key=jr.key(0))))(
            jnp.ones((3, 3)), key=jr.key(0)
        ),
        "wrap it in `ornstein.nn.PerExample`",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case: str):
    build, match = BAD[case]
    with pytest.raises(ValueError, match=match):
        build()
