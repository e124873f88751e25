r"""The variance of the gradient of one path's -ELBO, under each estimator of its KL.

The process is $dw = f_\phi(t, w)\,dt + \sigma\,dB$ from a known start, seen through
Gaussian observations of $d(w)$. A gradient of n paths has 1/n of one path's variance,
so that ratios hold for any batch.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Key

from ..._types import Array, Float, PRNGKeyArray, PyTree
from ...sde import (
    KL,
    AbstractPathKL,
    AbstractProcess,
    EulerMaruyama,
    Fixed,
    FullMonteCarlo,
    StickTheLanding,
    sdeint,
)

ESTIMATORS: dict[str, AbstractPathKL] = {
    "KL": KL(),
    "FullMonteCarlo": FullMonteCarlo(),
    "StickTheLanding": StickTheLanding(),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Toy:
    """What is observed of a path, and what is known before.

    Attributes:
        prior: of the path, one number.
        start: where it begins.
        ts: times, the start's first.
        values: observed at all but the first.
        noise: standard deviation of each observation.
        decode: from the path to what is observed, as far as it can be seen.
        dt: step of Euler–Maruyama.
    """

    prior: AbstractProcess
    start: float
    ts: Float[np.ndarray, " times"]
    values: Float[np.ndarray, " observed"]
    noise: float
    decode: Callable[[Array], Array]
    dt: float

    def loss(
        self, drift: Callable, key: PRNGKeyArray, estimator: AbstractPathKL
    ) -> Float[Array, ""]:
        """-ELBO of one path, nats.

        Args:
            drift: of the posterior, `(t, w)`.
            key: randomness.
            estimator: of the path KL.
        """
        sol = sdeint(
            lambda t, w, args: drift(t, w),
            self.prior.diffusion,
            jnp.full((1,), self.start),
            self.ts,
            key=key,
            solver=EulerMaruyama(),
            stepsize=Fixed(self.dt),
            path_kl=estimator,
            prior_drift=self.prior.drift,
        )
        assert sol.path_kl is not None
        gaps = (self.values - self.decode(sol.ys[1:, 0])) / self.noise
        constant = float(np.log(self.noise * np.sqrt(2 * np.pi)))
        return sol.path_kl[-1] + jnp.sum(gaps**2 / 2 + constant)


@eqx.filter_jit
def gradients(
    toy: Toy,
    drift: PyTree,
    estimator: AbstractPathKL,
    keys: Key[Array, " samples"],
) -> PyTree[Float[Array, "samples ..."]]:
    """Of each path's loss, with respect to the drift's parameters.

    Args:
        toy: of the loss.
        drift: whose inexact arrays are the parameters.
        estimator: of the path KL.
        keys: of the paths.
    """
    params, rest = eqx.partition(drift, eqx.is_inexact_array)

    def loss(params: PyTree, key: PRNGKeyArray) -> Array:
        return toy.loss(eqx.combine(params, rest), key, estimator)

    return jax.vmap(jax.grad(loss), (None, 0))(params, keys)


def variances(
    toy: Toy, drift: PyTree, *, num_samples: int, key: PRNGKeyArray
) -> dict[str, float]:
    """The variance of one path's gradient, averaged over parameters.

    All estimators meet the same paths.

    Args:
        toy: of the loss.
        drift: where the gradient is taken.
        num_samples: paths.
        key: randomness.
    """
    keys = jax.random.split(key, num_samples)
    found = {}
    for name, estimator in ESTIMATORS.items():
        grads = jax.tree.leaves(gradients(toy, drift, estimator, keys))
        sums = [np.var(np.asarray(g), axis=0, ddof=1).sum() for g in grads]
        found[name] = float(sum(sums) / sum(g[0].size for g in grads))
    return found


@eqx.filter_jit
def train(
    toy: Toy,
    drift: PyTree,
    state: Any,
    first: Array,
    *,
    num_updates: int,
    batch_size: int,
    optimiser: optax.GradientTransformation,
    key: PRNGKeyArray,
) -> tuple[PyTree, Any, Float[Array, " updates"]]:
    """Some updates of the drift by `StickTheLanding`: drift, state and losses.

    Args:
        toy: of the loss.
        drift: to begin with.
        state: the optimiser's.
        first: number of the first update.
        num_updates: how many.
        batch_size: paths in each.
        optimiser: of the drift's inexact arrays.
        key: of the whole training.
    """
    params, rest = eqx.partition(drift, eqx.is_inexact_array)

    def loss(params: PyTree, key: PRNGKeyArray) -> Array:
        keys = jax.random.split(key, batch_size)
        ours = eqx.combine(params, rest)
        return jnp.mean(jax.vmap(lambda k: toy.loss(ours, k, StickTheLanding()))(keys))

    def update(carry: Any, number: Array) -> tuple[Any, Array]:
        params, state = carry
        at = jax.random.fold_in(key, number)
        value, grads = jax.value_and_grad(loss)(params, at)
        updates, state = optimiser.update(grads, state)
        return (eqx.apply_updates(params, updates), state), value

    numbers = first + jnp.arange(num_updates)
    (params, state), losses = jax.lax.scan(update, (params, state), numbers)
    return eqx.combine(params, rest), state, losses
