"""Methods that `fit` trains."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from .._types import PRNGKeyArray
from ..functions import (
    AbstractRandomFunction,
    Deterministic,
    Ensemble,
    ImplicitBNN,
    LocalReparameterised,
    MCDropout,
    MeanField,
)
from ..train import IVON, KLWeight, fit, nesterov
from ._effort import Approximation, Effort
from ._problems import Problem

NUM_MEMBERS = 5
"""Of an ensemble."""
_NUM_DRAWS = 200


def deterministic(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    del prior_scale
    network_key, key = jax.random.split(key)
    model = Deterministic(problem.network(key=network_key))
    return _fitted(model, problem, effort, num_draws=1, key=key)


def ensemble(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    del prior_scale
    network_key, key = jax.random.split(key)
    model = Ensemble.of(problem.network, NUM_MEMBERS, key=network_key)
    found = _fitted(model, problem, effort, num_draws=NUM_MEMBERS, key=key)
    return found._replace(num_gradients=NUM_MEMBERS * found.num_gradients)


def sgd(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    """Nesterov's momentum; the Gaussian prior as weight decay, so that it is a MAP."""
    network_key, key = jax.random.split(key)
    model = Deterministic(problem.network(key=network_key))
    return _fitted(
        model,
        problem,
        effort,
        num_draws=1,
        key=key,
        optimiser=nesterov(1 / (prior_scale**2 * len(problem.train))),
        learning_rate=0.05,
    )


def mc_dropout(
    problem: Problem,
    prior_scale: float,
    effort: Effort,
    *,
    rate: float,
    key: PRNGKeyArray,
) -> Approximation:
    """The prior as a pull on the weights: Gal & Ghahramani's bound, but for scaling."""
    network_key, key = jax.random.split(key)
    model = MCDropout(problem.network(key=network_key), rate=rate)
    return _fitted(
        model,
        problem,
        effort,
        length=4,
        key=key,
        optimiser=_adam_with_prior(problem, prior_scale),
    )


def mean_field(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    network_key, key = jax.random.split(key)
    model = _normal_weights(problem, prior_scale, key=network_key)
    return _fitted(model, problem, effort, length=4, key=key, kl=KLWeight(warmup=0.3))


def ivon(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    """The same posteriors and bound as `mean_field`, by natural gradients."""
    network_key, key = jax.random.split(key)
    model = _normal_weights(problem, prior_scale, key=network_key)
    return _fitted(model, problem, effort, length=4, key=key, optimiser=IVON())


def _normal_weights(
    problem: Problem, prior_scale: float, *, key: PRNGKeyArray
) -> MeanField:
    network = problem.network(key=key)
    prior, noise = problem.prior(network, prior_scale), LocalReparameterised()
    return MeanField(network, prior, init_scale=0.02, noise=noise)


def implicit(
    problem: Problem, prior_scale: float, effort: Effort, *, key: PRNGKeyArray
) -> Approximation:
    network_key, model_key, key = jax.random.split(key, 3)
    model = ImplicitBNN(problem.network(key=network_key), key=model_key)
    adam = _adam_with_prior(problem, prior_scale)
    return _fitted(
        model,
        problem,
        effort,
        key=key,
        optimiser={"weights": adam, "noise": nesterov()},
        learning_rate={"weights": 3e-3, "noise": 0.1},
        kl=KLWeight(warmup=2 / 3),
    )


def _fitted(
    model: AbstractRandomFunction,
    problem: Problem,
    effort: Effort,
    *,
    num_draws: int = _NUM_DRAWS,
    length: int = 1,
    key: PRNGKeyArray,
    **options: Any,
) -> Approximation:
    batch_size = min(effort.batch_size, len(problem.train))
    steps_an_epoch = len(problem.train) // batch_size
    num_epochs = max(1, length * effort.num_steps // steps_an_epoch)
    found = fit(
        model,
        problem.train,
        problem.likelihood,
        key=key,
        num_epochs=num_epochs,
        batch_size=batch_size,
        **{"learning_rate": 3e-3, "snr_decay": None} | options,
    )
    passes = num_epochs * steps_an_epoch * batch_size / len(problem.train)
    return Approximation(found, num_draws, passes)


def _adam_with_prior(problem: Problem, prior_scale: float) -> Callable[..., Any]:
    """Adam on the loss per row, to which the prior's energy adds its gradient."""
    num_data = len(problem.train)

    def init(params: Any) -> optax.OptState:
        del params
        return optax.EmptyState()

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        model, likelihood = params
        variances = problem.prior_variances(model, prior_scale)
        own = jax.tree.map(lambda w, v: w / (v * num_data), model, variances)
        prior = problem.likelihood_prior
        energy = lambda p: jnp.zeros(()) if prior is None else -prior.log_prob(p)
        scale = jax.tree.map(lambda a: a / num_data, jax.grad(energy)(likelihood))
        return jax.tree.map(jnp.add, updates, (own, scale)), state

    pull = optax.GradientTransformation(init, update)
    return lambda rate: optax.chain(pull, optax.adam(rate))
