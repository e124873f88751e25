"""`fit` against the optimum of conjugate linear regression, and against itself."""

import dataclasses
import logging
import math
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from train.linear_model import (
    NOISE,
    LinearMeanField,
    exact_elbo,
    linear_data,
    linear_model,
    mean_field_optimum,
)

from ornstein import nn
from ornstein.data._base import Split
from ornstein.functions import Deterministic, PosteriorParts
from ornstein.functions._base import AbstractRandomFunction, Draw, label_tree
from ornstein.likelihood import Categorical, Gaussian
from ornstein.train import (
    Constant,
    Cosine,
    EarlyStopping,
    Fit,
    ImportanceWeighted,
    KLWeight,
    NonFiniteError,
    Run,
    RunFolder,
    Validation,
    fit,
    validate,
)
from ornstein.train._optimiser import build_optimisation
from ornstein.train._step import _running_mean, _share
from ornstein.train.saving import save_checkpoint

LIKELIHOOD = Gaussian(NOISE)


def quick_fit(model: Any = None, **options: Any) -> Fit:
    settings: dict[str, Any] = {
        "num_epochs": 3,
        "batch_size": 16,
        "learning_rate": 1e-2,
        "key": jr.key(0),
    }
    settings |= options
    split = settings.pop("split", linear_data())
    likelihood = settings.pop("likelihood", LIKELIHOOD)
    return fit(
        linear_model() if model is None else model, split, likelihood, **settings
    )


def assert_same(a: Any, b: Any) -> None:
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(left, right)


def test_parameters_of_the_last_step_are_finite(tmp_path):
    """Catches weights of infinity that are saved: no step after the last meets them."""
    run = RunFolder.create(tmp_path / "run", {})
    batch_size, num_epochs = 1_000, 1  # a single step
    with pytest.raises(NonFiniteError, match=r"Step 0 left .*step_000000000"):
        quick_fit(
            learning_rate=math.inf,
            batch_size=batch_size,
            num_epochs=num_epochs,
            run=Run(run),
        )
    (kept,) = run.checkpoints.iterdir()
    assert kept.name == "step_000000000"


def test_parameters_in_half_precision_are_finite():
    """Catches (seen) a bfloat16 that NumPy takes for no number."""
    data = linear_data()
    half = lambda a: a.astype(jnp.bfloat16)
    network = nn.MLP(data.x.shape[1], 1, (), key=jr.key(0))
    with pytest.raises(NonFiniteError, match="Step 0 left"):
        quick_fit(
            Deterministic(
                jax.tree.map(lambda a: half(a) if eqx.is_array(a) else a, network)
            ),
            split=Split(half(data.x), data.y),
            learning_rate=math.inf,
            batch_size=len(data.x),
            num_epochs=1,
        )


@pytest.mark.parametrize(
    "draws",
    [{"num_draws": 8}, {"num_draws": 2, "accumulate": 4, "draw_per_part": True}],
)
def test_recovers_the_mean_field_optimum(draws):
    """Precision = the diagonal of the true one. Catches KL / N twice (seen)
    and a KL weight that is not 1 (seen); a KL for each part of a batch (seen).
    """
    split = linear_data()
    result = quick_fit(split=split, num_epochs=600, learning_rate=2e-2, **draws)
    mean, sd = mean_field_optimum(split)
    model = result.model
    np.testing.assert_allclose(model.mean, mean, atol=0.1 * sd.max())
    np.testing.assert_allclose(jnp.exp(model.log_scale), sd, rtol=0.06)
    best = LinearMeanField(
        jnp.asarray(mean, jnp.float32),
        jnp.log(jnp.asarray(sd, jnp.float32)),
        model.prior_scale,
    )
    exact = exact_elbo(best, split)
    assert exact - 0.1 < exact_elbo(model, split) <= exact + 1e-3
    # The history's elbo is in nats per data set, at KL weight 1.
    assert np.mean(result.history["elbo"][-100:]) == pytest.approx(exact, abs=0.6)
    parts = result.history["log_likelihood"] - result.history["kl"]
    np.testing.assert_allclose(result.history["elbo"], parts, rtol=1e-4)


def test_frozen_leaves_do_not_move_and_the_users_model_stays():
    """Catches a prior that is trained, and donated memory of the user's arrays."""
    model = linear_model()
    likelihood = Gaussian(NOISE, learn_scale=True)
    result = quick_fit(model, likelihood=likelihood)
    assert_same(result.model.prior_scale, model.prior_scale)
    assert float(jnp.abs(result.model.mean - model.mean).min()) > 1e-3
    assert result.likelihood.log_scale != likelihood.log_scale
    assert_same(model, linear_model())
    fixed = quick_fit(model)
    assert_same(fixed.likelihood, LIKELIHOOD)


def test_each_label_has_its_optimiser():
    """Plain SGD by hand for one step of each. Catches swapped labels (seen)."""
    model = linear_model(scale_label="noise")
    options: dict[str, Any] = {
        "num_epochs": 1,
        "batch_size": 64,
        "schedule": Constant(),
        "clip_norm": None,
        "optimiser": optax.sgd,
    }
    both = quick_fit(model, learning_rate={"weights": 0.1, "noise": 0.01}, **options)
    once = quick_fit(model, learning_rate=1.0, **options)
    move = lambda r: (r.model.mean - model.mean, r.model.log_scale - model.log_scale)
    (mean, scale), (unit_mean, unit_scale) = move(both), move(once)
    np.testing.assert_allclose(mean, 0.1 * unit_mean, rtol=1e-4)
    np.testing.assert_allclose(scale, 0.01 * unit_scale, rtol=1e-4, atol=1e-7)
    assert both.history["learning_rate_noise"][0] == pytest.approx(0.01)
    own = quick_fit(
        model,
        optimiser=optax.sgd(0.1),
        **{k: v for k, v in options.items() if k != "optimiser"},
    )
    np.testing.assert_allclose(own.model.mean, both.model.mean, rtol=1e-5)
    assert "learning_rate" not in own.history


@pytest.mark.parametrize("accumulate", [2, 4])
def test_accumulation_is_the_big_batch(accumulate):
    """The same parameters. Catches a dropped or repeated part (seen)."""
    whole, parts = quick_fit(), quick_fit(accumulate=accumulate)
    np.testing.assert_allclose(whole.model.mean, parts.model.mean, rtol=1e-4)
    np.testing.assert_allclose(whole.model.log_scale, parts.model.log_scale, rtol=1e-4)
    for name in ("loss", "elbo", "kl", "log_likelihood", "grad_norm"):
        np.testing.assert_allclose(whole.history[name], parts.history[name], rtol=1e-4)


def test_parts_with_their_own_draws_average_their_noise():
    """Of equal rows a loss varies by its draws alone: four of them leave a quarter.

    Catches parts that share a draw (a ratio of 1, seen).
    """
    rows = linear_data()
    same = Pair(np.repeat(rows.x[:1], 64, axis=0), np.repeat(rows.y[:1], 64, axis=0))
    model = dataclasses.replace(linear_model(), log_scale=jnp.full(3, -1.0))
    still = {"split": same, "learning_rate": 1e-9, "num_epochs": 100}

    def log_likelihoods(**options: Any) -> np.ndarray:
        fitted = quick_fit(model, accumulate=4, **still, **options)
        return np.asarray(fitted.history["log_likelihood"])

    one, own = log_likelihoods(), log_likelihoods(draw_per_part=True)
    error = math.sqrt((one.var() + own.var()) / 400)
    assert abs(one.mean() - own.mean()) < 4 * error
    assert 0.15 < own.var() / one.var() < 0.4  # of 400 steps: 0.25 ± 0.03


def test_batch_by_batch_gives_the_same_numbers():
    inside, outside = quick_fit(), quick_fit(in_memory=False)
    np.testing.assert_allclose(inside.model.mean, outside.model.mean, rtol=1e-5)
    np.testing.assert_allclose(
        inside.history["elbo"], outside.history["elbo"], rtol=1e-5
    )


def test_rematerialised_is_the_same():
    np.testing.assert_allclose(
        quick_fit().model.mean, quick_fit(rematerialise=True).model.mean, rtol=1e-5
    )


def test_the_step_is_compiled_once():
    """Traces of the model: one at the door, one in the step, however long the run."""
    count = 0

    class Counting(AbstractRandomFunction):
        inner: LinearMeanField
        num_strata: int = 1
        num_members: int = 1

        def __call__(self, x, *, key, index=None, state=None):
            nonlocal count
            count += 1
            return self.inner(x, key=key, index=index, state=state)

        def member(self, number: Any) -> AbstractRandomFunction:
            del number
            return self

        def posterior_parts(self) -> PosteriorParts:
            return PosteriorParts()

        def labels(self):
            return label_tree(self, "weights", frozen=lambda m: m.inner.prior_scale)

    quick_fit(Counting(linear_model()), num_epochs=50)
    assert count == 2


def test_batch_larger_than_the_data_is_clipped_and_logged(caplog):
    with caplog.at_level(logging.INFO, logger="ornstein"):
        clipped = quick_fit(batch_size=1000)
    assert "batch_size=1000 clipped to the 64 rows" in caplog.text
    assert_same(clipped.model, quick_fit(batch_size=64).model)


def test_kl_warmup_and_weight_are_recorded_and_elbo_is_honest():
    result = quick_fit(num_epochs=8, kl=KLWeight(0.5, warmup=0.5))
    # 4 steps an epoch, 16 of 32 rising; the last step of epoch e is 4e - 1.
    expected = 0.5 * np.minimum((4 * np.arange(1, 9) - 1) / 16, 1)
    np.testing.assert_allclose(result.history["kl_weight"], expected, rtol=1e-6)
    last = {name: values[-1] for name, values in result.history.items()}
    assert last["elbo"] == pytest.approx(last["log_likelihood"] - last["kl"], rel=1e-4)
    at_weight = -(last["log_likelihood"] - 0.5 * last["kl"]) / 64
    assert last["loss"] == pytest.approx(at_weight, rel=1e-4)


def test_clipping_is_optax():
    """One step of SGD at rate 1: its length is the clip norm."""
    result = quick_fit(
        num_epochs=1,
        batch_size=64,
        optimiser=optax.sgd,
        learning_rate=1.0,
        schedule=Constant(),
        clip_norm=1e-2,
    )
    start = linear_model()
    move = optax.tree.sub(
        eqx.filter(result.model, eqx.is_array), eqx.filter(start, eqx.is_array)
    )
    assert float(optax.tree.norm(move)) == pytest.approx(1e-2, rel=1e-3)
    assert result.history["grad_norm"][0] > 1e-2


class Plain(AbstractRandomFunction):
    """A point: y = slope * x, or two logits."""

    slope: jax.Array
    num_strata: int = 1
    num_members: int = 1

    def __call__(
        self, x: Any, *, key: Any, index: Any = None, state: eqx.nn.State | None = None
    ) -> Draw:
        output = x * self.slope[None]
        return Draw(
            output=output, kl=jnp.zeros(()), local_kl=jnp.zeros(x.shape[0]), state=state
        )

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self) -> Any:
        return label_tree(self, "weights")


def test_running_mean_of_the_weights():
    """By hand, with steps of SGD on one number. Catches a lost debiasing (seen)."""
    x = np.ones((4, 1), np.float32)
    result = quick_fit(
        Plain(jnp.zeros(1)),
        split=Split(x, x),
        likelihood=Gaussian(1.0),
        batch_size=4,
        optimiser=optax.sgd,
        learning_rate=0.5,
        schedule=Constant(),
        clip_norm=None,
        ema_decay=0.9,
    )
    slopes = 1 - 0.5 ** np.arange(1, 4)
    weights = 0.9 ** np.arange(2, -1, -1)
    assert float(result.model.slope[0]) == pytest.approx(slopes[-1])
    expected = weights @ slopes / weights.sum()
    assert float(result.averaged().model.slope[0]) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="ema_decay=0.999"):
        quick_fit().averaged()


def test_gradient_snr_of_known_noise():
    """A gradient of mean 1 and sd 2, batches of one. Catches m / variance (seen)."""
    targets = 1 + 2 * np.random.default_rng(0).standard_normal((4000, 1))
    targets = (targets - targets.mean()) / targets.std() * 2 + 1
    result = quick_fit(
        Plain(jnp.zeros(1)),
        split=Split(np.ones((4000, 1), np.float32), targets.astype(np.float32)),
        likelihood=Gaussian(1.0),
        num_epochs=1,
        batch_size=1,
        optimiser=optax.sgd,
        learning_rate=1e-12,
        clip_norm=None,
        snr_decay=0.9995,
    )
    # About 2,000 effective draws: sd of the ratio 0.5 * sqrt(1.125 / 2000) = 0.012.
    assert result.history["gradient_snr"][0] == pytest.approx(0.5, abs=0.055)


def test_accuracy_and_ece_of_known_probabilities():
    """75 % confident, 60 % right. Catches an ECE of logits or of unweighted bins."""
    logit = math.log(0.75 / 0.25)
    x = np.tile([[logit, 0.0]], (20, 1)).astype(np.float32)
    y = np.array([0] * 12 + [1] * 8, np.int32)
    split = Split(x, y)
    result = quick_fit(
        Plain(jnp.ones(2)),
        split=split,
        likelihood=Categorical(),
        batch_size=5,
        learning_rate=1e-12,
        validation=Validation(split, num_draws=2),
    )
    nll = -(0.6 * math.log(0.75) + 0.4 * math.log(0.25))
    for prefix in ("", "val_"):
        np.testing.assert_allclose(result.history[prefix + "accuracy"], 0.6, rtol=1e-5)
        np.testing.assert_allclose(result.history[prefix + "ece"], 0.15, atol=1e-5)
    np.testing.assert_allclose(result.history["val_nll"], nll, rtol=1e-4)


def test_early_stopping_returns_the_best_epoch():
    """Training pulls the slope to 1, validation wants 0.5: the best is on the way."""
    x = np.ones((4, 1), np.float32)
    result = quick_fit(
        Plain(jnp.zeros(1)),
        split=Split(x, x),
        likelihood=Gaussian(1.0),
        num_epochs=100,
        batch_size=4,
        optimiser=optax.sgd,
        learning_rate=0.1,
        schedule=Constant(),
        validation=Validation(
            Split(x, 0.5 * x), early_stopping=EarlyStopping(patience=3)
        ),
    )
    slopes = 1 - 0.9 ** np.arange(1, 101)
    best = int(np.argmin((slopes - 0.5) ** 2))
    assert len(result.history["val_nll"]) == best + 1 + 3
    assert float(result.model.slope[0]) == pytest.approx(slopes[best], rel=1e-5)


def stopped_mean(run: Run | None = None, **options: Any) -> Fit:
    """The slope overshoots 0.5 towards 1, and its running mean follows later."""
    x = np.ones((4, 1), np.float32)
    arguments: dict[str, Any] = {
        "num_epochs": 40,
        "batch_size": 4,
        "optimiser": optax.sgd,
        "learning_rate": 0.1,
        "schedule": Constant(),
        "ema_decay": 0.8,
        "validation": Validation(
            Split(x, 0.5 * x), early_stopping=EarlyStopping(patience=3)
        ),
        "run": run,
    }
    return quick_fit(
        Plain(jnp.zeros(1)),
        split=Split(x, x),
        likelihood=Gaussian(1.0),
        **(arguments | options),
    )


def mean_slopes() -> np.ndarray:
    """After each epoch, by hand."""
    slopes, mean, means = 1 - 0.9 ** np.arange(1, 41), 0.0, []
    for slope in slopes:
        mean = 0.8 * mean + 0.2 * slope
        means.append(mean / (1 - 0.8 ** (len(means) + 1)))
    return np.array(means)


def test_early_stopping_judges_and_keeps_the_running_mean():
    """Seen failing with the raw weights' NLL as judge, and the last mean returned."""
    result = stopped_mean()
    means = mean_slopes()
    best = int(np.argmin((means - 0.5) ** 2))
    history = result.history
    assert len(history["val_nll"]) == best + 1 + 3
    assert np.argmin(history["val_ema_nll"]) == best
    assert np.argmin(history["val_nll"]) < best
    assert result.epoch == best + 1
    averaged = result.averaged()
    assert float(averaged.model.slope[0]) == pytest.approx(means[best], rel=1e-5)
    slope = 1 - 0.9 ** (best + 1)
    assert float(result.model.slope[0]) == pytest.approx(slope, rel=1e-5)
    x = np.ones((4, 1), np.float32)
    scores = validate(
        averaged.model,
        averaged.likelihood,
        (x, 0.5 * x),
        key=jr.key(0),
        num_draws=8,
    )
    assert scores["nll"] == history["val_ema_nll"][best]


def test_rows_of_a_network_of_half_precision_are_counted():
    """Of 1,003 rows 602 right. Catches counts that round to a multiple of 4 (seen)."""
    half = lambda a: np.asarray(a).astype(jnp.bfloat16)
    x = half(np.tile([[1.0, 0.0]], (1_003, 1)))
    y = (np.arange(1_003) >= 602).astype(np.int32)
    result = quick_fit(
        Plain(jnp.ones(2, jnp.bfloat16)),
        split=Split(x, y),
        likelihood=Categorical(),
        batch_size=1_003,
        num_epochs=1,
    )
    assert result.history["accuracy"][0] == pytest.approx(602 / 1_003, rel=1e-5)


@pytest.mark.parametrize("decay", [0.9, 0.99999])
def test_the_mean_of_what_stays_is_that(decay):
    """Catches (seen) weights that shrink by 0.14 %, for in single precision the decay
    and one less it do not add up to 1; and by 0.3 % in the long run, where a mean that
    begins at zero stops on its way.
    """
    x = np.ones((4, 1), np.float32)
    result = quick_fit(
        Plain(jnp.full(1, 0.7)),
        split=Split(x, x),
        likelihood=Gaussian(1.0),
        batch_size=4,
        learning_rate=1e-30,
        num_epochs=20,
        ema_decay=decay,
    )
    assert float(result.averaged().model.slope[0]) == np.float32(0.7)
    start, rest = jnp.zeros(3), jnp.full(3, 0.7)
    mean = lambda step, ema: _running_mean(ema, rest, _share(step, decay))
    for num_steps in (1, 20, 1_000_000):
        found = jax.lax.fori_loop(0, num_steps, mean, start)
        np.testing.assert_allclose(found, 0.7, rtol=1e-6)


def test_a_running_mean_that_began_at_zero_goes_on(tmp_path, monkeypatch):
    """Of a checkpoint of an earlier version. Catches weights that begin to shrink."""
    whole = stopped_mean()

    def save_as_before(folder, step, tree, meta):
        state, best = tree
        weight = np.float32(1 - 0.8**step)
        ema = jax.tree.map(lambda leaf: weight * leaf, state.ema)
        state = dataclasses.replace(state, ema=ema)
        meta = {name: value for name, value in meta.items() if name != "is_mean"}
        return save_checkpoint(folder, step, (state, best), meta)

    run = RunFolder.create(tmp_path / "run", {})
    with monkeypatch.context() as patch:
        patch.setattr("ornstein.train._session.save_checkpoint", save_as_before)
        with pytest.raises(KeyboardInterrupt):
            stopped_mean(Run(run), callbacks=[StopAt(3)])
    resumed = stopped_mean(Run(run, resume=True))
    for ours, theirs in zip(
        *map(jax.tree.leaves, (resumed.ema, whole.ema)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "rate", [np.float32(0.01), np.asarray(0.01), jnp.asarray(0.01), np.float64(0.01)]
)
def test_a_rate_of_numpys_or_jaxs_is_a_number(rate):
    """Catches (seen) one that is called as a schedule, without the falling one."""
    labels = {"a": "weights"}
    how: dict[str, Any] = {"schedule": Cosine(), "num_steps": 10}
    found = build_optimisation(labels, optax.adam, learning_rate=rate, **how)
    at = found.rates["weights"]
    rates = [float(at(jnp.asarray(step))) for step in (0, 5, 10)]
    expected = build_optimisation(labels, optax.adam, learning_rate=0.01, **how)
    at = expected.rates["weights"]
    assert rates == pytest.approx([float(at(jnp.asarray(s))) for s in (0, 5, 10)])
    assert rates[0] > rates[1] > rates[2]
    whole = build_optimisation(labels, optax.adam, learning_rate=np.int64(1), **how)
    assert float(whole.rates["weights"](jnp.asarray(0))) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="`learning_rate` must be positive"):
        build_optimisation(labels, optax.adam, learning_rate=-rate, **how)


class StopAt(NamedTuple):
    """Ctrl-C after a step."""

    at: int

    def start(self, plan: Any) -> None: ...
    def epoch(self, record: dict[str, Any]) -> None: ...
    def stop(self) -> None: ...

    def advance(self, step: int, record: dict[str, Any]) -> None:
        if step == self.at:
            raise KeyboardInterrupt


def test_epochs_of_the_warm_up_are_not_chosen(tmp_path):
    """The best of all are in it, at a KL weight of almost nothing; patience begins when
    it ends, in a run that goes on, too. Seen failing with the best of all epochs.
    """
    kl = KLWeight(0.3, warmup=0.5)  # of 40 steps, an epoch each
    whole = stopped_mean(kl=kl)
    assert np.argmin(whole.history["val_ema_nll"]) < 19
    assert whole.epoch == 21
    assert whole.history["kl_weight"][20] == pytest.approx(0.3)
    assert whole.history["kl_weight"][19] < 0.3
    assert len(whole.history["val_nll"]) == 21 + 3
    mean = float(whole.averaged().model.slope[0])
    assert mean == pytest.approx(mean_slopes()[20], rel=1e-5)
    run = RunFolder.create(tmp_path / "run", {})
    with pytest.raises(KeyboardInterrupt):
        stopped_mean(Run(run, checkpoint_every=0.0), kl=kl, callbacks=[StopAt(15)])
    resumed = stopped_mean(Run(run, resume=True), kl=kl)
    assert resumed.epoch == whole.epoch
    assert_same(resumed.ema, whole.ema)
    assert_same(resumed.model, whole.model)


def test_a_run_that_is_all_warm_up_returns_its_last_epoch():
    """Catches a best epoch that is none: the model as it began."""
    result = stopped_mean(kl=KLWeight(warmup=1.0))
    assert result.epoch == len(result.history["val_nll"]) == 40
    assert float(result.model.slope[0]) == pytest.approx(1 - 0.9**40, rel=1e-5)


def test_the_best_running_mean_survives_a_resume(tmp_path):
    """Interrupted after the best epoch. Catches a mean left out of checkpoints."""
    whole = stopped_mean()
    assert whole.epoch is not None
    run = RunFolder.create(tmp_path / "run", {})
    stop = StopAt(whole.epoch + 1)
    with pytest.raises(KeyboardInterrupt):
        stopped_mean(Run(run, checkpoint_every=0.0), callbacks=[stop])
    resumed = stopped_mean(Run(run, resume=True))
    assert resumed.epoch == whole.epoch
    assert_same(resumed.ema, whole.ema)
    assert_same(resumed.model, whole.model)
    np.testing.assert_array_equal(
        resumed.history["val_ema_nll"], whole.history["val_ema_nll"]
    )


def test_augmentation_meets_the_inputs():
    """Inputs doubled at training: the slope is halved."""
    x = np.ones((4, 1), np.float32)
    result = quick_fit(
        Plain(jnp.zeros(1)),
        split=Split(x, x),
        likelihood=Gaussian(0.1),
        num_epochs=300,
        batch_size=4,
        learning_rate=0.05,
        augmentation=lambda x, *, key: 2.0 * x,
    )
    assert float(result.model.slope[0]) == pytest.approx(0.5, abs=1e-2)


class Counter(AbstractRandomFunction):
    """Batch statistics: the number of calls."""

    slope: jax.Array
    calls: eqx.nn.StateIndex
    num_strata: int = 1
    num_members: int = 1

    def __call__(
        self, x: Any, *, key: Any, index: Any = None, state: eqx.nn.State | None = None
    ) -> Draw:
        assert state is not None
        state = state.set(self.calls, state.get(self.calls) + 1)
        return Draw(
            output=x * self.slope[None],
            kl=jnp.zeros(()),
            local_kl=jnp.zeros(x.shape[0]),
            state=state,
        )

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self) -> Any:
        return label_tree(self, "weights")


@pytest.mark.parametrize("num_draws", [1, 3])
def test_batch_statistics_move_on(num_draws):
    """12 steps, one update each however many draws. Catches a state that is reset."""
    make = lambda: Counter(jnp.zeros(1), eqx.nn.StateIndex(jnp.zeros(())))
    model, state = eqx.nn.make_with_state(make)()
    x = np.ones((64, 1), np.float32)
    result = quick_fit(model, split=Split(x, x), state=state, num_draws=num_draws)
    assert float(result.state.get(model.calls)) == 12.0


class Diverging(AbstractRandomFunction):
    """Its KL (or its gradient) stops being a number when the slope passes 1/2."""

    slope: jax.Array
    fault: str = eqx.field(static=True)
    num_strata: int = 1
    num_members: int = 1

    def __call__(
        self, x: Any, *, key: Any, index: Any = None, state: eqx.nn.State | None = None
    ) -> Draw:
        distance = jnp.maximum(0.5 - self.slope[0], 0.0)
        kl = -1e-9 * jnp.log(distance) if self.fault == "kl" else jnp.sqrt(distance)
        return Draw(
            output=x * self.slope[None],
            kl=kl,
            local_kl=jnp.zeros(x.shape[0]),
            state=state,
        )

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self) -> Any:
        return label_tree(self, "weights")


@pytest.mark.parametrize("in_memory", [True, False])
def test_non_finite_loss_stops_with_step_and_cause(in_memory):
    """SGD at rate 0.2 passes 0.5 after three steps: 0.2, 0.36, 0.488, 0.59."""
    x = np.ones((4, 1), np.float32)
    options: dict[str, Any] = {
        "split": Split(x, x),
        "likelihood": Gaussian(1.0),
        "num_epochs": 20,
        "batch_size": 2,
        "optimiser": optax.sgd,
        "learning_rate": 0.2,
        "schedule": Constant(),
        "in_memory": in_memory,
    }
    with pytest.raises(NonFiniteError, match=r"step 4 \(epoch 3, .* 0.2\): kl is not"):
        quick_fit(Diverging(jnp.zeros(1), "kl"), **options)
    with pytest.raises(NonFiniteError, match="its gradient is not"):
        quick_fit(Diverging(jnp.full(1, 0.5), "gradient"), **options)


class Pair(NamedTuple):
    """A split of the user's own, which nothing has checked yet."""

    x: np.ndarray
    y: np.ndarray


NAN = Pair(linear_data().x.copy(), linear_data().y)
NAN.x[5, 1] = np.nan
BAD = [
    ({"batch_size": 0}, "`batch_size` must be at least 1, got 0"),
    ({"num_epochs": 0}, "`num_epochs` must be at least 1, got 0"),
    ({"learning_rate": 0.0}, "`learning_rate` must be positive, got 0.0"),
    ({"learning_rate": -1e-3}, "`learning_rate` must be positive"),
    ({"ema_decay": 1.0}, "`ema_decay` must be between 0 and 1"),
    ({"clip_norm": 0.0}, "`clip_norm` must be positive"),
    ({"accumulate": 3}, "cannot be cut into accumulate=3 equal parts"),
    ({"draw_per_part": True}, "accumulate=1 leaves it whole: write accumulate=4"),
    (
        {"objective": ImportanceWeighted(), "num_draws": 2, "accumulate": 2},
        "`ImportanceWeighted` takes each batch whole",
    ),
    ({"split": NAN}, "inputs of `split` have NaN .* first in row 5"),
    (
        {"split": Pair(NAN.x[:0], NAN.y[:0])},
        "`split` has no rows",
    ),
    (
        {"split": Pair(NAN.x, NAN.y[:-1])},
        "64 rows of inputs and 63 of targets",
    ),
    ({"optimiser": {"noise": optax.adam}}, "also trains leaves labelled 'weights'"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input_is_one_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        quick_fit(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KLWeight(-1.0), r"`KLWeight.weight` must be finite and not negative"),
        (lambda: KLWeight(math.nan), "must be finite"),
        (lambda: KLWeight(warmup=1.5), r"`KLWeight.warmup` must be a fraction"),
        (lambda: Validation(NAN), "inputs of `validation` have NaN"),
        (
            lambda: Validation(Pair(NAN.x.astype(jnp.bfloat16), NAN.y)),
            "inputs of `validation` have NaN",
        ),
        (
            lambda: Validation(linear_data(), num_draws=0),
            r"`Validation.num_draws` must",
        ),
        (lambda: Validation(linear_data(), every=0), r"`Validation.every` must be at"),
        (lambda: Run(RunFolder(Path()), checkpoint_every=-1.0), "seconds, at least 0"),
    ],
)
def test_bad_groups_are_refused_where_they_are_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kl": 0.5}, r"`kl` must be a `KLWeight`, got float: .*`kl=orn.KLWeight\("),
        ({"validation": linear_data()}, "`validation` must be a `Validation`, got"),
        ({"run": RunFolder(Path())}, r"`run` must be a `Run`, got RunFolder"),
        ({"kl_weight": 0.5}, "unexpected keyword argument 'kl_weight'"),
        ({"validation_draws": 2}, "unexpected keyword argument 'validation_draws'"),
    ],
)
def test_groups_in_their_old_spelling_are_refused(options, message):
    """Catches an argument of before the groups that is silently taken for its group."""
    with pytest.raises(TypeError, match=message):
        quick_fit(**options)
    with pytest.raises(TypeError, match="must be a `RunFolder`, got PosixPath"):
        Run(Path())  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: KLWeight(split="bad"),  # pyright: ignore[reportArgumentType]
            "`KLWeight.split` must be an `AbstractKLSplit`, got str",
        ),
        (
            lambda: Validation(linear_data(), early_stopping=3),  # pyright: ignore[reportArgumentType]
            "early_stopping` must be an `EarlyStopping`, got int",
        ),
        (lambda: Validation([linear_data()]), "must have `x` and `y`, got list"),
        (lambda: quick_fit(eqx.nn.MLP(1, 1, 4, 1, key=jr.key(0))), "`orn.MeanField"),
    ],
)
def test_what_is_of_another_kind_is_one_sentence(make, message):
    """Seen: an AttributeError from inside (`factor`, `min_delta`, `x`, `member`)."""
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimiser": "adam"}, "must be a rule .* got 'adam': write optimiser=optax"),
        ({"optimiser": {"weights": None}}, "must be a rule .* got None"),
        ({"optimiser": lambda rate: rate}, "must be a rule from a rate to an optax"),
        (
            {"optimiser": optax.MultiSteps(optax.adam(1e-2), 2)},
            r"`optax.MultiSteps`, .*: give what its `gradient_transformation\(\)`",
        ),
        ({"optimiser": optax.lbfgs()}, r"all that `fit` gives it \(no loss\)"),
        ({"optimiser": optax.polyak_sgd}, "this one stops .* argument: 'value'"),
        (
            {"optimiser": optax.contrib.sam(*2 * [optax.sgd(1e-2)], opaque_mode=False)},
            "all that `fit` gives it",
        ),
        ({"learning_rate": "fast"}, "a number or an optax schedule, got 'fast'"),
        ({"learning_rate": None}, "a number or an optax schedule, got None"),
        (
            {"schedule": optax.cosine_decay_schedule(1.0, 3)},
            "got function: .* is `learning_rate`",
        ),
    ],
)
def test_what_is_no_optimiser_rate_or_schedule_is_one_sentence(options, message):
    """Seen: an error from inside, such as "'str' object is not callable"."""
    with pytest.raises(TypeError, match=message):
        quick_fit(**options)


def test_nothing_to_train_is_refused():
    class Frozen(AbstractRandomFunction):
        slope: jax.Array
        num_strata: int = 1
        num_members: int = 1

        def __call__(self, x, *, key, index=None, state=None):
            return Draw(
                output=x[:, :1],
                kl=jnp.zeros(()),
                local_kl=jnp.zeros(x.shape[0]),
                state=state,
            )

        def member(self, number: Any) -> AbstractRandomFunction:
            del number
            return self

        def posterior_parts(self) -> PosteriorParts:
            return PosteriorParts()

        def labels(self):
            return label_tree(self, "frozen")

    with pytest.raises(ValueError, match="Nothing is to be trained"):
        quick_fit(Frozen(jnp.zeros(1)))


class _OneForAll(Gaussian):
    """An own likelihood that sums over rows, too."""

    def log_prob(self, output, y):
        return jnp.sum(super().log_prob(output, y))


def test_a_likelihood_without_a_number_for_each_row_is_refused(unchecked):
    """Catches (seen) a loss of what broadcasts."""
    with pytest.raises(ValueError, match=r"has shape \(\), where each row has one"):
        quick_fit(likelihood=_OneForAll(1.0))


class _Own(AbstractRandomFunction):
    """A random function of one's own, with a part that is wrong."""

    slope: jax.Array
    wrong: Any = eqx.field(static=True)
    label: Any = eqx.field(static=True, default="weights")
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    def __call__(self, x, *, key, index=None, state=None):
        parts = {
            "output": x @ self.slope,
            "kl": jnp.zeros(()),
            "local_kl": jnp.zeros(x.shape[0]),
        }
        wrong = self.wrong(parts["output"])
        return Draw(**(parts | wrong)) if isinstance(wrong, dict) else wrong

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self):
        if self.label is None:
            return "weights"
        return jax.tree.map(lambda _: self.label, self)


@pytest.mark.parametrize(
    ("wrong", "label", "message"),
    [
        (lambda output: output, "weights", "`_Own` must give .*Draw` .*got an array"),
        (
            lambda _: {"local_kl": jnp.zeros(())},
            "weights",
            r"a `local_kl` of shape \(\) for 64",
        ),
        (
            lambda _: {"kl": jnp.zeros(3)},
            "weights",
            r"a `kl` of shape \(3,\) for 64 rows",
        ),
        (
            lambda _: {"output": jnp.zeros(())},
            "weights",
            r"an output of shape \(\) for 64 rows",
        ),
        (
            lambda _: {"output": (jnp.zeros((64, 1)), jnp.zeros((64, 1)))},
            "weights",
            r"`Gaussian` takes one array, and the output is a tuple .*CustomLikelihood",
        ),
        (lambda _: {}, "fixed", "calls .slope 'fixed', which is no label"),
        (
            lambda _: {},
            None,
            "must be a tree like the _Own itself, .*got one of type str",
        ),
    ],
)
def test_a_random_function_that_breaks_its_contract(wrong, label, message, unchecked):
    """Catches (seen) errors from inside, and a label in no group that was trained."""
    model = _Own(jnp.zeros((3, 1)), wrong, label)
    with pytest.raises((TypeError, ValueError), match=message):
        quick_fit(model, batch_size=64)
