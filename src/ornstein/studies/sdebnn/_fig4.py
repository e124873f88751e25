r"""Figure 4 of Xu et al. (2022): the variance of three gradient estimators.

Their text has a one-dimensional regression "matching an exponentiated Brownian motion",
without numbers. Ours observes $\exp B(t)$ of a Brownian path, at 4 times with noise 0.5
and at 10 with noise 0.1: the posterior's drift is a smooth function that the network
comes near in the first case, and jumps at every observation in the second. Their code
has a segmented cosine. All estimators are measured at the same parameters, those of a
training by `StickTheLanding`. More rows have an exact drift plugged in: a
linear-Gaussian bridge, where the variance of `StickTheLanding` falls like dt².
"""

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ... import data
from ..._types import Array, Float, PRNGKeyArray, RealScalar
from ...nn import MLP
from ...plot import method_curves
from ...recipe import ScaleName
from ...report import save_figure
from ...sde import BrownianMotion, OrnsteinUhlenbeck
from .._experiment import Experiment, Study
from ._gradient_variance import ESTIMATORS, Toy, train, variances

_STEPS = (1, 50, 100, 500, 1000, 2000, 3000)  # where the reference measures


class Plan(NamedTuple):
    """How long, and how closely.

    Attributes:
        steps: updates after which variances are measured.
        num_samples: paths behind each variance.
        substeps: of 0.05 units of time.
        batch_size: paths in an update.
    """

    steps: tuple[int, ...] = _STEPS
    num_samples: int = 2000
    substeps: int = 17
    batch_size: int = 256


PLANS: dict[ScaleName, Plan] = {
    "quick": Plan(_STEPS[:5], num_samples=500, substeps=5),
    "gpu": Plan(),
    "full": Plan(),
}


class Net(eqx.Module):
    """A drift: the network of some features of (t, w), and perhaps the prior's.

    Attributes:
        net: the network.
        features: of (t, w).
        prior: a drift to add to.
    """

    net: MLP
    features: Callable[[RealScalar, Array], Array]
    prior: Callable[[RealScalar, Array], Array]

    def __call__(self, t: RealScalar, w: Float[Array, " 1"]) -> Float[Array, " 1"]:
        """Evaluate at `(t, w)`."""
        return self.prior(t, w) + self.net(self.features(t, w))


def brownian_toy(
    num_points: int, noise: float, plan: Plan, *, key: PRNGKeyArray
) -> tuple[Toy, Net]:
    """The exponential of a Brownian path on [0, 1], and a drift from the prior's.

    The path is drawn once, whatever the seed.

    Args:
        num_points: equally spaced; the last is at 1.
        noise: standard deviation with which each is seen.
        plan: its steps.
        key: of the network.
    """
    ts = np.linspace(0.0, 1.0, num_points + 1)
    rng = np.random.default_rng(0)
    path = np.cumsum(np.sqrt(np.diff(ts)) * rng.standard_normal(num_points))
    values = np.exp(path) + noise * rng.standard_normal(num_points)
    prior = BrownianMotion(scale=1.0)
    toy = Toy(prior, 0.0, ts, values, noise, jnp.exp, 0.05 / plan.substeps)
    net = MLP(2, 1, (64, 64), output_scale=0.0, key=key)

    def features(t: RealScalar, w: Array) -> Array:
        return jnp.stack([jnp.asarray(t, w.dtype), w[0]])

    return toy, Net(net, features, lambda t, w: jnp.zeros_like(w))


def cosine_toy(plan: Plan, *, key: PRNGKeyArray) -> tuple[Toy, Net]:
    """Ten points of a cosine, a prior of rate 1 and scale ½, and 400 hidden units.

    The path begins at the first point. As in the reference, the network is the
    posterior's drift itself, and sees sine and cosine of the time.

    Args:
        plan: its steps.
        key: of the network.
    """
    series = data.load("toy/segmented-cosine-10").train.x
    ts, values = np.asarray(series.ts[0], float), np.asarray(series.values[0, :, 0])
    prior = OrnsteinUhlenbeck(1.0, 0.0, 0.5)
    toy = Toy(
        prior, float(values[0]), ts, values[1:], 0.1, lambda w: w, 0.05 / plan.substeps
    )
    net = MLP(3, 1, (400,), key=key)

    def features(t: RealScalar, w: Array) -> Array:
        time = jnp.asarray(t, w.dtype)
        return jnp.stack([jnp.sin(time), jnp.cos(time), w[0]])

    return toy, Net(net, features, lambda t, w: jnp.zeros_like(w))


TOYS: dict[str, Callable[..., tuple[Toy, Net]]] = {
    "exp(B), 4 points": functools.partial(brownian_toy, 4, 0.5),
    "exp(B), 10 points": functools.partial(brownian_toy, 10, 0.1),
    "segmented cosine, 10 points": cosine_toy,
}


class Bridge(eqx.Module):
    r"""The exact drift of a rate-1 process seen at its end, and parameters at 0.

    $f = -w + c(t) (y - e^{t-1} w) + \phi \cdot (1, w, t, w t, \sin 3 w)$.

    Attributes:
        phi: what the gradient is taken of.
        value: y, seen at time 1.
        noise: its standard deviation.
    """

    phi: Float[Array, " 5"]
    value: float = eqx.field(static=True, default=1.2)
    noise: float = eqx.field(static=True, default=0.5)

    def __call__(self, t: RealScalar, w: Float[Array, " 1"]) -> Float[Array, " 1"]:
        """Evaluate at `(t, w)`."""
        decay = jnp.exp(jnp.asarray(t, w.dtype) - 1)
        gain = decay / (self.noise**2 + (1 - decay**2) / 2)
        time = jnp.broadcast_to(jnp.asarray(t, w.dtype), w.shape)
        features = jnp.stack([jnp.ones_like(w), w, time, w * time, jnp.sin(3 * w)])
        return -w + gain * (self.value - decay * w) + self.phi @ features


def bridge_variances(
    num_steps: int, num_samples: int, *, key: PRNGKeyArray
) -> dict[str, float]:
    """Variances at the exact drift.

    Args:
        num_steps: of Euler–Maruyama on [0, 1].
        num_samples: paths.
        key: randomness.
    """
    bridge = Bridge(jnp.zeros(5))
    ts, values = np.array([0.0, 1.0]), np.array([bridge.value])
    prior = OrnsteinUhlenbeck(1.0, 0.0, 1.0)
    toy = Toy(prior, 0.0, ts, values, bridge.noise, lambda w: w, 1 / num_steps)
    return variances(toy, bridge, num_samples=num_samples, key=key)


_BRIDGE_STEPS = (10, 20, 40, 80)


def _run(study: Study) -> list[dict[str, Any]]:
    plan, rows = PLANS[study.scale], []
    for name, make in TOYS.items():
        found = study.piece(
            _file(name),
            [study.seed, plan],
            lambda make=make: _over_training(make, plan, seed=study.seed),
        )
        rows += [{"toy": name} | row for row in found]
        figure = method_curves(
            {of: [np.log10(row[of]) for row in found] for of in ESTIMATORS},
            xs=[row["step"] for row in found],
            xlabel="update",
            ylabel="log₁₀ of the gradient's variance",
            title=name,
            has_log_x=True,
        )
        path = study.folder / f"variance_{_file(name)}.png"
        study.say(f"Wrote {save_figure(path, figure)}")
    rows += _bridge_rows(study, plan)
    return rows


def _file(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]+", "_", name)


def _over_training(make: Callable, plan: Plan, *, seed: int) -> list[dict[str, Any]]:
    init_key, train_key, measure_key = jax.random.split(jax.random.key(seed), 3)
    toy, drift = make(plan, key=init_key)
    optimiser = optax.adam(optax.schedules.exponential_decay(1e-2, 1, 0.999))
    state = optimiser.init(eqx.filter(drift, eqx.is_inexact_array))
    rows = []
    for before, step in itertools.pairwise((0, *plan.steps)):
        drift, state, losses = train(
            toy,
            drift,
            state,
            jnp.asarray(before),
            num_updates=step - before,
            batch_size=plan.batch_size,
            optimiser=optimiser,
            key=train_key,
        )
        key = jax.random.fold_in(measure_key, step)
        found = variances(toy, drift, num_samples=plan.num_samples, key=key)
        elbo = -float(jnp.mean(losses[-50:]))
        rows.append({"step": step, "elbo": elbo} | found | _advantage(found))
    return rows


def _advantage(found: dict[str, float]) -> dict[str, float]:
    others = min(found["KL"], found["FullMonteCarlo"])
    return {"others_over_stl": others / found["StickTheLanding"]}


def _bridge_rows(study: Study, plan: Plan) -> list[dict[str, Any]]:
    def compute() -> list[dict[str, float]]:
        key = jax.random.key(study.seed)
        return [bridge_variances(n, plan.num_samples, key=key) for n in _BRIDGE_STEPS]

    found = study.piece(
        "bridge", [study.seed, plan.num_samples, _BRIDGE_STEPS], compute
    )
    rows: list[dict[str, Any]] = [
        {"toy": "exact bridge", "dt": 1 / n} | one | _advantage(one)
        for n, one in zip(_BRIDGE_STEPS, found, strict=True)
    ]
    slopes = {f"slope of {of}": slope([one[of] for one in found]) for of in ESTIMATORS}
    return [*rows, {"toy": "exact bridge"} | slopes]


def slope(variance: list[float]) -> float:
    """Of log variance over log dt, at the bridge's steps."""
    dts = 1 / np.asarray(_BRIDGE_STEPS, float)
    return float(np.polyfit(np.log(dts), np.log(variance), 1)[0])


FIG4 = Experiment(
    "the variance of three gradient estimators over training, and at an exact drift",
    "Xu et al. (2022), figure 4: sticking the landing has about 4 times less variance.",
    _run,
)
"""`ornstein reproduce fig4`."""
