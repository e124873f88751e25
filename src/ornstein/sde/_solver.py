r"""Solvers: diffrax's formulas, with step functions that cost what the formula costs.

A solver is diffrax's own object. Runge-Kutta tableaus (which for diagonal noise are
applied to $f\,dt + g\,dW$ together), Euler's and reversible Heun's methods are stepped
by short functions here: diffrax's general stage loop is a loop inside the loop, and its
Itô Milstein builds a matrix of all pairs of entries. Every other solver is stepped by
its own `step`.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._sentence import Choice, OptionError
from .._types import Array, PyTree
from ._noise import NoiseTerm, add_noise, is_none
from ._problem import Problem, Rates, State

# The names that `ornstein.sde` exports. These are diffrax's own classes, not
# subclasses, so that a solver object means the same to both; two have the name that
# the SDE literature gives them, because `Euler` and `ItoMilstein` beside
# `StratonovichMilstein` would not be found by someone who looks for them here.
# Strong orders are for diagonal noise, and held by tests.
EulerMaruyama = diffrax.Euler
"""Itô, strong order 0.5 (1 for additive noise): diffrax's `Euler`."""
Milstein = diffrax.ItoMilstein
"""Itô, strong order 1: diffrax's `ItoMilstein`."""
StratonovichMilstein = diffrax.StratonovichMilstein
"""Stratonovich, strong order 1: diffrax's class of that name."""
EulerHeun = diffrax.EulerHeun
"""Stratonovich, strong order 1; the drift by Euler's method."""
Heun = diffrax.Heun
"""Stratonovich, strong order 1, and 2 on ordinary differential equations."""
Midpoint = diffrax.Midpoint
"""Stratonovich, strong order 1, and 2 on ordinary differential equations."""
ReversibleHeun = diffrax.ReversibleHeun
"""Stratonovich, strong order 1; algebraically reversible, as `Reversible` needs."""
SRA1 = diffrax.SRA1
"""For additive noise, strong order 1.5 (Rößler, 2010)."""
ShARK = diffrax.ShARK
"""For additive noise, strong order 1.5 (Foster et al., 2023): diffrax's choice."""
Tsit5 = diffrax.Tsit5
"""For ordinary differential equations, order 5, with an error estimate."""


class RK4(diffrax.AbstractERK):
    """The classical Runge-Kutta method, order 4 on ordinary differential equations.

    Kutta (1901). No error estimate: for `Fixed` and `Grid`.
    """

    tableau: ClassVar[diffrax.ButcherTableau] = diffrax.ButcherTableau(
        a_lower=(np.array([0.5]), np.array([0.0, 0.5]), np.array([0.0, 0.0, 1.0])),
        b_sol=np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
        b_error=np.array([0.0, 0.0, 0.0, 0.0]),
        c=np.array([0.5, 0.5, 1.0]),
    )
    interpolation_cls: ClassVar = (
        diffrax.ThirdOrderHermitePolynomialInterpolation.from_k
    )

    def order(self, terms: Any) -> int:
        """The order on ordinary differential equations."""
        del terms
        return 4


class Increment(NamedTuple):
    """What drives one step: times, Brownian increment, space-time Lévy area."""

    t0: Array
    t1: Array
    w: PyTree | None
    h: PyTree | None


class AbstractStepper(eqx.Module):
    """One step of a solver on a `Problem`."""

    evaluations_per_step: eqx.AbstractVar[int]
    evaluations_to_start: eqx.AbstractVar[int]
    is_ito: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def init(self, problem: Problem, t0: Array, state: State) -> Any:
        """What the solver carries beside the state."""

    @abc.abstractmethod
    def step(
        self, problem: Problem, inc: Increment, state: State, memory: Any
    ) -> tuple[State, Any, PyTree | None]:
        """The next state and memory, and u at the step's left point (or `None`)."""

    @abc.abstractmethod
    def final_stats(self, state: State, memory: Any) -> dict[str, Array]:
        """What the last state and memory say of the solve, for `Solution.stats`."""


def advance(state: State, rates: Rates, inc: Increment, scale: float = 1.0) -> State:
    """`state + scale (f dt + g dW)`."""
    dt = scale * (inc.t1 - inc.t0)

    def move(y: Array, f: Array) -> Array:
        return y + dt.astype(y.dtype) * f

    y, ell = jax.tree.map(move, state, rates.f)
    return State(add_noise(y, rates.g, inc.w, scale), ell)


class ReversibleHeunStepper(AbstractStepper):
    r"""Reversible Heun (Kidger, Foster, Li and Lyons, 2021, algorithm 1).

    $\hat y_1 = 2 y_0 - \hat y_0 + f(\hat y_0) h + g(\hat y_0) \Delta W$,
    $y_1 = y_0 + \tfrac12 (f(\hat y_0) + f(\hat y_1)) h + \tfrac12 (g(\hat y_0) +
    g(\hat y_1)) \Delta W$. One evaluation a step; the memory is $(\hat y, f, g, u)$.
    """

    evaluations_per_step: int = 1
    evaluations_to_start: int = 1
    is_ito: bool = False

    def init(self, problem: Problem, t0: Array, state: State) -> tuple[State, Rates]:
        """The first shadow state is the state itself."""
        return state, problem.rates(t0, state)

    def step(
        self,
        problem: Problem,
        inc: Increment,
        state: State,
        memory: tuple[State, Rates],
    ) -> tuple[State, tuple[State, Rates], PyTree | None]:
        """One step."""
        shadow, rates = memory
        reflected = jax.tree.map(lambda y, z: 2 * y - z, state, shadow)
        shadow1 = advance(reflected, rates, inc)
        rates1 = problem.rates(inc.t1, shadow1)
        state1 = advance(advance(state, rates, inc, 0.5), rates1, inc, 0.5)
        return state1, (shadow1, rates1), rates.u

    def final_stats(
        self, state: State, memory: tuple[State, Rates]
    ) -> dict[str, Array]:
        r"""The largest $|y - \hat y|$."""
        shadow, _ = memory
        gaps = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), state.y, shadow.y)
        return {"max_reversible_gap": jnp.max(jnp.stack(jax.tree.leaves(gaps)))}


class RungeKuttaStepper(AbstractStepper):
    """An explicit tableau applied to f dt + g dW, its stages written out."""

    a_lower: tuple = eqx.field(static=True)
    b_sol: tuple = eqx.field(static=True)
    c: tuple = eqx.field(static=True)
    evaluations_per_step: int = eqx.field(static=True)
    is_ito: bool = eqx.field(static=True)
    evaluations_to_start: int = 0

    def init(self, problem: Problem, t0: Array, state: State) -> None:
        """Nothing is carried."""
        del problem, t0, state

    def step(
        self, problem: Problem, inc: Increment, state: State, memory: None
    ) -> tuple[State, None, PyTree | None]:
        """One step."""
        del memory
        dt = inc.t1 - inc.t0
        u = None
        stages: list[State] = []
        zero = jax.tree.map(jnp.zeros_like, state)
        for row, c in zip(self.a_lower, self.c, strict=True):
            at = _combine(state, row, stages)
            if stages:
                t = inc.t1 if c == 1 else inc.t0 + c * dt
                rates = Rates(problem.state_drift(t, at), problem.noise(t, at.y), None)
            else:
                rates = problem.rates(inc.t0, at)
                u = rates.u
            stages.append(advance(zero, rates, inc))
        return _combine(state, self.b_sol, stages), None, u

    def final_stats(self, state: State, memory: None) -> dict[str, Array]:
        """Nothing beside what all solvers have."""
        del state, memory
        return {}


def _combine(state: State, weights: tuple, stages: list[State]) -> State:
    for weight, stage in zip(weights, stages, strict=True):
        if weight:
            state = jax.tree.map(lambda y, k, w=weight: y + w * k, state, stage)
    return state


class MilsteinStepper(AbstractStepper):
    r"""Itô Milstein for diagonal noise, linear in the number of entries.

    $y_1 = y_0 + f h + g \Delta W + \tfrac12 g\, \partial g\, (\Delta W^2 - h)$.
    """

    evaluations_per_step: int = 1
    evaluations_to_start: int = 0
    is_ito: bool = True

    def init(self, problem: Problem, t0: Array, state: State) -> None:
        """Nothing is carried."""
        del problem, t0, state

    def step(
        self, problem: Problem, inc: Increment, state: State, memory: None
    ) -> tuple[State, None, PyTree | None]:
        """One step."""
        del memory
        rates = problem.rates(inc.t0, state)
        after = advance(state, rates, inc)
        if rates.g is None:
            return after, None, rates.u
        dt = inc.t1 - inc.t0

        def direction(y: Array, g: Any, w: Any) -> Array:
            if g is None:
                return jnp.zeros_like(y)
            return g * (w**2 - dt.astype(y.dtype)) / 2

        # Over the state first: it may have a `None` of its own.
        tangent = jax.tree.map(direction, state.y, rates.g, inc.w)
        noise = lambda y: problem.noise(inc.t0, y)
        _, correction = jax.jvp(noise, (state.y,), (tangent,))
        ones = jax.tree.map(jnp.ones_like, inc.w)
        return State(add_noise(after.y, correction, ones), after.ell), None, rates.u

    def final_stats(self, state: State, memory: None) -> dict[str, Array]:
        """Nothing beside what all solvers have."""
        del state, memory
        return {}


class DiffraxStepper(AbstractStepper):
    """Any other solver, by its own `step`."""

    solver: diffrax.AbstractSolver
    evaluations_per_step: int = eqx.field(static=True)
    is_ito: bool = eqx.field(static=True)
    evaluations_to_start: int = 0

    def _terms(self, problem: Problem, inc: Increment, state: State) -> Any:
        drift = diffrax.ODETerm(
            lambda t, s, args: problem.state_drift(jnp.asarray(t), s)
        )
        if problem.diffusion is None:
            return drift
        empty = None if state.ell is None else jnp.zeros_like(state.ell)
        noise = NoiseTerm(
            lambda t, s: State(problem.noise(t, s.y), None),
            State(inc.w, None),
            None if inc.h is None else State(inc.h, None),
            inc.t1 - inc.t0,
            State(jax.tree.map(jnp.zeros_like, state.y), empty),
        )
        return diffrax.MultiTerm(drift, noise)

    def init(self, problem: Problem, t0: Array, state: State) -> Any:
        """What the solver starts with."""
        dw = jax.tree.map(
            lambda g, y: None if g is None else jnp.zeros_like(y),
            problem.noise(t0, state.y),
            state.y,
            is_leaf=is_none,
        )
        terms = self._terms(problem, Increment(t0, t0, dw, dw), state)
        return self.solver.init(terms, t0, t0, state, None)

    def step(
        self, problem: Problem, inc: Increment, state: State, memory: Any
    ) -> tuple[State, Any, PyTree | None]:
        """One step."""
        terms = self._terms(problem, inc, state)
        state1, _, _, memory1, _ = self.solver.step(
            terms, inc.t0, inc.t1, state, None, memory, False
        )
        return state1, memory1, problem.ito_integrand(inc.t0, state)

    def final_stats(self, state: State, memory: Any) -> dict[str, Array]:
        """Nothing beside what all solvers have."""
        del state, memory
        return {}


def stepper_for(solver: diffrax.AbstractSolver) -> AbstractStepper:
    """The step function of a solver.

    Raises:
        TypeError: something that is not a solver.
    """
    if isinstance(solver, diffrax.Euler):
        return RungeKuttaStepper(((),), (1.0,), (0.0,), 1, True)
    if isinstance(solver, diffrax.ItoMilstein):
        return MilsteinStepper()
    if isinstance(solver, diffrax.ReversibleHeun):
        return ReversibleHeunStepper()
    if isinstance(solver, diffrax.AbstractERK) and isinstance(
        solver.tableau, diffrax.ButcherTableau
    ):
        return _runge_kutta(solver.tableau)
    if isinstance(solver, diffrax.AbstractSRK):
        return DiffraxStepper(solver, len(solver.tableau.b_sol), False)
    if isinstance(solver, diffrax.AbstractSolver):
        return DiffraxStepper(solver, 1, isinstance(solver, diffrax.AbstractItoSolver))
    raise TypeError(
        f"`solver` must be a solver, got {solver!r}; write for example "
        "`orn.sde.Heun()`, with the brackets."
    )


def _runge_kutta(tableau: diffrax.ButcherTableau) -> RungeKuttaStepper:
    rows = ((), *(tuple(map(float, row)) for row in tableau.a_lower))
    b_sol = tuple(map(float, tableau.b_sol))
    # A last stage of weight zero serves error estimates (and the next step) only.
    num_stages = max(i + 1 for i, b in enumerate(b_sol) if b)
    c = (0.0, *map(float, tableau.c))
    return RungeKuttaStepper(
        rows[:num_stages], b_sol[:num_stages], c[:num_stages], num_stages, False
    )


def name_of(solver: diffrax.AbstractSolver) -> str:
    """The name under which `ornstein.sde` has a solver."""
    name = type(solver).__name__
    return {"Euler": "EulerMaruyama", "ItoMilstein": "Milstein"}.get(name, name)


def check_noise(solver: diffrax.AbstractSolver) -> None:
    """Refuse a solver that only equations with noise have."""
    if _is_only_noisy(solver):
        raise OptionError(
            "{} is for equations with noise, and this one (or this part of it) has "
            "none: use {}.",
            Choice(f"`{name_of(solver)}`", "This {solver}"),
            Choice(
                "`Heun()`, `Midpoint()` or `ReversibleHeun()`",
                "{solver} heun, midpoint or reversible-heun",
            ),
        )


def noise_free_solver(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """What solves the same equation without its noise: the solver itself if it can.

    Milstein's methods and Euler-Heun become Euler's, the same formula where dB = 0.
    Methods for additive noise become one of the order that they have there, with as
    many evaluations of the drift: Heun's for `SRA1` and `ShARK`.
    """
    if not _is_only_noisy(solver):
        return solver
    is_additive = isinstance(solver, diffrax.AbstractSRK)
    has_stages = is_additive and len(solver.tableau.b_sol) > 1
    return Heun() if has_stages else EulerMaruyama()


def _is_only_noisy(solver: diffrax.AbstractSolver) -> bool:
    only = (diffrax.ItoMilstein, StratonovichMilstein, EulerHeun, diffrax.AbstractSRK)
    return isinstance(solver, only)


def needs_levy_area(solver: diffrax.AbstractSolver) -> bool:
    """Whether a solver needs space-time Lévy areas."""
    area = getattr(solver, "minimal_levy_area", None)
    return area is not None and issubclass(area, diffrax.AbstractSpaceTimeLevyArea)
