"""Predictions summed up as chains run, so that nothing grows with the chains."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._mesh import fingerprint
from .._types import Array, Float, Params, PyTree
from ..likelihood import AbstractLikelihood
from ..network import Network, as_network, call_network
from ..prediction import Prediction, Summary, summarise
from ..train import check_positive


class RunningPrediction:
    """What every sample of `sample` predicts, averaged as the chains run.

    For chains whose samples would fill a disk: means over all samples stay, and of the
    samples themselves some, evenly spread, from which R-hat and other predictions are.
    In double precision and sample by sample, so that chains that were interrupted end
    in the same bits as others.

    Args:
        x: inputs, rows first.
        y: their targets, for `log_likelihood`; or `None`.
        store_every: of each chain's samples each so many-th is stored, too.

    Example:
        ```python
        x, y = data.test.x, data.test.y
        running = orn.sampling.RunningPrediction(x, y, store_every=100)
        samples = orn.sample(..., num_samples=1_000_000, running=running)
        running.prediction.mean, running.log_likelihood
        ```

    Raises:
        ValueError: for a `store_every` below 1.
    """

    def __init__(self, x: PyTree, y: Any = None, *, store_every: int = 1):
        check_positive(store_every=store_every)
        self.x = jax.tree.map(jnp.asarray, x)
        self.y = None if y is None else jnp.asarray(y)
        self.store_every = store_every
        self.sums: dict[str, np.ndarray] = {}
        self._sampled: Any = None

    @property
    def num_draws(self) -> int:
        """Samples of all chains that were summed up."""
        return int(self.sums.get("count", 0))

    @property
    def prediction(self) -> Prediction:
        """The mean over all samples, as `predict(keep_draws=False)` has it.

        Raises:
            ValueError: before `sample` has kept a sample.
        """
        self._check_begun()
        mean, inner = self.sums["mean"], self.sums.get("inner")
        if "squares" in self.sums:
            outer = self.sums["squares"] / self.sums["count"]
        elif inner is not None:  # of classes
            of_mean = self._sampled[1].entropy(jnp.asarray(mean, jnp.float32))
            outer = np.maximum(np.asarray(of_mean, np.float64) - inner, 0.0)
        else:
            outer = None
        single = lambda a: None if a is None else jnp.asarray(a, jnp.float32)
        mean, inner, outer = map(single, (mean, inner, outer))
        assert mean is not None
        return Prediction(None, self._sampled[1], summary=Summary(mean, inner, outer))

    @property
    def log_likelihood(self) -> Float[np.ndarray, " rows"]:
        """The log of each target's likelihood averaged over all samples, nats.

        Raises:
            ValueError: without targets, or before `sample` has kept a sample.
        """
        self._check_begun()
        if "largest" not in self.sums:
            raise ValueError(
                "There are no targets: give `RunningPrediction(x, y)` to learn their "
                "likelihood."
            )
        total = np.log(self.sums["exponentials"]) + self.sums["largest"]
        return total - np.log(self.sums["count"])

    @property
    def described(self) -> list[Any]:
        """What chains that go on must agree on."""
        return [self.store_every, *fingerprint((self.x, self.y))]

    def begin(
        self, network: Network, likelihood: AbstractLikelihood, position: Params
    ) -> None:
        """Start from nothing, for samples of this network.

        Args:
            network: without what is sampled.
            likelihood: of the targets, without what of it is sampled.
            position: of one chain, for shapes.

        Raises:
            ValueError: for inputs or targets that it does not take.
        """
        self._sampled = network, likelihood
        like = eqx.filter_eval_shape(_said, self._sampled, position, self.x, self.y)
        summary, log_prob = like
        if summary is None:
            raise ValueError(
                f"`{type(likelihood).__name__}` has no mean, and `running` "
                "keeps nothing else: store the samples instead."
            )
        zeros = lambda a: np.zeros(a.shape, np.float64)
        self.sums = {"count": np.zeros((), np.float64), "mean": zeros(summary.mean)}
        if summary.aleatoric is not None:
            self.sums["inner"] = zeros(summary.aleatoric)
            if summary.mean.shape == summary.aleatoric.shape:  # of numbers
                self.sums["squares"] = zeros(summary.mean)
        if log_prob is not None:
            self.sums["largest"] = zeros(log_prob) - np.inf
            self.sums["exponentials"] = zeros(log_prob)

    def add(self, positions: PyTree[np.ndarray]) -> None:
        """Some more samples of each chain.

        Args:
            positions: chains, then samples, first.
        """
        num_chains, num = jax.tree.leaves(positions)[0].shape[:2]
        for sample in range(num):  # in one order, however many come at once
            for chain in range(num_chains):
                one = jax.tree.map(lambda a, c=chain, s=sample: a[c, s], positions)
                self._add_one(*_said(self._sampled, one, self.x, self.y))

    def _add_one(self, summary: Summary | None, log_prob: Array | None) -> None:
        assert summary is not None  # or `begin` had refused it
        sums = self.sums
        sums["count"] = sums["count"] + 1
        change = np.asarray(summary.mean, np.float64) - sums["mean"]
        sums["mean"] = sums["mean"] + change / sums["count"]
        if "squares" in sums:  # of changes from the mean before and after: Welford
            left = np.asarray(summary.mean, np.float64) - sums["mean"]
            sums["squares"] = sums["squares"] + change * left
        if "inner" in sums:
            change = np.asarray(summary.aleatoric, np.float64) - sums["inner"]
            sums["inner"] = sums["inner"] + change / sums["count"]
        if log_prob is not None:
            new = np.asarray(log_prob, np.float64)
            largest = np.maximum(sums["largest"], new)
            # A likelihood of nothing is a term of nothing, also before any other.
            least = np.where(np.isfinite(largest), largest, 0.0)
            kept = np.exp(sums["largest"] - least) * sums["exponentials"]
            sums["exponentials"] = kept + np.exp(new - least)
            sums["largest"] = largest

    def _check_begun(self) -> None:
        if self.num_draws == 0:
            raise ValueError(
                "No sample was summed up yet: give `sample(..., running=...)` this."
            )


def since_stored(
    pending: dict[str, np.ndarray], info: dict[str, np.ndarray], first: int, every: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What a kernel said since each stored sample's last, as of a thinned chain.

    Args:
        pending: by name, of each chain what was said since the last that is stored, of
            what adds up: nothing at first.
        info: of the next samples, chains first.
        first: the first of those that is stored.
        every: from one that is to the next.

    Returns:
        What was said of those that are stored, and what is pending then.
    """
    said, left = {}, {}
    for name, steps in info.items():
        said[name] = steps[:, first::every]
        is_flag = name == "is_divergent"
        if not is_flag and not np.issubdtype(steps.dtype, np.integer):
            continue
        before = pending.get(name, np.zeros_like(steps[:, 0]))
        whole = np.concatenate([before[:, None].astype(steps.dtype), steps], axis=1)
        ends = range(first + 2, whole.shape[1] + 1, every)
        total = np.any if is_flag else np.sum
        pieces = [total(a, axis=1) for a in np.split(whole, ends, axis=1)]
        *done, left[name] = (a.astype(steps.dtype) for a in pieces)
        if done:
            said[name] = np.stack(done, axis=1)
    return said, left


@eqx.filter_jit
def _said(
    sampled: tuple[Network, AbstractLikelihood],
    position: Params,
    x: PyTree,
    y: Array | None,
) -> tuple[Summary | None, Array | None]:
    """What one sample predicts, and its log likelihood of each target."""
    params, scale = position
    network = as_network(eqx.combine(params, sampled[0]))
    likelihood = eqx.combine(scale, sampled[1])
    output = call_network(network, x).output
    summary = summarise(likelihood, jax.tree.map(lambda a: a[None], output))
    return summary, None if y is None else likelihood.log_prob(output, y)
