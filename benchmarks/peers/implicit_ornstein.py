"""Our implicit BNN and its deterministic twin, as `fit` trains them."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.random as jr
from jax import Array

from ornstein.data import Split
from ornstein.functions import Deterministic, ImplicitBNN, draw_key
from ornstein.likelihood import Categorical
from ornstein.nn import LeNet
from ornstein.train import Constant, elbo_loss, nesterov

from . import implicit
from ._epochs import epochs_of


def make_lenet(*, key: Array) -> LeNet:
    """The network without noise."""
    return LeNet(implicit.NUM_CLASSES, key=key)


def make_implicit(make_network: Callable, *, key: Array) -> ImplicitBNN:
    """A network with noise on the inputs of its layers."""
    network_key, noise_key = jr.split(key)
    return ImplicitBNN(
        make_network(key=network_key),
        num_components=implicit.NUM_COMPONENTS,
        prior_scale=implicit.PRIOR_SCALE,
        key=noise_key,
    )


def implicit_epochs(
    make_network: Callable, data: Split, *, num_draws: int, key: Array
) -> Callable[[], None]:
    """A function that takes an epoch of an implicit network's fit."""
    model_key, fit_key = jr.split(key)
    return epochs_of(
        make_implicit(make_network, key=model_key),
        data,
        Categorical(),
        key=fit_key,
        batch_size=implicit.BATCH_SIZE,
        optimiser=nesterov(),
        learning_rate={
            "weights": implicit.LEARNING_RATE,
            "noise": implicit.NOISE_LEARNING_RATE,
        },
        schedule=Constant(),
        num_draws=num_draws,
    )


def twin_epochs(
    make_network: Callable, data: Split, *, key: Array
) -> Callable[[], None]:
    """A function that takes an epoch of the same network's without noise."""
    model_key, fit_key = jr.split(key)
    return epochs_of(
        Deterministic(make_network(key=model_key)),
        data,
        Categorical(),
        key=fit_key,
        batch_size=implicit.BATCH_SIZE,
        optimiser=nesterov(),
        learning_rate=implicit.LEARNING_RATE,
        schedule=Constant(),
    )


@eqx.filter_jit
def loss_and_gradient(
    model: ImplicitBNN, x: Array, y: Array, *, key: Array
) -> tuple[Array, ImplicitBNN]:
    """The bound in nats per example, and its gradient."""

    def loss(model: ImplicitBNN) -> Array:
        value, _ = elbo_loss(
            model,
            Categorical(),
            (x, y),
            num_data=implicit.DIGITS.num_data,
            num_draws=implicit.NUM_DRAWS,
            key=key,
        )
        return value

    return eqx.filter_value_and_grad(loss)(model)


def normals_of(model: ImplicitBNN, *, key: Array) -> Array:
    """What `elbo_loss` draws with `key`: (draws, hands, components, nodes)."""
    mixture = model.mixture
    shape = (-1, *mixture.mean.shape)

    def one(key: Array) -> Array:
        noise_key, _ = jr.split(draw_key(key, None))
        z = mixture.dealt(implicit.BATCH_SIZE, key=noise_key)
        return (z.reshape(shape) - mixture.mean[None]) / mixture.scale[None]

    return jax.vmap(one)(jr.split(key, implicit.NUM_DRAWS))
