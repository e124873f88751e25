"""Heavy-tailed noise."""

import functools
import math

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import ndtr
from numpyro.distributions.util import validate_sample

from .._types import Array, ArrayLike, Float
from ._location_scale import (
    AbstractLocationScaleLikelihood,
    location_scale,
    log_of_scale,
)

_FARTHEST = 1e15  # whose square is finite in float32, and its tail 0
_FEW_DF = 20.0
"""Up to which the series is short; from which it is close to a normal variable."""
_MANY_DF = 100.0  # from which Stirling's series is exact in double precision


class StudentT(AbstractLocationScaleLikelihood):
    r"""Heavy-tailed noise: $(y - f) / \sigma$ is Student-t with $\nu$ degrees.

    Args:
        df: $\nu$, positive. The variance exists above 2, the mean above 1.
        scale: $\sigma$, in the units of the targets; one, or one for each output.
            It is not the standard deviation.
        learn_scale: train $\log \sigma$ with the network; `df` stays fixed.
    """

    log_scale: Float[Array, "..."]
    learn_scale: bool = eqx.field(static=True)
    tail_index: float = eqx.field(static=True)

    def __init__(
        self,
        df: float | int,
        scale: ArrayLike,
        *,
        learn_scale: bool = False,
    ):
        if not (math.isfinite(df) and df > 0):
            raise ValueError(
                f"`df` must be positive and finite, got {df}: use `Gaussian` for the "
                "limit of many degrees of freedom."
            )
        self.log_scale = log_of_scale(scale)
        self.learn_scale = learn_scale
        self.tail_index = float(df)

    def marginals(self, output: Float[Array, "*lead outputs"]) -> dist.Distribution:
        """Student-t variables."""
        loc, scale = location_scale(output, self.scale)
        df = jnp.full_like(loc, self.tail_index)
        return _StudentT(df, loc, scale, tail_index=self.tail_index)


class _StudentT(dist.StudentT):
    """NumPyro's, with the density and distribution function of one number of degrees.

    NumPyro's own distribution function takes a hundred times as long, and is less
    exact; its density's constant is a difference of large numbers, which in single
    precision is lost with many degrees.
    """

    pytree_aux_fields = ("tail_index",)

    def __init__(self, df, loc, scale, *, tail_index: float):
        self.tail_index = tail_index
        dist.StudentT.__init__(self, df, loc, scale)

    @validate_sample
    def log_prob(self, value: ArrayLike) -> Float[Array, "..."]:
        """Log density in nats."""
        df = self.tail_index
        loc, scale = jnp.asarray(self.loc), jnp.asarray(self.scale)
        t = (jnp.asarray(value) - loc) / scale
        kernel = -0.5 * (df + 1) * jnp.log1p(t**2 / df)
        return kernel + _log_density_at_0(df) - jnp.log(scale)

    def cdf(self, value: ArrayLike) -> Float[Array, "..."]:
        """The share below `value`."""
        loc, scale = jnp.asarray(self.loc), jnp.asarray(self.scale)
        t = (jnp.asarray(value) - loc) / scale
        return standard_t_cdf(t, self.tail_index)


def _log_density_at_0(df: float) -> float:
    r"""$\log \Gamma(a + 1/2) - \log \Gamma(a) - \tfrac12 \log(2 \pi a)$, $a = \nu/2$.

    Of many degrees by a series in $1/a$: the difference cancels in double precision.
    """
    a = df / 2
    if df < _MANY_DF:
        ratio = math.lgamma(a + 0.5) - math.lgamma(a)
        return ratio - 0.5 * math.log(2 * math.pi * a)
    b = a**-2
    return -0.5 * math.log(2 * math.pi) - (1 / 8 - b * (1 / 192 - b / 640)) / a


def standard_t_cdf(t: Float[Array, "..."], df: float) -> Float[Array, "..."]:
    r"""$F(t)$ of Student's t, to a few units of rounding.

    Up to 20 degrees by the incomplete beta function's series in $x \le 1/2$, all of
    whose terms are positive. With $r = \min(|t|, \sqrt \nu) / \max(|t|, \sqrt \nu)$,
    $x = r^2 / (1 + r^2)$, $c^2 = \nu / (\nu + t^2)$ the tail where $|t| > \sqrt \nu$ is

    $$\tfrac{c^\nu}{2 B(\nu/2, 1/2)} \sum_n \tfrac{(1/2)_n}{n! (\nu/2 + n)} x^n,$$

    and elsewhere the part from 0 to $|t|$ is

    $$\tfrac{c^\nu \sqrt x}{B(\nu/2, 1/2)} \sum_n \tfrac{((\nu+1)/2)_n}{(3/2)_n} x^n.$$

    Of more degrees by Hill's normal variable, to $10^{-7}$ and better.

    Args:
        t: any.
        df: $\nu$.

    References:
        Abramowitz & Stegun (1964), 26.5.4 and 26.5.5; Hill (1970), "Algorithm 395:
        Student's t-distribution".
    """
    if df > _FEW_DF:
        return ndtr(_normal_of(t, df))
    tail, centre = _coefficients(df, float(jnp.finfo(t.dtype).eps))
    root, size = math.sqrt(df), jnp.abs(t)
    is_far = size > root
    r = jnp.where(is_far, root / jnp.where(is_far, size, 1.0), size / root)
    x = r**2 / (1 + r**2)
    total = jnp.zeros_like(t)
    for of_tail, of_centre in zip(reversed(tail), reversed(centre), strict=True):
        total = total * x + jnp.where(is_far, of_tail, of_centre)
    log_r = jnp.where(is_far, jnp.log(jnp.where(is_far, r, 1.0)), 0.0)
    power = jnp.exp(df * (log_r - 0.5 * jnp.log1p(r**2)))
    part = total * power * jnp.where(is_far, 1.0, r / jnp.sqrt(1 + r**2))
    below = jnp.where(is_far, part, 0.5 - part)
    return jnp.where(t < 0, below, 1 - below)


def _normal_of(t: Float[Array, "..."], df: float) -> Float[Array, "..."]:
    """A normal variable that is as probable: Hill (1970), of many degrees."""
    t = jnp.clip(t, -_FARTHEST, _FARTHEST)
    a = df - 0.5
    b = 48 * a**2
    y = a * jnp.log1p(t**2 / df)
    much = -(((0.4 * y + 3.3) * y + 24) * y + 85.5) / (0.8 * y**2 + 100 + b)
    # sqrt(y), whose slope at 0 would be NaN, is t times this.
    is_zero = t == 0
    safe = jnp.where(is_zero, 1.0, t)
    part = jnp.sqrt(a * jnp.log1p(safe**2 / df)) / jnp.abs(safe)
    return t * jnp.where(is_zero, math.sqrt(a / df), part) * (1 + (y + 3 + much) / b)


@functools.cache
def _coefficients(df: float, eps: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of both series, up to terms at 1/2 that no longer change either sum."""
    a = df / 2
    beta = math.exp(math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5))
    tail, centre = [0.5 / beta / a], [1 / beta]
    pochhammer, sums, is_whole = 1.0, [tail[0], centre[0]], False
    while not is_whole:
        n = len(tail)
        pochhammer *= (n - 0.5) / n
        tail.append(0.5 / beta * pochhammer / (a + n))
        centre.append(centre[-1] * (a + n - 0.5) / (n + 0.5))
        terms = (tail[-1] / 2.0**n, centre[-1] / 2.0**n)
        sums = [s + term for s, term in zip(sums, terms, strict=True)]
        falls = (a + n + 0.5) / (n + 1.5) < 1.5  # what follows is 4 of this term
        small = all(4 * t < eps / 8 * s for s, t in zip(sums, terms, strict=True))
        is_whole = falls and small
    return tuple(tail), tuple(centre)
