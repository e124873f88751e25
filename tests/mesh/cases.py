"""What is run on one device and on several, each a function of the mesh."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ornstein as orn
from ornstein.sde import EulerMaruyama, Fixed

NUM_STEPS = 20

LOOPS = (
    "winograd",
    "winograd 4",
    "wide winograd",
    "wide winograd 4",
    "shifts",
    "split taps",
)
"""Forms of convolutions that take some images after others."""

# A process says how many devices it has before JAX begins, so that this is no test.


def difference(one: dict[str, np.ndarray], several: dict) -> dict[str, float]:
    """The largest of each array, relative to its largest number."""
    return {
        name: float(
            np.max(np.abs(one[name] - several[name])) / np.max(np.abs(one[name]))
        )
        for name in one
    }


def _data() -> orn.data.Split:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3)).astype("float32")
    return orn.data.Split(x, np.sin(x[:, :1]) + 0.1 * x[:, 1:2])


def _network() -> orn.nn.MLP:
    # Wide enough that `fsdp` has something to cut.
    return orn.nn.MLP(3, 1, [8, 128], activation=jnp.tanh, key=jax.random.key(0))


def _mean_field() -> orn.MeanField:
    network = _network()
    return orn.MeanField(network, orn.fan_in_prior(network, scale=2.0))


def _sdebnn() -> orn.SDEBNN:
    integrator = orn.functions.Integrator(EulerMaruyama(), Fixed(0.25))
    return orn.SDEBNN.for_vectors(3, 1, integrator=integrator, key=jax.random.key(0))


def _implicit() -> orn.ImplicitBNN:
    return orn.ImplicitBNN(_network(), num_components=4, key=jax.random.key(0))


def _fit(model, mesh, **options) -> orn.Fit:
    likelihood = orn.Gaussian(0.3, learn_scale=True)
    return orn.fit(
        model,
        _data(),
        likelihood,
        key=jax.random.key(1),
        num_epochs=NUM_STEPS // 2,
        batch_size=32,
        mesh=mesh,
        **options,
    )


def _trained(model, mesh, **options) -> dict[str, np.ndarray]:
    found = _fit(model, mesh, **options)
    weights = jax.tree.leaves(eqx.filter(found.model, eqx.is_inexact_array))
    return {
        "loss": found.history["loss"],
        "weights": np.concatenate([np.ravel(w) for w in weights]),
    }


class _StopsAt:
    """A Ctrl-C between two steps."""

    def __init__(self, step: int):
        self.step = step

    def start(self, plan) -> None: ...

    def advance(self, step, record) -> None:
        if step >= self.step:
            raise KeyboardInterrupt

    def epoch(self, record) -> None: ...

    def stop(self) -> None: ...


def unbroken() -> dict[str, np.ndarray]:
    """What `resumed` goes through, at once and on one device."""
    return _trained(_mean_field(), None)


def resumed(begun_on, goes_on_with, folder: Path) -> dict[str, np.ndarray]:
    """A fit that was stopped on one mesh, and its rest on another."""
    kept = orn.train.RunFolder.create(folder, {})
    try:
        run = orn.train.Run(kept, checkpoint_every=0.0)
        _trained(_mean_field(), begun_on, run=run, callbacks=[_StopsAt(9)])
    except KeyboardInterrupt:
        run = orn.train.Run(kept, resume=True)
        return _trained(_mean_field(), goes_on_with, run=run)
    raise AssertionError("it was not stopped")


def _chains(kernel, mesh) -> dict[str, np.ndarray]:
    found = orn.sample(
        orn.nn.MLP(3, 1, [4], activation=jnp.tanh, key=jax.random.key(0)),
        _data(),
        orn.Gaussian(0.3),
        kernel=kernel,
        prior=orn.GaussianPrior(1.0),
        key=jax.random.key(2),
        num_samples=NUM_STEPS,
        num_warmup=0,
        num_chains=8,
        batch_size=16,
        mesh=mesh,
    )
    positions = jax.tree.leaves(found.positions)
    return {"positions": np.concatenate([np.ravel(p) for p in positions])}


def _predicted(mesh) -> dict[str, np.ndarray]:
    fit = orn.Fit(_mean_field(), orn.Gaussian(0.3), None, {})
    predict = lambda **options: orn.predict(
        fit, _data().x, key=jax.random.key(3), num_draws=8, mesh=mesh, **options
    )
    return {
        "draws": np.asarray(predict().outputs),
        "mean": np.asarray(predict(keep_draws=False, batch_size=20).mean),
    }


TRAINED = {
    "SDE-BNN": lambda mesh: _trained(_sdebnn(), mesh),
    "implicit": lambda mesh: _trained(_implicit(), mesh),
    "mean field": lambda mesh: _trained(_mean_field(), mesh, ema_decay=0.9),
    "mean field, row by row": lambda mesh: _trained(
        _mean_field(), mesh, in_memory=False, accumulate=2
    ),
    "mean field by IVON": lambda mesh: _trained(
        _mean_field(), mesh, optimiser=orn.IVON()
    ),
}
SAMPLED = {
    "HMC": lambda mesh: _chains(orn.HMC(5, step_size=0.02), mesh),
    "SGLD": lambda mesh: _chains(orn.SGLD(1e-4), mesh),
}
MESHES = {
    **{name: {"data": 2, "fsdp": 4} for name in TRAINED},
    **{name: {"data": 2, "chains": 4} for name in SAMPLED},
    "predict": {"data": 2, "draws": 4},
}
CASES = {**TRAINED, **SAMPLED, "predict": _predicted}
