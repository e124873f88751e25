"""What the draws of a random function say together about new rows."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._tree import in_single
from .._types import Array, Float, Int, PRNGKeyArray, PyTree, Shaped
from ..data import Series
from ..likelihood import (
    AbstractClassLikelihood,
    AbstractLikelihood,
    AbstractLocationScaleLikelihood,
    OverTime,
    RowScores,
    Targets,
    fit_columns,
    mixture_log_prob,
    of_one_value,
    row_scores,
    unit_log_prob,
)
from ._quantile import least_level, mixture_points, mixture_quantile
from ._summary import Summary, summarise


class Prediction(eqx.Module):
    r"""The posterior predictive distribution of some rows, from draws.

    $p(y | x) \approx \tfrac{1}{S} \sum_s p(y | f_s(x))$: probabilities are averaged
    over draws, logits never.

    Attributes:
        outputs: each draw's output, draws first; `None` if they were not kept.
        likelihood: what an output says about a target.
        summary: means over draws; `None` where they do not exist.
    """

    outputs: PyTree[Float[Array, "draws rows ..."]] | None
    likelihood: AbstractLikelihood
    summary: Summary | None

    def __init__(
        self,
        outputs: PyTree[Float[Array, "draws rows ..."]] | None,
        likelihood: AbstractLikelihood,
        *,
        summary: Summary | None = None,
    ):
        """Args: see `Prediction`; without a summary it is computed from the draws."""
        if outputs is not None and summary is None:
            summary = summarise(likelihood, outputs)
        self.outputs = outputs
        self.likelihood = likelihood
        self.summary = summary

    @property
    def num_rows(self) -> int:
        """How many rows were predicted."""
        return self._shape[0]

    @property
    def num_outputs(self) -> int:
        """The length of the last axis of the network's output."""
        return self._shape[-1]

    @property
    def mean(self) -> Float[Array, "rows *times outputs"]:
        """Averaged class probabilities, or the predictive mean in target units.

        Raises:
            ValueError: the likelihood has no mean (Cauchy).
        """
        if self.summary is None:
            raise ValueError(
                f"`{self._name}` has no mean: read `prediction.median`, "
                "`prediction.interval(0.9)` or the draws in `prediction.outputs`."
            )
        return self.summary.mean

    @property
    def probs(self) -> Float[Array, "rows *times outputs"]:
        """Class probabilities averaged over draws (`Bernoulli`: of 1)."""
        self._require_classes("probs")
        return self.mean

    @property
    def aleatoric(self) -> Float[Array, "..."]:
        """Uncertainty that would remain with the network known.

        Mean entropy of each row (nats), or mean variance of each target. Of several
        yes-or-no columns the sum of theirs.

        Raises:
            ValueError: the likelihood has no variance (Cauchy, Student-t to df 2).
        """
        return self._uncertainty()[0]

    @property
    def epistemic(self) -> Float[Array, "..."]:
        """Uncertainty about the network.

        Mutual information of target and network for each row (nats), or the variance
        of the draws' means for each target (squared units: `predict_uncertainty` of the
        estimators has its square root). Of several yes-or-no columns the sum of each
        one's, which may be more than that of all together.

        Raises:
            ValueError: the likelihood has no variance (Cauchy, Student-t to df 2).
        """
        return self._uncertainty()[1]

    @property
    def entropy(self) -> Float[Array, " rows"]:
        """Entropy of the averaged class probabilities, nats: aleatoric + epistemic.

        Of several yes-or-no columns the sum of theirs.
        """
        return self._require_classes("entropy").entropy(self.mean)

    @property
    def variance(self) -> Float[Array, "rows *times outputs"]:
        """Predictive variance, squared target units: aleatoric + epistemic."""
        self._require_real("variance")
        aleatoric, epistemic = self._uncertainty()
        return aleatoric + epistemic

    @property
    def median(self) -> Float[Array, "rows *times outputs"]:
        """The predictive median: it exists for every regression likelihood."""
        return self.quantile(0.5)

    def quantile(
        self, q: float | Sequence[float] | Float[Array | np.ndarray, " levels"]
    ) -> Float[Array, "..."]:
        """Quantiles of each target's predictive distribution, noise included.

        For classes: quantiles over draws of each class's probability, which say how
        far the network's own uncertainty moves it.

        Args:
            q: one level above 0 and below 1, or several, which come first. Of numbers
                at least 4.8e-7 from either in single precision: near 1 twice or half
                the probability may be outside there, and beyond is rounding error.
        """
        levels = np.asarray(q, float)
        if levels.ndim == 1 and levels.size:
            return jnp.stack([self.quantile(level) for level in levels.tolist()])
        if levels.ndim or not 0 < levels < 1:
            raise ValueError(
                f"A quantile's level lies above 0 and below 1, got {q}: give one, or "
                "several in a row, such as [0.05, 0.95]."
            )
        if isinstance(self.likelihood, AbstractClassLikelihood):
            draws = self.likelihood.probs(self._require_draws("quantile"))
            return jnp.quantile(draws, jnp.asarray(q, draws.dtype), axis=0)
        likelihood = self._require_real("quantile")
        outputs = in_single(self._require_draws("quantile"))
        least = least_level(outputs.dtype)
        if not least <= levels <= 1 - least:
            raise ValueError(
                f"Level {float(levels)!r} is rounding error among numbers of type "
                f"{outputs.dtype}: give one from {least:.2g} to 1 - {least:.2g}, or an "
                f"interval of at most 1 - {2 * least:.1g}."
            )
        return mixture_quantile(likelihood, outputs, jnp.asarray(q, outputs.dtype))

    def points(
        self, num_points: int, *, rows: slice | Int[np.ndarray, " some"] = slice(None)
    ) -> Float[Array, "points rows *times outputs"]:
        """Points that stand for each target's predictive distribution in equal parts.

        Evenly spaced quantiles of every draw, noise included: no randomness, and cheap
        where `quantile` of many levels is not.

        Args:
            num_points: at least as many points; a multiple of the number of draws.
            rows: the rows to give them of, or their numbers.
        """
        likelihood = self._require_real("points")
        outputs = in_single(self._require_draws("points"))
        return mixture_points(likelihood, outputs[:, rows], num_points)

    def cdf(self, y: PyTree[Targets]) -> Float[Array, "rows *times outputs"]:
        """Each target's predictive distribution function at its value.

        Args:
            y: targets, (rows,) or (rows, outputs); or a `Series`, of which only what
                its mask shows means something.
        """
        likelihood = self._require_real("cdf")
        values = y.values if isinstance(y, Series) else y
        return _mixture_cdf(likelihood, self._require_draws("cdf"), values)

    def interval(
        self, level: float
    ) -> tuple[
        Float[Array, "rows *times outputs"], Float[Array, "rows *times outputs"]
    ]:
        """The central interval with this probability, noise included.

        For classes: of each class's probability over draws (see `quantile`).

        Args:
            level: 0.9 gives the 5 % and 95 % quantiles.
        """
        if not 0 < level < 1:
            raise ValueError(f"`level` must lie above 0 and below 1, got {level}.")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def log_prob(self, y: PyTree[Targets]) -> Float[Array, " rows"]:
        r"""$\log \tfrac{1}{S} \sum_s p(y | f_s(x))$ of each row, nats.

        Of a `Series` this is the density of the whole of it, to which the best draw
        alone contributes: it rises as draws are added, and is higher under a constant
        guess than under the true law. Compare by `row_scores` or `value_log_prob`.

        Args:
            y: class numbers (rows,), targets (rows,) or (rows, outputs), or a `Series`.
        """
        likelihood = self.likelihood
        if self.outputs is None and isinstance(likelihood, AbstractClassLikelihood):
            # Of a probability that rounds to 0 or 1 they are infinite, which NumPyro's
            # distributions refuse.
            most = jnp.finfo(self.mean.dtype).max / 4
            logits = jnp.clip(likelihood.logits(self.mean), -most, most)
            # One class, or one column: what is averaged is the whole distribution.
            if likelihood.distribution(logits).event_shape in ((), (1,)):
                log_prob = likelihood.log_prob(logits, y)
                return jnp.where(log_prob < -most / 2, -jnp.inf, log_prob)
        return _mixture_log_prob(likelihood, self._require_draws("log_prob"), y)

    def value_log_prob(self, y: PyTree[Targets]) -> Float[Array, "rows *times outputs"]:
        r"""$\log \tfrac{1}{S} \sum_s p(y_j | f_s(x))$ of each real target, nats.

        Of every value by itself, whatever the others of its row or series.

        Args:
            y: targets, (rows,) or (rows, outputs); or a `Series`, which has 0 where
                nothing was observed.
        """
        likelihood = self.likelihood
        if not isinstance(likelihood, OverTime):
            likelihood = self._require_real("value_log_prob")
        outputs = self._require_draws("value_log_prob")
        return _value_log_prob(likelihood, outputs, y)

    def row_scores(self, y: PyTree[Targets]) -> RowScores:
        """What `evaluate` takes its `nll` from: the log density of each row, nats.

        That of `log_prob`; but of a `Series` the sum of `value_log_prob` over observed
        values, and how many they are.

        Args:
            y: as for `log_prob`.
        """
        if not isinstance(self.likelihood, OverTime):
            log_prob = self.log_prob(y)
            return RowScores(log_prob, jnp.ones_like(log_prob))
        outputs = self._require_draws("row_scores")
        return _row_scores(self.likelihood, outputs, y)

    def sample(self, *, key: PRNGKeyArray) -> Shaped[Array, "draws rows ..."]:
        """One set of targets from each draw, noise included.

        Args:
            key: randomness of the noise.
        """
        outputs = self._require_draws("sample")
        return jnp.asarray(self.likelihood.distribution(outputs).sample(key))

    @property
    def _shape(self) -> tuple[int, ...]:
        if self.outputs is None:
            return self.mean.shape
        return jax.tree.leaves(self.outputs)[0].shape[1:]

    @property
    def _name(self) -> str:
        return type(self.likelihood).__name__

    def _uncertainty(self) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        summary = self.summary
        if summary is None or summary.aleatoric is None or summary.epistemic is None:
            raise ValueError(
                f"`{self._name}` has no variance to split into aleatoric and epistemic "
                "parts: read `prediction.interval(0.9)`, or fit a Gaussian or Laplace "
                "likelihood."
            )
        return summary.aleatoric, summary.epistemic

    def _require_draws(self, name: str) -> PyTree[Float[Array, "draws rows ..."]]:
        if self.outputs is None:
            raise ValueError(
                f"`{name}` needs the draws of a `{self._name}` prediction, which were "
                "not kept: call `predict` with `keep_draws=True`."
            )
        return self.outputs

    def _require_classes(self, name: str) -> AbstractClassLikelihood:
        if not isinstance(self.likelihood, AbstractClassLikelihood):
            raise ValueError(
                f"`{name}` needs a likelihood of classes, got `{self._name}`: read "
                "`mean`, `variance` or `interval` instead."
            )
        return self.likelihood

    def _require_real(self, name: str) -> AbstractLocationScaleLikelihood:
        likelihood = of_one_value(self.likelihood)
        if not isinstance(likelihood, AbstractLocationScaleLikelihood):
            raise ValueError(
                f"`{name}` needs a likelihood of real targets, got `{self._name}`: "
                "read `probs` and `entropy` for classes, or `outputs` for a custom one."
            )
        return likelihood


@eqx.filter_jit
def _mixture_cdf(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows *times outputs"],
    y: Targets,
) -> Float[Array, "rows *times outputs"]:
    cdf = likelihood.marginals(outputs).cdf(fit_columns(y, outputs))
    return jnp.mean(jnp.asarray(cdf), axis=0)


@eqx.filter_jit
def _mixture_log_prob(
    likelihood: AbstractLikelihood,
    outputs: PyTree[Float[Array, "draws rows ..."]],
    y: PyTree[Targets],
) -> Float[Array, " rows"]:
    return mixture_log_prob(likelihood.log_prob(outputs, y))


@eqx.filter_jit
def _value_log_prob(
    likelihood: AbstractLocationScaleLikelihood | OverTime,
    outputs: Float[Array, "draws rows *times outputs"],
    y: PyTree[Targets],
) -> Float[Array, "rows *times outputs"]:
    mixed = mixture_log_prob(likelihood.value_log_prob(outputs, y))
    return jnp.where(y.mask, mixed, 0) if isinstance(y, Series) else mixed


@eqx.filter_jit
def _row_scores(
    likelihood: AbstractLikelihood,
    outputs: PyTree[Float[Array, "draws rows ..."]],
    y: PyTree[Targets],
) -> RowScores:
    return row_scores(likelihood, unit_log_prob(likelihood, outputs, y), y)
