"""How networks are called: what of their errors is said to be about rows."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.network import as_network, call_network
from ornstein.nn import MLP, ChannelsFirst, Flattened, PerExample

BATCH = jnp.ones((5, 3))
SHAPE = r"of shape \(3,\)"


def of_one_example(x):
    if x.ndim != 1:
        raise ValueError("give one example")
    return x


def refuses_depth(x):
    raise ValueError("`depth` must be positive")


def without_attribute(x):
    raise TypeError("unsupported operand")


class Around(eqx.Module):
    """A network of one example, as its author knows it."""

    inner: Any

    def __call__(self, x):
        return self.inner(x)


class ByNumPy(eqx.Module):
    inner: Any

    def __call__(self, x):
        return jnp.asarray(np.asarray(self.inner(x)))[:1]


WIDE = eqx.nn.MLP(4, 1, 2, 1, key=jr.key(0))
OWN = f"`Around` failed on a single row, {SHAPE} \\(.*\\(4,\\) and \\(3,\\)\\)"
NO_FIT: dict[str, tuple[Any, str]] = {
    "an MLP": (WIDE, "^`MLP` takes 4 numbers a row, and x has 3: "),
    "adapted": (PerExample(WIDE), "^`MLP` takes 4 numbers a row, and x has 3: "),
    "ours": (MLP(4, 1, (2,), key=jr.key(0)), "^`MLP` takes 4 numbers a row"),
    "layers": (eqx.nn.Sequential([WIDE]), "^`Sequential` takes 4 numbers a row"),
    "flattened": (Flattened(MLP(4, 1, (2,), key=jr.key(0)), 1), "takes 4 numbers"),
    "one's own": (Around(WIDE), OWN),
    "one's own, adapted": (
        PerExample(Around(WIDE)),
        r"`Around` failed on an example of shape \(3,\) \(.*\(4,\) and \(3,\)\)",
    ),
    "by NumPy": (
        ByNumPy(eqx.nn.Linear(3, 2, key=jr.key(0))),
        r"on a single row, .*__array__.* with `jax\.numpy` in place of NumPy",
    ),
    "other axes": (
        PerExample(Around(WIDE), num_axes=2),
        r"rows of `x` have shape \(3,\): set num_axes=1 of `PerExample`",
    ),
}


@pytest.mark.parametrize("case", NO_FIT)
def test_a_network_that_does_not_fit_is_told_of_its_rows(case: str):
    """Seen failing: sentences about `PerExample`, which nobody wrote, or with the error
    of the batch in place of the row's."""
    network, match = NO_FIT[case]
    for each in (as_network(network), network):
        if each is WIDE:
            continue
        with pytest.raises(ValueError, match=match):
            call_network(each, BATCH)


def test_images_for_vectors_are_told_how_to_be_flat():
    network = as_network(eqx.nn.MLP(8, 1, 2, 1, key=jr.key(0)))
    said = r"takes 8 numbers a row, and x has rows of shape \(2, 4\): give x\.reshape"
    with pytest.raises(ValueError, match=said):
        call_network(network, jnp.ones((5, 2, 4)))


SCALAR: dict[str, Any] = {
    "layers": eqx.nn.Sequential(
        [eqx.nn.Linear(3, 1, key=jr.key(0)), eqx.nn.Lambda(lambda v: v[0])]
    ),
    "a product": lambda x: x @ x,
    "a sum": lambda x: jnp.sum(x),
}


@pytest.mark.parametrize("case", SCALAR)
def test_a_scalar_for_each_row_is_named(case: str):
    """Seen failing: it was said to fail on a single row."""
    match = r"gives a scalar for each row, .*: let it give shape \(1,\)"
    with pytest.raises(ValueError, match=match):
        call_network(SCALAR[case], BATCH)


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


class Keyed(eqx.Module):
    """It requires a key, with dropout or with noise of its own."""

    drop: Any

    def __call__(self, x, *, key):
        return self.drop(x, key=key)


def test_a_key_that_is_required_is_named():
    """Seen failing: a bare TypeError about a missing argument."""
    match = r"`Keyed` has dropout of its own .*MCDropout.*`key` be None"
    for network in (Keyed(eqx.nn.Dropout(0.5)), PerExample(Keyed(eqx.nn.Dropout(0.5)))):
        with pytest.raises(ValueError, match=match):
            call_network(network, BATCH)
    with pytest.raises(ValueError, match=r"`Keyed` needs a `key`, .*MCDropout"):
        call_network(Keyed(lambda x, key: x + jr.normal(key, x.shape)), BATCH)


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
