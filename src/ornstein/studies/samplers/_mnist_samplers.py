"""MNIST by SGD, SGD with momentum, SGLD and SGHMC: optimisers and samplers compared.

Figure 3 of Jospin et al. (2022), after Chen, Fox & Guestrin (2014): a network of one
hidden layer of 100 units; the optimisers are the samplers at temperature 0. Curves are
of the test error, of the last iterate for an optimiser, of probabilities averaged over
all samples so far for a sampler.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...data import Split, load
from ...functions import PosteriorSamples
from ...likelihood import Categorical
from ...mcmc import AbstractKernel
from ...nn import MLP
from ...plot import method_curves
from ...prior import fan_in_prior
from ...recipe import ScaleName
from ...report import save_figure
from ...sampling import sample
from ...sgmcmc import SGHMC, SGLD, sghmc_settings
from .._experiment import Experiment, Study

_EPOCHS: dict[ScaleName, int] = {"quick": 120, "gpu": 400, "full": 800}
_BATCH_SIZE = 500
_PRIOR_SCALE = 1.5
_MOMENTUM = 0.99


def _kernels(num_data: int) -> dict[str, AbstractKernel]:
    """One rate for all: 0.2 an example, of which momentum 0.99 takes a fiftieth."""
    epsilon = 0.4 / num_data  # SGLD's drift is ε / 2 on the sum over the data
    step, friction = sghmc_settings(0.004 / num_data, _MOMENTUM)
    return {
        "SGD": SGLD(epsilon, temperature=0.0),
        "SGD with momentum": SGHMC(step, friction, temperature=0.0),
        "SGLD": SGLD(epsilon),
        "SGHMC": SGHMC(step, friction),
    }


def _run(study: Study) -> list[dict[str, Any]]:
    num_epochs = _EPOCHS[study.scale]
    burn_in = num_epochs // 5
    rows, curves = [], {}
    for name in _kernels(1):

        def compute(name=name) -> dict[str, Any]:
            data = load("mnist")
            train, test = _flat(data.train.in_memory()), _flat(data.test)
            samples = _chain(train, name, num_epochs, seed=study.seed)
            is_sampler = name in ("SGLD", "SGHMC")
            return _judge(samples, test, burn_in if is_sampler else None)

        settings = {"epochs": num_epochs, "seed": study.seed}
        found = study.piece(name.replace(" ", "_"), settings, compute)
        curves[name] = found.pop("errors")
        rows.append({"method": name, "num_epochs": num_epochs} | found)
    figure = method_curves(curves, xlabel="epoch", ylabel="test error (%)", ylim=(1, 5))
    study.say(f"Wrote {save_figure(study.folder / 'mnist_samplers.png', figure)}")
    return rows


def _flat(split: Split) -> Split:
    return Split(np.asarray(split.x).reshape(len(split), -1), split.y)


def _chain(train: Split, name: str, num_epochs: int, *, seed: int) -> PosteriorSamples:
    """One chain, kept once an epoch."""
    network_key, key = jax.random.split(jax.random.key(seed))
    network = MLP(train.x.shape[1], 10, [100], activation=jax.nn.relu, key=network_key)
    return sample(
        network,
        train,
        Categorical(),
        kernel=_kernels(len(train))[name],
        prior=fan_in_prior(network, scale=_PRIOR_SCALE),
        key=key,
        num_chains=1,
        num_warmup=0,
        num_samples=num_epochs,
        thin=len(train) // _BATCH_SIZE,
        batch_size=_BATCH_SIZE,
        jitter=0.0,
    )


def _judge(
    samples: PosteriorSamples, test: Split, burn_in: int | None
) -> dict[str, Any]:
    """The error after each epoch, and scores at the end."""
    params = jax.tree.map(lambda a: jnp.asarray(a[0]), samples.positions[0])
    x, y = jnp.asarray(test.x), np.asarray(test.y)
    probs_of = eqx.filter_jit(
        lambda params, network: jax.nn.softmax(eqx.combine(params, network)(x))
    )
    total, num_averaged, errors = np.zeros((len(test), 10)), 0, []
    probs = total
    for epoch in range(samples.num_samples):
        now = jax.tree.map(lambda a, e=epoch: a[e], params)
        probs = np.asarray(probs_of(now, samples.network), np.float64)
        if burn_in is not None and epoch >= burn_in:
            total, num_averaged = total + probs, num_averaged + 1
            probs = total / num_averaged
        errors.append(float(100 * np.mean(probs.argmax(axis=1) != y)))
    log_probs = np.log(np.maximum(probs[np.arange(len(y)), y], 1e-30))
    return {
        "test_error": errors[-1],
        "best_test_error": min(errors),
        "nll": float(-log_probs.mean()),
        "errors": errors,
    }


MNIST_SAMPLERS = Experiment(
    "MNIST test error over epochs of SGD, SGD with momentum, SGLD and SGHMC",
    "Jospin et al. (2022), figure 3: SGHMC ends lowest; sampling beats optimisation.",
    _run,
)
