"""A Bayesian neural network is a random function: the contract of them all."""

import abc
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Literal, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._tree import is_at
from .._types import Array, Float, PRNGKeyArray, PyTree
from ..network import SolveReport, batch_states
from ._posterior_parts import PosteriorParts

_Module = TypeVar("_Module")

WEIGHTS = "weights"
"""The label of a leaf that is trained as weights are."""
NOISE = "noise"
FROZEN = "frozen"
"""The label of a leaf that training leaves as it is."""

LogRatio: TypeAlias = Literal["shared", "rows"]
"""Whose log q / p a draw knows: of what all rows of a batch share, or of each row."""


class Draw(eqx.Module):
    """What one call of a random function on a batch gives.

    Attributes:
        output: the likelihood's parameters for each row: logits, means.
        kl: KL(q || p) in nats of what all examples share. It counts once per
            data set, however large the batch.
        local_kl: KL in nats of each example's own latents, which scales as its
            likelihood does; zeros for a function without any.
        state: batch statistics for the next call, or `None`.
        terms: what `kl` is made of, for logs: values in nats by name, whatever
            estimator `kl` itself comes from.
        local_terms: what `local_kl` is made of, for logs: values of each example in
            nats by name.
        report: of the differential equations solved for it, or `None`.
        log_ratio: "shared" if all rows met one draw, of which `kl` is the log density
            ratio log q / p with its whole gradient; "rows" if `local_kl` is that of
            each row's own; `None` for all else (closed forms, rows that meet different
            draws of what they share), with which importance weighting is no bound.
        energy: -log p in nats of points that have a prior beside what is random. A
            loss counts it as it counts `kl`, and no report of a KL or a bound has it.
    """

    _: KW_ONLY
    output: PyTree[Float[Array, "batch ..."]]
    kl: Float[Array, ""]
    local_kl: Float[Array, " batch"]
    state: eqx.nn.State | None = None
    terms: dict[str, Float[Array, ""]] = eqx.field(default_factory=dict)
    report: SolveReport | None = None
    local_terms: dict[str, Float[Array, " batch"]] = eqx.field(default_factory=dict)
    log_ratio: LogRatio | None = eqx.field(static=True, default=None)
    energy: Float[Array, ""] | None = None


class AbstractRandomFunction(eqx.Module):
    """A distribution over functions from inputs to a likelihood's parameters.

    Attributes:
        num_strata: of prediction: how many distinct pieces the posterior has (members
            of an ensemble, components of a mixture, stored samples); 1 otherwise.
        num_members: of training: how many functions `fit` trains side by side, its
            loss the mean of theirs; 1 for all but ensembles. A mixture is one function,
            whose components share its batch.
    """

    num_strata: eqx.AbstractVar[int]
    num_members: eqx.AbstractVar[int]

    @abc.abstractmethod
    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """Apply a draw to a batch.

        With `index=None` (training) rows may meet different functions. With an
        index (prediction) it is *one* function, the same for every row and every
        block of rows, decided by `(key, index)`; a family with strata uses stratum
        `index % num_strata`.

        Args:
            x: the batch; rows first.
            key: randomness.
            index: which draw, or `None` in training.
            state: batch statistics, for a model that has them.
        """

    @abc.abstractmethod
    def member(self, number: int | Array) -> "AbstractRandomFunction":
        """One of the functions that are trained side by side; itself if it is alone.

        It has a single member, and is trained as it would be by itself: with
        `index=None`, which is how rows come to meet noise of their own.

        Args:
            number: below `num_members`.
        """

    @abc.abstractmethod
    def posterior_parts(self) -> PosteriorParts:
        """What audits and diagnoses may ask; `PosteriorParts()` says nothing special.

        A new family answers here, and nobody else needs to know of it.
        """

    @abc.abstractmethod
    def labels(self) -> PyTree[str]:
        """A tree like `self` with `"weights"`, `"noise"` or `"frozen"` for each leaf.

        It is the only rule for what is trained, and by which optimiser.
        """


def total_kl(
    kl: Float[Array, "..."], terms: dict[str, Float[Array, "..."]]
) -> Float[Array, "..."]:
    """A KL as it is reported: the sum of its terms, or itself where it has none.

    Terms are closed forms where there are any, and `kl` is what a loss needs.

    Args:
        kl: `Draw.kl` or `Draw.local_kl`.
        terms: what it is made of, by name.
    """
    return sum(terms.values()) if terms else kl  # pyright: ignore[reportReturnType]


def draw_key(key: PRNGKeyArray, index: int | Array | None) -> PRNGKeyArray:
    """The key of draw `index`: a function of `(key, index)` and of nothing else."""
    return key if index is None else jax.random.fold_in(key, index)


def label_tree(
    module: _Module,
    label: str,
    *,
    frozen: Callable[[_Module], PyTree] | None = None,
) -> PyTree[str]:
    """`label` on every floating-point array of `module`, `"frozen"` elsewhere.

    The first values of batch statistics, which a module holds for `eqx.nn.State`, are
    frozen too. What counts is the place: an array that stands in a frozen place and in
    a trained one is trained there.

    Args:
        module: the tree to label.
        label: what trainable leaves are called.
        frozen: the module to what is not trained: a subtree, or a tuple of them.

    Raises:
        TypeError: if `frozen` is not a function.
    """
    if frozen is not None and not callable(frozen):
        raise TypeError(
            f"`frozen` is a function of the module to its parts, got a "
            f"`{type(frozen).__name__}`: write `frozen=lambda model: (model.prior,)`."
        )

    def still(module: _Module) -> PyTree:
        return batch_states(module), None if frozen is None else frozen(module)

    return jax.tree.map(
        lambda leaf, is_still: (
            label if eqx.is_inexact_array(leaf) and not is_still else FROZEN
        ),
        module,
        is_at(module, still),
    )


def no_local_kl(x: PyTree[Array]) -> Float[Array, " batch"]:
    """The `local_kl` of a function without latents of single examples."""
    return jnp.zeros(jax.tree.leaves(x)[0].shape[0])
