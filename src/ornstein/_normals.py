r"""Standard normals by a keyed hash of each number's place.

Noise is most of what a step of stochastic dynamics costs beside its gradient, and on a
CPU most of that is the generator and the inverse error function. Here three words are
hashed from the key by JAX's own generator, and bits are those words and a counter
mixed by multiplications and shifts: a counter-based generator (Salmon et al., 2011)
whose mixing is triple32 (Wellons, 2018), with a word of the key before each product.
It is for simulation, not for secrets. ADR 28 has what it was tested with.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.custom_batching import custom_vmap
from jax.typing import DTypeLike

from ._types import Array, Float, PRNGKeyArray, RealScalar, Shaped, UInt32

_FEWEST, _MOST = 2**10, 2**24
"""Numbers that are drawn of weights at once, at least: fewer would be one more program.
At most: of more an array would be copied at a price, and memory may have no room."""

_MAX_COUNT = 2**32
"""Numbers that one key gives: a counter is a word."""


def standard_normal(
    key: PRNGKeyArray,
    shape: tuple[int, ...] = (),
    dtype: DTypeLike = jnp.float32,
    *,
    is_broadcast: bool = False,
) -> Shaped[Array, "*shape"]:
    r"""Independent standard normals, as `jax.random.normal` gives, in less time.

    Errors of the quantile are below 4e-8 plus 3e-6 of it, and the largest $|z|$ is 5.5.
    Complex numbers, those of more than 32 bits, and more than $2^{32}$ at once are
    `jax.random.normal`'s.

    Args:
        key: randomness: a key of any generator of JAX's.
        shape: of what is drawn.
        dtype: its type.
        is_broadcast: whether a number meets many others in the same program, as a
            network's bias does: each is then drawn once on CPUs, too.
    """
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    is_real = jnp.issubdtype(dtype, jnp.floating)
    if not is_real or jnp.finfo(dtype).bits > 32 or math.prod(shape) > _MAX_COUNT:
        return jax.random.normal(key, shape, dtype)
    drawn = normal_of_bits(random_bits(key, shape)).astype(dtype)
    if not is_broadcast or drawn.size == 0 or not isinstance(drawn, Tracer):
        return drawn
    return computed_once(drawn, jax.random.key_data(key))


def scaled_normal(
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    scale: RealScalar,
    dtype: DTypeLike = float,
) -> Shaped[Array, "*shape"]:
    """`jax.random.normal` times a number, without a program of its own for each shape.

    Compiling JAX's generator takes a second. Outside of a program, what is drawn is the
    beginning of a draw of a power of two, which has the same numbers where counters are
    those of places (`jax_threefry_partitionable`, the default); of more than 2**24
    it is drawn as it is.

    Args:
        key: randomness.
        shape: of what is drawn.
        scale: their standard deviation.
        dtype: of what is drawn.
    """
    num = math.prod(shape)
    if isinstance(key, Tracer) or num > _MOST or not _counts_places():
        return _normal(key, shape, scale, dtype)
    drawn = _normal(
        key, (max(_FEWEST, 1 << max(0, num - 1).bit_length()),), scale, dtype
    )
    if isinstance(drawn, Tracer):  # of a key that is a constant of a program
        return drawn[:num].reshape(shape)
    found = np.asarray(drawn)[:num].reshape(shape).copy()
    return jax.device_put(found, drawn.sharding if drawn.committed else None)


@custom_vmap
def computed_once(
    x: Shaped[Array, "*shape"], words: UInt32[Array, "..."]
) -> Shaped[Array, "*shape"]:
    """What is given, as an array of its own in the program of a CPU.

    Normals are sums and products alone, and XLA's CPU compiler puts these into whatever
    reads them: a bias that is drawn would be drawn anew for each pixel to which it is
    added. It does not look into branches, and does not know that this one is taken
    (`jax.lax.optimization_barrier` is gone before it fuses).

    Args:
        x: no derivative is taken of it.
        words: of the key that it was drawn by. The first decides the branch: devices
            among which rows are cut all have it, where a number of `x` would be sent.
            (Of keys that are cut among devices, so is the word.)
    """
    return _apart(x, words)


@jax.jit  # outside of a program, one for all calls
def _apart(x: Array, words: Array) -> Array:
    return jax.lax.platform_dependent(x, words, cpu=_branch, default=_as_it_is)


def _as_it_is(x: Array, words: Array) -> Array:
    del words
    return x


@computed_once.def_vmap
def _of_batch(
    axis_size: int, in_batched: list[bool], x: Array, words: Array
) -> tuple[Array, bool]:
    """A condition of its own for each would make all of them sums and products."""
    if axis_size == 0:
        return x, in_batched[0]
    return computed_once(x, words), in_batched[0]


def _branch(x: Array, words: Array) -> Array:
    first = words.ravel()[0].astype(jnp.float32)
    return jax.lax.cond(first == first, lambda x: x, jnp.negative, x)


@functools.partial(jax.jit, static_argnames=("shape", "dtype"))
def _normal(key, shape, scale, dtype):
    return jax.random.normal(key, shape, dtype) * scale


def _counts_places() -> bool:
    """Whether JAX's generator gives the beginning of a longer draw."""
    return getattr(jax.config, "jax_threefry_partitionable", False)


def random_bits(key: PRNGKeyArray, shape: tuple[int, ...]) -> UInt32[Array, "*shape"]:
    """Words of random bits, that of each place a hash of its number.

    Args:
        key: randomness.
        shape: of what is drawn.
    """
    word = jax.random.bits(key, (3,), jnp.uint32)
    x = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    for shift, factor, part in zip((17, 11, 15), _FACTORS, word, strict=True):
        x = x + part
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(14))


def normal_of_bits(bits: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""The normal whose sign is a word's last bit, and whose size its first 24 decide.

    With $y$ the probability of a larger size, $w = -\log(y (2 - y))$ and
    $x = 1 - y$, the quantile is $x$ times a smooth function of $w$ (Giles, 2012), here
    one polynomial in $\sqrt{w + 3}$.

    Args:
        bits: uniform words.
    """
    count = (bits >> np.uint32(8)).astype(jnp.int32)  # signed: converted in one step
    y = (count.astype(jnp.float32) + np.float32(0.5)) * np.float32(2**-24)
    root = jnp.sqrt(3 - _log(y * (2 - y)))
    size = (1 - y) * _polynomial(_QUANTILE, root - np.float32(3.1))
    sign = bits << np.uint32(31)
    return jax.lax.bitcast_convert_type(
        jax.lax.bitcast_convert_type(size, jnp.uint32) ^ sign, jnp.float32
    )


def _log(t: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The logarithm of positive normal numbers, to 2e-7: a third of XLA's time."""
    word = jax.lax.bitcast_convert_type(t, jnp.int32)
    exponent = (word - _THREE_QUARTERS) >> 23
    m = jax.lax.bitcast_convert_type(word - (exponent << 23), jnp.float32) - 1
    log_two = np.float32(math.log(2))
    return m * _polynomial(_LOG, m) + exponent.astype(jnp.float32) * log_two


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """By Horner's rule, from the highest power down."""
    total = jnp.float32(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + np.float32(coefficient)
    return total


_FACTORS = (0xED5AD4BB, 0xAC4C1B51, 0x31848BAB)
"""Of triple32."""

_THREE_QUARTERS = 0x3F400000
"""The bits of 0.75, from which a mantissa is counted: it is in [0.75, 1.5)."""

# Least largest relative errors, by reweighted least squares on Chebyshev polynomials:
# of the quantile over x for y from 2^-25 to 1, of log(1 + m) / m.
_QUANTILE = (
    8.67925449e-4,
    -8.48727125e-4,
    -5.51456729e-3,
    8.84969301e-3,
    7.63545699e-3,
    -3.24061025e-2,
    4.01023149e-2,
    -1.50630299e-2,
    -6.34304855e-2,
    1.68268084,
    3.40238094,
)
_LOG = (
    7.93790015e-2,
    -1.66838651e-1,
    2.07780035e-1,
    -2.50926033e-1,
    3.33072017e-1,
    -4.99973572e-1,
    1.00000235,
)
