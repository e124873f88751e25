r"""Coordinates of a path: numbers that are independent N(0, 1) a priori.

The prior's path is $w_t = m + e^{-\theta t} (w_0 - m) + \sigma N_t$, where $N$ is the
Ornstein-Uhlenbeck process of unit diffusion that starts at 0. At the times of a grid
$N$ is a linear map of finitely many normals: $N_{t_k} = \sum_j C_{kj} \xi_j$. The
coordinates decide C, and a network over $\xi$ is the network over paths. A latent
path has no exact transition: its solver takes the increments of the Brownian motion.

A normal q over $\xi$ changes finitely many coordinates, so that its law of paths is
absolutely continuous to the prior's, and $\mathrm{KL} = \tfrac12 \sum_j (\mu_j^2 +
s_j^2 - 1 - \ln s_j^2)$. For a shift ($s = 1$) that is $\tfrac12 \int_0^1 h'^2 dt$,
Cameron and Martin's, with $h = \sum_j \mu_j S_j$: the path KL of the drift
$\sigma h'$.
"""

import abc
import itertools
import math
import numbers

import equinox as eqx
import numpy as np

from ..._sentence import Choice, OptionError
from ..._types import Float
from ._grid_times import fitting_steps, places_among


class AbstractPathCoordinates(eqx.Module):
    """What the coordinates of a path are."""

    @abc.abstractmethod
    def on_grid(
        self, times: Float[np.ndarray, " grid"], window: tuple[float, float]
    ) -> "AbstractPathCoordinates":
        """These coordinates of a model that is solved on a grid.

        Args:
            times: the grid: of depths from 0 to 1, or of a latent path's times.
            window: the depths or times between which there is noise.

        Raises:
            ValueError: for coordinates that such a solve cannot have.
        """

    @abc.abstractmethod
    def count(self, window: tuple[float, float]) -> int:
        """How many numbers each weight's path has."""

    @abc.abstractmethod
    def matrix(
        self,
        times: Float[np.ndarray, " grid"],
        rate: float,
        window: tuple[float, float],
    ) -> Float[np.ndarray, "grid coordinates"]:
        r"""C: from coordinates to $N$ at the grid's times.

        Args:
            times: of the solve, from 0 to 1.
            rate: $\theta$.
            window: the depths between which there is noise.

        Raises:
            ValueError: for a grid that the coordinates do not fit.
        """

    @abc.abstractmethod
    def units(
        self, times: Float[np.ndarray, " grid"], window: tuple[float, float]
    ) -> Float[np.ndarray, "steps coordinates"]:
        r"""From coordinates to the standardised increments of the Brownian motion.

        $B_{t_{k+1}} - B_{t_k} = \sqrt{\Delta_k} \sum_j U_{kj} \xi_j$. Where every step
        lies in the window and $U U^\top = I$, they are those of Brownian motion.

        Args:
            times: of the solve.
            window: the times between which there is noise.

        Raises:
            ValueError: for a grid that the coordinates do not fit.
        """


class GridIncrements(AbstractPathCoordinates):
    r"""The standardised increments between the times of a grid: exact there.

    $N_{t_{k+1}} = e^{-\theta \Delta} N_{t_k} + \sqrt{(1 - e^{-2 \theta \Delta}) / 2
    \theta}\,\xi_{k+1}$. A solve may step along the same grid, or a coarser one whose
    times are among its times.

    Attributes:
        times: of the grid, from 0 to 1 or, of a latent path, from its first time to its
            last; `None` for the solver's own.

    Raises:
        ValueError: for fewer than two times, or times that do not increase.
    """

    times: tuple[float, ...] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.times is None:
            return
        own = np.asarray(self.times, np.float64)
        is_grid = own.ndim == 1 and len(own) > 1 and np.all(np.isfinite(own))
        if not is_grid or np.any(np.diff(own) <= 0):
            raise ValueError(
                f"`times` must be two or more that increase, got {self.times}: leave "
                "it out for those of the solver, or give "
                "`tuple(np.linspace(0.0, 1.0, 9))`."
            )

    def on_grid(
        self, times: Float[np.ndarray, " grid"], window: tuple[float, float]
    ) -> "GridIncrements":
        """See `AbstractPathCoordinates`."""
        if self.times is None:
            return GridIncrements(tuple(map(float, times)))
        own = np.asarray(self.times, np.float64)
        if places_among(own, times[[0, -1]]) is None:
            raise ValueError(
                f"The increments are those from {own[0]:g} to {own[-1]:g}, and the "
                f"solve runs from {times[0]:g} to {times[-1]:g}: give `times` that "
                "have both among them, or leave them out."
            )
        self._near(times, window)
        return self

    def count(self, window: tuple[float, float]) -> int:
        """See `AbstractPathCoordinates`."""
        return int(np.sum(_is_noisy(np.asarray(self.times), window)))

    def matrix(
        self,
        times: Float[np.ndarray, " grid"],
        rate: float,
        window: tuple[float, float],
    ) -> Float[np.ndarray, "grid coordinates"]:
        """See `AbstractPathCoordinates`."""
        own, near = np.asarray(self.times, np.float64), self._near(times, window)
        return _integrated(own, self._own_units(window), rate)[near]

    def units(
        self, times: Float[np.ndarray, " grid"], window: tuple[float, float]
    ) -> Float[np.ndarray, "steps coordinates"]:
        """See `AbstractPathCoordinates`: sums, of a solve's longer steps."""
        own = np.asarray(self.times, np.float64)
        units, near = self._own_units(window), self._near(times, window)
        if len(near) == len(own):
            return units
        moved = np.sqrt(np.diff(own))[:, None] * units
        spans = itertools.pairwise(near)
        sums = np.stack([moved[begin:end].sum(axis=0) for begin, end in spans])
        return sums / np.sqrt(np.diff(own[near]))[:, None]

    def _near(
        self, times: Float[np.ndarray, " grid"], window: tuple[float, float]
    ) -> np.ndarray:
        """Where a solve's times are among one's own."""
        own = np.asarray(self.times, np.float64)
        near = places_among(own, times)
        if near is None:
            steps = ", ".join(f"{step:.6g}" for step in fitting_steps(own, window))
            fitting = Choice(
                f"`Fixed(dt)` with dt one of {steps}", f"{{dt}} one of {steps}"
            )
            raise OptionError(
                "The increments are those of {} steps, and a solve of {} steps has "
                "times between theirs: use {}; or {}, which serve any step.",
                len(own) - 1,
                len(times) - 1,
                fitting if steps else "the steps that they were made with",
                Choice("`LevyCiesielski` modes", "{path_modes} from the start"),
            )
        return near

    def _own_units(self, window: tuple[float, float]) -> np.ndarray:
        noisy = _is_noisy(np.asarray(self.times, np.float64), window)
        units = np.zeros((len(noisy), int(noisy.sum())))
        units[noisy] = np.eye(int(noisy.sum()))
        return units


class LevyCiesielski(AbstractPathCoordinates):
    r"""The first modes of Brownian motion, which are the same for any grid.

    $B_t = \xi_0 t + \sum_{n \ge 0} \sum_{k < 2^n} \xi_{nk} S_{nk}(t)$ with $S_{nk}$
    Schauder's triangle on $[k 2^{-n}, (k + 1) 2^{-n}]$, of height $2^{-n/2 - 1}$; in a
    window of depth, on the window. Modes beyond the first J are left out, so that the
    prior is that of the paths which J modes make: all paths of a grid of J steps, if J
    is a power of 2. Each step's increment is scaled as the exact transition of the
    Ornstein-Uhlenbeck process is.

    Attributes:
        num_modes: J; 1, 2, 4, 8 are whole levels.

    References:
        Lévy (1948) on stochastic processes and Brownian motion; Ciesielski (1961),
        "Hölder conditions for realizations of Gaussian processes".
    """

    num_modes: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        is_count = isinstance(self.num_modes, numbers.Integral)
        if not is_count or self.num_modes < 1:
            raise ValueError(
                f"`num_modes` must be a whole number from 1, got {self.num_modes!r}; "
                "for weights that do not move use `without_noise(model)`."
            )

    def on_grid(
        self, times: Float[np.ndarray, " grid"], window: tuple[float, float]
    ) -> "LevyCiesielski":
        """See `AbstractPathCoordinates`."""
        num_noisy = int(_is_noisy(times, window).sum())
        if self.num_modes > num_noisy:
            needed = (window[1] - window[0]) / self.num_modes
            raise OptionError(
                "A solve with {} steps in its noise sees at most as many modes, and {} "
                "is {}: use {}, or {}.",
                num_noisy,
                Choice("`num_modes`", "{path_modes}"),
                self.num_modes,
                Choice(f"`Fixed({needed:g})`", f"{{dt}} {needed:g}"),
                Choice(f"`LevyCiesielski({num_noisy})`", f"{{path_modes}} {num_noisy}"),
            )
        return self

    def count(self, window: tuple[float, float]) -> int:
        """See `AbstractPathCoordinates`."""
        del window
        return self.num_modes

    def matrix(
        self,
        times: Float[np.ndarray, " grid"],
        rate: float,
        window: tuple[float, float],
    ) -> Float[np.ndarray, "grid coordinates"]:
        """See `AbstractPathCoordinates`."""
        return _integrated(times, self.units(times, window), rate)

    def units(
        self, times: Float[np.ndarray, " grid"], window: tuple[float, float]
    ) -> Float[np.ndarray, "steps coordinates"]:
        """See `AbstractPathCoordinates`."""
        begin, end = window
        length = end - begin
        inside = np.clip((times - begin) / length, 0.0, 1.0)
        modes = [_schauder(j, inside) for j in range(self.num_modes)]
        brownian = math.sqrt(length) * np.stack(modes, axis=1)
        return np.diff(brownian, axis=0) / np.sqrt(np.diff(times))[:, None]


def _is_noisy(
    times: Float[np.ndarray, " grid"], window: tuple[float, float]
) -> np.ndarray:
    """Of each step, whether it lies in the window."""
    begin, end = window
    middle = (times[:-1] + times[1:]) / 2
    return (middle > begin) & (middle < end)


def _integrated(
    times: Float[np.ndarray, " grid"],
    units: Float[np.ndarray, "steps coordinates"],
    rate: float,
) -> Float[np.ndarray, "grid coordinates"]:
    """N at the grid's times, from its standardised increments, by exact transitions."""
    steps = np.diff(times)
    decay = np.exp(-rate * steps)
    spread = steps if rate == 0 else -np.expm1(-2 * rate * steps) / (2 * rate)
    rows = [np.zeros(units.shape[1])]
    for k, unit in enumerate(units):
        rows.append(decay[k] * rows[-1] + math.sqrt(spread[k]) * unit)
    return np.stack(rows)


def _schauder(number: int, t: Float[np.ndarray, " times"]) -> np.ndarray:
    """Mode `number` of Brownian motion on [0, 1]: t, then triangles by level."""
    if number == 0:
        return t
    level = number.bit_length() - 1
    place = number - 2**level
    distance = np.abs(2.0**level * t - place - 0.5)
    return 2 ** (-level / 2 - 1) * np.clip(1 - 2 * distance, 0.0, None)
