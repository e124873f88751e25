"""How networks are called: what of their errors is said to be about rows."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import pytest

from ornstein.network import call_network

BATCH = jnp.ones((5, 3))


def of_one_example(x):
    if x.ndim != 1:
        raise ValueError("give one example")
    return x


def refuses_depth(x):
    raise ValueError("`depth` must be positive")


def without_attribute(x):
    raise TypeError("unsupported operand")


@pytest.mark.parametrize(
    "network", [of_one_example, eqx.nn.Linear(3, 1, key=jr.key(0)), lambda x: x @ x]
)
def test_a_network_that_does_not_fit_the_batch_is_told_of_rows(network):
    match = r"failed on a batch of shape \(5, 3\) \(.*networks take rows first"
    with pytest.raises(ValueError, match=match):
        call_network(network, BATCH)


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
