"""Where a solve steps: fixed grids of ours, adaptive steps of diffrax."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import DTypeLike

from .._sentence import Option, OptionError
from .._types import Array, ArrayLike, Float, RealScalar

# How far dt may be from dividing an interval, relative to dt.
_DIVIDES = 1e-4


class Mesh(eqx.Module):
    """The steps of one solve on a fixed grid.

    Attributes:
        times: the grid.
        num_fine: Brownian increments in one step.
        stride: outputs lie at every `stride`-th grid time ...
        picks: ... of which these are wanted (`None`: all).
    """

    times: Float[Array, " steps_and_one"]
    num_fine: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)
    picks: tuple[int, ...] | None = eqx.field(static=True)

    @property
    def num_steps(self) -> int:
        """How many steps there are."""
        return self.times.shape[0] - 1


class AbstractStepsize(eqx.Module):
    """How long the steps are."""


class AbstractGridStepsize(AbstractStepsize):
    """Steps that are known before the solve."""

    @abc.abstractmethod
    def mesh(self, ts: Float[ArrayLike, " times"]) -> Mesh:
        """The grid for outputs at `ts`."""


class Fixed(AbstractGridStepsize):
    """Steps of one length.

    Attributes:
        dt: the step; it divides every interval between output times.
        noise_dt: Brownian increments are sums over this finer grid, which divides
            `dt`, so that solves at several `dt` (and one key and `noise_dt`) share one
            path. `None`: `dt` itself.
    """

    dt: float = eqx.field(static=True)
    noise_dt: float | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        _check_step("dt", self.dt)
        if self.noise_dt is not None:
            _check_step("noise_dt", self.noise_dt)
            if _ratio(self.dt, self.noise_dt) is None:
                raise ValueError(
                    f"`noise_dt` = {self.noise_dt} does not divide `dt` = {self.dt}; "
                    "choose `dt` as a multiple of it."
                )

    def mesh(self, ts: Float[ArrayLike, " times"]) -> Mesh:
        """The grid of multiples of `dt` from the first of `ts`."""
        if isinstance(ts, Tracer):
            raise TypeError(
                "`Fixed` needs output times that are known before tracing, got a "
                "traced array; pass a numpy array, or use `Grid`."
            )
        known = np.asarray(ts, dtype=np.float64)
        gaps = np.diff(known)
        rounding = float(np.finfo(np.float32).eps * np.max(np.abs(known)))
        counts = [_ratio(float(gap), self.dt, rounding) for gap in gaps]
        for gap, count in zip(gaps, counts, strict=True):
            if count is None:
                raise OptionError(
                    "{dt} {} does not divide the interval of length {:g} between "
                    "output times; try {dt} {}.",
                    self.dt,
                    gap,
                    gap / math.ceil(gap / self.dt),
                )
        steps = [count for count in counts if count is not None]
        stride = math.gcd(*steps)
        # Each time from the ends of its interval: the last is exactly the output time.
        pieces = [
            np.linspace(a, b, n, endpoint=False)
            for a, b, n in zip(known[:-1], known[1:], steps, strict=True)
        ]
        times = np.concatenate([*pieces, known[-1:]])
        ends = np.cumsum(steps) // stride - 1
        picks = None if len(ends) == sum(steps) // stride else tuple(map(int, ends))
        num_fine = 1 if self.noise_dt is None else _ratio(self.dt, self.noise_dt)
        assert num_fine is not None
        return Mesh(jnp.asarray(times), num_fine=num_fine, stride=stride, picks=picks)


class Grid(AbstractGridStepsize):
    """Steps from one time to the next, each interval cut into equal substeps.

    For observation times that are irregular, or known only inside `jit` or `vmap`.

    Attributes:
        ts: the grid; the output times must be among its entries. `None`: the output
            times are the grid.
        num_substeps: equal steps in each interval.
    """

    ts: Float[ArrayLike, " grid"] | None = None
    num_substeps: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.num_substeps < 1:
            raise ValueError(
                f"`num_substeps` must be at least 1, got {self.num_substeps}."
            )
        if self.ts is None or isinstance(self.ts, Tracer):
            return
        known = np.asarray(self.ts, dtype=np.float64)
        if not np.all(np.diff(known) > 0):
            raise ValueError(f"`Grid.ts` must increase strictly, got {self.ts}.")

    def mesh(self, ts: Float[ArrayLike, " times"]) -> Mesh:
        """The grid, each interval cut."""
        grid = jnp.asarray(ts if self.ts is None else self.ts, float)
        picks = None if self.ts is None else self._find(ts)
        fractions = jnp.arange(self.num_substeps, dtype=grid.dtype)[None]
        gaps = jnp.diff(grid)[:, None]
        inner = grid[:-1, None] + gaps * (fractions / self.num_substeps)
        times = jnp.concatenate([inner.reshape(-1), grid[-1:]])
        return Mesh(times, num_fine=1, stride=self.num_substeps, picks=picks)

    def _find(self, ts: Float[ArrayLike, " times"]) -> tuple[int, ...]:
        if isinstance(self.ts, Tracer) or isinstance(ts, Tracer):
            raise TypeError(
                "`Grid(ts=...)` needs grid and output times that are known before "
                "tracing; leave `ts` out to step along traced output times."
            )
        grid, wanted = np.asarray(self.ts), np.asarray(ts)
        near = np.argmin(np.abs(grid[:, None] - wanted), axis=0)
        absent = wanted[~np.isclose(grid[near], wanted, rtol=1e-6)]
        if absent.size or near[0] != 0 or near[-1] != len(grid) - 1:
            raise ValueError(
                "Output times must be among `Grid.ts` and share its ends "
                f"({grid[0]:g} and {grid[-1]:g}), got {wanted}; add the missing times "
                "to the grid."
            )
        return tuple(int(i) - 1 for i in near[1:])


class Adaptive(AbstractStepsize):
    """Steps chosen from an error estimate, by diffrax's PID controller.

    The Brownian path is a virtual Brownian tree (Li et al., 2020), so that the same
    key gives the same path at every tolerance. With noise, steps end at output times:
    between them a path would be smooth.

    Attributes:
        rtol: relative tolerance of one step.
        atol: absolute tolerance of one step.
        first_dt: the first step; `None` for a hundredth of the interval.
        max_steps: the solve fails beyond it, with noise beside one for each output.
        tree_tol: the shortest time that the path resolves, relative to the interval.
    """

    rtol: RealScalar = 1e-3
    atol: RealScalar = 1e-4
    first_dt: RealScalar | None = None
    max_steps: int = eqx.field(static=True, default=4096)
    tree_tol: RealScalar = 2.0**-14

    def __check_init__(self):
        for name in ("rtol", "atol"):
            _check_step(name, getattr(self, name))
        if self.first_dt is not None:
            _check_step("first_dt", self.first_dt)


def check_resolved(
    stepsize: AbstractStepsize, ts: Float[ArrayLike, " times"], dtype: DTypeLike
) -> None:
    """Refuse steps that have no length in the type that times are taken in.

    Args:
        stepsize: how the solve steps.
        ts: its output times; what is traced is left unchecked.
        dtype: of the state, and so of times.
    """
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((stepsize, ts))):
        return
    known = times = np.asarray(ts, np.float64)
    if isinstance(stepsize, AbstractGridStepsize):
        with jax.ensure_compile_time_eval():
            times = np.asarray(stepsize.mesh(ts).times)
    if np.all(np.diff(times.astype(dtype)) > 0):
        return
    _, exponent = math.frexp(np.max(np.abs(known)))
    spacing = float(jnp.finfo(dtype).eps) * 2.0 ** (exponent - 1)
    raise ValueError(
        f"Times from {known[0]} to {known[-1]} are taken in {jnp.dtype(dtype).name}, "
        f"whose numbers are up to {spacing:g} apart there, and some steps are shorter: "
        "subtract the first time from all of them, take longer steps, or give a state "
        "of higher precision."
    )


def _check_step(name: str, value: RealScalar) -> None:
    if isinstance(value, Tracer):
        return
    if not (math.isfinite(value) and value > 0):
        raise OptionError(
            "{} must be positive and finite, got {}.", Option(name), value
        )


def _ratio(long: float, short: float, rounding: float = 0.0) -> int | None:
    """How often `short` goes into `long`, or `None` if it does not."""
    count = round(long / short)
    if count < 1 or abs(count * short - long) > max(_DIVIDES * short, rounding):
        return None
    return count
