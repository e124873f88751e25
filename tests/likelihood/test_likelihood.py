"""Likelihoods against scipy's densities, and what they refuse."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.special
import scipy.stats

from ornstein.likelihood import (
    Bernoulli,
    Categorical,
    Cauchy,
    CustomLikelihood,
    Gaussian,
    Laplace,
    StudentT,
)

SCALES = np.array([0.5, 2.0], np.float32)
REAL = [
    (Gaussian(SCALES), scipy.stats.norm()),
    (Laplace(SCALES), scipy.stats.laplace()),
    (Cauchy(SCALES), scipy.stats.cauchy()),
    (StudentT(3, SCALES), scipy.stats.t(3)),
]
OUTPUT = np.array(jr.normal(jr.key(0), (4, 5, 2)))
TARGET = np.array(3 * jr.normal(jr.key(1), (5, 2)))


@pytest.mark.parametrize(("likelihood", "standard"), REAL)
def test_real_log_prob(likelihood, standard):
    """Catches a variance where a scale belongs, and columns averaged or not summed."""
    z = (TARGET - OUTPUT) / SCALES
    expected = np.sum(standard.logpdf(z) - np.log(SCALES), axis=-1)
    actual = eqx.filter_jit(likelihood.log_prob)(jnp.asarray(OUTPUT), TARGET)
    np.testing.assert_allclose(actual, expected, rtol=2e-5)


@pytest.mark.parametrize(("likelihood", "standard"), REAL)
def test_real_samples_follow_the_density(likelihood, standard):
    """Catches a distribution that samples other than its density says."""
    output = jnp.broadcast_to(jnp.array([1.0, -1.0]), (4000, 2))
    samples = likelihood.distribution(output).sample(jr.key(2))
    for column in range(2):
        z = (samples[:, column] - output[:, column]) / SCALES[column]
        assert scipy.stats.kstest(np.asarray(z), standard.cdf).pvalue > 1e-5


def test_categorical_log_prob():
    """Catches logits that are not normalised."""
    y = jnp.array([0, 1, 1, 0, 1])
    expected = np.take_along_axis(
        scipy.special.log_softmax(OUTPUT, axis=-1), np.array(y)[None, :, None], axis=-1
    )
    np.testing.assert_allclose(
        Categorical().log_prob(jnp.asarray(OUTPUT), y), expected[..., 0], rtol=1e-5
    )


def test_bernoulli_log_prob():
    """Catches a swap of 0 and 1, also where a probability rounds to 0."""
    y = np.array([[0, 1], [1, 1], [0, 0], [1, 0], [1, 1]])
    expected = scipy.stats.bernoulli.logpmf(y, scipy.special.expit(OUTPUT)).sum(-1)
    for targets in (jnp.asarray(y), jnp.asarray(y, float), jnp.asarray(y, bool)):
        actual = Bernoulli().log_prob(jnp.asarray(OUTPUT), targets)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    far = Bernoulli().log_prob(jnp.full((1, 1), -200.0), jnp.ones(1))
    np.testing.assert_allclose(far, -200.0)


@pytest.mark.parametrize("likelihood", [Categorical(), Bernoulli()])
def test_probs_logits_and_entropy(likelihood):
    """Catches base-2 entropy, NaN at probability 0, and a one-sided binary entropy."""
    output = jnp.asarray(OUTPUT)
    probs = likelihood.probs(output)
    again = likelihood.probs(likelihood.logits(probs))
    np.testing.assert_allclose(again, probs, rtol=1e-5)
    if isinstance(likelihood, Categorical):
        expected = scipy.stats.entropy(np.asarray(probs), axis=-1)
    else:
        expected = scipy.stats.bernoulli.entropy(np.asarray(probs)).sum(-1)
    np.testing.assert_allclose(likelihood.entropy(probs), expected, rtol=1e-5)
    assert likelihood.entropy(jnp.array([0.0, 1.0])) == 0


def test_custom_log_prob_is_the_users():
    """Catches an output and a target handed over in the wrong order."""
    likelihood = CustomLikelihood(lambda output, y: -jnp.sum(output, -1) + 2 * y)
    y = jnp.arange(5.0)
    expected = -OUTPUT[0].sum(-1) + 2 * np.arange(5)
    np.testing.assert_allclose(likelihood.log_prob(jnp.asarray(OUTPUT[0]), y), expected)
    with pytest.raises(NotImplementedError, match=r"prediction\.outputs"):
        likelihood.distribution(jnp.asarray(OUTPUT))


def test_vector_of_targets_is_one_column():
    """Catches (rows,) against (rows, 1) broadcast to (rows, rows)."""
    output, y = jnp.asarray(OUTPUT[..., :1]), jnp.asarray(TARGET[:, 0])
    for likelihood in (Gaussian(1.0), Bernoulli()):
        targets = y if isinstance(likelihood, Gaussian) else y > 0
        vector = likelihood.log_prob(output, targets)
        assert vector.shape == (4, 5)
        np.testing.assert_array_equal(
            vector, likelihood.log_prob(output, targets[:, None])
        )


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (Gaussian(1.0), jnp.ones(2)),
        (Gaussian(1.0), jnp.ones((1, 2))),
        (Gaussian(1.0), jnp.ones((5, 1))),
        (Categorical(), jnp.ones((5, 2), int)),
        (Categorical(), jnp.ones((1,), int)),
    ],
)
def test_misfitting_targets_are_refused(likelihood, y):
    """Catches targets repeated over rows or columns without a word."""
    with pytest.raises(ValueError, match="give one target for each row"):
        likelihood.log_prob(jnp.asarray(OUTPUT), y)


def test_half_precision_outputs():
    """Catches a log likelihood computed in the network's half precision."""
    output = jnp.asarray(OUTPUT[0]).astype(jnp.bfloat16)
    actual = Gaussian(0.5).log_prob(output, jnp.asarray(TARGET))
    expected = Gaussian(0.5).log_prob(output.astype(jnp.float32), jnp.asarray(TARGET))
    assert actual.dtype == jnp.float32
    np.testing.assert_array_equal(actual, expected)


def test_scale_gradient_and_labels():
    """Catches a scale that is learned in raw units, or one that moves when fixed."""
    residual = jnp.array([[1.0], [3.0]])

    def loss(likelihood):
        return jnp.sum(likelihood.log_prob(residual, jnp.zeros((2, 1))))

    grad = eqx.filter_grad(loss)(Gaussian(2.0)).log_scale
    np.testing.assert_allclose(grad, 10 / 4 - 2, rtol=1e-5)  # sum of z^2 - 1
    for cls in (Gaussian, Laplace, Cauchy, lambda *a, **k: StudentT(4, *a, **k)):
        assert jax.tree.leaves(cls(1.0).labels()) == ["frozen"]
        assert jax.tree.leaves(cls(1.0, learn_scale=True).labels()) == ["weights"]
    assert jax.tree.leaves(CustomLikelihood(jnp.add).labels()) == ["frozen"]
    assert jax.tree.leaves(Categorical().labels()) == []


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, np.array([1.0, -1.0])])
def test_bad_scale(scale):
    with pytest.raises(ValueError, match="`scale` must be one positive number"):
        Laplace(scale)


@pytest.mark.parametrize("df", [0.0, -1, np.inf])
def test_bad_df(df):
    with pytest.raises(ValueError, match="`df` must be positive and finite"):
        StudentT(df, 1.0)


BAD_TARGETS = [
    (Categorical(), np.array([0, 3]), "run from 0 to 3"),
    (Categorical(), np.array([-1, 2]), "run from -1 to 2"),
    (Categorical(), np.array([0.0, 1.0]), "one integer class number"),
    (Categorical(), np.eye(3, dtype=int), "argmax"),
    (Categorical(), np.array([], int), "at least one row"),
    (Categorical(), np.array(["cat", "dog"]), "encode the classes"),
    (Bernoulli(), np.full((2, 3), 2), "other than 0 and 1"),
    (Bernoulli(), np.zeros((2, 2)), "shape \\(2, 2\\) for a network with 3"),
    (Gaussian(1.0), np.array([[0.0, np.nan, np.inf]]), "2 targets are NaN"),
    (Gaussian(1.0), np.zeros(4), "target columns"),
    (Gaussian(1.0), np.zeros((4, 3), int), "astype\\('float32'\\)"),
    (Gaussian(np.ones(2)), np.zeros((4, 3)), "has a scale of shape \\(2,\\)"),
    (CustomLikelihood(jnp.add), np.array([np.nan]), "1 targets are NaN"),
]


@pytest.mark.parametrize(("likelihood", "y", "match"), BAD_TARGETS)
def test_bad_targets(likelihood, y, match):
    with pytest.raises(ValueError, match=match):
        likelihood.check_targets(y, 3)


def test_good_targets():
    Categorical().check_targets(np.array([0, 2]), 3)
    Bernoulli().check_targets(np.array([True, False]), 1)
    Gaussian(np.ones(3)).check_targets(np.zeros((2, 3)), 3)
    StudentT(2, 1.0).check_targets(np.zeros(2, np.float32), 1)
    Gaussian(1.0).check_targets(np.zeros((2, 3), jnp.bfloat16), 3)


@pytest.mark.parametrize("df", [0.1, 1, 4, 30, 99.9, 100, 1e3, 1e4, 1e5, 1e6, 1e10])
def test_student_t_density_of_any_degrees(df):
    """In single precision: catches a constant that is a difference of large numbers."""
    t = np.array([0.0, 0.5, -1.0, 3.0, 10.0], np.float32)
    likelihood, output = StudentT(df, 2.0), jnp.ones((5, 1))
    found = likelihood.log_prob(output, jnp.asarray(1 + 2 * t[:, None]))
    expected = scipy.stats.t(df).logpdf(np.asarray(t, np.float64)) - np.log(2)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("df", [0.5, 1, 2, 2.5, 4, 7, 20, 21, 40, 1e6])
def test_student_t_distribution_function(df):
    """Catches a series cut short, the wrong one beyond sqrt(df), and a lost sign."""
    t = np.concatenate([-np.geomspace(1e-4, 1e4, 400), np.geomspace(1e-4, 1e4, 400)])
    t = np.concatenate([t, [0.0, -np.sqrt(df), np.sqrt(df)]]).astype(np.float32)
    likelihood = StudentT(df, 2.0)
    found = likelihood.marginals(jnp.full((t.size, 1), 1.0)).cdf(1 + 2 * t[:, None])
    exact = scipy.stats.t(df).cdf(np.asarray(t, np.float64))
    np.testing.assert_allclose(np.asarray(found)[:, 0], exact, atol=1e-6, rtol=0)


@pytest.mark.parametrize("df", [1.5, 4.0, 9.0])
def test_student_t_tail_is_exact_in_proportion(df):
    """Levels of 1 in 10^9 have quantiles. Catches 1/2 minus what is almost 1/2."""
    t = -np.geomspace(np.sqrt(df), 1e3, 50).astype(np.float32)
    found = StudentT(df, 1.0).marginals(jnp.zeros((50, 1))).cdf(t[:, None])
    exact = scipy.stats.t(df).cdf(np.asarray(t, np.float64))
    np.testing.assert_allclose(np.asarray(found)[:, 0], exact, rtol=1e-4)


@pytest.mark.parametrize("df", [0.5, 4.0, 25.0])
def test_student_t_far_away(df):
    """Catches infinity less infinity."""
    cdf = StudentT(df, 1.0).marginals(jnp.zeros((4, 1))).cdf
    t = jnp.asarray([-jnp.inf, -1e25, 1e25, jnp.inf])[:, None]
    np.testing.assert_allclose(cdf(t)[:, 0], [0, 0, 1, 1], atol=1e-6)


def test_student_t_distribution_function_has_the_density_for_its_slope():
    """At 0 and where the series meet, too. Catches the NaN of a branch not taken."""
    t = jnp.asarray([-30.0, -2.0, -1.0, 0.0, 0.5, 2.0, 5.0])
    for df in (4.0, 25.0):
        cdf = lambda v, df=df: StudentT(df, 1.0).marginals(jnp.zeros(1)).cdf(v[None])[0]
        slopes = jax.vmap(jax.grad(cdf))(t)
        exact = scipy.stats.t(df).pdf(np.asarray(t, np.float64))
        np.testing.assert_allclose(slopes, exact, rtol=1e-4, atol=1e-12)
