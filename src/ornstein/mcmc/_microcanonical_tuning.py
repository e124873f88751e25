r"""MILE's tuning of microcanonical Langevin dynamics: a step size, then a length.

Sommer et al. (2025), after Robnik et al. (2023). With $\Delta$ a step's error in energy
and v the variance of it that is wanted for each of d dimensions,
$\xi = \Delta^2 / (d v)$ grows as $\varepsilon^6$, and
$\varepsilon \leftarrow \langle \xi / \varepsilon^6 \rangle^{-1/6}$ with a running mean
that forgets, and that counts a step less the further $\xi$ is from 1.

That mean over dimensions says nothing of a few that are narrow: one of 50 that was a
tenth as wide as the others kept a third of its variance or less. So from the second
phase on (before it, long steps help a chain to leave where it began) a step turns the
stiff directions by `max_phase` at most, $\varepsilon \sqrt{\lambda / (d - 1)}$ in
radians, with
$\lambda = \langle |\delta g|^2 \rangle / \langle \delta g \cdot \delta q \rangle$
of the gradient's changes from step to step: the mean of curvatures weighted by
themselves, from gradients that are there. The integrator breaks at a phase of 2.55.

The warm-up has three phases: in the first (3/5) the step size is found, in the second
(1/5) also the variances, at whose end $L = \sqrt{\sum \mathrm{Var}}$; in the third
(1/5) the chain runs as it will, and at its end $L = 0.4\, \varepsilon \tau$ with $\tau$
the steps for each effective sample, averaged over dimensions.
"""

import operator

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Bool, Float, Int, Params
from ._base import Stage

_END_OF_STEP_SIZE, _END_OF_VARIANCE = 0.6, 0.8
_NUM_EFFECTIVE = 100
_DECAY = (_NUM_EFFECTIVE - 1) / (_NUM_EFFECTIVE + 1)
_TRUST = 1.5
_SHRINK = 0.8
"""Of a step size at which a step left the finite numbers."""
_LENGTH_FACTOR = 0.4
_SHORT, _NOTHING, _GROW = 0.3, 1e-3, 1.1
"""A step of less than this phase, with less than this part of the error that is wanted,
is followed by one this much longer."""
_NUM_BATCHES = 10


class Moments(eqx.Module):
    """A running mean and sum of squares around it, of weighted positions.

    Attributes:
        weight: of all of them.
        mean: of each number.
        squares: weighted, around the mean.
    """

    weight: Float[Array, ""]
    mean: Params
    squares: Params

    @classmethod
    def none(cls, like: Params) -> "Moments":
        """Of nothing."""
        zeros = jax.tree.map(jnp.zeros_like, like)
        dtype = jax.tree.leaves(like)[0].dtype
        return cls(jnp.zeros((), dtype), zeros, zeros)

    def add(self, value: Params, weight: Float[Array, ""]) -> "Moments":
        """Those with one more."""
        total = self.weight + weight
        part = weight / jnp.where(total > 0, total, 1.0)
        away = jax.tree.map(jnp.subtract, value, self.mean)
        mean = jax.tree.map(lambda m, a: m + part.astype(a.dtype) * a, self.mean, away)
        more = lambda s, a, x, m: s + weight.astype(a.dtype) * a * (x - m)
        squares = jax.tree.map(more, self.squares, away, value, mean)
        return Moments(total, mean, squares)

    def variance(self) -> Params:
        """Of each number."""
        total = jnp.where(self.weight > 0, self.weight, 1.0)
        return jax.tree.map(lambda s: s / total.astype(s.dtype), self.squares)


class Tuning(eqx.Module):
    r"""What the warm-up remembers.

    Attributes:
        unit: of step sizes here, the first one: sixth powers of small ones underflow.
        weight: of the steps in the running mean.
        mean: their $\Delta^2 / (d \varepsilon^6)$, times that weight.
        bend: $|\delta g|^2$ of the gradient's changes, likewise summed.
        turn: $\delta g \cdot \delta q$, likewise.
        largest: step size that is not known to leave the finite numbers.
        phase: 0, 1 or 2.
        moments: of positions in this phase; with weights of step sizes in the second.
        batch: the number of the batch of the third phase.
        in_batch: positions of it.
        batches: the means of those before it.
    """

    unit: Float[Array, ""]
    weight: Float[Array, ""]
    mean: Float[Array, ""]
    bend: Float[Array, ""]
    turn: Float[Array, ""]
    largest: Float[Array, ""]
    phase: Int[Array, ""]
    moments: Moments
    batch: Int[Array, ""]
    in_batch: Moments
    batches: Moments


def start_tuning(step_size: Float[Array, ""], position: Params) -> Tuning:
    """Nothing seen yet."""
    zero, none = jnp.zeros_like(step_size), Moments.none(position)
    return Tuning(
        unit=step_size,
        weight=zero,
        mean=zero,
        bend=zero,
        turn=zero,
        largest=jnp.full_like(step_size, jnp.inf),
        phase=jnp.zeros((), jnp.int32),
        moments=none,
        batch=jnp.zeros((), jnp.int32),
        in_batch=none,
        batches=none,
    )


class Change(eqx.Module):
    """From one place of a chain to the next.

    Attributes:
        position: δq.
        gradient: δg, of the potential energy.
    """

    position: Params
    gradient: Params


def tune_step_size(
    tuning: Tuning,
    step_size: Float[Array, ""],
    energy_change: Float[Array, ""],
    change: Change,
    is_divergent: Bool[Array, ""],
    stage: Stage,
    *,
    variances: tuple[float, float],
    max_phase: float | None,
    dim: int,
) -> tuple[Tuning, Float[Array, ""]]:
    """One step of the running mean, in the first two phases.

    Args:
        tuning: what was seen.
        step_size: of the step that was made.
        energy_change: its error.
        change: from where it began to where it ended.
        is_divergent: whether it was taken back.
        stage: where it is in the warm-up.
        variances: of the energy a dimension, at the start and at the end of the phases.
        max_phase: of the stiff directions, radians a step; `None` for any.
        dim: d.

    Returns:
        What was seen with it, and the next step size.
    """
    over = jnp.clip(stage.part / _END_OF_VARIANCE, 0.0, 1.0).astype(step_size.dtype)
    wanted = variances[0] + (variances[1] - variances[0]) * over
    bend = _DECAY * tuning.bend + _product(change.gradient, change.gradient, step_size)
    turn = _DECAY * tuning.turn + _product(change.gradient, change.position, step_size)
    is_stiff = (bend > 0) & (turn > 0)
    time = jnp.sqrt((dim - 1) * jnp.where(is_stiff, turn / bend, 1.0))

    xi = energy_change**2 / (dim * wanted) + 1e-8
    # Errors of short steps are the arithmetic's, which the mean would long remember.
    is_short = is_stiff & (step_size < _SHORT * time) & (xi < _NOTHING)
    trust = jnp.exp(-0.5 * (jnp.log(xi) / (6 * _TRUST)) ** 2)
    trust = jnp.where(is_divergent | is_short, 0.0, trust)
    weight = _DECAY * tuning.weight + trust
    ratio = tuning.unit / step_size
    mean = _DECAY * tuning.mean + trust * xi * wanted * ratio**6
    largest = jnp.where(
        is_divergent, jnp.minimum(_SHRINK * step_size, tuning.largest), tuning.largest
    )
    is_known = (weight > 0) & (mean > 0)
    rate = jnp.where(is_known, mean, 1.0) / jnp.where(is_known, weight, 1.0) / wanted
    found = jnp.where(is_known, tuning.unit * rate ** (-1 / 6), step_size)
    found = jnp.where(is_short, jnp.maximum(found, _GROW * step_size), found)
    if max_phase is not None:
        is_limited = is_stiff & (stage.part >= _END_OF_STEP_SIZE)
        found = jnp.where(is_limited, jnp.minimum(found, max_phase * time), found)
    found = jnp.minimum(found, largest)
    is_over = stage.part >= _END_OF_VARIANCE
    keep = lambda new, old: jnp.where(is_over, old, new)
    tuning = eqx.tree_at(
        lambda t: (t.weight, t.mean, t.bend, t.turn, t.largest),
        tuning,
        (
            *(keep(weight, tuning.weight), keep(mean, tuning.mean)),
            *(keep(bend, tuning.bend), keep(turn, tuning.turn), largest),
        ),
    )
    # What diverges after the phases is too large all the same.
    return tuning, jnp.where(is_over, jnp.minimum(step_size, largest), found)


def tune_length(
    tuning: Tuning,
    position: Params,
    step_size: Float[Array, ""],
    length: Float[Array, ""],
    is_divergent: Bool[Array, ""],
    stage: Stage,
) -> tuple[Tuning, Float[Array, ""]]:
    r"""Count a position, and set L at the ends of the second and the third phase.

    Effective samples are counted by batch means: $\tau$ = n Var(means) / Var, of ten
    batches of n steps, so that no path need be kept. It is at most about n: a chain
    that hardly moves in the third phase is given a tenth of it.

    Args:
        tuning: what was seen.
        position: q after the step.
        step_size: of the step.
        length: L.
        is_divergent: whether it was taken back.
        stage: where it is in the warm-up.

    Returns:
        What was seen with it, and L.
    """
    part = stage.part
    phase = (part >= _END_OF_STEP_SIZE).astype(jnp.int32)
    phase += (part >= _END_OF_VARIANCE).astype(jnp.int32)
    is_new = phase != tuning.phase
    total = _sum(tuning.moments.variance())
    spread = jnp.sqrt(total).astype(length.dtype)
    is_found = is_new & (phase == 2) & (spread > 0) & jnp.isfinite(spread)
    length = jnp.where(is_found, spread, length)
    none = Moments.none(position)
    moments = _where(is_new, none, tuning.moments)
    one = jnp.ones_like(step_size)
    weight = jnp.where(phase == 2, one, jnp.where(is_divergent, 0 * one, step_size))
    moments = _where(phase > 0, moments.add(position, weight), moments)

    over = (part - _END_OF_VARIANCE) / (1 - _END_OF_VARIANCE)
    batch = jnp.clip((over * _NUM_BATCHES).astype(jnp.int32), 0, _NUM_BATCHES - 1)
    is_closed = (batch != tuning.batch) & (tuning.in_batch.weight > 0)
    closed = tuning.batches.add(tuning.in_batch.mean, one)
    batches = _where(is_closed, closed, tuning.batches)
    in_batch = _where(is_closed, none, tuning.in_batch)
    in_batch = _where(phase == 2, in_batch.add(position, one), in_batch)
    last = batches.add(in_batch.mean, one)
    tau = _steps_per_effective(moments, last)
    by_tau = _LENGTH_FACTOR * step_size * tau.astype(length.dtype)
    is_end = stage.is_last & (last.weight >= _NUM_BATCHES) & jnp.isfinite(by_tau)
    length = jnp.where(is_end, by_tau, length)
    tuning = eqx.tree_at(
        lambda t: (t.phase, t.moments, t.batch, t.in_batch, t.batches),
        tuning,
        (phase, moments, batch, in_batch, batches),
    )
    return tuning, length


def _steps_per_effective(moments: Moments, batches: Moments) -> Float[Array, ""]:
    """Their mean over the numbers that moved at all; at least 1."""
    # n for each batch, and the variance of few means is of one less.
    size = moments.weight / jnp.maximum(batches.weight - 1, 1.0)

    def tau(between, within):
        has_moved = within > 0
        ratio = size * between / jnp.where(has_moved, within, 1.0)
        return jnp.where(has_moved, jnp.maximum(ratio, 1.0), 0.0), has_moved

    pairs = [
        tau(b, w)
        for b, w in zip(
            jax.tree.leaves(batches.variance()),
            jax.tree.leaves(moments.variance()),
            strict=True,
        )
    ]
    counts = _sum([has_moved.astype(size.dtype) for _, has_moved in pairs])
    return _sum([t for t, _ in pairs]) / jnp.maximum(counts, 1.0)


def _where(condition: Bool[Array, ""], one: Moments, other: Moments) -> Moments:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


def _product(a: Params, b: Params, like: Float[Array, ""]) -> Float[Array, ""]:
    """The inner product of two trees."""
    return _sum(jax.tree.map(jnp.multiply, a, b)).astype(like.dtype)


def _sum(tree) -> Float[Array, ""]:
    return jax.tree.reduce(operator.add, jax.tree.map(jnp.sum, tree))
