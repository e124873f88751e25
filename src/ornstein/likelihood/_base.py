"""Likelihoods: what a network's output says about a target."""

import abc

import equinox as eqx
import jax
import numpyro.distributions as dist

from .._types import Array, Float, PyTree
from ._targets import Targets


class AbstractLikelihood(eqx.Module):
    """A conditional distribution of a target, given a network's output.

    It is a module, so that its scale may be learned beside the network's weights.
    """

    @abc.abstractmethod
    def distribution(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """The distribution of one row's target.

        Args:
            output: logits or locations, on the last axis; any axes before it.

        Returns:
            A NumPyro distribution whose batch shape is `lead`. Its event is a
            class number, or the vector of target columns.
        """

    @abc.abstractmethod
    def log_prob(
        self, output: Float[Array, "*lead outputs"], y: Targets
    ) -> Float[Array, "*lead"]:
        """Log likelihood of each row in nats, its target columns summed.

        Args:
            output: logits or locations; draws or other axes may come before rows.
            y: class numbers (rows,), or targets (rows, outputs). A vector of targets
                is one column.
        """

    @abc.abstractmethod
    def check_targets(self, y: Targets, num_outputs: int):
        """Refuse targets that this likelihood has no probability for.

        Args:
            y: every target of a data set: values, never a tracer.
            num_outputs: the length of the last axis of the network's output.

        Raises:
            ValueError: for no rows, a wrong type or shape, NaN or infinity, or a
                class outside the range.
        """

    @abc.abstractmethod
    def labels(self) -> PyTree[str]:
        """A tree like `self`: `"weights"` where training moves it, or `"frozen"`."""


class AbstractClassLikelihood(AbstractLikelihood):
    """A likelihood of classes, whose output is logits."""

    @abc.abstractmethod
    def probs(self, output: Float[Array, "*lead outputs"]) -> Float[Array, "..."]:
        """Class probabilities: what is averaged over draws. Logits never are."""

    @abc.abstractmethod
    def logits(self, probs: Float[Array, "..."]) -> Float[Array, "..."]:
        """An output with these probabilities: the inverse of `probs`."""

    @abc.abstractmethod
    def entropy(self, probs: Float[Array, "*lead outputs"]) -> Float[Array, "*lead"]:
        """Entropy in nats of the target with these probabilities."""

    def labels(self) -> PyTree[str]:
        """Nothing is learned here."""
        return jax.tree.map(lambda leaf: "frozen", self)
