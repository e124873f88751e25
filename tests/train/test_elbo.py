"""The bound against closed forms, and its scale."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from train.linear_model import (
    NOISE,
    PRIOR,
    exact_elbo,
    linear_data,
    linear_model,
)

from ornstein.data._base import Split
from ornstein.functions import (
    Flipout,
    MeanField,
    PosteriorParts,
    SampledKL,
    StickTheLandingKL,
)
from ornstein.functions._base import AbstractRandomFunction, Draw, label_tree
from ornstein.likelihood import Gaussian
from ornstein.prior import GaussianPrior
from ornstein.train import ImportanceWeighted, elbo_loss, fit

LIKELIHOOD = Gaussian(NOISE)


def test_elbo_is_the_closed_form():
    """4,000 draws. Catches a KL divided by the batch, or a wrong sign (seen)."""
    split, model = linear_data(), linear_model()
    loss, info = eqx.filter_jit(elbo_loss)(
        model,
        LIKELIHOOD,
        (jnp.asarray(split.x), jnp.asarray(split.y)),
        num_data=64,
        key=jr.key(0),
        num_draws=4000,
    )
    exact = exact_elbo(model, split)
    # Sd of one draw's elbo, from the draws' spread in log likelihood.
    x = split.x.astype(float)
    hessian = x.T @ x / NOISE**2 * math.exp(-4)
    gradient = x.T @ (split.y[:, 0] - x @ np.zeros(3)) / NOISE**2 * math.exp(-2)
    sd = math.sqrt(gradient @ gradient + 0.5 * np.sum(hessian**2))
    assert abs(float(info.elbo) - exact) < 4.5 * sd / math.sqrt(4000)
    assert float(loss) == pytest.approx(-float(info.elbo) / 64, rel=1e-5)
    parts = info.log_likelihood - info.kl - info.local_kl
    assert float(info.elbo) == pytest.approx(float(parts), rel=1e-5)


@pytest.mark.parametrize("batch_size", [32, 16, 8])
def test_mean_over_batches_is_the_whole(batch_size):
    """Exactly, at one draw. Catches a scale N / n that is off (seen: KL / n)."""
    split, model = linear_data(), linear_model()

    def loss(x, y):
        return elbo_loss(
            model, LIKELIHOOD, (x, y), num_data=64, key=jr.key(1), kl_weight=0.3
        )[0]

    x, y = jnp.asarray(split.x), jnp.asarray(split.y)
    whole = loss(x, y)
    parts = jax.vmap(loss)(x.reshape(-1, batch_size, 3), y.reshape(-1, batch_size, 1))
    assert float(jnp.mean(parts)) == pytest.approx(float(whole), rel=1e-5)


def test_kl_weight_scales_the_kl_alone():
    split, model = linear_data(), linear_model()
    batch = (jnp.asarray(split.x), jnp.asarray(split.y))
    loss = lambda beta: elbo_loss(
        model, LIKELIHOOD, batch, num_data=64, key=jr.key(2), kl_weight=beta
    )
    (at_0, info_0), (at_2, info_2) = loss(0.0), loss(2.0)
    assert float(at_2 - at_0) == pytest.approx(2 * float(model.kl()) / 64, rel=1e-4)
    assert float(info_0.elbo) == float(info_2.elbo)


class PriorDraws(AbstractRandomFunction):
    """y = w for all rows, w ~ q = p = N(0, PRIOR^2): its sampled log ratio is 0."""

    anchor: jax.Array
    num_strata: int = 1
    num_members: int = 1

    def __call__(
        self, x: Any, *, key: Any, index: Any = None, state: eqx.nn.State | None = None
    ) -> Draw:
        w = PRIOR * jr.normal(key)
        rows = x.shape[0]
        output = jnp.full((rows, 1), w) + self.anchor
        kl = jnp.zeros(())
        return Draw(
            output=output,
            kl=kl,
            local_kl=jnp.zeros(rows),
            state=state,
            log_ratio="shared",
        )

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self) -> Any:
        return label_tree(self, "weights")


def test_importance_weighting_reaches_the_evidence():
    """One observation: the evidence is a Gaussian density. Catches a lost log n."""
    y = jnp.asarray([[1.5]])
    loss, info = eqx.filter_jit(elbo_loss)(
        PriorDraws(jnp.zeros(())),
        LIKELIHOOD,
        (jnp.zeros((1, 1)), y),
        num_data=1,
        key=jr.key(3),
        num_draws=20_000,
        objective=ImportanceWeighted(),
    )
    variance = PRIOR**2 + NOISE**2
    evidence = -0.5 * math.log(2 * math.pi * variance) - 1.5**2 / (2 * variance)
    # Relative sd of a weight is about 2 here: 2 / sqrt(20,000) = 0.014.
    assert -float(loss) == pytest.approx(evidence, abs=0.065)
    assert float(info.elbo) < evidence - 1.0


class Members(AbstractRandomFunction):
    """Constants, one KL each, rows with latents of their own."""

    values: jax.Array
    num_strata: int = 2
    num_members: int = 2

    def __call__(
        self, x: Any, *, key: Any, index: Any = None, state: eqx.nn.State | None = None
    ) -> Draw:
        assert index is None, "a prediction's"
        (value,) = self.values
        rows = x.shape[0]
        output = jnp.broadcast_to(value, (rows, 1))
        return Draw(output=output, kl=value, local_kl=0.1 * jnp.ones(rows), state=state)

    def member(self, number: Any) -> AbstractRandomFunction:
        return Members(self.values[number][None], 1, 1)

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self) -> Any:
        return label_tree(self, "weights")


@pytest.mark.parametrize("kl_weight", [1.0, 0.3])
def test_members_are_averaged_and_local_kl_scales_with_the_data(kl_weight: float):
    """By hand. Catches a sum over members, a local KL counted once, a KL weight that
    leaves the local KL out, and members called as in prediction (all seen)."""
    y = jnp.asarray([[0.0], [1.0]])
    model = Members(jnp.asarray([0.5, 2.0]))
    loss, info = elbo_loss(
        model,
        LIKELIHOOD,
        (jnp.zeros((2, 1)), y),
        num_data=10,
        key=jr.key(0),
        kl_weight=kl_weight,
    )
    log_p = lambda value: (
        -0.5 * ((value - np.asarray(y)) / NOISE) ** 2
        - 0.5 * math.log(2 * math.pi * NOISE**2)
    )
    log_likelihood = np.mean([log_p(0.5).mean(), log_p(2.0).mean()])
    assert float(info.local_kl) == pytest.approx(10 * 0.1)
    assert float(info.kl) == pytest.approx(1.25)
    divergence = kl_weight * (0.1 + 1.25 / 10)
    assert float(loss) == pytest.approx(-log_likelihood + divergence, rel=1e-5)
    elbo = 10 * log_likelihood - 10 * 0.1 - 1.25
    assert float(info.elbo) == pytest.approx(elbo, rel=1e-5)


class RowLatents(AbstractRandomFunction):
    """y_i ~ N(z_i, NOISE²), z_i ~ N(0, PRIOR²), q(z_i) = N(0, scale²): log q / p."""

    scale: jax.Array
    log_ratio: Any = eqx.field(static=True, default="rows")
    num_strata: int = 1
    num_members: int = eqx.field(static=True, default=1)

    def __call__(
        self, x: Any, *, key: Any, index: Any = None, state: eqx.nn.State | None = None
    ) -> Draw:
        del index
        xi = jr.normal(key, (x.shape[0],))
        z = self.scale * xi
        ratio = 0.5 * ((z / PRIOR) ** 2 - xi**2) + jnp.log(PRIOR / self.scale)
        return Draw(
            output=z[:, None],
            kl=jnp.zeros(()),
            local_kl=ratio,
            state=state,
            log_ratio=self.log_ratio,
        )

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self) -> Any:
        return label_tree(self, "weights")


def log_normal(y: Any, variance: float) -> np.ndarray:
    y = np.asarray(y, np.float64)
    return -0.5 * (y**2 / variance + math.log(2 * math.pi * variance))


def row_bounds(num_draws: int, num_rows: int = 100, scale: float = 1.5) -> float:
    """The bound per example, on rows drawn from the model."""
    variance = PRIOR**2 + NOISE**2
    y = math.sqrt(variance) * np.random.default_rng(0).standard_normal((num_rows, 1))
    loss, _ = eqx.filter_jit(elbo_loss)(
        RowLatents(jnp.asarray(scale)),
        LIKELIHOOD,
        (jnp.zeros((num_rows, 1)), jnp.asarray(y, jnp.float32)),
        num_data=num_rows,
        key=jr.key(5),
        num_draws=num_draws,
        objective=ImportanceWeighted(),
    )
    return -float(loss) - float(log_normal(y, variance).mean())


def test_importance_weights_of_latents_of_rows_are_of_rows():
    """Σ_i log (1/S) Σ_s w_is reaches the evidence, here known for each row.

    Seen failing with rows averaged before the logarithm: at 257 draws 7.8 nats short
    of it for each row, where Burda et al.'s equation (8) is within 0.05.
    """
    gaps = {s: row_bounds(s) for s in (1, 4, 16, 256, 4096)}
    assert list(gaps.values()) == sorted(gaps.values())
    assert -0.05 < gaps[256] < 0.01
    assert abs(gaps[4096]) < 0.01
    assert gaps[1] < -2.0


def test_importance_weights_of_one_draw_are_the_elbo():
    """By the same draw, for both kinds of latents. Catches a lost scale N."""
    y = jnp.asarray([[0.5], [-1.0], [2.0]])
    for model in (RowLatents(jnp.asarray(1.5)), PriorDraws(jnp.zeros(()))):
        loss = lambda objective, model=model: elbo_loss(
            model,
            LIKELIHOOD,
            (jnp.zeros((3, 1)), y),
            num_data=3,
            key=jr.key(6),
            objective=objective,
        )[0]
        assert float(loss(ImportanceWeighted())) == pytest.approx(
            float(loss(None)), rel=1e-6
        )


def conjugate() -> tuple[MeanField, Any, Any, float]:
    """A weight with a known evidence: y = w x + noise, w ~ N(0, PRIOR²)."""
    x = np.linspace(-1.0, 1.0, 8)[:, None]
    y = 0.8 * x + NOISE * np.random.default_rng(1).standard_normal(x.shape)
    covariance = NOISE**2 * np.eye(8) + PRIOR**2 * x @ x.T
    evidence = -0.5 * (
        y[:, 0] @ np.linalg.solve(covariance, y[:, 0])
        + np.linalg.slogdet(2 * math.pi * covariance)[1]
    )
    network = eqx.nn.Linear(1, 1, use_bias=False, key=jr.key(0))
    model = MeanField(network, GaussianPrior(PRIOR), init_scale=0.5, kl=SampledKL())
    return model, jnp.asarray(x), jnp.asarray(y), float(evidence)


def test_importance_weights_of_shared_weights_reach_the_evidence():
    """All rows at once, S = 1, 4 and 512, in double precision; and not above it.

    Seen failing with rows weighted one by one, as latents of rows are: that goes to
    another limit, 0.12 nats off.
    """
    with jax.enable_x64(True):
        model, x, y, evidence = conjugate()
        loss = lambda s, k: elbo_loss(
            model,
            LIKELIHOOD,
            (x, y),
            num_data=8,
            key=k,
            num_draws=s,
            objective=ImportanceWeighted(),
        )[0]
        keys = jr.split(jr.key(7), 512)  # standard errors: 0.09, 0.02 and 0.001 nats
        means = [
            -8 * float(jnp.mean(jax.lax.map(lambda k, s=s: loss(s, k), keys)))
            for s in (1, 4, 512)
        ]
    assert means == sorted(means)
    assert means[-1] == pytest.approx(evidence, abs=0.01)
    assert means[0] < evidence - 0.2


def test_importance_weighting_refuses_what_is_no_bound():
    """Closed forms, sticking the landing, Flipout, and minibatches of a shared draw."""
    model, x, y, _ = conjugate()
    network = model.with_weights(model.family.mean)
    loss = lambda model, x, y: elbo_loss(
        model,
        LIKELIHOOD,
        (x, y),
        num_data=8,
        key=jr.key(0),
        objective=ImportanceWeighted(),
    )
    for options in (
        {},
        {"kl": StickTheLandingKL()},
        {"kl": SampledKL(), "noise": Flipout()},
    ):
        other = MeanField(network, GaussianPrior(PRIOR), **options)
        with pytest.raises(ValueError, match="weighs each draw by its own log ratio"):
            loss(other, x, y)
        with pytest.raises(ValueError, match="weighs each draw by its own log ratio"):
            fit(
                other,
                Split(np.asarray(x), np.asarray(y)),
                LIKELIHOOD,
                key=jr.key(0),
                num_epochs=1,
                objective=ImportanceWeighted(),
            )
    with pytest.raises(ValueError, match="no bound on a batch of 4 of 8 rows"):
        loss(model, x[:4], y[:4])
    loss(RowLatents(jnp.asarray(1.0)), x[:4], y[:4])
