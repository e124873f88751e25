"""What is compared: rows, one network, one prior, and the bins of its targets.

A problem gives every method the same. Images are the first 1,000 rows of MNIST without
augmentation, and a convolutional network small enough that a gradient of all rows
takes milliseconds; tables are split 0 of UCI's sets, with one hidden layer of 50 units
and a learned noise scale.
"""

import math
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, Params, PRNGKeyArray, PyTree
from ..data import Split, load
from ..likelihood import AbstractLikelihood, Categorical, Gaussian
from ..nn import (
    MLP,
    Conv2d,
    FilterResponseNorm,
    Linear,
    ResNet,
    fan_ins,
    num_parameters,
    space_to_depth,
    tanh,
)
from ..potential import Potential
from ..prior import AbstractPrior, GaussianPrior, fan_in_prior
from ..recipe import ScaleName
from ._published import cifar10_rows

_NUM_BINS = 2000
_START_SCALE = 0.3
_NUM_CIFAR_VALIDATION = 5000
_NUM_ROWS, _NUM_VALIDATION, _NUM_TEST = 1000, 2000, 2000


class SmallConvNet(eqx.Module):
    """Two convolutions of stride 2 and a linear layer, for images of 28×28.

    Squares of 2×2 pixels become channels, so that 28 → 14 → 7 → 4 pixels a side; SiLU
    between layers, so that the energy is smooth; 4,034 parameters.

    Args:
        channels: of the two convolutions.
        key: randomness of the weights.
    """

    first: Conv2d
    second: Conv2d
    last: Linear

    def __init__(self, channels: tuple[int, int] = (8, 16), *, key: PRNGKeyArray):
        keys = jax.random.split(key, 3)
        half = partial(Conv2d, kernel_size=3, stride=2, padding=1)
        self.first = half(4, channels[0], key=keys[0])
        self.second = half(*channels, key=keys[1])
        self.last = Linear(16 * channels[1], 10, key=keys[2])

    def __call__(
        self, x: Float[Array, "rows height width 1"]
    ) -> Float[Array, "rows classes"]:
        """Logits."""
        y = jax.nn.silu(self.first(space_to_depth(x)))
        y = jax.nn.silu(self.second(y))
        return self.last(y.reshape(len(y), -1))


class Problem(NamedTuple):
    """Rows, and the model that all methods share but for the prior's scale.

    Attributes:
        name: of the data.
        train: rows that posteriors are of.
        validation: training rows that the prior's scale is chosen by. With
            `is_held_out` they are a part of `train`.
        remainder: `train`, without `validation`.
        test: rows that predictions are of.
        network: a new one, of a key.
        edges: of bins, for real targets; `None` for classes.
        y_scale: of one unit of the targets; 1 for classes.
        has_fan_in: whether a prior's scale is in units of 1/√fan-in.
        published: the reference's probabilities, where it is not sampled here.
    """

    name: str
    train: Split
    validation: Split
    remainder: Split
    test: Split
    network: Callable[..., Any]
    edges: np.ndarray | None
    y_scale: float = 1.0
    has_fan_in: bool = True
    published: Float[np.ndarray, "rows classes"] | None = None

    @property
    def likelihood(self) -> AbstractLikelihood:
        """Of a target; its scale is learned."""
        if self.edges is None:
            return Categorical()
        return Gaussian(_START_SCALE, learn_scale=True)

    @property
    def likelihood_prior(self) -> AbstractPrior | None:
        """Of the logarithm of a learned scale."""
        if self.edges is None:
            return None
        return GaussianPrior(1.0, mean=math.log(_START_SCALE))

    def prior(self, network: PyTree, scale: float) -> AbstractPrior:
        """Of the network's parameters."""
        if self.has_fan_in:
            return fan_in_prior(network, scale=scale)
        return GaussianPrior(scale)

    def prior_variances(self, params: Params, scale: float) -> Params:
        """One for each of a network's arrays, or for those of a part of it."""
        fan_in = lambda n: n if self.has_fan_in else 1
        return jax.tree.map(
            lambda n, a: jnp.asarray(scale**2 / fan_in(n), a.dtype),
            fan_ins(params),
            params,
        )

    def potential(self, prior_scale: float, *, key: PRNGKeyArray) -> Potential:
        """The posterior's energy, and a start: a new network's parameters."""
        network = self.network(key=key)
        return Potential(
            network,
            self.train,
            self.likelihood,
            prior=self.prior(network, prior_scale),
            likelihood_prior=self.likelihood_prior,
        )

    def to_choose(self) -> "Problem":
        """The same with validation rows to predict: what settings are chosen on."""
        return self._replace(train=self.remainder, test=self.validation)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What a reference must have in common with what is compared to it."""
        network = eqx.filter_eval_shape(self.network, key=jax.random.key(0))
        return {
            "train": _checksum(self.train),
            "test": _checksum(self.test),
            "num_test": len(self.test),
            "num_parameters": num_parameters(network),
        }


def _mnist() -> Problem:
    data = load("mnist")
    rows = lambda split, start, stop: split.rows(np.arange(start, stop))
    train = rows(data.train, 0, _NUM_ROWS)
    return Problem(
        name="mnist",
        train=train,
        validation=rows(data.train, _NUM_ROWS, _NUM_ROWS + _NUM_VALIDATION),
        remainder=train,
        test=rows(data.test, 0, _NUM_TEST),
        network=SmallConvNet,
        edges=None,
    )


def _table(name: str) -> Problem:
    data = load(f"uci/{name}")
    held = data.with_validation(0.1)
    assert held.validation is not None
    assert data.y_scaling is not None
    num_features = data.train.x.shape[1]
    low, high = float(np.min(data.train.y)), float(np.max(data.train.y))
    margin = (high - low) / 2
    return Problem(
        name=name,
        train=data.train.in_memory(),
        validation=held.validation,
        remainder=held.train.in_memory(),
        test=data.test,
        network=lambda *, key: MLP(num_features, 1, [50], activation=tanh, key=key),
        edges=np.linspace(low - margin, high + margin, _NUM_BINS - 1),
        y_scale=float(np.squeeze(data.y_scaling.scale)),
    )


def resnet20(*, key: PRNGKeyArray) -> ResNet:
    """As Izmailov et al. (2021) have it: filter response norm and SiLU."""
    return ResNet(20, 10, norm=FilterResponseNorm, activation=jax.nn.silu, key=key)


def _cifar10() -> Problem:
    data = load("cifar10")
    first = len(data.train) - _NUM_CIFAR_VALIDATION
    rows, probs = cifar10_rows(np.asarray(data.test.y))
    return Problem(
        name="cifar10",
        train=data.train.in_memory(),
        validation=data.train.rows(np.arange(first, len(data.train))),
        remainder=data.train.rows(np.arange(first)),
        test=data.test.rows(rows),
        network=resnet20,
        edges=None,
        has_fan_in=False,
        published=probs,
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "mnist": _mnist,
    "yacht": lambda: _table("yacht"),
    "concrete": lambda: _table("concrete"),
    "cifar10": _cifar10,
}
"""What methods are compared on."""

SCALES: dict[ScaleName, tuple[str, ...]] = {
    "quick": ("mnist", "yacht", "concrete"),
    "full": ("mnist", "yacht", "concrete"),
    "gpu": ("cifar10",),
}
"""On which of them at a scale."""

PRIOR_SCALES: dict[str, tuple[float, ...]] = {
    "mnist": (1.0, 1.5, 2.0, 3.0),
    "yacht": (1.0, 2.0),
    "concrete": (1.0, 2.0),
    "cifar10": (math.sqrt(0.2),),
}
"""Of which validation rows choose one: in units of 1/√fan-in, or as it is."""


def check_same(problem: Problem, fingerprint: dict[str, Any]) -> None:
    """Refuse a reference of other rows or of another network.

    Raises:
        ValueError: naming what differs.
    """
    own = problem.fingerprint
    differs = [name for name in own if fingerprint.get(name) != own[name]]
    if differs:
        raise ValueError(
            f"The reference of {problem.name} is of another "
            f"{' and another '.join(differs)} than these methods: take its pieces "
            "away, or bring back the data and network that it was sampled with."
        )


def _checksum(split: Split) -> int:
    leaves = jax.tree.leaves((split.x, split.y))
    arrays = [np.ascontiguousarray(leaf) for leaf in leaves]
    found = 0
    for array in arrays:
        found = zlib.crc32(repr((array.shape, array.dtype.str)).encode(), found)
        found = zlib.crc32(array.tobytes(), found)
    return found
