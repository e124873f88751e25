"""The model of MNIST's first rows, its posteriors, and their twins.

Each method is `(train, inputs, num_steps, *, key)` to class probabilities of each of
`inputs`, which are arrays of images.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from ..._types import Array, Bool, Float, PRNGKeyArray, PyTree
from ...data import AbstractAugmentation, Split
from ...functions import (
    SDEBNN,
    Integrator,
    LevyCiesielski,
    MeanField,
    Reparameterised,
    WeightPrior,
    WhitenedSDEBNN,
    whiten,
)
from ...likelihood import Categorical
from ...network import Network
from ...prior import GaussianPrior
from ...sampling import optimised_starts, sample
from ...sde import EulerMaruyama, Fixed
from ...sgmcmc import SGHMC, sghmc_settings
from ...train import fit

BATCH_SIZE = 25
_RATE, _MOMENTUM = 0.015, 0.95  # at 0.03 one chain of two left the numbers
_START_STEPS, _WARMUP_SHARE, _THIN = 2_000, 1 / 6, 80
_LEARNING_RATE = 3e-3
_PATH_SCALE = 0.1  # of its normals at first: from the prior's 1 they hardly move
NUM_FITS, _NUM_MEMBERS, _NUM_PATHS = 2, 5, 30  # paths of each fit
_NUM_MODES = 2
_SCALE, _POINT_SCALE, _SIGMA = 5.0, 6.0, 1.0
NARROW_SIGMA = 0.2
_AT_ONCE = 500


def design() -> dict[str, Any]:
    """All that what they find depends on but steps, rows and seeds."""
    return {
        "batch_size": BATCH_SIZE,
        "prior": {"sigma": _SIGMA, "scale": _SCALE, "point_scale": _POINT_SCALE},
        "modes_of_path": _NUM_MODES,
        "fits": {"number": NUM_FITS, "paths": _NUM_PATHS, "path_scale": _PATH_SCALE},
        "learning_rate": _LEARNING_RATE,
        "members": _NUM_MEMBERS,
        "chain": {
            "rate": _RATE,
            "momentum": _MOMENTUM,
            "start_steps": _START_STEPS,
            "warmup_share": _WARMUP_SHARE,
            "thin": _THIN,
        },
    }


def network(*, sigma: float = _SIGMA, key: PRNGKeyArray) -> WhitenedSDEBNN:
    """The model, at whose prior all is N(0, 1).

    Args:
        sigma: of its path, in units of the start's spread.
        key: randomness of where it starts.
    """
    model = SDEBNN.for_images(
        (28, 28, 1),
        10,
        blocks=(1, 1),
        width=8,
        augment=4,
        space_to_depth_first=True,
        is_normalised=True,
        activation=jax.nn.silu,
        prior=WeightPrior(sigma=sigma, scale=_SCALE),
        integrator=Integrator(EulerMaruyama(), Fixed(1 / _NUM_MODES)),
        key=key,
    )
    return whiten(model, LevyCiesielski(_NUM_MODES), point_scale=_POINT_SCALE)


def _variational_paths(
    train: Split,
    inputs: list[np.ndarray],
    num_steps: int,
    *,
    key: PRNGKeyArray,
    augmentation: AbstractAugmentation | None = None,
) -> list[Float[np.ndarray, "rows classes"]]:
    """A mixture of fits, which share the steps."""
    keys = jax.random.split(key, NUM_FITS)
    num_steps //= NUM_FITS
    fits = [_variational_path(train, num_steps, augmentation, key=k) for k in keys]
    return _mean_probs([net for drawn in fits for net in drawn], inputs)


def _variational_path(
    train: Split,
    num_steps: int,
    augmentation: AbstractAugmentation | None,
    *,
    key: PRNGKeyArray,
) -> list[Network]:
    """Draws of a normal for each coordinate of the path, all else at its mode."""
    net_key, fit_key, draw_key = jax.random.split(key, 3)
    net = network(key=net_key)
    model = MeanField(
        net,
        GaussianPrior(1.0),
        where=net.parameter_parts()["path"],
        has_prior_on_points=True,
        init_scale=_PATH_SCALE,
        noise=Reparameterised(),
    )
    fitted = fit(
        model,
        train,
        Categorical(),
        num_epochs=max(1, num_steps * BATCH_SIZE // len(train)),
        batch_size=BATCH_SIZE,
        learning_rate=_LEARNING_RATE,
        augmentation=augmentation,
        key=fit_key,
    ).model
    assert isinstance(fitted, MeanField)
    return [fitted.network_at(i, key=draw_key) for i in range(_NUM_PATHS)]


def _sampled(
    train: Split, inputs: list[np.ndarray], num_steps: int, *, key: PRNGKeyArray
) -> list[Float[np.ndarray, "rows classes"]]:
    """One chain of SGHMC; the steps to its start are among its steps."""
    net_key, start_key, chain_key = jax.random.split(key, 3)
    what = {
        "model": network(key=net_key),
        "split": train,
        "likelihood": Categorical(),
        "prior": GaussianPrior(1.0),
        "num_chains": 1,
        "batch_size": BATCH_SIZE,
    }
    num_start = min(_START_STEPS, num_steps // 6)
    starts = optimised_starts(
        **what, num_steps=num_start, learning_rate=_LEARNING_RATE, key=start_key
    )
    num_left = num_steps - num_start
    num_warmup = round(_WARMUP_SHARE * num_left)
    samples = sample(
        **what,
        kernel=SGHMC(*sghmc_settings(_RATE / len(train), _MOMENTUM)),
        starts=starts,
        num_warmup=num_warmup,
        num_samples=(num_left - num_warmup) // _THIN,
        thin=_THIN,
        key=chain_key,
    )
    networks = [samples.network_at(i) for i in range(samples.num_samples)]
    return _mean_probs(networks, inputs)


def _modes(
    train: Split,
    inputs: list[np.ndarray],
    num_steps: int,
    *,
    key: PRNGKeyArray,
    path: str = "free",
    sigma: float | None = None,
    num_members: int,
    augmentation: AbstractAugmentation | None = None,
) -> list[Float[np.ndarray, "rows classes"]]:
    """Of modes by Adam, which share the steps.

    A path is free, held at zero, or drawn anew at each step.
    """
    own = {} if sigma is None else {"sigma": sigma}
    net_key, key = jax.random.split(key)
    whole = network(**own, key=net_key)
    _, static = eqx.partition(whole, eqx.is_inexact_array)
    _, unravel = _ravelled(whole)
    is_path = _is_path(whole)
    num_data = len(train)
    num_steps //= num_members
    num_paths = NUM_FITS * _NUM_PATHS // num_members if path == "prior" else 1
    x, y = jnp.asarray(train.x), jnp.asarray(train.y)

    def placed(theta: Array, key: PRNGKeyArray) -> Array:
        if path == "free":
            return theta
        noise = jax.random.normal(key, theta.shape) if path == "prior" else 0.0
        return jnp.where(is_path, noise, theta)

    def energy(theta: Array, rows: Array, key: PRNGKeyArray) -> Array:
        net = eqx.combine(unravel(placed(theta, key)), static)
        images = x[rows]
        if augmentation is not None:
            images = augmentation(images, key=jax.random.fold_in(key, 1))
        loss = optax.softmax_cross_entropy_with_integer_labels(net(images), y[rows])
        return loss.mean() + 0.5 * jnp.sum(theta**2) / num_data

    rule = optax.adam(optax.cosine_decay_schedule(_LEARNING_RATE, num_steps))

    @jax.jit
    def train_all(theta: Array, keys: Array) -> Array:
        def step(carry, key):
            theta, state = carry
            row_key, path_key = jax.random.split(key)
            rows = jax.random.randint(row_key, (BATCH_SIZE,), 0, num_data)
            update, state = rule.update(jax.grad(energy)(theta, rows, path_key), state)
            return (theta + update, state), None

        return jax.lax.scan(step, (theta, rule.init(theta)), keys)[0][0]

    networks = []
    for member_key in jax.random.split(key, num_members):
        start_key, train_key, draw_key = jax.random.split(member_key, 3)
        theta, _ = _ravelled(network(**own, key=start_key))
        theta = train_all(theta, jax.random.split(train_key, num_steps))
        for path_key in jax.random.split(draw_key, num_paths):
            drawn = unravel(placed(theta, path_key))
            networks.append(eqx.combine(drawn, static))
    return _mean_probs(networks, inputs)


def _ravelled(net: WhitenedSDEBNN) -> tuple[Array, Callable[[Array], PyTree]]:
    return ravel_pytree(eqx.filter(net, eqx.is_inexact_array))


def _is_path(whole: WhitenedSDEBNN) -> Bool[Array, " parameters"]:
    """Which parameters, in one line, are of the path."""
    paths = whole.parameter_parts()["path"]
    params = eqx.filter(whole, eqx.is_inexact_array)
    zeros = jax.tree.map(jnp.zeros_like, params)
    ones = jax.tree.map(jnp.ones_like, paths(params))
    return _ravelled(eqx.tree_at(paths, zeros, ones))[0] > 0


@eqx.filter_jit
def _probs(net: Network, x: Array) -> Array:
    return jax.nn.softmax(net(x))


def _mean_probs(
    networks: Sequence[Network], inputs: list[np.ndarray]
) -> list[Float[np.ndarray, "rows classes"]]:
    found = []
    for x in inputs:
        total = sum(
            np.concatenate(
                [
                    np.asarray(_probs(net, jnp.asarray(part)), np.float64)
                    for part in np.array_split(x, len(x) // _AT_ONCE or 1)
                ]
            )
            for net in networks
        )
        found.append(total / len(networks))
    return found


_twins = functools.partial(_modes, num_members=NUM_FITS)
METHODS: dict[str, Callable[..., list[np.ndarray]]] = {
    "variational paths": _variational_paths,
    "paths at their prior": functools.partial(_twins, path="prior"),
    "one path at its prior": functools.partial(_modes, num_members=1, path="prior"),
    "without noise": functools.partial(_twins, path="zero"),
    "five modes": functools.partial(_modes, num_members=_NUM_MEMBERS),
    "sampled": _sampled,
}
AUGMENTED = tuple(name for name in METHODS if name != "sampled")
"""Methods that may shift their training images, of which no chain has a density."""

NARROWER: dict[str, Callable[..., list[np.ndarray]]] = {
    "paths at a narrower prior": functools.partial(
        _twins, path="prior", sigma=NARROW_SIGMA
    ),
    "one path at a narrower prior": functools.partial(
        _modes, num_members=1, path="prior", sigma=NARROW_SIGMA
    ),
}
"""Twins with the sigma that is best for them: as a noise, and no posterior."""
