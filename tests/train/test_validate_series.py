"""Validation of series: by values, in blocks, and what early stopping makes of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
import scipy.stats
from train.test_fit import quick_fit

import ornstein as orn
from ornstein.functions import PosteriorParts
from ornstein.functions._base import AbstractRandomFunction, Draw, no_local_kl
from ornstein.train import Constant, EarlyStopping, Validation, _validate as module

NUM_DRAWS, NUM_TIMES, NOISE = 64, 200, 0.2
LIKELIHOOD = orn.OverTime(orn.Gaussian(NOISE))


class Wobbling(AbstractRandomFunction):
    """A learned size times: 1 in training, and one of several kept paths elsewhere."""

    size: jax.Array
    paths: jax.Array
    num_strata: int = 1
    num_members: int = eqx.field(static=True, default=1)

    def __call__(self, x, *, key, index=None, state=None):
        path = jnp.ones_like(x.values[0])
        if index is not None:
            path = self.paths[index]
        output = jnp.broadcast_to(self.size * path, x.shape)
        return Draw(output=output, kl=jnp.zeros(()), local_kl=no_local_kl(x.values))

    def member(self, number):
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self):
        frozen = jax.tree.map(lambda leaf: "frozen", self)
        return eqx.tree_at(lambda model: model.size, frozen, "weights")


def wobbling() -> Wobbling:
    paths = np.random.default_rng(0).standard_normal((NUM_DRAWS, NUM_TIMES, 1))
    return Wobbling(jnp.zeros(()), jnp.asarray(paths, jnp.float32))


def series(num_rows: int, *, seed: int, missing: float = 0.0) -> orn.Series:
    """Independent values of standard deviation 0.5, and their noise."""
    rng = np.random.default_rng(seed)
    sd = np.hypot(0.5, NOISE)
    values = sd * rng.standard_normal((num_rows, NUM_TIMES, 1))
    shown = rng.random(values.shape) >= missing
    shown[:, 0] = True
    return orn.Series.of(np.arange(1.0 * NUM_TIMES), values, shown)


def by_hand(model: Wobbling, size: float, y: orn.Series) -> tuple[float, float]:
    """Marginal NLL a value, and joint NLL a series."""
    z = size * np.asarray(model.paths, np.float64)
    each = scipy.stats.norm.logpdf(y.values, z[:, None], NOISE)
    mix = lambda values: scipy.special.logsumexp(values, axis=0) - np.log(NUM_DRAWS)
    joint = mix(np.sum(np.where(y.mask, each, 0), axis=(2, 3)))
    return -mix(each)[y.mask].mean(), -joint.mean()


@pytest.mark.parametrize("in_blocks", [False, True])
def test_validation_is_by_values(monkeypatch: pytest.MonkeyPatch, in_blocks: bool):
    """Catches the joint density of the code before, values counted where none was
    observed, a mean of series' means, and rows that pad the last block.
    """
    if in_blocks:  # of three rows, of seven
        monkeypatch.setattr(module, "_BLOCK_VALUES", 3 * NUM_DRAWS * NUM_TIMES)
    y = series(7, seed=1, missing=0.6)
    model = eqx.tree_at(lambda m: m.size, wobbling(), jnp.asarray(0.4))
    scores = module.validate(
        model, LIKELIHOOD, (y, y), key=jax.random.key(0), num_draws=NUM_DRAWS
    )
    assert scores == {"nll": pytest.approx(by_hand(model, 0.4, y)[0], rel=1e-4)}


def test_early_stopping_chooses_the_epoch_of_the_values():
    """Training takes the size from 0 to 1, and values spread by 0.5 about no path that
    a draw could know: values are best told by size 0.5, and whole series by the best
    draw at the first, all but constant one. The code before chose that.
    """
    model, held = wobbling(), series(4, seed=2)
    ones = orn.Series.of(held.ts[0], np.ones(held.shape))
    result = quick_fit(
        model,
        split=orn.data.Split(ones, ones),
        likelihood=LIKELIHOOD,
        num_epochs=30,
        clip_norm=None,
        batch_size=4,
        optimiser=optax.sgd,
        # The gradient of a row is NUM_TIMES (size - 1) / NOISE^2: 0.1 of the way each.
        learning_rate=0.1 * NOISE**2 / NUM_TIMES,
        schedule=Constant(),
        validation=Validation(
            orn.data.Split(held, held),
            num_draws=NUM_DRAWS,
            early_stopping=EarlyStopping(patience=30),
        ),
    )
    sizes = 1 - 0.9 ** np.arange(1, 31)
    scores = np.array([by_hand(model, size, held) for size in sizes])
    np.testing.assert_allclose(result.history["val_nll"], scores[:, 0], rtol=1e-3)
    best, of_joint = np.argmin(scores, axis=0)
    assert sizes[of_joint] < 0.2 < 0.4 < sizes[best] < 0.6
    assert float(result.model.size) == pytest.approx(sizes[best], rel=1e-3)
