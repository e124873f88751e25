"""The network whose layers' scales are among its parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import ornstein as orn
from ornstein.nn import HierarchicalMLP


def network(width_sizes=(7, 5)):
    return HierarchicalMLP(3, 2, width_sizes, key=jr.key(0))


def test_is_the_formula_of_its_docstring():
    """Catches a layer with another's scale, or the fan of the wrong side."""
    where = lambda n: (n.log_scales, n.bias)
    new = (jnp.array([-0.3, 0.2, 0.5, -0.7]), jnp.array([0.5, -1.0]))
    net = eqx.tree_at(where, network(), new)
    x = jr.normal(jr.key(1), (4, 3))
    (w1, w2, r), (b1, b2) = net.weights, net.biases
    e = np.exp(new[0])
    h = np.tanh(e[1] * (x @ w1 / np.sqrt(3) + b1[None]))
    h = np.tanh(e[2] * (h @ w2 / np.sqrt(7) + b2[None]))
    linear = np.exp(1) * e[0] * (x @ net.linear) / np.sqrt(3)
    expected = 2 * net.bias[None] + linear + np.exp(1) * e[3] * (h @ r) / np.sqrt(5)
    np.testing.assert_allclose(net(x), expected, rtol=2e-5)


def test_without_hidden_layers_it_is_linear():
    net = network(())
    x = jr.normal(jr.key(1), (5, 3))
    np.testing.assert_allclose(net(2 * x), 2 * net(x), rtol=1e-5, atol=1e-6)
    assert len(net.log_scales) == 1


def test_prior_spreads_over_scales():
    """Catches scales that no prior moves: functions of one size alone."""
    net, x = network((50,)), jr.normal(jr.key(1), (20, 3))
    params = eqx.filter(net, eqx.is_array)
    prior = orn.GaussianPrior(1.0)

    def size(key):
        return jnp.std(eqx.combine(prior.sample(params, key=key), net)(x))

    sizes = jax.vmap(size)(jr.split(jr.key(2), 200))
    low, high = np.quantile(sizes, [0.1, 0.9])
    assert high / low > 4
