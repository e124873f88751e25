"""Networks whose weights are products P V Q, and the law that samplers give them."""

from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from mcmc.chains import run_chains, z_score
from scipy import special

import ornstein as orn
from ornstein.functions import ParameterExpanded, expand_parameters
from ornstein.nn import (
    MLP,
    BatchNorm,
    ChannelsFirst,
    Conv2d,
    ConvTranspose2d,
    Linear,
    PerExample,
    ResNet,
    layers_of,
)
from ornstein.potential import Potential
from ornstein.prior import GaussianPrior
from ornstein.sgmcmc import SGHMC

IMAGES, VECTORS = (2, 5, 5, 3), (4, 3)
LAYERS = {
    "linear": (lambda k: Linear(3, 2, key=k), VECTORS),
    "linear without bias": (lambda k: Linear(3, 2, use_bias=False, key=k), VECTORS),
    "equinox's linear": (lambda k: PerExample(eqx.nn.Linear(3, 2, key=k)), VECTORS),
    "convolution": (lambda k: Conv2d(3, 2, 3, stride=2, key=k), IMAGES),
    "transposed": (lambda k: ConvTranspose2d(3, 2, 3, key=k), IMAGES),
    "equinox's convolution": (
        lambda k: ChannelsFirst(eqx.nn.Conv2d(3, 2, 3, key=k)),
        IMAGES,
    ),
}


def redrawn(network: Any, *, key: Any) -> Any:
    """Every number of a network at random: biases, P and Q too."""
    leaves, treedef = jax.tree.flatten(eqx.filter(network, eqx.is_inexact_array))
    keys = jr.split(key, len(leaves))
    drawn = [jr.normal(k, a.shape) for k, a in zip(keys, leaves, strict=True)]
    rest = eqx.filter(network, eqx.is_inexact_array, inverse=True)
    return eqx.combine(jax.tree.unflatten(treedef, drawn), rest)


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_three_products(name: str, getkey):
    """y = ((x P) V + c) Q, one after the other, on the channels.

    Catches (seen) P transposed, Q transposed, and a bias that Q leaves alone.
    """
    make, shape = LAYERS[name]
    x = jr.normal(getkey(), shape)
    plain = make(getkey())
    network = expand_parameters(plain, include_ends=True)
    np.testing.assert_allclose(network(x), plain(x), rtol=1e-5, atol=1e-6)
    network = redrawn(network, key=getkey())
    (left,), (right,) = network.left, network.right
    expected = network.network(x @ left) @ right
    np.testing.assert_allclose(network(x), expected, rtol=2e-4, atol=2e-4)
    collapsed = network.collapse()
    assert jax.tree.structure(collapsed) == jax.tree.structure(plain)
    np.testing.assert_allclose(collapsed(x), expected, rtol=2e-4, atol=2e-4)


def test_inputs_and_outputs_are_left_alone(getkey):
    """Catches P of 784 inputs, squared, in every MLP of digits."""
    mlp = MLP(784, 10, [20, 20], key=getkey())
    network = expand_parameters(mlp)
    shapes = lambda side: [None if a is None else a.shape for a in side]
    assert shapes(network.left) == [None, (20, 20), (20, 20)]
    assert shapes(network.right) == [(20, 20), (20, 20), None]
    x = jr.normal(getkey(), (3, 784))
    np.testing.assert_allclose(network(x), mlp(x), rtol=1e-5, atol=1e-6)


def test_residual_networks_begin_and_end_in_the_order_of_their_tree():
    """Catches a head that stands before the stem, whose outputs would be mixed."""
    make = lambda: expand_parameters(ResNet(20, 5, norm=None, key=jr.key(0)))
    network = eqx.filter_eval_shape(make)
    layers = layers_of(network.network)
    assert (layers[0].in_size, layers[-1].out_size) == (3, 5)
    assert network.left[0] is None
    assert network.right[-1] is None
    assert network.left[-1].shape == (layers[-1].in_size,) * 2
    assert sum(a is None for a in network.left + network.right) == 2


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (Linear(3, 2, key=jr.key(0)), "`Linear` has 1 .* `include_ends=True`"),
        (jnp.tanh, "has 0 linear or convolutional"),
        (BatchNorm(3), "keeps batch statistics"),
    ],
)
def test_what_cannot_be_expanded_is_said(network: Any, said: str):
    with pytest.raises(ValueError, match=said):
        expand_parameters(network)


def test_what_solving_cost_is_passed_on(getkey):
    """Catches a network that solves equations, whose count of them gets lost."""
    network = orn.ODENet.for_vectors(3, 1, key=getkey())
    x = jr.normal(getkey(), (4, 3))
    output, report = expand_parameters(network).solve(x)
    expected, expected_report = network.solve(x)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
    assert report is not None
    assert report.num_drift_evaluations == expected_report.num_drift_evaluations


def one_weight(**options) -> ParameterExpanded:
    layer = Linear(1, 1, use_bias=False, key=jr.key(0))
    return expand_parameters(layer, include_ends=True, **options)


def weights(params: ParameterExpanded) -> jax.Array:
    """W = p v q of many draws."""
    return params.left[0] * params.network.weight * params.right[0]


def test_prior_of_one_weight_by_quadrature():
    """P(|w| < t) for w = p v q, as the mean over p and q of a normal's.

    Catches a normal prior of w itself, and a variance given for P's scale (seen).
    """
    network, scale = one_weight(), 0.8
    prior = network.expanded_prior(GaussianPrior(scale))
    draw = lambda key: weights(prior.sample(network, key=key))
    drawn = np.asarray(jax.vmap(draw)(jr.split(jr.key(1), 200_000))).ravel()
    # |p| and |q| by the trapezoidal rule in their logarithms.
    log = np.linspace(-12, 2.5, 800)
    mass = np.exp(log - np.exp(2 * log))  # of exp(-p²), with the Jacobian
    mass /= mass.sum()
    both = np.exp(log[:, None] + log)
    for t in (0.01, 0.1, 0.5, 1.5):
        within = special.erf(t / (scale * both * 2**0.5))
        exact = mass @ within @ mass
        count = np.sum(abs(drawn) < t)
        z = (count - 2e5 * exact) / np.sqrt(2e5 * exact * (1 - exact))
        assert abs(z) < 4.5, (t, z)


@pytest.mark.parametrize(
    ("scale", "exact"), [(1.2, 1.2**4 * 0.5**2 * 3 * 4), (None, 0.5**2)]
)
def test_variance_of_weights_a_priori(scale, exact, getkey):
    """σ⁴ s² in out, the docstring's: P of 3, Q of 4; or that of the plain network.
    Catches a Q that is not drawn."""
    layer = Linear(3, 4, use_bias=False, key=getkey())
    network = expand_parameters(layer, include_ends=True)
    prior = network.expanded_prior(GaussianPrior(0.5), scale=scale)

    def square(key):
        drawn: Any = prior.sample(network, key=key)
        return jnp.mean(drawn.collapse().weight ** 2)

    squares = jax.vmap(square)(jr.split(jr.key(2), 100_000))
    z = (jnp.mean(squares) - exact) / (jnp.std(squares) / 100_000**0.5)
    assert abs(z) < 4.5, z


def test_sghmc_has_the_posterior_of_one_weight():
    """Moments of w in y = p v q x + noise, by quadrature over p, v and q.

    One row, so that its batch has no noise. Catches (seen) P's prior left out, and
    the chains of the plain weight.
    """
    y, sigma, scale = 1.2, 0.5, 0.8
    split = SimpleNamespace(x=jnp.ones((1, 1)), y=jnp.full((1, 1), y))
    network = one_weight()
    prior = network.expanded_prior(GaussianPrior(scale))
    potential = Potential(network, split, orn.Gaussian(sigma), prior=prior)
    chains = run_chains(
        SGHMC(0.05, 2.0),
        potential,
        potential.start,
        key=jr.key(3),
        num_chains=400,
        num_steps=8_000,
    )
    w = np.asarray(weights(chains.positions[0])).reshape(400, -1)[:, 1_000::10]
    axis = np.linspace(-4.5, 4.5, 181)
    p, v, q = np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)
    product = p * v * q
    energy = p**2 + q**2 + v**2 / (2 * scale**2)
    mass = np.exp(-energy - (y - product) ** 2 / (2 * sigma**2))
    mean, square = (np.sum(mass * f) / mass.sum() for f in (product, product**2))
    z_scores = z_score(w, mean), z_score(w**2, square)
    assert max(map(abs, z_scores)) < 4.5, z_scores
