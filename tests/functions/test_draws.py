"""Draws one after another, and how many of them take all strata alike."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_networks import Normalised

from ornstein.functions import (
    MCDropout,
    are_whole_rounds,
    map_draws,
    whole_rounds,
)
from ornstein.network import initial_state

X = jr.normal(jr.key(0), (5, 3))


@pytest.mark.parametrize("draws_at_once", [1, 2, 3])
def test_draws_are_those_of_their_indices(draws_at_once: int):
    """Also where the last round isn't full. Seen failing with indices from 1 on, and,
    twice of one state, with a state that is not copied.
    """
    model = MCDropout(Normalised(key=jr.key(1)), rate=0.5)  # sets its statistics
    state = initial_state(model)
    for _ in range(2):
        found = map_draws(
            lambda draw: (draw.output, draw.kl),
            model,
            X,
            key=jr.key(2),
            num_draws=3,
            state=state,
            draws_at_once=draws_at_once,
        )
    each = [
        model(X, key=jr.key(2), index=index, state=initial_state(model)).output
        for index in range(3)
    ]
    np.testing.assert_allclose(found[0], jnp.stack(each), rtol=1e-5, atol=1e-6)
    assert found[1].shape == (3,)


def test_strata_are_taken_alike():
    """Seen failing with numbers rounded down, or always up by a round."""
    for num_draws, num_strata, expected in ((7, 3, 9), (6, 3, 6), (1, 5, 5), (4, 1, 4)):
        assert whole_rounds(num_draws, num_strata) == expected
        assert are_whole_rounds(num_draws, num_strata) == (num_draws == expected)
