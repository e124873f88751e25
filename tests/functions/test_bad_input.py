"""What cannot work is refused at construction, with what to do instead."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import pytest
from functions.small_model import X, small_model

from ornstein.functions import (
    SDEBNN,
    Flipout,
    ImplicitBNN,
    Integrator,
    LocalReparameterised,
    MCDropout,
    MeanField,
    SDEBlock,
    WeightPrior,
)
from ornstein.sde import KL


def images(shape=(8, 8, 1), **changes):
    return SDEBNN.for_images(shape, 3, width=2, key=jr.key(0), **changes)


def block(dynamics):
    return SDEBlock.make(
        dynamics,
        prior=WeightPrior(),
        start_width=None,
        width_sizes=(2,),
        drift_scale=1.0,
        summary_size=0,
        integrator=Integrator(),
        estimator=KL(),
        key=jr.key(0),
    )


class WithoutParameters(eqx.Module):
    def __call__(self, t, h):
        return -h


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: images((7, 8, 1)), "Images of 7 by 8 cannot be halved 1 time"),
        (lambda: images((8, 5, 1)), "Images of 8 by 5 cannot be halved 1 time"),
        (
            lambda: images((6, 6, 1), blocks=(1, 1)),
            r"cannot be halved 2 times.*2 scale",
        ),
        (lambda: images((6, 6, 1), space_to_depth_first=True), "cannot be halved 2"),
        (
            lambda: images((3, 8, 1), blocks=(1, 1), is_normalised=True),
            r"3 by 8 are too small for 2 scale\(s\), which need 4 by 4",
        ),
        (
            lambda: images((7, 8, 1), space_to_depth_first=True, is_normalised=True),
            "7 by 8 cannot be halved by `space_to_depth_first`",
        ),
        (
            lambda: images((7, 8, 1), num_inducing=2, is_normalised=True),
            "hidden units of 7 by 8 cannot be: leave out `num_inducing`",
        ),
        (lambda: images((8, 8)), r"must be \(height, width, channels\).*for_vectors"),
        (lambda: images(blocks=()), "`blocks` must be positive counts"),
        (lambda: images(blocks=(1, 0)), "`blocks` must be positive counts"),
        (lambda: images(num_inducing=-1), "`num_inducing` must be at least 0, got -1"),
        (lambda: small_model(num_inducing=-2), "`num_inducing` must be at least 0"),
        (lambda: images(augment=-1), "`num_features` must not be negative"),
        (lambda: small_model(augment=-1), "`num_features` must not be negative"),
        (lambda: small_model(drift_widths=()), "`width_sizes` must be one or more"),
        (lambda: small_model(start_width=0.0), "`start_width` must be positive, got 0"),
        (lambda: WeightPrior(sigma=0.0), r"`sigma` must be positive.*without_noise"),
        (lambda: WeightPrior(sigma=-0.1), "`sigma` must be positive, got -0.1"),
        (lambda: WeightPrior(scale=0.0), "`scale` must be positive, got 0.0"),
        (lambda: WeightPrior(rate=-1.0), "`rate` must be at least 0, got -1.0"),
        (
            lambda: SDEBNN.for_vectors(0, 1, key=jr.key(0)),
            "`in_size` must be at least 1, got 0",
        ),
        (
            lambda: SDEBNN.for_vectors(1, 0, key=jr.key(0)),
            "`out_size` must be at least 1, got 0",
        ),
        (
            lambda: SDEBNN.for_images((8, 8, 1), 0, key=jr.key(0)),
            "`num_outputs` must be at least 1, got 0",
        ),
        (lambda: block(WithoutParameters()), "`dynamics` has no floating-point arrays"),
    ],
)
def test_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("depths", [[0.0, 0.5], [0.2, 1.0]])
def test_a_trajectory_spans_the_depth(depths):
    """Catches (seen) a second block that goes on from half of the first."""
    model = small_model()
    with pytest.raises(ValueError, match="must begin at depth 0 and end at depth 1"):
        model.trajectory(jnp.asarray(X), jnp.array(depths), key=jr.key(0))


class Tied(eqx.Module):
    """Two layers of one example with one matrix."""

    shared: eqx.nn.Shared

    def __init__(self):
        pair = [eqx.nn.Linear(3, 3, key=key) for key in jr.split(jr.key(0))]
        self.shared = eqx.nn.Shared(
            pair, where=lambda pair: pair[1].weight, get=lambda pair: pair[0].weight
        )

    def __call__(self, x):
        first, second = self.shared()
        return second(first(x))


@pytest.mark.parametrize(
    "build",
    [
        lambda net: MCDropout(net, rate=0.1),
        lambda net: ImplicitBNN(net, key=jr.key(0)),
        lambda net: MeanField(net, noise=Flipout()),
        lambda net: MeanField(net, noise=LocalReparameterised()),
    ],
)
def test_tied_weights_have_no_noise_of_a_layer(build):
    """Catches (seen) a layer that is said to have no weight."""
    with pytest.raises(ValueError, match=r"tied weights .* use `MeanField\(network"):
        build(Tied())(jnp.ones((4, 3)), key=jr.key(1))
