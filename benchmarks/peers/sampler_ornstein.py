"""Our samplers as `ornstein.sample` runs them, and our mean-field step."""

import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jax import Array

from ornstein.data import Split
from ornstein.functions import MeanField
from ornstein.likelihood import Categorical, Gaussian
from ornstein.mcmc import HMC, AbstractKernel
from ornstein.nn import MLP
from ornstein.potential import Potential
from ornstein.prior import GaussianPrior
from ornstein.sampling._advance import Sampler
from ornstein.sgmcmc import SGHMC, SGLD
from ornstein.train import elbo_loss

from . import sampler
from ._epochs import epochs_of

LANGEVIN = SGLD(sampler.LANGEVIN_STEP)
# Fresh momenta at every call, as blackjax's kernel has them.
HAMILTONIAN = SGHMC(
    sampler.HAMILTONIAN_STEP,
    sampler.FRICTION,
    num_integration_steps=sampler.NUM_INNER_STEPS,
    resample_every=1,
)
HMC_KERNEL = HMC(
    sampler.NUM_LEAPFROG_STEPS,
    sampler.LEAPFROG_STEP,
    adapt_step_size=False,
    adapt_mass=False,
)


def make_network(*, key: Array) -> MLP:
    """The MLP that classifies."""
    num_in, *widths, num_out = sampler.SIZES
    return MLP(num_in, num_out, widths, activation=jax.nn.relu, key=key)


def make_potential(data: Split, *, key: Array) -> Potential:
    """The posterior of its weights."""
    return Potential(
        make_network(key=key),
        data,
        Categorical(),
        prior=GaussianPrior(1.0),
        batch_size=sampler.BATCH_SIZE,
    )


def make_small_potential(data: Split, *, key: Array) -> Potential:
    """The posterior of the small MLP's weights."""
    num_in, *widths, num_out = sampler.SMALL_SIZES
    return Potential(
        MLP(num_in, num_out, widths, key=key),
        data,
        Gaussian(sampler.NOISE_SCALE),
        prior=GaussianPrior(1.0),
    )


def chains(
    kernel: AbstractKernel,
    potential: Potential,
    *,
    num_steps: int,
    num_chains: int = 1,
    key: Array,
) -> Callable[[], Any]:
    """A function that takes some steps in one compiled call, as `sample` does."""
    init_key, chain_key = jr.split(key)
    program = Sampler(kernel, potential, jr.split(chain_key, num_chains))
    starts = jax.tree.map(
        lambda a: jnp.broadcast_to(a, (num_chains, *a.shape)), potential.start
    )
    states = program.init(starts, jr.split(init_key, num_chains))
    step = jnp.zeros((), jnp.int32)
    one, thin = jnp.asarray(1, jnp.int32), jnp.asarray(num_steps, jnp.int32)

    def run() -> Any:
        nonlocal states, step
        states, step, kept = program.draw(states, step, one, thin, capacity=1)
        return kept

    return run


def mean_field(
    data: Split, *, num_steps: int, model_key: Array, key: Array
) -> Callable[[], Any]:
    """A function that takes Adam steps on the bound in one compiled call."""
    model = make_mean_field(key=model_key)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    arrays = jax.tree.map(jnp.asarray, (data.x, data.y))
    adam = optax.adam(sampler.LEARNING_RATE)

    def step(carry: tuple, key: Array) -> tuple:
        params, opt_state, arrays = carry
        rows_key, draw_key = jr.split(key)
        rows = jr.randint(rows_key, (sampler.BATCH_SIZE,), 0, sampler.NUM_DATA)
        batch = jax.tree.map(lambda a: a[rows], arrays)
        loss = lambda params: mean_field_loss(
            eqx.combine(params, static), batch, key=draw_key
        )
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = adam.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state, arrays), value

    @jax.jit
    def steps(carry: tuple, key: Array) -> tuple:
        return jax.lax.scan(step, carry, jr.split(key, num_steps))

    carry = (params, adam.init(params), arrays)
    keys = itertools.cycle(jr.split(key, 100))

    def run() -> Any:
        nonlocal carry
        carry, values = steps(carry, next(keys))
        return values

    return run


def fitted_mean_field(
    data: Split, *, by: Any = optax.adam, model_key: Array, key: Array
) -> tuple[Callable[[], None], int]:
    """A function that takes an epoch of `fit` as it comes, and an epoch's steps.

    By this optimiser. It also clips the gradient, and records its signal-to-noise ratio
    and each batch's calibration.
    """
    run = epochs_of(
        make_mean_field(key=model_key),
        data,
        Categorical(),
        key=key,
        batch_size=sampler.BATCH_SIZE,
        optimiser=by,
    )
    return run, sampler.NUM_DATA // sampler.BATCH_SIZE


def make_mean_field(*, key: Array) -> MeanField:
    """The MLP with normal weights."""
    return MeanField(make_network(key=key), init_scale=sampler.INIT_SCALE)


def mean_field_loss(model: MeanField, batch: tuple, *, key: Array) -> Array:
    """The bound in nats per example."""
    loss, _ = elbo_loss(model, Categorical(), batch, num_data=sampler.NUM_DATA, key=key)
    return loss
