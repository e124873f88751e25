r"""The exact posterior of a path seen through two observations at its end.

An Ornstein–Uhlenbeck path $dz = -\theta z\,dt + \sigma\,dB$ from $z_0 \sim N(0, s_0^2)$
is observed at T alone. With a KL of weight $\beta$, start and path alike, what
maximises $E_q[\log L(z_T)] - \beta\,\mathrm{KL}(q \| p)$ is
$q(\text{path}) \propto p(\text{path})\,L(z_T)^{1/\beta}$, and the maximum is
$\beta \log E_p[L(z_T)^{1/\beta}]$. One function of one number is left to integrate,
$h_t(z) = E_p[L(z_T)^{1/\beta} | z_t = z]$: the marginal at t is $p_t h_t$, and the
drift is the prior's and $\sigma^2 \partial_z \log h_t$.
"""

import dataclasses

import numpy as np

from ..._types import Float

_NUM_POINTS = 1601
_REACH = 16.0  # of the grid, on both sides of 0: 5 prior standard deviations


@dataclasses.dataclass(frozen=True)
class TwoPoints:
    """The prior, and two Cauchy observations at its end.

    Attributes:
        observations: both at `end`.
        cauchy_scale: of each.
        rate: θ, per unit of time.
        diffusion: σ.
        start_scale: s₀.
        end: T.
    """

    observations: tuple[float, float] = (5.0, -5.0)
    cauchy_scale: float = 1.0
    rate: float = 0.1
    diffusion: float = 2.0**0.5
    start_scale: float = 3.0
    end: float = 3.0

    def transition(self, dt: float) -> tuple[float, float]:
        """What the mean is multiplied by over `dt`, and the variance added."""
        decay = np.exp(-self.rate * dt)
        return decay, self.diffusion**2 * (1 - decay**2) / (2 * self.rate)

    def log_likelihood(
        self, z: Float[np.ndarray, " points"]
    ) -> Float[np.ndarray, " points"]:
        """Log L of the path's end, nats."""
        ratios = (np.subtract.outer(z, self.observations)) / self.cauchy_scale
        log_probs = -np.log(np.pi * self.cauchy_scale) - np.log1p(ratios**2)
        return log_probs.sum(axis=1)


@dataclasses.dataclass(frozen=True)
class ExactPosterior:
    """By quadrature.

    Attributes:
        grid: values of z.
        ts: times.
        marginals: density of z at each time.
        joint: density of z at the first time and the last.
        bound: the largest E[log L] - β KL of all q, nats.
    """

    grid: Float[np.ndarray, " points"]
    ts: Float[np.ndarray, " times"]
    marginals: Float[np.ndarray, "times points"]
    joint: Float[np.ndarray, "points points"]
    bound: float

    def masses(
        self, line: int, edges: Float[np.ndarray, " edges"]
    ) -> Float[np.ndarray, " bins"]:
        """Probability between edges, of the marginal at one of the times.

        Args:
            line: which of the times.
            edges: rising.
        """
        density = self.marginals[line]
        steps = np.diff(self.grid) * (density[1:] + density[:-1]) / 2
        whole = np.concatenate([[0.0], np.cumsum(steps)])
        return np.diff(np.interp(edges, self.grid, whole))


def exact_posterior(
    problem: TwoPoints, beta: float, ts: Float[np.ndarray, " times"]
) -> ExactPosterior:
    """The best of all posteriors for a KL of weight β.

    Args:
        problem: prior and observations.
        beta: β; 1 for Bayes' posterior.
        ts: times of the marginals, from 0 to the end.
    """
    grid = np.linspace(-_REACH, _REACH, _NUM_POINTS)
    width = grid[1] - grid[0]
    log_weight = problem.log_likelihood(grid) / beta
    highest = log_weight.max()
    weight = np.exp(log_weight - highest)
    h = [weight] * len(ts)
    for i, t in enumerate(ts):
        if t < problem.end:
            h[i] = _kernel(problem, problem.end - t, grid) @ weight * width
    priors = []
    for t in ts:
        decay, spread = problem.transition(t)
        variance = spread + (decay * problem.start_scale) ** 2
        priors.append(_normal(grid, variance))
    unnormalised = np.array(priors) * np.array(h)
    evidence = np.sum(unnormalised[-1]) * width
    marginals = unnormalised / (unnormalised.sum(axis=1, keepdims=True) * width)
    kernel = _kernel(problem, ts[-1] - ts[0], grid)
    joint = priors[0][:, None] * kernel * h[-1] / evidence
    bound = beta * (np.log(evidence) + highest)
    return ExactPosterior(grid, np.asarray(ts), marginals, joint, float(bound))


def _kernel(problem: TwoPoints, dt: float, grid: np.ndarray) -> np.ndarray:
    """Density of z after `dt` (columns) given z before (rows)."""
    decay, spread = problem.transition(dt)
    return _normal(grid[None, :] - decay * grid[:, None], spread)


def _normal(gap: np.ndarray, variance: float) -> np.ndarray:
    return np.exp(-(gap**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
