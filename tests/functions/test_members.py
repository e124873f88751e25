"""What `fit` trains side by side: each member of an ensemble as it would be alone.

An ensemble once called its members in training as in prediction, by an index: of a
mixture one component was trained, and no row had noise of its own.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import small_model
from functions.test_battery import FUNCTIONS, Case, inputs_of, mlp

from ornstein.data import Series
from ornstein.functions import Ensemble, Flipout, LocalReparameterised, MeanField
from ornstein.likelihood import Gaussian, OverTime
from ornstein.network import has_batch_state
from ornstein.train import elbo_loss

MEMBERS: dict[str, Any] = {
    name: make
    for name, make in FUNCTIONS.items()
    if name != "swag" and "normalised" not in name and "flipout" not in name
    if "local" not in name  # those of the battery have batch statistics
}
MEMBERS |= {
    "mean field, local": lambda: MeanField(
        mlp(), init_scale=0.3, noise=LocalReparameterised()
    ),
    "mean field, flipout": lambda: MeanField(mlp(), init_scale=0.3, noise=Flipout()),
    "sde-bnn, path per row": lambda: small_model(is_path_per_row=True),
}
QUICK = ("implicit", "mean field, flipout")


@pytest.mark.slow
def test_every_family_is_here():
    """All of the battery but what an ensemble refuses and what is never trained."""
    for name in FUNCTIONS.keys() - MEMBERS.keys():
        function = FUNCTIONS[name]()
        labels = set(jax.tree.leaves(function.labels()))
        assert has_batch_state(function) or labels == {"frozen"}


def other_than(function: Any) -> Any:
    """The same with other values of what is trained."""
    return jax.tree.map(
        lambda leaf, label: leaf if label == "frozen" else 1.2 * leaf + 0.03,
        function,
        function.labels(),
    )


@eqx.filter_jit
def loss_and_gradient(model: Any, x: Any, y: Any, key: Any) -> tuple[Any, Any]:
    likelihood = OverTime(Gaussian(0.5)) if isinstance(x, Series) else Gaussian(0.5)
    is_trained = jax.tree.map(lambda label: label != "frozen", model.labels())
    params, rest = eqx.partition(model, is_trained)

    def loss(params: Any) -> jax.Array:
        model = eqx.combine(params, rest)
        return elbo_loss(model, likelihood, (x, y), num_data=9, key=key)[0]

    return jax.value_and_grad(loss)(params)


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in MEMBERS],
)
def test_an_ensemble_trains_its_members_as_they_train_alone(name: str):
    """Loss and gradient are the means of the members' own, with their keys. Catches
    (seen) members called by an index: components of a mixture without a gradient,
    masks, signs and paths that all rows share."""
    function = MEMBERS[name]()
    shape = (2,) if "sde-bnn" in name else (3,)
    shape = (5, 5, 2) if "images" in name else shape
    shape = (4, 2) if "latent" in name else shape
    x = inputs_of(Case(function, None, jr.normal(jr.key(0), (6, *shape))))
    output = jax.eval_shape(lambda: function.member(0)(x, key=jr.key(0)).output)
    y = x if isinstance(x, Series) else jr.normal(jr.key(1), output.shape)

    ensemble, key = Ensemble([function, other_than(function)]), jr.key(2)
    num = ensemble.num_members
    assert num == 2 * function.num_members
    found, gradient = loss_and_gradient(ensemble, x, y, key)
    losses, norms = [], []
    for number, member_key in enumerate(jr.split(key, num)):
        alone, expected = loss_and_gradient(ensemble.member(number), x, y, member_key)
        losses.append(float(alone))
        own = jax.tree.leaves(gradient.member(number))
        for g, e in zip(own, jax.tree.leaves(expected), strict=True):
            size = float(jnp.max(jnp.abs(e)))
            np.testing.assert_allclose(num * g, e, rtol=1e-3, atol=1e-4 * size)
            norms.append(size)
    np.testing.assert_allclose(found, np.mean(losses), rtol=1e-5)
    assert np.ptp(losses) > 1e-3 * abs(np.mean(losses))
    assert np.median(norms) > 0
    if name == "implicit":
        members: Any = gradient.members
        for each in (members.mixture.mean, members.mixture.rho):
            assert np.all(np.any(np.asarray(each) != 0, axis=-1))


def test_a_draw_is_of_the_member_of_its_number():
    """Draw i of a nested ensemble is member i mod n. Catches (seen) inner and outer
    members that change places."""
    inner = [Ensemble([mlp(2 * i), mlp(2 * i + 1)]) for i in range(3)]
    ensemble = Ensemble(inner)
    x = jr.normal(jr.key(0), (6, 3))
    assert ensemble.num_members == ensemble.num_strata == 6
    for index in range(8):
        which, own = (index % 6) % 3, (index % 6) // 3
        expected = mlp(2 * which + own)(x)
        for draw in (
            ensemble(x, key=jr.key(1), index=index),
            ensemble.member(jnp.asarray(index % 6))(x, key=jr.key(1)),
        ):
            np.testing.assert_allclose(draw.output, expected, rtol=1e-5, atol=1e-6)
