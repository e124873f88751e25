"""Where does a posterior pay? A few rows of MNIST, as they are, and an SDE-BNN.

The model is one for all: two scales of images, whose convolutions move through depth by
two steps of Euler each, in coordinates in which its prior is N(0, 1). Two posteriors of
it: a mixture of fits, each a normal for each coordinate of the path with all else at
its mode (KL weight 1), and SGHMC over all of it (temperature 1). Twins of the mixture,
of as many fits: paths at their prior (q = p; also as one fit of all steps), and none
(the network without noise). And an ensemble of five modes, paths among their numbers.
All see as many rows in all. Nothing is augmented; tests are on MNIST's first 5,000 test
rows, and on 2,000 of them turned by 90°.

Sizes, sigma, step and number of fits were chosen for the variational paths, by the last
2,000 training rows and one to three seeds; no fit here sees these but those of all
60,000. The test rows had been seen with the design of before (sigma 0.2, one fit each):
`results/pieces/mnist-rows-sigma-0.2.json`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from ..._sentence import OptionError
from ..._types import Array, Bool, Float, PRNGKeyArray, PyTree
from ...data import Split, load, rotate_images
from ...functions import (
    SDEBNN,
    Integrator,
    LevyCiesielski,
    MeanField,
    Reparameterised,
    WeightPrior,
    WhitenedSDEBNN,
    whiten,
)
from ...likelihood import Categorical
from ...metrics import accuracy, auroc, ece, entropy
from ...network import Network
from ...plot import method_curves
from ...prior import GaussianPrior
from ...recipe import ScaleName
from ...report import save_figure
from ...sampling import optimised_starts, sample
from ...sde import EulerMaruyama, Fixed
from ...sgmcmc import SGHMC, sghmc_settings
from ...train import fit
from .._experiment import Experiment, Study

_ROWS: dict[ScaleName, tuple[int, ...]] = {
    "quick": (300,),
    "gpu": (300, 1_000, 3_000, 10_000, 60_000),
    "full": (300, 1_000, 3_000, 10_000, 60_000),
}
_MOST_SEEDS: dict[ScaleName, int] = {"quick": 1, "gpu": 5, "full": 5}
_SEEDED_ROWS = 1_000
STEPS: dict[ScaleName, int] = {"quick": 200, "gpu": 12_000, "full": 12_000}
_BATCH_SIZE = 25
_RATE, _MOMENTUM = 0.015, 0.95  # at 0.03 one chain of two left the numbers
_START_STEPS, _WARMUP_SHARE, _THIN = 2_000, 1 / 6, 80
NUM_TEST, _NUM_TURNED = 5_000, 2_000
_LEARNING_RATE = 3e-3
_PATH_SCALE = 0.1  # of its normals at first: from the prior's 1 they hardly move
_NUM_FITS, _NUM_MEMBERS, _NUM_PATHS = 2, 5, 30  # paths of each fit
_NUM_MODES = 2
_SCALE, _POINT_SCALE, _SIGMA = 5.0, 6.0, 1.0
NARROW_SIGMA = 0.2
_POSTERIORS = {"variational paths": "paths", "sampled": "sampled"}
_ANGLE = 90.0
_AT_ONCE = 500


def _run(study: Study) -> list[dict[str, Any]]:
    found, sizes = [], _sizes(study)
    for num_rows in sizes:
        num_seeds = _MOST_SEEDS[study.scale] if num_rows == _SEEDED_ROWS else 1
        for seed in range(study.seed, study.seed + num_seeds):
            found.append((num_rows, _one(study, num_rows, seed)))
    rows = [
        row
        for num_rows in sizes
        for row in _summary(
            [value for n, value in found if n == num_rows],
            rows=num_rows,
            num_steps=whole_passes(STEPS[study.scale], num_rows),
            batch_size=_BATCH_SIZE,
        )
    ]
    names = dict.fromkeys(row["method"] for row in rows)
    figure = method_curves(
        {name: [r["nll"] for r in rows if r["method"] == name] for name in names},
        xs=[float(num_rows) for num_rows in sizes],
        xlabel="training rows",
        ylabel="test NLL, nats",
        has_log_x=True,
        has_log_y=True,
    )
    study.say(f"Wrote {save_figure(study.folder / 'mnist_rows.png', figure)}")
    return rows


def _sizes(study: Study) -> tuple[int, ...]:
    """The numbers of rows that were asked for; else all."""
    ours = {str(num_rows): num_rows for num_rows in _ROWS[study.scale]}
    for model in study.models:
        if model not in ours:
            raise OptionError(
                "{models} {} is no number of rows of `reproduce mnist-rows` at {scale} "
                "{}: give some of {}.",
                model,
                study.scale,
                ", ".join(ours),
            )
    return tuple(n for name, n in ours.items() if name in (study.models or ours))


def _one(study: Study, num_rows: int, seed: int) -> dict[str, Any]:
    num_steps = whole_passes(STEPS[study.scale], num_rows)
    settings = design(num_steps) | {"seed": seed}
    name = f"rows_{num_rows}_{seed}"
    return study.piece(name, settings, lambda: _compare(num_rows, num_steps, seed))


def whole_passes(num_steps: int, num_rows: int) -> int:
    """Steps in all, rounded up so that each of the fits sees all rows equally often.

    Args:
        num_steps: of minibatches, in all.
        num_rows: to be seen.
    """
    of_fit = num_steps // _NUM_FITS
    num_epochs = math.ceil(of_fit * _BATCH_SIZE / num_rows)
    return _NUM_FITS * math.ceil(num_epochs * num_rows / _BATCH_SIZE)


def design(num_steps: int) -> dict[str, Any]:
    """All that scores depend on but rows and seeds: what tells pieces apart.

    Args:
        num_steps: of minibatches, in all.
    """
    return {
        "steps": num_steps,
        "batch_size": _BATCH_SIZE,
        "prior": {"sigma": _SIGMA, "scale": _SCALE, "point_scale": _POINT_SCALE},
        "modes_of_path": _NUM_MODES,
        "fits": {"number": _NUM_FITS, "paths": _NUM_PATHS, "path_scale": _PATH_SCALE},
        "learning_rate": _LEARNING_RATE,
        "members": _NUM_MEMBERS,
        "chain": {
            "rate": _RATE,
            "momentum": _MOMENTUM,
            "start_steps": _START_STEPS,
            "warmup_share": _WARMUP_SHARE,
            "thin": _THIN,
        },
        "tests": {"rows": NUM_TEST, "turned": _NUM_TURNED, "angle": _ANGLE},
    }


def network(*, sigma: float = _SIGMA, key: PRNGKeyArray) -> WhitenedSDEBNN:
    """The model, at whose prior all is N(0, 1).

    Args:
        sigma: of its path, in units of the start's spread.
        key: randomness of where it starts.
    """
    model = SDEBNN.for_images(
        (28, 28, 1),
        10,
        blocks=(1, 1),
        width=8,
        augment=4,
        space_to_depth_first=True,
        is_normalised=True,
        activation=jax.nn.silu,
        prior=WeightPrior(sigma=sigma, scale=_SCALE),
        integrator=Integrator(EulerMaruyama(), Fixed(1 / _NUM_MODES)),
        key=key,
    )
    return whiten(model, LevyCiesielski(_NUM_MODES), point_scale=_POINT_SCALE)


def _compare(num_rows: int, num_steps: int, seed: int) -> dict[str, Any]:
    """Each method's scores; the posteriors' NLL minus its, in pairs of test rows."""
    data = load("mnist")
    train = data.train.rows(np.arange(num_rows))
    test = data.test.rows(np.arange(min(NUM_TEST, len(data.test))))
    found, losses = {}, {}
    for name in _METHODS:
        made = scores(name, train, test, num_steps, key=jax.random.key(seed))
        found[name], losses[name] = made
    for name, of_method in found.items():
        for posterior, short in _POSTERIORS.items():
            difference = losses[posterior] - losses[name]
            error = difference.std(ddof=1) / math.sqrt(len(difference))
            of_method[f"{short}_minus"] = float(difference.mean())
            of_method[f"{short}_minus_se"] = float(error)
    return found


def scores(
    method: str, train: Split, test: Split, num_steps: int, *, key: PRNGKeyArray
) -> tuple[dict[str, float], Float[np.ndarray, " rows"]]:
    """What a method scores on test rows, and the loss of each.

    Args:
        method: a name of the table's.
        train: what it sees.
        test: of which the first are turned, too.
        num_steps: of minibatches, in all.
        key: of all that is random.
    """
    inputs = [np.asarray(test.x), rotate_images(test.x[:_NUM_TURNED], _ANGLE)]
    train_method = (_METHODS | NARROWER)[method]
    probs, strange = train_method(train, inputs, num_steps, key=key)
    labels = np.asarray(test.y)
    losses = -np.log(probs[np.arange(len(labels)), labels].clip(1e-30))
    found = {
        "nll": float(losses.mean()),
        "accuracy": float(accuracy(probs, labels)),
        "ece": float(ece(probs, labels)),
        "auroc_rotated": auroc(entropy(probs), entropy(strange)),
    }
    return found, losses


def _variational_paths(
    train: Split, inputs: list[np.ndarray], num_steps: int, *, key: PRNGKeyArray
) -> list[Float[np.ndarray, "rows classes"]]:
    """A mixture of fits, which share the steps."""
    keys = jax.random.split(key, _NUM_FITS)
    fits = [_variational_path(train, num_steps // _NUM_FITS, key=k) for k in keys]
    return _mean_probs([net for drawn in fits for net in drawn], inputs)


def _variational_path(
    train: Split, num_steps: int, *, key: PRNGKeyArray
) -> list[Network]:
    """Draws of a normal for each coordinate of the path, all else at its mode."""
    net_key, fit_key, draw_key = jax.random.split(key, 3)
    net = network(key=net_key)
    model = MeanField(
        net,
        GaussianPrior(1.0),
        where=net.parameter_parts()["path"],
        has_prior_on_points=True,
        init_scale=_PATH_SCALE,
        noise=Reparameterised(),
    )
    fitted = fit(
        model,
        train,
        Categorical(),
        num_epochs=max(1, num_steps * _BATCH_SIZE // len(train)),
        batch_size=_BATCH_SIZE,
        learning_rate=_LEARNING_RATE,
        key=fit_key,
    ).model
    assert isinstance(fitted, MeanField)
    return [fitted.network_at(i, key=draw_key) for i in range(_NUM_PATHS)]


def _sampled(
    train: Split, inputs: list[np.ndarray], num_steps: int, *, key: PRNGKeyArray
) -> list[Float[np.ndarray, "rows classes"]]:
    """One chain of SGHMC; the steps to its start are among its steps."""
    net_key, start_key, chain_key = jax.random.split(key, 3)
    what = {
        "model": network(key=net_key),
        "split": train,
        "likelihood": Categorical(),
        "prior": GaussianPrior(1.0),
        "num_chains": 1,
        "batch_size": _BATCH_SIZE,
    }
    num_start = min(_START_STEPS, num_steps // 6)
    starts = optimised_starts(
        **what, num_steps=num_start, learning_rate=_LEARNING_RATE, key=start_key
    )
    num_left = num_steps - num_start
    num_warmup = round(_WARMUP_SHARE * num_left)
    samples = sample(
        **what,
        kernel=SGHMC(*sghmc_settings(_RATE / len(train), _MOMENTUM)),
        starts=starts,
        num_warmup=num_warmup,
        num_samples=(num_left - num_warmup) // _THIN,
        thin=_THIN,
        key=chain_key,
    )
    networks = [samples.network_at(i) for i in range(samples.num_samples)]
    return _mean_probs(networks, inputs)


def _modes(
    train: Split,
    inputs: list[np.ndarray],
    num_steps: int,
    *,
    key: PRNGKeyArray,
    path: str = "free",
    sigma: float | None = None,
    num_members: int,
) -> list[Float[np.ndarray, "rows classes"]]:
    """Of modes by Adam, which share the steps.

    A path is free, held at zero, or drawn anew at each step.
    """
    own = {} if sigma is None else {"sigma": sigma}
    net_key, key = jax.random.split(key)
    whole = network(**own, key=net_key)
    _, static = eqx.partition(whole, eqx.is_inexact_array)
    _, unravel = _ravelled(whole)
    is_path = _is_path(whole)
    num_data = len(train)
    num_steps //= num_members
    num_paths = _NUM_FITS * _NUM_PATHS // num_members if path == "prior" else 1
    x, y = jnp.asarray(train.x), jnp.asarray(train.y)

    def placed(theta: Array, key: PRNGKeyArray) -> Array:
        if path == "free":
            return theta
        noise = jax.random.normal(key, theta.shape) if path == "prior" else 0.0
        return jnp.where(is_path, noise, theta)

    def energy(theta: Array, rows: Array, key: PRNGKeyArray) -> Array:
        net = eqx.combine(unravel(placed(theta, key)), static)
        loss = optax.softmax_cross_entropy_with_integer_labels(net(x[rows]), y[rows])
        return loss.mean() + 0.5 * jnp.sum(theta**2) / num_data

    rule = optax.adam(optax.cosine_decay_schedule(_LEARNING_RATE, num_steps))

    @jax.jit
    def train_all(theta: Array, keys: Array) -> Array:
        def step(carry, key):
            theta, state = carry
            row_key, path_key = jax.random.split(key)
            rows = jax.random.randint(row_key, (_BATCH_SIZE,), 0, num_data)
            update, state = rule.update(jax.grad(energy)(theta, rows, path_key), state)
            return (theta + update, state), None

        return jax.lax.scan(step, (theta, rule.init(theta)), keys)[0][0]

    networks = []
    for member_key in jax.random.split(key, num_members):
        start_key, train_key, draw_key = jax.random.split(member_key, 3)
        theta, _ = _ravelled(network(**own, key=start_key))
        theta = train_all(theta, jax.random.split(train_key, num_steps))
        for path_key in jax.random.split(draw_key, num_paths):
            drawn = unravel(placed(theta, path_key))
            networks.append(eqx.combine(drawn, static))
    return _mean_probs(networks, inputs)


_twins = functools.partial(_modes, num_members=_NUM_FITS)
_METHODS: dict[str, Callable[..., list[np.ndarray]]] = {
    "variational paths": _variational_paths,
    "paths at their prior": functools.partial(_twins, path="prior"),
    "one path at its prior": functools.partial(_modes, num_members=1, path="prior"),
    "without noise": functools.partial(_twins, path="zero"),
    "five modes": functools.partial(_modes, num_members=_NUM_MEMBERS),
    "sampled": _sampled,
}
NARROWER: dict[str, Callable[..., list[np.ndarray]]] = {
    "paths at a narrower prior": functools.partial(
        _twins, path="prior", sigma=NARROW_SIGMA
    ),
    "one path at a narrower prior": functools.partial(
        _modes, num_members=1, path="prior", sigma=NARROW_SIGMA
    ),
}
"""Twins with the sigma that is best for them: as a noise, and no posterior."""


def _ravelled(net: WhitenedSDEBNN) -> tuple[Array, Callable[[Array], PyTree]]:
    return ravel_pytree(eqx.filter(net, eqx.is_inexact_array))


def _is_path(whole: WhitenedSDEBNN) -> Bool[Array, " parameters"]:
    """Which parameters, in one line, are of the path."""
    paths = whole.parameter_parts()["path"]
    params = eqx.filter(whole, eqx.is_inexact_array)
    zeros = jax.tree.map(jnp.zeros_like, params)
    ones = jax.tree.map(jnp.ones_like, paths(params))
    return _ravelled(eqx.tree_at(paths, zeros, ones))[0] > 0


@eqx.filter_jit
def _probs(net: Network, x: Array) -> Array:
    return jax.nn.softmax(net(x))


def _mean_probs(
    networks: Sequence[Network], inputs: list[np.ndarray]
) -> list[Float[np.ndarray, "rows classes"]]:
    found = []
    for x in inputs:
        total = sum(
            np.concatenate(
                [
                    np.asarray(_probs(net, jnp.asarray(part)), np.float64)
                    for part in np.array_split(x, len(x) // _AT_ONCE or 1)
                ]
            )
            for net in networks
        )
        found.append(total / len(networks))
    return found


def _summary(found: list[dict[str, Any]], **setting: int) -> list[dict[str, Any]]:
    """A row for each method: means over seeds, their spread, and errors of rows."""
    rows = []
    for name in found[0]:
        row: dict[str, Any] = {**setting, "method": name}
        row["num_seeds"] = len(found)
        for score in found[0][name]:
            values = np.array([value[name][score] for value in found])
            row[score] = float(values.mean())
            if len(found) > 1 and not score.endswith("_se"):
                row[f"{score}_sd"] = float(values.std(ddof=1))
        row["nll_seeds"] = [round(value[name]["nll"], 4) for value in found]
        rows.append(row)
    return rows


MNIST_ROWS = Experiment(
    "Where does a posterior pay? An SDE-BNN on 300 to 60,000 rows of MNIST",
    "No paper's: the SDE-BNN of Xu et al. (2022) with a posterior by SGHMC.",
    _run,
    options=("models",),
    shelf="results/pieces/{name}-{scale}.json",
)
