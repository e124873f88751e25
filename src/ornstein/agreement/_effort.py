"""How long methods work, and what they make."""

from collections.abc import Callable
from typing import NamedTuple

from ..prediction import Fitted
from ..recipe import ScaleName


class Effort(NamedTuple):
    """How long methods work.

    Attributes:
        batch_size: rows of a minibatch.
        num_steps: of one network's fit; mean field and MC dropout take four times as
            many.
        num_adam: whole-data gradients to a `map`; at 0 chains start at new networks.
        num_chains: of a sampler.
        num_sg_steps: of a chain of minibatches, half of them before its first sample.
        num_samples: kept of each chain.
        num_warmup: trajectories of a full-data chain before its first sample.
    """

    batch_size: int
    num_steps: int
    num_adam: int
    num_chains: int
    num_sg_steps: int
    num_samples: int
    num_warmup: int

    def times(self, share: float) -> "Effort":
        """A part of it, of the same batches and chains, from as good a start.

        A learned noise scale is smallest at an optimum: a step that is stable from half
        of the way to it may not be from there.
        """
        cut = lambda number: min(number, max(20, round(share * number)))
        return self._replace(
            num_steps=cut(self.num_steps),
            num_sg_steps=cut(self.num_sg_steps),
            num_samples=cut(self.num_samples),
            num_warmup=cut(self.num_warmup),
        )


_IMAGES = Effort(100, 5000, 1500, 4, 10_000, 100, 200)
_TABLE = Effort(64, 50_000, 20_000, 4, 100_000, 100, 300)
_QUICK_TABLE = Effort(64, 2000, 5000, 2, 4000, 20, 100)

EFFORTS: dict[tuple[str, ScaleName], Effort] = {
    ("mnist", "quick"): Effort(100, 500, 500, 2, 1000, 20, 40),
    ("mnist", "full"): _IMAGES,
    ("yacht", "quick"): _QUICK_TABLE,
    ("yacht", "full"): _TABLE,
    ("concrete", "quick"): _QUICK_TABLE,
    ("concrete", "full"): _TABLE,
    ("cifar10", "gpu"): Effort(128, 40_000, 0, 1, 80_000, 40, 0),
}
"""By problem and scale."""


class Approximation(NamedTuple):
    """What a method made.

    Attributes:
        fitted: what `predict` takes.
        num_draws: that its predictive distribution is of.
        num_gradients: that it took, in gradients of all rows.
        spared_seconds: that starts took before, for another method, and not again.
    """

    fitted: Fitted
    num_draws: int
    num_gradients: float
    spared_seconds: float = 0.0


Approximate = Callable[..., Approximation]
"""`(problem, prior_scale, effort, *, key, **setting)` to what the method made."""
