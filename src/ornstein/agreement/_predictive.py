"""Predictive distributions on test rows, small enough to be kept, and their mixtures.

A distribution is masses of bins, for classes and real targets alike: rows of numbers
that sum to 1. Bins of a real target are many and narrow, and two are the tails.
"""

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._types import Float
from ..likelihood import AbstractClassLikelihood, AbstractLocationScaleLikelihood
from ..prediction import Prediction

_DRAWS_AT_ONCE = 25
_LEAST = float(np.finfo(np.float64).tiny)


class Predictive(NamedTuple):
    """What draws say together about test rows.

    Attributes:
        num_draws: of functions.
        masses: of classes, or of bins of the target, averaged over draws.
        density: at each row's target, averaged over draws; of classes, the mass.
        mean: over draws of the function's values: probabilities, or locations.
        sd: over draws of the same.
        spread: the predictive standard deviation, noise included; of classes empty.
    """

    num_draws: int
    masses: Float[np.ndarray, "rows bins"]
    density: Float[np.ndarray, " rows"]
    mean: Float[np.ndarray, "rows values"]
    sd: Float[np.ndarray, "rows values"]
    spread: Float[np.ndarray, "*rows_values"]

    def to_json(self, *, has_sd: bool) -> dict[str, Any]:
        """Compressed, the large ones in 16 bits.

        Errors are below 5e-4 of each mass, and masses below 3e-8 are none.

        Args:
            has_sd: keep `sd` too, which R-hat needs; else it comes back as zeros.
        """
        small: dict[str, np.ndarray] = {"spread": self.spread}
        if self.spread.size:  # else masses say it
            small |= {"mean": self.mean}
        kept = {name: packed(a.astype(np.float32)) for name, a in small.items()}
        # Its logarithm is wanted: small ones must not become 0.
        kept["density"] = packed(self.density.astype(np.float64))
        large = {"masses": self.masses} | ({"sd": self.sd} if has_sd else {})
        kept |= {name: packed(a.astype(np.float16)) for name, a in large.items()}
        return kept | {"num_draws": self.num_draws}

    @classmethod
    def from_json(cls, kept: dict[str, Any], y: np.ndarray) -> "Predictive":
        """What `to_json` made.

        Args:
            kept: its JSON.
            y: targets of the rows.
        """
        num_draws = kept["num_draws"]
        arrays = {k: unpacked(a) for k, a in kept.items() if k != "num_draws"}
        arrays.setdefault("mean", arrays["masses"])
        arrays.setdefault("sd", np.zeros_like(arrays["mean"]))
        if "density" not in arrays:
            arrays["density"] = arrays["masses"][np.arange(len(y)), y]
        return cls(num_draws=num_draws, **arrays)


def predictive(
    prediction: Prediction, y: np.ndarray, edges: np.ndarray | None
) -> Predictive:
    """The distribution that a prediction's draws make together.

    Args:
        prediction: with its draws.
        y: targets of its rows.
        edges: of bins, for real targets.
    """
    log_prob = np.asarray(prediction.log_prob(y), np.float64)
    outputs, likelihood = prediction.outputs, prediction.likelihood
    assert outputs is not None
    num_draws = len(outputs)
    if edges is None:
        assert isinstance(likelihood, AbstractClassLikelihood)
        masses = np.asarray(prediction.probs, np.float64)
        values = np.asarray(likelihood.probs(outputs), np.float64)
        spread = np.zeros(0)
    else:
        assert isinstance(likelihood, AbstractLocationScaleLikelihood)
        masses = _binned(likelihood, outputs, edges)
        values = np.asarray(outputs, np.float64)
        spread = np.sqrt(np.asarray(prediction.variance, np.float64))
    return Predictive(
        num_draws=num_draws,
        masses=masses,
        density=np.exp(log_prob),
        mean=values.mean(axis=0),
        sd=values.std(axis=0),
        spread=spread,
    )


def of_probabilities(
    probs: Float[np.ndarray, "rows classes"], y: np.ndarray
) -> Predictive:
    """A distribution over classes that came without its draws.

    Args:
        probs: of the classes.
        y: classes of the rows.
    """
    return Predictive(
        num_draws=0,
        masses=probs,
        density=probs[np.arange(len(y)), y],
        mean=probs,
        sd=np.zeros_like(probs),
        spread=np.zeros(0),
    )


def mixture(parts: Sequence[Predictive]) -> Predictive:
    """The distribution of all their draws together.

    Args:
        parts: of the same rows, each weighted by its number of draws.
    """
    weights = [part.num_draws for part in parts]
    average = lambda arrays: np.average(arrays, axis=0, weights=weights)
    mean = average([p.mean for p in parts])
    squares = [p.sd**2 + (p.mean - mean) ** 2 for p in parts]
    spread = parts[0].spread
    if spread.size:
        spread = np.sqrt(average([p.spread**2 + (p.mean - mean) ** 2 for p in parts]))
    return Predictive(
        num_draws=sum(part.num_draws for part in parts),
        masses=average([p.masses for p in parts]),
        density=average([p.density for p in parts]),
        mean=mean,
        sd=np.sqrt(average(squares)),
        spread=spread,
    )


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON, in its own type."""
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9))
    return {
        "type": array.dtype.str,
        "shape": list(array.shape),
        "data": data.decode("ascii"),
    }


def unpacked(kept: dict[str, Any]) -> np.ndarray:
    """What `packed` made, in double precision.

    Raises:
        ValueError: for anything else.
    """
    try:
        data = zlib.decompress(base64.b64decode(kept["data"]))
        found = np.frombuffer(data, np.dtype(kept["type"])).astype(np.float64)
        return found.reshape(kept["shape"])
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            "An array in a kept piece is damaged: take the file of pieces back from "
            "git, or remove the piece, and it is computed again."
        ) from error


def _binned(
    likelihood: AbstractLocationScaleLikelihood, outputs: Any, edges: np.ndarray
) -> Float[np.ndarray, "rows bins"]:
    """Masses between edges, and of both tails, averaged over draws."""
    num_draws, num_rows, _ = outputs.shape
    total = np.zeros((num_rows, len(edges) + 1))
    log_scale = jnp.asarray(likelihood.log_scale).reshape(-1, 1, 1)
    log_scale = jnp.broadcast_to(log_scale, (num_draws, 1, 1))
    points = jnp.asarray(edges, outputs.dtype)
    for start in range(0, num_draws, _DRAWS_AT_ONCE):
        some = slice(start, start + _DRAWS_AT_ONCE)
        one = eqx.tree_at(lambda one: one.log_scale, likelihood, log_scale[some])
        cdf = np.asarray(one.marginals(outputs[some]).cdf(points), np.float64)
        ends = np.zeros((*cdf.shape[:2], 1))
        total += np.diff(cdf, axis=-1, prepend=ends, append=ends + 1).sum(axis=0)
    return total / num_draws


def nll(found: Predictive, y_scale: float = 1.0) -> float:
    """Minus the mean log density of the targets, in their units."""
    log_prob = np.log(np.maximum(found.density, _LEAST))
    return math.log(y_scale) - float(np.mean(log_prob))
