"""Which solves the increments of a grid serve: sums of them, and no others."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from functions.small_model import X as ROWS, small_model

from ornstein.cli._flags import said as said_by_cli
from ornstein.functions import (
    GridIncrements,
    Integrator,
    WeightPrior,
    WhitenedSDEBNN,
    whiten,
    with_solver,
)
from ornstein.functions.depth._grid_times import fitting_steps, places_among
from ornstein.sde import Fixed, Grid

X = jnp.asarray(ROWS)
WHOLE = (0.0, 1.0)
UNEVEN = (0.0, 0.1, 0.4, 0.5, 0.8, 1.0)


def network(stepsize, coordinates=None, window=WHOLE) -> WhitenedSDEBNN:
    how = Integrator(stepsize=stepsize)
    model = small_model(prior=WeightPrior(window=window), integrator=how)
    return whiten(model, coordinates)


def said(call) -> str:
    with pytest.raises(ValueError, match="has times between") as found:
        call()
    return str(found.value)


def test_an_uneven_grid_names_steps_that_fit():
    """And they do. Catches (seen) steps of a grid of as many equal ones: 0.2."""
    made = network(Fixed(0.5), GridIncrements(UNEVEN))
    for dt in (0.25, 0.2, 0.1):
        error = said(lambda dt=dt: with_solver(made, stepsize=Fixed(dt)))
        assert "increments are those of 5 steps" in error
        assert "use `Fixed(dt)` with dt one of 0.5, 1; or `LevyCiesielski`" in error
    for dt in (0.5, 1.0):
        assert with_solver(made, stepsize=Fixed(dt))(X).shape == (6, 1)


def test_steps_that_fit_go_through_the_ends_of_the_noise():
    """Of three substeps before 0.25 and three behind it. Catches (seen) dt = 0.5, which
    steps over 0.25, and dt = 1/6, of which there are as many."""
    made = network(Grid(num_substeps=3), window=(0.25, 1.0))
    error = said(lambda: with_solver(made, stepsize=Grid(num_substeps=2)))
    assert "with dt one of 0.25; or" in error
    assert with_solver(made, stepsize=Fixed(0.25))(X).shape == (6, 1)
    made = network(Grid(num_substeps=3), window=(0.3, 1.0))
    error = said(lambda: with_solver(made, stepsize=Grid(num_substeps=2)))
    assert "use the steps that they were made with; or" in error
    assert with_solver(made, stepsize=Grid(num_substeps=1))(X).shape == (6, 1)


def test_a_command_line_is_told_in_its_words():
    made = network(Fixed(0.25))
    with pytest.raises(ValueError, match="increments are those") as found:
        with_solver(made, stepsize=Fixed(0.125))
    assert "use --dt one of 0.25, 0.5, 1; or --path-modes" in said_by_cli(found.value)


@pytest.mark.parametrize("seed", range(20))
def test_steps_that_fit_are_all_that_there_are(seed):
    """Against sets of whole numbers of hundredths."""
    rng = np.random.default_rng(seed)
    inner = rng.choice(np.arange(1, 24), rng.integers(0, 23), replace=False)
    grid = sorted({0, 24, *map(int, inner)})
    window = tuple(sorted(map(int, rng.choice(grid, 2, replace=False))))
    fits = [
        step
        for step in range(1, 25)
        if 24 % step == 0
        and set(range(0, 25, step)) <= set(grid)
        and not any(end % step for end in window)
    ]
    scaled = 5.0 + 0.5 * np.asarray(grid, np.float64)
    ends = (5.0 + 0.5 * window[0], 5.0 + 0.5 * window[1])
    np.testing.assert_allclose(fitting_steps(scaled, ends), [0.5 * s for s in fits])


@pytest.mark.parametrize("first", [0.0, 1e5, 1e6])
def test_half_steps_are_refused_wherever_time_begins(first):
    """Seen failing: at a time of 100,000 half steps were taken for whole ones, and
    increments over no time were no numbers."""
    times = first + 0.25 * np.arange(9)
    halves = first + 0.125 * np.arange(17)
    window = (float(times[0]), float(times[-1]))
    bound = GridIncrements().on_grid(times, window)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (bound.units, lambda t, w: bound.matrix(t, 0.5, w)):
            with pytest.raises(
                ValueError, match=r"with dt one of 0\.25, 0\.5, 1, 2; or"
            ):
                call(halves, window)
    np.testing.assert_array_equal(bound.units(times, window), np.eye(8))
    pairs = np.kron(np.eye(4), np.full((1, 2), 0.5**0.5))
    np.testing.assert_allclose(bound.units(times[::2], window), pairs)


def test_two_times_are_not_at_one_place():
    """Catches (seen) a step of no increment, where rounding is as long as it is."""
    grid = 1e6 + 0.25 * np.arange(5)
    assert list(places_among(grid, grid[[0, 1, 3]] + 0.03)) == [0, 1, 3]
    assert places_among(grid, np.array([1e6, 1e6 + 0.03, 1e6 + 0.25])) is None


@pytest.mark.parametrize(
    "times", [(), (0.0,), (0.0, 1.0, 0.5), (0.0, 0.5, 0.5, 1.0), (0.0, np.nan, 1.0)]
)
def test_times_that_are_no_grid_are_refused(times):
    """Catches increments over no time, or over less."""
    with pytest.raises(ValueError, match="`times` must be two or more that increase"):
        GridIncrements(times)


def test_a_grid_that_ends_too_early_is_refused():
    """Catches a sentence of steps, none of which would do."""
    with pytest.raises(ValueError, match="from 0 to 0.5, and the solve runs from 0 to"):
        network(Fixed(0.25), GridIncrements((0.0, 0.25, 0.5)))
