r"""Calibration errors of classifiers.

Rows are put into bins $B_b$ by confidence. With mean confidence and share of right
answers in a bin, $\mathrm{ECE} = \sum_b \tfrac{|B_b|}{N} |\mathrm{acc}(B_b) -
\mathrm{conf}(B_b)|$ (Guo et al., "On calibration of modern neural networks", ICML 2017,
eq. (3)), and the maximal error is the largest term without its weight (eq. (5)).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._tree import in_single
from .._types import Array, Bool, Float, Int
from ._arrays import AnyArray

_ROWS_A_SUM = 1_024


class Reliability(NamedTuple):
    """A reliability diagram's numbers.

    Attributes:
        edges: of the bins, from 0 to 1; a bin includes its upper edge.
        counts: rows in each bin.
        confidence: mean confidence in each bin; NaN where it is empty.
        accuracy: share of right answers in each bin; NaN where it is empty.
    """

    edges: Float[Array, " edges"]
    counts: Int[Array, " bins"]
    confidence: Float[Array, " bins"]
    accuracy: Float[Array, " bins"]


def reliability(
    probs: Float[AnyArray, "rows classes"],
    y: Int[AnyArray, " rows"],
    *,
    num_bins: int = 15,
) -> Reliability:
    """Confidence against accuracy in bins of equal width.

    Args:
        probs: class probabilities; the largest of a row is its confidence.
        y: class numbers.
        num_bins: how many bins.
    """
    return _reliability(probs, y, num_bins)


def ece(
    probs: Float[AnyArray, "rows classes"],
    y: Int[AnyArray, " rows"],
    *,
    num_bins: int = 15,
) -> Float[Array, ""]:
    """Expected calibration error over bins of equal width.

    Its expectation is above 0 for a calibrated model too, and grows with `num_bins`
    and with 1 / sqrt(rows): compare models on the same rows.

    Args:
        probs: class probabilities; the largest of a row is its confidence.
        y: class numbers.
        num_bins: how many bins.
    """
    return _ece(probs, y, num_bins)


def adaptive_ece(
    probs: Float[AnyArray, "rows classes"],
    y: Int[AnyArray, " rows"],
    *,
    num_bins: int = 15,
) -> Float[Array, ""]:
    """Expected calibration error over bins of equally many rows.

    Nixon et al., "Measuring calibration in deep learning" (2019), for the top class.
    Confident models put nearly all rows into one bin of `ece`; here each bin counts.
    Rows of equal confidence, which lie in several bins where there are many, count in
    each as the mean of them all.

    Args:
        probs: class probabilities; the largest of a row is its confidence.
        y: class numbers.
        num_bins: how many bins.
    """
    confidence, is_right = _top(probs, y)
    num_rows = confidence.shape[0]
    order = jnp.argsort(confidence)
    confidence = confidence[order]
    is_right = is_right[order].astype(confidence.dtype)
    is_new = jnp.diff(confidence, prepend=confidence[:1]) > 0
    of_group = functools.partial(
        jax.ops.segment_sum, segment_ids=jnp.cumsum(is_new), num_segments=num_rows
    )
    share = of_group(is_right) / of_group(jnp.ones_like(is_right))
    bins = jnp.arange(num_rows) * num_bins // num_rows
    return _error(confidence, share[jnp.cumsum(is_new)], bins, num_bins)


def classwise_ece(
    probs: Float[AnyArray, "rows classes"],
    y: Int[AnyArray, " rows"],
    *,
    num_bins: int = 15,
) -> Float[Array, ""]:
    """The mean over classes of the calibration error of that class's probability.

    Kull et al., "Beyond temperature scaling" (NeurIPS 2019), section 2.

    Args:
        probs: class probabilities.
        y: class numbers.
        num_bins: how many bins of equal width.
    """
    probs, y = in_single(probs), jnp.asarray(y)
    is_class = y[:, None] == jnp.arange(probs.shape[1])[None]

    def one_class(p, is_this):
        return _error(p, is_this, _equal_width(p, num_bins), num_bins)

    return jnp.mean(jax.vmap(one_class, in_axes=1)(probs, is_class))


def max_calibration_error(
    probs: Float[AnyArray, "rows classes"],
    y: Int[AnyArray, " rows"],
    *,
    num_bins: int = 15,
) -> Float[Array, ""]:
    """The largest gap of confidence and accuracy over bins with any rows.

    A bin with one row can decide it: read it beside `reliability(...).counts`.

    Args:
        probs: class probabilities; the largest of a row is its confidence.
        y: class numbers.
        num_bins: how many bins of equal width.
    """
    bins = reliability(probs, y, num_bins=num_bins)
    gaps = jnp.abs(bins.confidence - bins.accuracy)
    return jnp.max(jnp.where(bins.counts > 0, gaps, 0))


def resampled_ece(
    confidence: Float[AnyArray, "models rows"],
    is_right: Bool[AnyArray, "models rows"],
    *,
    num_bins: int = 15,
    num_resamples: int = 1_000,
) -> Float[np.ndarray, "samples models"]:
    """`ece` of several models, and the same of rows drawn again with replacement.

    Each resample has the same rows for all models, so that the standard deviation of a
    difference between two is its standard error over rows, paired; it is too large
    where bins are so well calibrated that noise decides the sign of their gaps. The
    mean of resamples is no estimate: an ECE of rows that were drawn twice is larger.

    Args:
        confidence: of each model, the largest class probability of each row.
        is_right: whether that class is the row's.
        num_bins: how many bins of equal width.
        num_resamples: how often rows are drawn again; the draws are always the same.

    Returns:
        of the rows as they are, then of each resample.

    References:
        Efron & Tibshirani (1993), "An introduction to the bootstrap", chapter 6.
    """
    # As `ece` has them: in double precision a confidence on an edge lies elsewhere.
    bins = np.asarray(_equal_width(in_single(confidence), num_bins))
    gaps = np.asarray(confidence, np.float64) - np.asarray(is_right)
    num_models, num_rows = gaps.shape
    rng = np.random.default_rng(0)
    found = np.empty((1 + num_resamples, num_models))
    for sample in range(1 + num_resamples):
        drawn = rng.integers(0, num_rows, num_rows) if sample else np.arange(num_rows)
        times = np.bincount(drawn, minlength=num_rows)
        for model in range(num_models):
            sums = np.bincount(bins[model], times * gaps[model], num_bins)
            found[sample, model] = np.abs(sums).sum() / num_rows
    return found


# Each compiled as one program rather than operation by operation.


@functools.partial(jax.jit, static_argnums=2)
def _reliability(probs, y, num_bins: int) -> Reliability:
    confidence, is_right = _top(probs, y)
    bins = _equal_width(confidence, num_bins)
    total = lambda values: _bin_sums(values.astype(confidence.dtype), bins, num_bins)
    counts = total(jnp.ones_like(confidence))
    sum_confidence, sum_right = total(confidence), total(is_right)
    return Reliability(
        jnp.asarray(_edges(num_bins)),
        counts.astype(int),
        sum_confidence / counts,
        sum_right / counts,
    )


@functools.partial(jax.jit, static_argnums=2)
def _ece(probs, y, num_bins: int) -> Float[Array, ""]:
    confidence, is_right = _top(probs, y)
    return _error(confidence, is_right, _equal_width(confidence, num_bins), num_bins)


def _top(
    probs: Float[AnyArray, "rows classes"], y: Int[AnyArray, " rows"]
) -> tuple[Float[Array, " rows"], Bool[Array, " rows"]]:
    probs = in_single(probs)
    return jnp.max(probs, axis=1), jnp.argmax(probs, axis=1) == jnp.asarray(y)


def _equal_width(confidence: Float[Array, "*rows"], num_bins: int):
    return jnp.clip(jnp.ceil(confidence * num_bins).astype(int) - 1, 0, num_bins - 1)


def _edges(num_bins: int) -> Float[np.ndarray, " edges"]:
    """Between the bins of `_equal_width`: numbers that lie in the one below."""
    numbers = np.arange(num_bins + 1, dtype=np.float32)
    edges = numbers / np.float32(num_bins)
    is_past = np.ceil(edges * np.float32(num_bins)) > numbers
    return np.where(is_past, np.nextafter(edges, np.float32(0)), edges)


def _bin_sums(values, bins, num_bins: int):
    """Of each bin, some rows at a time: a sum of many rows rounds at each of them."""
    num_parts = -(-values.shape[0] // _ROWS_A_SUM)
    fill = (0, num_parts * _ROWS_A_SUM - values.shape[0])
    in_parts = lambda a: jnp.pad(a, fill).reshape(num_parts, _ROWS_A_SUM)
    zeros = jnp.zeros(num_bins, values.dtype)
    of_part = lambda values, bins: zeros.at[bins].add(values)
    return jax.vmap(of_part)(in_parts(values), in_parts(bins)).sum(0)


def _error(confidence, is_right, bins, num_bins: int) -> Float[Array, ""]:
    gaps = confidence - is_right.astype(confidence.dtype)
    return jnp.sum(jnp.abs(_bin_sums(gaps, bins, num_bins))) / confidence.shape[0]
