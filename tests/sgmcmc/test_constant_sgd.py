"""Constant SGD: its step sizes, and the covariance that they lead to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from sgmcmc.problems import BATCH_SIZE, DIM, NUM_DATA, Regression

from ornstein.mcmc import Stage
from ornstein.potential import DensityPotential
from ornstein.sgmcmc import ConstantSGD, Diagonal, Full, Scalar


def as_matrix(kernel, adapted):
    """H as it acts on flat gradients."""
    if isinstance(kernel.preconditioner, Scalar):
        return float(adapted) * np.eye(DIM)
    if isinstance(kernel.preconditioner, Diagonal):
        return np.diag(np.asarray(ravel_pytree(adapted)[0], np.float64))
    return np.asarray(adapted, np.float64)


def from_the_paper(kernel, rows):
    """Eqs. (36)–(38): on the mean loss L = U / N, so that on U they are N smaller."""
    n, num_data = BATCH_SIZE, NUM_DATA
    if isinstance(kernel.preconditioner, Scalar):
        on_mean_loss = 2 * (n / num_data) * DIM / np.trace(rows) * np.eye(DIM)
    elif isinstance(kernel.preconditioner, Diagonal):
        on_mean_loss = np.diag(2 * n / (num_data * np.diag(rows)))
    else:
        on_mean_loss = 2 * (n / num_data) * np.linalg.inv(rows)
    return on_mean_loss / num_data


@pytest.mark.parametrize("preconditioner", [Scalar(), Diagonal(), Full()])
def test_its_covariance_at_rest(preconditioner):
    """Against the second-moment equation with the batches' own Hessians.

    Seen to fail: 1 for the 2 in H, N left out, batches that share a key. The OU
    approximation, or reshuffled batches, are outside these errors too.
    """
    problem = Regression()
    kernel = ConstantSGD(preconditioner, num_rows=NUM_DATA)
    start = problem.position(problem.mode)
    state = kernel.init(problem.potential, start, key=jr.key(0))
    step = as_matrix(kernel, state.adapted)
    expected = from_the_paper(kernel, problem.row_covariance(problem.mode))
    np.testing.assert_allclose(step, expected, rtol=1e-4, atol=1e-5 * step.max())

    @jax.jit
    @jax.vmap
    def go(key):
        move = lambda state, key: kernel.step(problem.potential, state, key=key)
        last, _ = jax.lax.scan(move, state, jr.split(key, 60))
        return ravel_pytree(last.position)[0]

    samples = np.asarray(go(jr.split(jr.key(1), 40_000)), np.float64)
    exact = problem.covariance_of_sgd(step)
    errors = samples.std(0) / np.sqrt(len(samples))
    gap = np.abs(samples.mean(0) - problem.mode)
    np.testing.assert_array_less(gap, 4.5 * errors)
    centred = samples - problem.mode
    products = centred[:, :, None] * centred[:, None, :]
    errors = products.std(0) / np.sqrt(len(samples))
    assert np.all(np.diag(4.5 * errors) < 0.1 * np.diag(exact))
    np.testing.assert_array_less(np.abs(products.mean(0) - exact), 4.5 * errors)


def test_the_last_step_of_the_warm_up_estimates_the_noise_where_it_is(getkey):
    problem = Regression()
    kernel = ConstantSGD(num_rows=NUM_DATA)
    far = problem.position(problem.mode + 5.0)
    state = kernel.init(problem.potential, far, key=getkey())
    stage = lambda is_last: Stage(*map(jnp.array, (False, False, is_last, 0.5)))
    move = jax.jit(
        lambda state, stage, key: kernel.warm_up(
            problem.potential, state, stage, key=key
        )[0]
    )
    early = move(state, stage(False), getkey())
    assert early.adapted == state.adapted
    last = move(early, stage(True), getkey())
    here = np.asarray(ravel_pytree(last.position)[0], np.float64)
    expected = from_the_paper(kernel, problem.row_covariance(here))
    np.testing.assert_allclose(last.adapted, expected[0, 0], rtol=1e-4)

    fixed = ConstantSGD(num_rows=NUM_DATA, adapts=False)
    kept, _ = fixed.warm_up(problem.potential, early, stage(True), key=getkey())
    assert kept.adapted == early.adapted


def test_the_diagonal_has_a_floor(getkey):
    """A weight that no example moves would be given infinite steps."""
    problem = Regression()
    blind = eqx.tree_at(lambda p: p.x, problem.potential, replace_fn=_black)
    start = problem.position(problem.mode)
    found = {
        floor: ConstantSGD(Diagonal(floor), num_rows=NUM_DATA)
        .init(blind, start, key=getkey())
        .adapted
        for floor in (0.0, 0.1)
    }
    without, floored = (np.asarray(ravel_pytree(h)[0]) for h in found.values())
    assert np.isinf(without[1])
    seen = [0, 2]
    np.testing.assert_allclose(floored[seen], without[seen], rtol=1e-6)
    mean = np.sum(2 / without[seen]) / DIM
    np.testing.assert_allclose(floored[1], 2 / (0.1 * mean), rtol=1e-5)


def _black(x):
    """A feature that is always 0."""
    return x.at[:, 1].set(0.0)


def test_what_it_refuses(getkey):
    problem = Regression()
    start = problem.position(problem.mode)
    with pytest.raises(ValueError, match="`num_rows` must be at least 2, got 1"):
        ConstantSGD(num_rows=1)
    with pytest.raises(ValueError, match="`Diagonal.floor` must not be negative"):
        Diagonal(floor=-1.0)
    with pytest.raises(ValueError, match="3 × 3 from 3 rows.*would be singular"):
        ConstantSGD(Full(), num_rows=3).init(problem.potential, start, key=getkey())
    with pytest.raises(ValueError, match=r"matrix of 3 × 3.*`max_dim` is 2.*Diagonal"):
        ConstantSGD(Full(max_dim=2)).init(problem.potential, start, key=getkey())
    silent = DensityPotential(lambda q: -jnp.sum(q**2))
    for preconditioner in (Scalar(), Diagonal()):
        with pytest.raises(RuntimeError, match="here there is none"):
            ConstantSGD(preconditioner).init(silent, jnp.ones(2), key=getkey())
    with pytest.raises(RuntimeError, match="some direction has no noise"):
        ConstantSGD(Full()).init(silent, jnp.ones(2), key=getkey())
