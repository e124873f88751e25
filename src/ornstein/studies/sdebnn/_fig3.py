r"""Figure 3 of Xu et al. (2022): a posterior with two modes, by a latent SDE.

The problem is `TwoPoints`. Its constants and the KL weight 0.2/T are those of the
reference code; weight 1 is Bayes' posterior. At either weight the best posterior is
known (`_fig3_exact`): it is a diffusion, which the drift network can approach, from a
start that is not Gaussian. $q(z_0)$ is Gaussian.

Ours: steps that shorten towards the observations, where the tempered modes (standard
deviation 0.20) are narrower than the noise of one step of the reference's 0.03 (0.24);
a KL weight that falls from 1 to its value; and, at 0.2/T, a drift that is odd in z as
the exact one is. All paths in one mode cost only 0.05 nats of the loss (0.2/T log 2),
and general networks drifted to one side (masses of 0.25 and 0.75 after 600 updates,
0.57 and 0.43 after 1000 smaller ones at a weight that fell more slowly).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..._types import Array, Float, PRNGKeyArray, RealScalar
from ...data import Series
from ...functions import Integrator, LatentSDE, LatentStart, NoRecognition
from ...likelihood import Cauchy, OverTime
from ...metrics import total_variation
from ...plot import Margin, joint_samples, margin_panels, trajectories
from ...recipe import ScaleName
from ...report import save_figure
from ...sde import EulerMaruyama, Grid, OrnsteinUhlenbeck, StickTheLanding
from ...train import elbo_loss
from .._experiment import Experiment, Study
from .._same_for_all import SameForAll
from ._fig3_exact import ExactPosterior, TwoPoints, exact_posterior

PROBLEM = TwoPoints()
BETAS = {"1": 1.0, "0.2/T": 0.2 / PROBLEM.end}
_SHARES_OF_TIME = (0.0, 0.36, 0.75, 1.0)  # where marginals are compared
_EDGES = np.linspace(-12.0, 12.0, 97)
_NEAR = 2.0  # of a mode: where its mass is counted
_WINDOW = 0.25  # on both sides, of what is called the density at a point
_NUM_DRAWN = 40
_NUM_DOTS = 2000
_HOLD, _FALL = 0.15, 0.45  # of the updates: at weight 1, and falling from it


class Plan(NamedTuple):
    """How one posterior is learned and judged.

    Attributes:
        num_updates: of Adam.
        num_paths: in each.
        num_steps: of a path.
        width_size: of the drift's two hidden layers.
        learning_rate: at first; it falls as half a cosine.
        num_judged: paths that are counted afterwards.
    """

    num_updates: int
    num_paths: int = 512
    num_steps: int = 80
    width_size: int = 64
    learning_rate: float = 5e-3
    num_judged: int = 50_000


PLANS: dict[ScaleName, Plan] = {
    "quick": Plan(600),
    "gpu": Plan(6000, num_paths=4096, num_steps=200),
    "full": Plan(6000, num_paths=4096, num_steps=200),
}


class OddDrift(eqx.Module):
    """z times a network of |z|: the drift of a law that mirrors itself in 0.

    Attributes:
        net: `(t, z, context)` to a drift.
    """

    net: eqx.Module

    def __call__(self, t: RealScalar, z: Array, context: Array) -> Array:
        """Evaluate at `(t, z)`."""
        return z * self.net(t, jnp.abs(z), context)  # pyright: ignore


def untrained(plan: Plan, *, is_odd: bool, key: PRNGKeyArray) -> LatentSDE:
    """The prior's own path, and a network that is to bend it.

    Args:
        plan: width of the network.
        is_odd: whether the drift is to be odd in z.
        key: randomness of the initial parameters.
    """
    model = LatentSDE.make(
        NoRecognition(1, scale=PROBLEM.start_scale),
        len(PROBLEM.observations),
        prior=OrnsteinUhlenbeck(PROBLEM.rate, 0.0, PROBLEM.diffusion),
        start=LatentStart(1, scale=PROBLEM.start_scale),
        drift_widths=(plan.width_size, plan.width_size),
        integrator=Integrator(EulerMaruyama(), Grid()),
        estimator=StickTheLanding(),
        key=key,
    )
    decoder = SameForAll(len(PROBLEM.observations))
    model = eqx.tree_at(lambda m: m.decoder, model, decoder)
    if is_odd:
        odd = OddDrift(model.posterior_drift)  # pyright: ignore
        model = eqx.tree_at(lambda m: m.posterior_drift, model, odd)
    return model


def two_points(num_paths: int, num_steps: int) -> Series:
    """The observations in many rows, each with times that crowd towards the end.

    Args:
        num_paths: rows.
        num_steps: steps of a path; the last is `end / num_steps**2` long.
    """
    left = 1 - np.arange(num_steps + 1) / num_steps
    ts = (PROBLEM.end * (1 - left**2)).astype(np.float32)
    values = np.full((num_steps + 1, 2), np.nan, np.float32)
    values[-1] = PROBLEM.observations
    return Series.of(ts, np.broadcast_to(values, (num_paths, *values.shape)))


@eqx.filter_jit
def learn(
    model: LatentSDE, x: Series, plan: Plan, beta: float, *, key: PRNGKeyArray
) -> LatentSDE:
    """Maximise E[log L] - β KL.

    Args:
        model: to begin with.
        x: the observations, a row for each path of an update.
        plan: how.
        beta: β at last.
        key: randomness.
    """
    is_trained = jax.tree.map(lambda label: label != "frozen", model.labels())
    params, frozen = eqx.partition(model, is_trained)
    rate = optax.schedules.cosine_decay_schedule(plan.learning_rate, plan.num_updates)
    adam = optax.adam(rate)
    likelihood = OverTime(Cauchy(PROBLEM.cauchy_scale))

    def loss(params: Any, key: PRNGKeyArray, weight: Array) -> Array:
        ours = eqx.combine(params, frozen)
        how = {"num_data": len(x), "key": key, "kl_weight": weight}
        return elbo_loss(ours, likelihood, (x, x), **how)[0]

    def update(carry: Any, number: Array) -> tuple[Any, None]:
        params, state = carry
        fallen = jnp.clip((number / plan.num_updates - _HOLD) / _FALL, 0, 1)
        weight = jnp.asarray(beta, jnp.float32) ** fallen
        grads = eqx.filter_grad(loss)(params, jax.random.fold_in(key, number), weight)
        updates, state = adam.update(grads, state)
        return (eqx.apply_updates(params, updates), state), None

    carry = (params, adam.init(eqx.filter(params, eqx.is_inexact_array)))
    (params, _), _ = jax.lax.scan(update, carry, jnp.arange(plan.num_updates))
    return eqx.combine(params, frozen)


@eqx.filter_jit
def judge(
    model: LatentSDE, x: Series, beta: float, *, key: PRNGKeyArray
) -> tuple[Float[Array, "paths times"], Float[Array, " paths"]]:
    """Paths of the posterior, and what each says of the bound, nats.

    Args:
        model: learned.
        x: the observations, a row for each path.
        beta: β of the bound.
        key: randomness.
    """
    zs = model.trajectory(x, key=key)
    likelihood = OverTime(Cauchy(PROBLEM.cauchy_scale))
    drawn = model(x, key=key)
    bounds = likelihood.log_prob(drawn.output, x) - beta * drawn.local_kl
    return zs[..., 0], bounds


def _run(study: Study) -> list[dict[str, Any]]:
    plan, rows = PLANS[study.scale], []
    for name, beta in BETAS.items():
        file = name.replace("/", "_over_")
        kept = study.piece(
            f"beta_{file}",
            [study.seed, beta, plan, _EDGES.tolist()],
            lambda beta=beta: _learned(plan, beta, seed=study.seed),
        )
        exact = exact_posterior(PROBLEM, beta, np.asarray(kept["ts"]))
        rows += _rows(name, beta, kept, exact)
        figures = {
            "paths": trajectories(
                np.asarray(kept["path_ts"]),
                np.asarray(kept["paths"])[..., None],
                xlabel="time t",
                ylabel="latent z(t)",
                title=f"posterior paths, β = {name}",
            ),
            "marginals": margin_panels(
                {
                    f"t = {t:.2f}": Margin(_EDGES, heights, exact.grid, density)
                    for t, heights, density in zip(
                        kept["ts"], _heights(kept), exact.marginals, strict=True
                    )
                },
                xlabel=f"z(t), β = {name}",
            ),
            "joint": joint_samples(
                exact.grid,
                exact.joint,
                np.asarray(kept["pairs"]),
                labels=("z(0)", "z(T)"),
                limit=10.0,
                title=f"β = {name}",
            ),
        }
        for what, figure in figures.items():
            path = study.folder / f"{what}_{file}.png"
            study.say(f"Wrote {save_figure(path, figure)}")
    return rows


def _learned(plan: Plan, beta: float, *, seed: int) -> dict[str, Any]:
    """Histograms of what was learned, and some of its paths."""
    init_key, fit_key, judge_key = jax.random.split(jax.random.key(seed), 3)
    is_odd = beta < 1
    model = untrained(plan, is_odd=is_odd, key=init_key)
    x = two_points(plan.num_paths, plan.num_steps)
    model = learn(model, x, plan, beta, key=fit_key)
    x = two_points(plan.num_judged, plan.num_steps)
    zs, bounds = jax.device_get(judge(model, x, beta, key=judge_key))
    ts = x.ts[0]
    shown = [int(np.argmin(abs(ts - PROBLEM.end * at))) for at in _SHARES_OF_TIME]
    return {
        "ts": ts[shown].tolist(),
        "counts": [_counts(zs[:, i]).tolist() for i in shown],
        "masses": [float(np.mean(abs(zs[:, -1] - m) < _NEAR)) for m in modes()],
        "pairs": zs[:_NUM_DOTS][:, [0, -1]].tolist(),
        "path_ts": ts.tolist(),
        "paths": zs[:_NUM_DRAWN].tolist(),
        "bound": float(np.mean(bounds)),
        "drift": "odd" if is_odd else "any",
    }


def modes() -> list[float]:
    """Where modes are counted: at the observations, the lower one first."""
    return sorted(PROBLEM.observations)


def _counts(values: np.ndarray) -> np.ndarray:
    """In the bins, and beyond the first and last edge."""
    return np.histogram(values, np.concatenate([[-np.inf], _EDGES, [np.inf]]))[0]


def _heights(kept: dict[str, Any]) -> np.ndarray:
    counts = np.asarray(kept["counts"])
    return counts[:, 1:-1] / counts.sum(axis=1, keepdims=True) / np.diff(_EDGES)


def _rows(
    name: str, beta: float, kept: dict[str, Any], exact: ExactPosterior
) -> list[dict[str, Any]]:
    shares = np.asarray(kept["counts"]) / np.sum(kept["counts"], axis=1, keepdims=True)
    far = np.array([exact.grid[0], *_EDGES, exact.grid[-1]])
    distances = {
        f"{t:.2f}": total_variation(shares[i], exact.masses(i, far))
        for i, t in enumerate(kept["ts"])
    }
    ends = exact.masses(len(exact.ts) - 1, far)
    row = {
        "valley_ratio": valley_ratio(shares[-1][1:-1], exact),
        "exact_valley_ratio": valley_ratio(ends[1:-1], exact),
        "total_variation": total_variation(shares[-1], ends),
        "total_variation_at": distances,
        "bound": kept["bound"],
        "exact_bound": exact.bound,
        "drift": kept["drift"],
    }
    rows = []
    for mode, mass in zip(modes(), kept["masses"], strict=True):
        near = np.array([mode - _NEAR, mode + _NEAR])
        exact_mass = float(exact.masses(len(exact.ts) - 1, near)[0])
        of_mode = {"mode": mode, "mass": mass, "exact_mass": exact_mass}
        rows.append({"beta": beta, "weight": name} | of_mode | row)
    return rows


def valley_ratio(
    masses: Float[np.ndarray, " bins"], exact: ExactPosterior
) -> float | None:
    """Mass around 0 over that around the lower of the exact modes; `None` if empty.

    Args:
        masses: of the bins, at the end.
        exact: whose modes.
    """
    middles = (_EDGES[1:] + _EDGES[:-1]) / 2
    peak = abs(exact.grid[np.argmax(exact.marginals[-1])])
    around = [np.sum(masses[abs(middles - at) <= _WINDOW]) for at in (-peak, 0, peak)]
    lower = min(around[0], around[2])
    return float(around[1] / lower) if lower > 0 else None


FIG3 = Experiment(
    "a posterior with two modes by a latent SDE, against quadrature",
    "Xu et al. (2022), figure 3: samples with two modes at the end; no numbers.",
    _run,
)
"""`ornstein reproduce fig3`."""
