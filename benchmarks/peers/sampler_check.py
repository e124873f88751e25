"""The samplers' peers compute what ours compute, on our batch and our noise."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import Array

from ornstein.data import Split
from ornstein.functions._base import draw_key
from ornstein.potential import AbstractPotential, DensityPotential, Potential
from ornstein.sgmcmc import SGHMC, SGLD

from . import sampler, sampler_blackjax, sampler_ornstein as ours, sampler_torch
from .check import TOLERANCE, PeerDiffersError, check_loss
from .sampler_blackjax import layers_of
from .sampler_torch import transposed

# Large, so that gradient, friction and noise all move the weights visibly.
_LANGEVIN_STEP = 1e-2
_HAMILTONIAN_STEP = 0.1


class _OnRows(AbstractPotential):
    """A potential whose every batch is the same rows."""

    potential: Potential
    rows: Array

    def __call__(self, position: Any) -> Array:
        return self.potential(position)

    def estimate(self, position: Any, *, key: Array) -> Array:
        del key
        energies = self.potential.row_energies(position, self.rows)
        scale = self.potential.num_data / self.rows.size
        return self.potential.prior_energy(position) + scale * jnp.sum(energies)


_FLAT = DensityPotential(lambda position: jnp.zeros(()))


def check_sampler_peers(data: Split, *, key: Array) -> None:
    """One step of each peer that is another program than ours.

    Raises:
        PeerDiffersError: the first that differs.
    """
    network_key, rows_key, momentum_key, step_key = jr.split(key, 4)
    potential = ours.make_potential(data, key=network_key)
    rows = potential.draw_rows(key=rows_key)
    on_rows = _OnRows(potential, rows)
    batch = data.rows(np.asarray(rows))
    _check_blackjax(on_rows, batch)
    _check_sgld(on_rows, batch, key=step_key)
    other = ours.make_potential(data, key=momentum_key).start
    momentum = _scaled(other, 30.0)  # so that friction is seen beside the gradient
    _check_sghmc(on_rows, batch, momentum, key=step_key)
    _check_mean_field(network_key, batch, key=step_key)


def _check_blackjax(on_rows: _OnRows, batch: Split) -> None:
    start, _ = on_rows.potential.start
    peer = sampler_blackjax.grad_estimator()
    uphill = peer(layers_of(start), (jnp.asarray(batch.x), jnp.asarray(batch.y)))
    energy = lambda position: on_rows.estimate(position, key=jr.key(0))
    gradient, _ = jax.grad(energy)(on_rows.potential.start)
    found = jax.tree.map(jnp.negative, uphill)
    _check_arrays("blackjax's gradient", found, layers_of(gradient))


def _check_sgld(on_rows: _OnRows, batch: Split, *, key: Array) -> None:
    kernel = SGLD(_LANGEVIN_STEP)
    state = kernel.init(on_rows, on_rows.potential.start, key=key)
    moved = lambda potential: jax.tree.map(
        jnp.subtract,
        kernel.step(potential, state, key=key)[0].position,
        state.position,
    )
    noise = _scaled(moved(_FLAT), 1 / np.sqrt(_LANGEVIN_STEP))
    network = sampler_torch.make_network(layers_of(state.position[0]))
    params = sampler_torch.params_of(network)
    transform = sampler_torch.sgld(network, _LANGEVIN_STEP)
    found = _update(transform, params, batch, noise)
    _check_arrays(
        "posteriors' SGLD step",
        [found.params[name] - params[name] for name in params],
        transposed(layers_of(moved(on_rows)[0])),
    )


def _check_sghmc(on_rows: _OnRows, batch: Split, momentum: Any, *, key: Array) -> None:
    """The momentum after a step, which ours moves by at once and theirs next time."""
    step_size = _HAMILTONIAN_STEP
    kernel = SGHMC(step_size, sampler.FRICTION)
    rest = kernel.init(on_rows, on_rows.potential.start, key=key)
    noise_scale = np.sqrt(2 * sampler.FRICTION * step_size**3)
    noise = _scaled(kernel.step(_FLAT, rest, key=key)[0].momentum, 1 / noise_scale)
    state = eqx.tree_at(lambda s: s.momentum, rest, _scaled(momentum, step_size))
    state, _ = kernel.step(on_rows, state, key=key)
    network = sampler_torch.make_network(layers_of(rest.position[0]))
    params = sampler_torch.params_of(network)
    momenta = sampler_torch.params_of(
        sampler_torch.make_network(layers_of(momentum[0]))
    )
    transform = sampler_torch.sghmc(network, step_size, momenta)
    found = _update(transform, params, batch, noise)
    _check_arrays(
        "posteriors' SGHMC step",
        [step_size * found.momenta[name] for name in params],
        transposed(layers_of(state.momentum[0])),
    )


def _check_mean_field(network_key: Array, batch: Split, *, key: Array) -> None:
    model = ours.make_mean_field(key=network_key)
    arrays = (jnp.asarray(batch.x), jnp.asarray(batch.y))
    loss, grads = eqx.filter_value_and_grad(
        lambda model: ours.mean_field_loss(model, arrays, key=key)
    )(model)
    # The one draw of the bound, as `elbo_loss` makes it.
    (only_key,) = jr.split(key, 1)
    _, weights = model.noise.draw(
        model.family,
        model.rest,
        num_rows=sampler.BATCH_SIZE,
        key=draw_key(only_key, None),
    )
    mean = model.family.mean
    noise = _scaled(jax.tree.map(jnp.subtract, weights, mean), 1 / sampler.INIT_SCALE)
    peer = sampler_torch.MeanFieldNet(layers_of(mean))
    with sampler_torch.given_normals(_flat(transposed(layers_of(noise)))):
        found = sampler_torch.mean_field_loss(peer, sampler_torch.to_torch(batch))
    check_loss("bayesian-torch", found.item(), float(loss))
    found.backward()
    for name, ours_ in (("mu", grads.family.mean), ("rho", grads.family.rho)):
        theirs = [
            layer.get_parameter(f"{name}_{part}").grad
            for layer in peer.layers
            for part in ("weight", "bias")
        ]
        ours_ = transposed(layers_of(ours_))
        _check_arrays(f"bayesian-torch's gradient of {name}", theirs, ours_)


def _update(transform: Any, params: dict, batch: Split, noise: Any) -> Any:
    """posteriors' step on a batch; it draws for a layer's bias before its weight."""
    normals = _flat([(b, w) for w, b in transposed(layers_of(noise[0]))])
    with sampler_torch.given_normals(normals):
        state, _ = transform.update(
            transform.init(params), sampler_torch.to_torch(batch)
        )
    return state


def _scaled(tree: Any, scale: float) -> Any:
    return jax.tree.map(lambda a: jnp.asarray(scale, a.dtype) * a, tree)


def _flat(pairs: list[tuple]) -> list:
    return [array for pair in pairs for array in pair]


def _check_arrays(peer: str, found: Any, ours: Any) -> None:
    """Refuse arrays that are not ours, by the norm of the difference."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(ours), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        error, size = np.linalg.norm(a - b), np.linalg.norm(b)
        if not error <= TOLERANCE * size:
            raise PeerDiffersError(
                f"{peer} is not ours for an array of shape {b.shape}: they differ by "
                f"{error:.2g} in norm, and ours has {size:.2g}."
            )
