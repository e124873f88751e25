"""How networks are called: what of their errors is said to be about rows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from ornstein.network import call_network
from ornstein.nn import ChannelsFirst

BATCH = jnp.ones((5, 3))


def of_one_example(x):
    if x.ndim != 1:
        raise ValueError("give one example")
    return x


def refuses_depth(x):
    raise ValueError("`depth` must be positive")


def without_attribute(x):
    raise TypeError("unsupported operand")


def test_a_network_that_does_not_fit_the_batch_is_told_of_rows():
    match = r"failed on a batch of shape \(5, 3\) \(.*give rows first"
    for network in (eqx.nn.Linear(4, 1, key=jr.key(0)), lambda x: x @ x):
        with pytest.raises(ValueError, match=match):
            call_network(network, BATCH)


def images() -> eqx.nn.Sequential:
    """As Equinox's users write it: of one image, channels first."""
    conv_key, head_key = jr.split(jr.key(1))
    return eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(1, 2, 3, key=conv_key),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(32, 2, key=head_key),
        ]
    )


def square() -> eqx.nn.Sequential:
    """It maps a batch of three rows too, and mixes them."""
    layers = [
        eqx.nn.Linear(3, 3, use_bias=False, key=key) for key in jr.split(jr.key(2))
    ]
    return eqx.nn.Sequential(layers)


ONE_EXAMPLE = {
    "a function": (of_one_example, (5, 3)),
    "a layer": (eqx.nn.Linear(3, 1, key=jr.key(0)), (5, 3)),
    "images": (images(), (5, 1, 6, 6)),
    "as many rows as features": (square(), (3, 3)),
}


@pytest.mark.parametrize("name", ONE_EXAMPLE)
def test_a_network_of_one_example_is_mapped_over_rows(name):
    """Catches rows that are mixed by a matrix that they happen to fit (seen)."""
    network, shape = ONE_EXAMPLE[name]
    x = jr.normal(jr.key(3), shape)
    expected = jnp.stack([network(row) for row in x])
    assert jnp.allclose(call_network(network, x).output, expected, rtol=1e-5)


class TwoHeads(eqx.Module):
    """Of one example, with two outputs."""

    mean: eqx.nn.Linear
    scale: eqx.nn.Linear

    def __call__(self, x):
        return self.mean(x), self.scale(x)


def test_a_network_of_one_example_may_have_several_outputs():
    """Catches (seen) a complaint about the shape of the batch in their place."""
    heads = TwoHeads(*(eqx.nn.Linear(3, n, key=jr.key(n)) for n in (1, 2)))
    x = jr.normal(jr.key(4), (5, 3))
    for found, head in zip(
        call_network(heads, x).output, (heads.mean, heads.scale), strict=True
    ):
        assert jnp.allclose(found, jnp.stack([head(row) for row in x]), rtol=1e-5)
    flip = ChannelsFirst(lambda image: (image, image[0, 0]))
    image, row = flip(jnp.ones((5, 4, 3, 2)))
    assert (image.shape, row.shape) == ((5, 4, 3, 2), (5, 3))


def test_a_network_of_several_arrays_is_told_to_map_itself():
    """Catches (seen) a sentence about a single row, which nobody tried."""
    layer = eqx.nn.Linear(3, 1, key=jr.key(0))
    x = {"a": BATCH, "b": BATCH}
    with pytest.raises(ValueError, match=r"given them whole, .* by `jax\.vmap`"):
        call_network(lambda x: layer(x["a"] + x["b"]), x)
    found = call_network(lambda x: jax.vmap(layer)(x["a"] + x["b"]), x)
    assert found.output.shape == (5, 1)


def test_a_network_of_a_batch_is_called_once():
    """Catches a map over rows of what takes a batch, such as its own mean over rows."""
    network = lambda x: x - jnp.mean(x, axis=0, keepdims=True)
    x = jr.normal(jr.key(4), (5, 3))
    assert jnp.allclose(call_network(network, x).output, network(x))


def test_dropout_of_ones_own_is_named():
    """Catches a complaint about the shape of the batch in its place (seen)."""
    network = eqx.nn.Sequential(
        [eqx.nn.Dropout(0.5), eqx.nn.Linear(3, 1, key=jr.key(0))]
    )
    with pytest.raises(ValueError, match="has dropout of its own .*MCDropout"):
        call_network(network, BATCH)
    inference = eqx.nn.inference_mode(network)
    assert call_network(inference, BATCH).output.shape == (5, 1)


@pytest.mark.parametrize(
    ("network", "kind"),
    [(refuses_depth, ValueError), (without_attribute, TypeError)],
)
def test_other_errors_pass_with_a_note(network, kind):
    """Seen failing: each was rewrapped as a network that takes no rows."""
    with pytest.raises(kind) as caught:
        call_network(network, BATCH)
    assert "rows first" not in str(caught.value)
    (note,) = caught.value.__notes__
    assert note == "`function` failed on a batch of shape (5, 3)."
