"""How the learning rate changes over a run of known length.

A schedule here is optax's, stretched over the run: its times are fractions, so that
a longer run needs no new numbers.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import optax

from ._check import check_fraction


class AbstractSchedule(eqx.Module):
    """The shape of a learning rate over a run."""

    @abc.abstractmethod
    def build(self, peak: float, num_steps: int) -> optax.Schedule:
        """A map from the step number to the rate.

        Args:
            peak: the largest rate.
            num_steps: the length of the run.
        """


class Constant(AbstractSchedule):
    """The same rate throughout."""

    def build(self, peak: float, num_steps: int) -> optax.Schedule:
        """See `AbstractSchedule.build`."""
        del num_steps
        return optax.schedules.constant_schedule(peak)


class Cosine(AbstractSchedule):
    r"""Half a cosine from the peak to `final` times the peak.

    Attributes:
        warmup: fraction of the run over which the rate first rises from 0 in a
            straight line.
        final: the last rate, as a fraction of the peak.
    """

    warmup: float = 0.0
    final: float = 0.0

    def __check_init__(self) -> None:
        check_fraction("Cosine.warmup", self.warmup)
        check_fraction("Cosine.final", self.final)

    def build(self, peak: float, num_steps: int) -> optax.Schedule:
        """See `AbstractSchedule.build`."""
        num_rising = round(self.warmup * num_steps)
        fall = optax.schedules.cosine_decay_schedule(
            peak, max(num_steps - num_rising, 1), alpha=self.final
        )
        if num_rising == 0:
            return fall
        rise = optax.schedules.linear_schedule(0.0, peak, num_rising)
        return optax.schedules.join_schedules([rise, fall], [num_rising])


class Exponential(AbstractSchedule):
    """A geometric fall from the peak to `final` times the peak.

    Attributes:
        final: the last rate, as a fraction of the peak; positive.
    """

    final: float = 0.01

    def __check_init__(self) -> None:
        if not 0 < self.final <= 1:
            raise ValueError(
                f"`Exponential.final` must be in (0, 1], got {self.final}: it is the "
                "last rate as a fraction of the peak."
            )

    def build(self, peak: float, num_steps: int) -> optax.Schedule:
        """See `AbstractSchedule.build`."""
        return optax.schedules.exponential_decay(peak, num_steps, self.final)


class Step(AbstractSchedule):
    """The rate is multiplied by `factor` at each of the given times.

    Attributes:
        times: fractions of the run, rising.
        factor: of each drop.
    """

    times: tuple[float, ...] = (0.5, 0.75)
    factor: float = 0.1

    def __check_init__(self) -> None:
        for time in self.times:
            check_fraction("Step.times", time)

    def build(self, peak: float, num_steps: int) -> optax.Schedule:
        """See `AbstractSchedule.build`."""
        drops: dict[int, float] = {}
        for time in self.times:
            step = round(time * num_steps)
            drops[step] = drops.get(step, 1.0) * self.factor
        return optax.schedules.piecewise_constant_schedule(peak, drops)


class Linear(AbstractSchedule):
    """The peak until `start`, then a straight line to `final` times it at `stop`.

    With 0.5, 0.9 and 0.01: the schedule of implicit BNNs (Trinh et al. 2020).

    Attributes:
        start: fraction of the run at which the fall begins.
        stop: fraction of the run at which it ends.
        final: the last rate, as a fraction of the peak.
    """

    start: float = 0.5
    stop: float = 0.9
    final: float = 0.01

    def __check_init__(self) -> None:
        check_fraction("Linear.start", self.start)
        check_fraction("Linear.final", self.final)
        if not self.start < self.stop <= 1:
            raise ValueError(
                f"`Linear.stop` must be in (start, 1], got start={self.start} and "
                f"stop={self.stop}: both are fractions of the run."
            )

    def build(self, peak: float, num_steps: int) -> optax.Schedule:
        """See `AbstractSchedule.build`."""
        begin = round(self.start * num_steps)
        length = max(round(self.stop * num_steps) - begin, 1)
        return optax.schedules.linear_schedule(
            peak, self.final * peak, length, transition_begin=begin
        )


class Inverse(AbstractSchedule):
    r"""$\mathrm{peak} / (1 + \mathrm{rate} \cdot t)$ with $t$ from 0 to 1 over the run.

    Attributes:
        rate: how fast it falls; the last rate is `peak / (1 + rate)`.
    """

    rate: float = 10.0

    def __check_init__(self) -> None:
        if self.rate < 0:
            raise ValueError(
                f"`Inverse.rate` must not be negative, got {self.rate}: the last rate "
                "is peak / (1 + rate)."
            )

    def build(self, peak: float, num_steps: int) -> optax.Schedule:
        """See `AbstractSchedule.build`."""
        slope = self.rate / num_steps
        return lambda step: peak / (1.0 + slope * jnp.asarray(step, float))
