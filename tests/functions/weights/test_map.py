"""A network at the mode of its posterior, against ridge regression."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.functions import MAP
from ornstein.nn import MLP
from ornstein.prior import ByLeaf, GaussianPrior

NOISE, BETA, NUM_DATA = 0.5, 0.5, 12


def rows() -> Split:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(NUM_DATA, 4)).astype(np.float32)
    y = x @ rng.normal(size=(4, 1)) + NOISE * rng.normal(size=(NUM_DATA, 1))
    return Split(x, y.astype(np.float32))


def ridge(split: Split, variance: float, bias_variance: float) -> np.ndarray:
    """The mode of N(y | X w, noise²) N(w | 0, variance)^beta; the bias is last."""
    x = np.concatenate([split.x, np.ones((NUM_DATA, 1))], 1).astype(np.float64)
    precision = BETA / np.array([variance] * 4 + [bias_variance])
    left = x.T @ x / NOISE**2 + np.diag(precision)
    return np.linalg.solve(left, x.T @ split.y / NOISE**2)[:, 0]


@pytest.mark.parametrize("has_free_bias", [False, True])
def test_training_goes_to_the_ridge(has_free_bias: bool):
    """With the KL weight on the prior, and points without one beside it.

    Catches (seen) a KL weight that is left out, and a prior that is trained.
    """
    split, net = rows(), MLP(4, 1, (), key=jr.key(0))
    where = (lambda n: n.layers[0].weight) if has_free_bias else None
    model = MAP.of(net, GaussianPrior(0.3), where=where)
    fit = orn.fit(
        model,
        split,
        orn.Gaussian(NOISE),
        key=jr.key(1),
        num_epochs=3000,
        batch_size=NUM_DATA,
        learning_rate=0.02,
        kl=orn.KLWeight(BETA, warmup=0.2),
    )
    layer = fit.model.network.layers[0]
    found = [*np.ravel(layer.weight), float(layer.bias[0])]
    expected = ridge(split, 0.09, np.inf if has_free_bias else 0.09)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert eqx.tree_equal(fit.model.prior, model.prior)


def test_the_twin_of_a_mean_field_is_its_mode():
    """At its means, under its prior, and of an ensemble each member's."""
    nets = [MLP(1, 1, (2,), key=jr.key(i)) for i in range(2)]
    prior = GaussianPrior(0.7)
    fields = [orn.MeanField(net, prior) for net in nets]
    make = fields[0].posterior_parts().noise_free_twin
    assert make is not None
    twin = make()
    assert isinstance(twin, MAP)
    assert eqx.tree_equal(twin.network, nets[0])
    x, key = jnp.ones((3, 1)), jr.key(0)
    weights = eqx.filter(nets[0], eqx.is_inexact_array)
    energy = -float(prior.log_prob(weights))
    assert float(twin(x, key=key).kl) == pytest.approx(energy, rel=1e-6)
    make = orn.Ensemble(fields).posterior_parts().noise_free_twin
    assert make is not None
    both = make()
    for i in range(2):
        own = MAP.of(nets[i], prior)
        drawn, expected = both.member(i)(x, key=key), own(x, key=key)
        np.testing.assert_allclose(drawn.output, expected.output, rtol=1e-6)
        np.testing.assert_allclose(drawn.kl, expected.kl, rtol=1e-6)


def test_bad_input():
    net = MLP(1, 1, (2,), key=jr.key(0))
    with pytest.raises(ValueError, match="no parameters for a prior"):
        MAP.of(net, GaussianPrior(1.0), where=lambda n: ())
    priors = jax.tree.map(
        lambda a: GaussianPrior(np.ones(7)), eqx.filter(net, eqx.is_inexact_array)
    )
    with pytest.raises(ValueError, match="has shape"):
        MAP.of(net, ByLeaf(priors))
    with pytest.raises(TypeError, match="network"):
        MAP.of(3, GaussianPrior(1.0))  # pyright: ignore
