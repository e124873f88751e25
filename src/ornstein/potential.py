r"""Potential energies: what every sampler here moves on.

$U(\theta) = -\log p(D | \theta) - \log p(\theta)$, in nats, up to a constant. Samplers
of the full data call a potential; stochastic-gradient ones call `estimate`, whose
gradient is theirs.
"""

import abc
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._types import Array, Float, Int, Params, PRNGKeyArray, PyTree, Shaped
from .data import Streamed
from .likelihood import AbstractLikelihood, check_one_each, num_outputs_of
from .network import (
    PROBE_ROWS,
    Network,
    as_network,
    call_network,
    check_alone,
    check_parameters,
    has_batch_state,
    in_inference,
    split_where,
)
from .prior import AbstractPrior


class AbstractPotential(eqx.Module):
    """Minus a log density, and an unbiased estimate of it from part of the data."""

    @abc.abstractmethod
    def __call__(self, position: Params) -> Float[Array, ""]:
        """U, nats, up to a constant."""

    @abc.abstractmethod
    def estimate(self, position: Params, *, key: PRNGKeyArray) -> Float[Array, ""]:
        r"""$\tilde U$, nats: its value and gradient have U's as their expectations.

        Args:
            position: where.
            key: of the batch.
        """


class DensityPotential(AbstractPotential):
    r"""A density given as a function, with noise on its gradients if asked for.

    $\nabla \tilde U = \nabla U + N(0, V)$ stands in for a minibatch where there are no
    data.

    Args:
        log_density_fn: a position to the log density, nats, up to a constant.
        gradient_noise: the variance V of each entry.

    Raises:
        ValueError: for a negative variance.
    """

    log_density_fn: Callable[[Params], Float[Array, ""]]
    gradient_noise: float = 0.0

    def __check_init__(self):
        if not self.gradient_noise >= 0:
            raise ValueError(
                "`gradient_noise` must not be negative, got "
                f"{self.gradient_noise}: it is a variance."
            )

    def __call__(self, position: Params) -> Float[Array, ""]:
        """See `AbstractPotential`."""
        return -self.log_density_fn(position)

    def estimate(self, position: Params, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """See `AbstractPotential`."""
        leaves = jax.tree.leaves(position)
        keys = jax.random.split(key, len(leaves))
        scale = self.gradient_noise**0.5
        tilt = jnp.zeros(())
        for leaf, leaf_key in zip(leaves, keys, strict=True):
            noise = scale * jax.random.normal(leaf_key, leaf.shape, leaf.dtype)
            tilt += jnp.sum(noise * leaf).astype(tilt.dtype)
        return self(position) + tilt


class Potential(AbstractPotential):
    r"""The posterior of a network's parameters, and of a learned scale's.

    $U(\theta) = -\sum_{i=1}^N \log p(y_i | x_i, \theta) - \log p(\theta)$. A position
    is (parameters of the network, parameters of the likelihood), each in its module's
    own structure with `None` for what does not move.

    Args:
        network: maps a batch of inputs to the likelihood's parameters; or an
            `eqx.nn.MLP` or `eqx.nn.Linear`.
        split: has `x` and `y`, rows first.
        likelihood: of y.
        prior: of the network's moving parameters.
        likelihood_prior: of the likelihood's (a learned `log_scale`).
        where: the network's subtree (or tuple of them) that moves; all of it by
            default.
        batch_size: rows behind an `estimate`, drawn with replacement.
        num_data: N, where `split` is a random sample of so many rows, the others of
            which are not in memory; all are there by default. Such a potential cannot
            be called, and its `estimate` sees the sample alone: see `of_batch`.

    Raises:
        TypeError: if the network cannot be called, or the rows are on disk.
        ValueError: for batch statistics, no parameters, a prior of the wrong shape, a
            learned scale without a prior, data that the likelihood refuses, outputs of
            which it has no number for each row, or fewer rows than `split` has.

    Attributes:
        start: the position that network and likelihood came with.
    """

    start: Params
    network: PyTree
    likelihood: PyTree
    x: PyTree[Array]
    y: PyTree[Array]
    prior: AbstractPrior
    likelihood_prior: AbstractPrior | None
    batch_size: int = eqx.field(static=True)
    num_data: int = eqx.field(static=True)

    def __init__(
        self,
        network: Network,
        split: Any,
        likelihood: AbstractLikelihood,
        *,
        prior: AbstractPrior,
        likelihood_prior: AbstractPrior | None = None,
        where: Callable[[Any], PyTree] | None = None,
        batch_size: int = 100,
        num_data: int | None = None,
    ):
        if isinstance(split, Streamed):
            raise TypeError(
                "A potential needs its rows in memory, and those of `split` are on "
                "disk: give `sample` the split itself, or load the data without "
                "stream=True."
            )
        whole = as_network(network)
        if has_batch_state(network):
            raise ValueError(
                "The network has batch statistics (batch normalisation), so that it "
                "has no fixed density to sample: leave them out, or use `fit`."
            )
        params, self.network = split_where(network, where)
        check_parameters(params, "to sample (floating-point arrays chosen by `where`)")
        prior.check(params)
        is_learned = jax.tree.map(lambda name: name != "frozen", likelihood.labels())
        scale, self.likelihood = eqx.partition(likelihood, is_learned)
        if jax.tree.leaves(scale):
            if likelihood_prior is None:
                raise ValueError(
                    f"`{type(likelihood).__name__}` learns its scale, which needs a "
                    "prior to be sampled: give `likelihood_prior`, for example "
                    "GaussianPrior(1.0) on its log, or learn_scale=False."
                )
            likelihood_prior.check(scale)
        self.start = jax.tree.map(jnp.asarray, (params, scale))
        self.prior, self.likelihood_prior = prior, likelihood_prior
        _check_batch_size(batch_size)
        self.x, self.y = jax.tree.map(jnp.asarray, (split.x, split.y))
        self.num_data = self.num_rows if num_data is None else operator.index(num_data)
        if self.num_data < self.num_rows:
            raise ValueError(
                f"`num_data` is {num_data}, fewer than the {self.num_rows} rows of "
                "`split`: give the number of all rows, of which these are some."
            )
        self.batch_size = min(batch_size, self.num_data)
        shapes = partial(_shapes_of, (self.x, self.y))
        give = lambda x: call_network(whole, x).output
        output = eqx.filter_eval_shape(give, shapes(self.num_rows)[0])
        num_outputs = num_outputs_of(likelihood, output)
        likelihood.check_targets(jax.tree.map(np.asarray, split.y), num_outputs)
        # Of as few rows as outputs a sum over all would look like one of each.
        is_told = self.num_rows not in (1, num_outputs)
        num_rows = self.num_rows if is_told else PROBE_ROWS
        x, y = shapes(num_rows)
        output = eqx.filter_eval_shape(give, x)
        log_prob = eqx.filter_eval_shape(likelihood.log_prob, output, y)
        check_one_each(log_prob, num_rows)
        check_alone(_outputs, in_inference(whole), self.x)

    @property
    def num_rows(self) -> int:
        """Rows in memory: all N of them, or a sample."""
        return jax.tree.leaves(self.x)[0].shape[0]

    def __call__(self, position: Params) -> Float[Array, ""]:
        """See `AbstractPotential`.

        Raises:
            NotImplementedError: of a sample of the rows.
        """
        if self.num_rows < self.num_data:
            raise NotImplementedError(
                f"The energy of all {self.num_data:,} rows was asked for, and only "
                f"{self.num_rows:,} of them are in memory: use a kernel that sees a "
                "batch at each step, or load the data without stream=True."
            )
        return self.prior_energy(position) + self.likelihood_energy(position)

    def estimate(self, position: Params, *, key: PRNGKeyArray) -> Float[Array, ""]:
        r"""$-\frac{N}{n} \sum_{i \in B} \log p(y_i | x_i) - \log p(\theta)$."""
        rows = self.draw_rows(key=key)
        return self.batch_energy(position, *self._taken(rows))

    def batch_energy(
        self,
        position: Params,
        x: PyTree[Shaped[Array, "batch ..."]],
        y: PyTree[Shaped[Array, "batch ..."]],
    ) -> Float[Array, ""]:
        r"""$\tilde U$ of a batch that is given: the only place where N / n enters."""
        energies = self._energies(position, x, y)
        return self.prior_energy(position) + self.num_data * jnp.mean(energies)

    def of_batch(
        self,
        x: PyTree[Shaped[Array, "batch ..."]],
        y: PyTree[Shaped[Array, "batch ..."]],
    ) -> "BatchPotential":
        """The potential whose every `estimate` is of these rows of the data set.

        Args:
            x: inputs of a batch.
            y: their targets.
        """
        return BatchPotential(self, x, y)

    def draw_rows(self, *, key: PRNGKeyArray) -> Int[Array, " batch"]:
        """A batch of row numbers, drawn with replacement from the rows in memory."""
        return jax.random.randint(key, (self.batch_size,), 0, self.num_rows)

    def prior_energy(self, position: Params) -> Float[Array, ""]:
        r"""$-\log p(\theta)$, nats."""
        params, scale = position
        energy = -self.prior.log_prob(params)
        if self.likelihood_prior is not None and jax.tree.leaves(scale):
            energy -= self.likelihood_prior.log_prob(scale)
        return energy

    def likelihood_energy(self, position: Params) -> Float[Array, ""]:
        r"""$-\log p(D | \theta)$ of the rows in memory, nats."""
        network, likelihood = self.combine(position)
        output, *_ = call_network(network, self.x)
        return -jnp.sum(likelihood.log_prob(output, self.y))

    def row_energies(
        self, position: Params, rows: Int[Array, " batch"]
    ) -> Float[Array, " batch"]:
        r"""$-\log p(y_i | x_i, \theta)$ of each row of a batch, nats."""
        return self._energies(position, *self._taken(rows))

    def row_gradients(self, position: Params, rows: Int[Array, " batch"]) -> Params:
        """The gradient of each row's energy, rows first in every leaf."""

        def energy(position, row):
            return self.row_energies(position, row[None])[0]

        return jax.vmap(jax.grad(energy), in_axes=(None, 0))(position, rows)

    def combine(self, position: Params) -> tuple[Network, AbstractLikelihood]:
        """The network and likelihood with these parameters."""
        params, scale = position
        network = as_network(eqx.combine(params, self.network))
        return network, eqx.combine(scale, self.likelihood)

    def _taken(self, rows: Int[Array, " batch"]) -> tuple[PyTree, PyTree]:
        return jax.tree.map(lambda a: a[rows], (self.x, self.y))

    def _energies(self, position: Params, x: PyTree, y: PyTree) -> Array:
        network, likelihood = self.combine(position)
        return -likelihood.log_prob(call_network(network, x).output, y)


class BatchPotential(AbstractPotential):
    """A `Potential` of which a step sees a batch that somebody else chose.

    For kernels whose step looks at one batch: it is the same however often a step asks.

    Attributes:
        potential: of the whole data.
        x: inputs of the batch.
        y: their targets.
    """

    potential: Potential
    x: PyTree[Shaped[Array, "batch ..."]]
    y: PyTree[Shaped[Array, "batch ..."]]

    def __call__(self, position: Params) -> Float[Array, ""]:
        """See `AbstractPotential`: of all rows, if these are in memory."""
        return self.potential(position)

    def estimate(self, position: Params, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """See `AbstractPotential`: of the batch, whatever the key."""
        del key
        return self.potential.batch_energy(position, self.x, self.y)


class Tempered(AbstractPotential):
    """U / T: the density to the power 1 / T.

    Args:
        potential: U.
        temperature: T; 1 changes nothing, above 1 flattens, below sharpens.

    Raises:
        ValueError: for a temperature that is not positive.
    """

    potential: AbstractPotential
    temperature: float

    def __check_init__(self):
        if not self.temperature > 0:
            raise ValueError(
                f"`temperature` must be positive, got {self.temperature}: 1 leaves the "
                "density as it is."
            )

    def __call__(self, position: Params) -> Float[Array, ""]:
        """See `AbstractPotential`."""
        return self.potential(position) / self.temperature

    def estimate(self, position: Params, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """See `AbstractPotential`."""
        return self.potential.estimate(position, key=key) / self.temperature


def _outputs(network: Network, x: PyTree, state: eqx.nn.State | None) -> PyTree:
    return call_network(network, x, state).output


def _check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1, got {batch_size}.")


def _shapes_of(tree: PyTree, num_rows: int) -> PyTree:
    """Those of as many rows."""
    return jax.tree.map(
        lambda a: jax.ShapeDtypeStruct((num_rows, *a.shape[1:]), a.dtype), tree
    )
