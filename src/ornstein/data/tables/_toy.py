"""One-dimensional regressions, with their gaps where a model should be unsure.

All but `cubic` are those of Xu et al.'s own code (`bayesian-sde`, `brax/utils/
datasets.py`), point for point in their inputs; for the cosines and square roots also
in their noise. Its test targets are without noise, and for the cosines at inputs that
were scaled twice; here the test rows are five times as many, where the training rows
are and with noise of their own, so that a test likelihood means what it says.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._assemble import assemble
from .._base import Data
from .._standardise import Standardisation


class Toy(NamedTuple):
    """y = f(x) + noise, for one f or for several at once.

    Attributes:
        description: one line for lists.
        functions: the curves; each has the same number of points.
        spans: for each curve, the intervals its inputs fill evenly, and how many
            training points each interval has.
        noise: standard deviation of the noise, in the units of y.
        fixed_x: mean and scale of the inputs, where the source fixes them; targets are
            then in its units too. Otherwise both are standardised.
        drawn: whether the inputs are drawn uniformly over their interval.
    """

    description: str
    functions: Sequence[Callable]
    spans: Sequence[Sequence[tuple[float, float, int]]]
    noise: float
    fixed_x: tuple[float, float] | None = None
    drawn: bool = False


def _cube(x):
    return x**3


def _minus_cos(x):
    return -np.cos(x)


def _root(x):
    return np.sqrt(x + 1)


def _minus_root(x):
    return -np.sqrt(x + 1)


_TWO_CLUSTERS = ((0.0, 2.0, 20), (6.0, 8.0, 20))

TOYS = {
    "toy/cos": Toy(
        "cos(x) at 40 points in two clusters, noise 0.1",
        (np.cos,),
        (_TWO_CLUSTERS,),
        noise=0.1,
        fixed_x=(4.0, 4.0),
    ),
    "toy/cos2": Toy(
        "cos(x) and -cos(x) at once, 40 points each in two clusters, noise 0.1",
        (np.cos, _minus_cos),
        (_TWO_CLUSTERS, _TWO_CLUSTERS),
        noise=0.1,
        fixed_x=(4.0, 4.0),
    ),
    # The name is the source's; the curves are its square roots.
    "toy/coscos": Toy(
        "sqrt(x + 1) and its negative at once, 10 points each, noise 0.1",
        (_root, _minus_root),
        (((0.0, 2.0, 5), (2.0, 4.0, 5)), ((1.0, 2.0, 5), (2.0, 4.0, 5))),
        noise=0.1,
        fixed_x=(0.0, 1.0),
    ),
    "toy/b20": Toy(
        "x^3 at 20 points of [-2, 2], noise 3",
        (_cube,),
        (((-2.0, -0.5, 10), (0.0, 2.0, 10)),),
        noise=3.0,
    ),
    # 56 points in the source too, whatever the name says.
    "toy/b40": Toy(
        "x^3 at 56 points of [-4, 4], noise 3",
        (_cube,),
        (((-4.0, -3.0, 20), (-2.5, -1.0, 8), (-1.0, 2.0, 8), (2.0, 4.0, 20)),),
        noise=3.0,
    ),
    "toy/b40gap": Toy(
        "x^3 at 40 points of [-4, 4] with gaps, noise 3",
        (_cube,),
        (((-4.0, -3.0, 10), (-2.5, -1.0, 10), (1.0, 2.0, 10), (3.0, 4.0, 10)),),
        noise=3.0,
    ),
    "toy/cubic": Toy(
        "x^3 at 30 points drawn over [-4, 4], noise 3",
        (_cube,),
        (((-4.0, 4.0, 30),),),
        noise=3.0,
        drawn=True,
    ),
}
"""The toy sets by name."""


def toy(name: str) -> Data:
    """One of `TOYS`, always with the same points.

    References:
        Xu, Chen, Li & Duvenaud, *Infinitely Deep Bayesian Neural Networks with
        Stochastic Differential Equations* (2022); for `cubic`, Hernández-Lobato &
        Adams, *Probabilistic Backpropagation* (2015), §5.1, who take 20 points.
    """
    definition = TOYS[name]
    x_scaling = y_scaling = None
    if definition.fixed_x is not None:
        mean, scale = definition.fixed_x
        x_scaling = Standardisation(np.array([mean]), np.array([scale]))
        y_scaling = Standardisation(np.array([0.0]), np.array([1.0]))
    return assemble(
        name,
        _points(definition, seed=0, times=1),
        _points(definition, seed=1, times=5),
        x_scaling=x_scaling,
        y_scaling=y_scaling,
    )


def _points(
    toy: Toy, *, seed: int, times: int
) -> tuple[Float[np.ndarray, "rows 1"], Float[np.ndarray, "rows 1"]]:
    """`times` as many points as the definition says, and their noisy targets."""
    rng = np.random.RandomState(seed)  # the source's generator: its noise, too
    xs, ys = [], []
    for function, spans in zip(toy.functions, toy.spans, strict=True):
        place = rng.uniform if toy.drawn else np.linspace
        x = np.concatenate([place(low, high, n * times) for low, high, n in spans])
        xs.append(x)
        ys.append(function(x) + toy.noise * rng.randn(len(x)))
    return np.concatenate(xs)[:, None], np.concatenate(ys)[:, None]
