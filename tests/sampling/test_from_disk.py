"""Chains over rows that stay on disk: the chains of rows in memory, batch by batch."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Float, Int

import ornstein as orn
from ornstein.data import AbstractShards, DataError, Split, Streamed
from ornstein.functions import ess_bulk
from ornstein.likelihood import Gaussian
from ornstein.mcmc import HMC, AbstractKernel
from ornstein.potential import Potential, Tempered
from ornstein.prior import GaussianPrior
from ornstein.sampling import (
    _from_disk,
    _run,
    optimised_starts,
    run_chains,
    sample,
)
from ornstein.sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    AdaptiveDriftSGLD,
    ConstantSGD,
    Cyclical,
    NaiveSGHMC,
    PreconditionedSGLD,
    SamplingOnly,
)
from ornstein.train import CheckpointError

SIGMA, PRIOR_SCALE, DIM = 0.7, 1.5, 2
BLOCKS = (30, 9, 25, 16, 20, 20)
NUM_DATA = sum(BLOCKS)
KEY = jr.key(3)


class Rows(AbstractShards):
    """Blocks of arrays; `broken` ones cannot be read."""

    inputs: Float[np.ndarray, "rows dim"]
    targets: Float[np.ndarray, "rows 1"]
    block_rows: Int[np.ndarray, " blocks"]
    broken: tuple[int, ...] = ()
    digest: str = "rows of a test"
    x_like: jax.ShapeDtypeStruct = jax.ShapeDtypeStruct((DIM,), np.float32)
    y_like: jax.ShapeDtypeStruct = jax.ShapeDtypeStruct((1,), np.float32)

    def read(self, block: int):
        if block in self.broken:
            raise DataError(f"block {block} is gone")
        first = int(self.block_rows[:block].sum())
        rows = slice(first, first + int(self.block_rows[block]))
        return self.inputs[rows], self.targets[rows]


def streamed(*, buffer: int = 45, same: bool = False, blocks=BLOCKS) -> Streamed:
    """120 rows in six blocks, some 45 in a window; or as many times the first."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(NUM_DATA, DIM))
    x[:, 1] += 0.7 * x[:, 0]
    y = x @ np.array([[1.0], [-2.0]]) + SIGMA * rng.normal(size=(NUM_DATA, 1))
    rows = np.zeros(NUM_DATA, int) if same else np.arange(NUM_DATA)
    x, y = x[rows].astype(np.float32), y[rows].astype(np.float32)
    shards = Rows(x, y, np.array(blocks))
    return Streamed(shards, Split(x[:40], y[:40]), shuffle_buffer=buffer)


def in_memory(rows: Streamed) -> Split:
    return rows.rows(np.arange(len(rows)))


class Plane(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return x @ self.weight


def run(kernel: Any, split: Any, **options: Any):
    settings = {"num_samples": 20, "num_warmup": 10, "num_chains": 3, "batch_size": 8}
    return sample(
        Plane(jnp.zeros((DIM, 1))),
        split,
        Gaussian(SIGMA),
        kernel=kernel,
        prior=GaussianPrior(PRIOR_SCALE),
        key=KEY,
        **settings | options,
    )


def weights(samples: Any) -> np.ndarray:
    return np.asarray(samples.positions[0].weight)[..., 0]


@pytest.mark.parametrize("max_steps", [1, 4, 512])
def test_steps_are_a_plain_loop_over_the_batches(
    max_steps: int, monkeypatch: pytest.MonkeyPatch
):
    """Descent in float64: what the order says, a part for each chain, N / n.

    Catches (each seen) N of the sample in memory, one part for all chains, and a batch
    that is repeated where two blocks meet.
    """
    monkeypatch.setattr(_from_disk, "_MAX_STEPS", max_steps)
    rows, num_chains, size, step = streamed(), 3, 8, 0.4 / NUM_DATA
    samples = run(SGLD(step, 0.0), rows, thin=2)
    _, chain_key = jr.split(KEY)
    seed = np.asarray(jr.key_data(jr.fold_in(chain_key, 2**31 - 2))).tolist()
    batches = rows.batches(num_chains * size, seed=seed, start=0)
    start_key, _ = jr.split(KEY)
    potential = Potential(
        Plane(jnp.zeros((DIM, 1))),
        rows.in_memory(),
        Gaussian(SIGMA),
        prior=GaussianPrior(PRIOR_SCALE),
    )
    starts = orn.sampling._starts.apart(potential, num_chains, key=start_key)
    at = np.asarray(starts[0].weight, np.float64)[..., 0]
    found = []
    for _ in range(10 + 20 * 2):
        x, y = (a.astype(np.float64) for a in next(batches))
        for chain in range(num_chains):
            own = slice(chain * size, (chain + 1) * size)
            error = x[own] @ at[chain] - y[own, 0]
            gradient = NUM_DATA / size * x[own].T @ error / SIGMA**2
            gradient += at[chain] / PRIOR_SCALE**2
            at[chain] -= step / 2 * gradient
        found.append(at.copy())
    batches.close()
    expected = np.stack(found[11::2], axis=1)
    np.testing.assert_allclose(weights(samples), expected, rtol=1e-4, atol=1e-5)


class Counted(eqx.Module):
    """Of a `Counting` step."""

    count: jax.Array
    is_sampling: jax.Array


class Counting(AbstractKernel):
    """SGLD whose info is a sum, and whose warm-up knows where in it a step is."""

    is_minibatch: ClassVar[bool] = True
    kernel: SGLD

    def init(self, potential, position, *, key):
        return self.kernel.init(potential, position, key=key)

    def step(self, potential, state, *, key):
        state, info = self.kernel.step(potential, state, key=key)
        return state, Counted(jnp.ones((), jnp.int32), info.is_sampling)

    def warm_up(self, potential, state, stage, *, key):
        state, info = self.step(potential, state, key=key)
        move = lambda a: a + stage.part.astype(a.dtype)
        position = jax.tree.map(move, state.position)
        return dataclasses.replace(state, position=position), info


CYCLE = Cyclical(1e-3, 7, 0.6)
KERNELS = {
    "sgld": SGLD(1e-3),
    "cyclical": SGLD(CYCLE, SamplingOnly(CYCLE, 1.0)),
    "counting": Counting(SGLD(CYCLE)),
    "psgld": PreconditionedSGLD(1e-3),
    "adaptive": AdaptiveDriftSGLD(1e-3, 2.0),
    "sghmc": SGHMC(0.02, 5.0, resample_every=5),
    "sgnht": SGNHT(0.02, 5.0),
}


@pytest.mark.parametrize("name", KERNELS)
def test_rows_that_are_all_alike_give_the_chains_of_memory(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    """Whatever a batch has: noise, adaptation, thinning, cycles and infos are the same.

    Catches (seen) a thinning that goes on through a phase that explores, an info of the
    last step alone, noise of another step, and a stage that is another step's.
    """
    monkeypatch.setattr(_from_disk, "_MAX_STEPS", 4)
    rows = streamed(same=True)
    here, there = (run(KERNELS[name], s, thin=3) for s in (in_memory(rows), rows))
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    jax.tree.map(close, here.positions, there.positions)
    jax.tree.map(close, here.info, there.info)
    jax.tree.map(close, here.chain_info, there.chain_info)


def law_at_rest(rows: Split, drift, noise, kick, size: int):
    """Mean and covariance of z' = drift z + kick ((A_b − A) θ + g_b) + noise.

    Of batches of n of N rows without replacement, each independent of the one before.
    """
    x, y = rows.x.astype(np.float64), rows.y[:, 0].astype(np.float64)
    hessians = x[:, :, None] * x[:, None, :] / SIGMA**2
    precision = hessians.sum(0) + np.eye(DIM) / PRIOR_SCALE**2
    mode = np.linalg.solve(precision, x.T @ y / SIGMA**2)
    factor = len(x) ** 2 / size * (len(x) - size) / (len(x) - 1)
    gradients = x * (x @ mode - y)[:, None] / SIGMA**2
    of_rows = factor * np.cov(gradients.T, bias=True)
    spread = hessians - hessians.mean(0)
    drift, noise, kick = drift(precision), np.asarray(noise), np.asarray(kick)
    found = np.zeros_like(noise)
    for _ in range(3000):
        own = found[:DIM, :DIM]
        of_position = factor * np.mean(spread @ own @ spread, axis=0)
        found = drift @ found @ drift.T + noise
        found += kick @ (of_rows + of_position) @ kick.T
    return mode, found[:DIM, :DIM]


ID = np.eye(DIM)
# SGLD in small steps: in long ones what a batch does to the curvature multiplies up to
# tails that no such number of samples meets.
STEP, MOVE, FRICTION = 0.3 / NUM_DATA, 0.5 / NUM_DATA**0.5, 0.6 * NUM_DATA**0.5
A, ETA = MOVE * FRICTION, MOVE**2
LAWS = {
    "sgld": (SGLD(STEP), lambda p: ID - STEP / 2 * p, STEP * ID, -STEP / 2 * ID),
    "sghmc": (
        SGHMC(MOVE, FRICTION),
        lambda p: np.block([[ID - ETA * p, (1 - A) * ID], [-ETA * p, (1 - A) * ID]]),
        2 * A * ETA * np.block([[ID, ID], [ID, ID]]),
        -ETA * np.concatenate([ID, ID]),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_law_at_rest_is_exact(name: str):
    """Four chains whose parts are an epoch: batches of which the law is known.

    Catches (seen) N of the sample in memory. That chains have parts of their own is
    seen by the loop above, not here: the law is of each chain.
    """
    kernel, drift, noise, kick = LAWS[name]
    rows, size = streamed(buffer=NUM_DATA, blocks=(NUM_DATA,)), NUM_DATA // 4
    options = {"num_chains": 4, "num_samples": 4000, "num_warmup": 100}
    values = weights(run(kernel, rows, batch_size=size, **options))
    mode, covariance = law_at_rest(in_memory(rows), drift, noise, kick, size)
    variance = np.diag(covariance)
    num = np.asarray(ess_bulk(values))
    num_square = np.asarray(ess_bulk((values - mode) ** 2))
    assert min(num.min(), num_square.min()) > 500
    z_mean = (values.mean((0, 1)) - mode) / np.sqrt(variance / num)
    z_spread = (((values - mode) ** 2).mean((0, 1)) / variance - 1) / np.sqrt(
        2 / num_square
    )
    assert np.max(np.abs(z_mean)) < 4.5, z_mean
    assert np.max(np.abs(z_spread)) < 4.5, z_spread
    product = np.prod(values - mode, axis=-1)
    scale = np.sqrt(np.prod(variance) + covariance[0, 1] ** 2)
    z_between = (product.mean() - covariance[0, 1]) / scale
    assert abs(z_between) * np.sqrt(num_square.min()) < 4.5, z_between


def spread_over_epochs(
    a: float,
    b: float,
    injected: float,
    of_rows: float,
    *,
    size: int,
    num_chains: int,
    num_data: int = NUM_DATA,
) -> float:
    """Mean variance over an epoch's steps of z' = a z + b (mean of a batch) + noise.

    Of batches without replacement, whose means have the covariance S² (I / n − 1 / N):
    rows that were met early in an epoch are not met again, so that noise cancels.
    """
    num_steps = num_data // (num_chains * size)
    noise = of_rows * (np.eye(num_steps) / size - 1 / num_data)

    def added(steps: int) -> float:
        powers = a ** np.arange(steps)[::-1]
        of_batches = powers @ noise[:steps, :steps] @ powers
        return float(b**2 * of_batches + injected * np.sum(powers**2))

    first = added(num_steps) / (1 - a ** (2 * num_steps))
    steps = range(1, num_steps + 1)
    return float(np.mean([a ** (2 * k) * first + added(k) for k in steps]))


NUM_CHAINS, FEW = 3, 8


def test_noise_of_an_epochs_batches_cancels_as_it_should():
    """Five steps an epoch, rows of one curvature: the variance is known exactly.

    Catches (seen) batches that are drawn anew in each step, as in memory.
    """
    rng = np.random.default_rng(1)
    y = rng.normal(size=(NUM_DATA, 1)).astype(np.float32)
    x = np.ones((NUM_DATA, 1), np.float32)
    shards = Rows(x, y, np.array((NUM_DATA,)))
    rows = Streamed(shards, Split(x[:40], y[:40]), shuffle_buffer=NUM_DATA)
    step = 0.6 / NUM_DATA
    found = sample(
        Plane(jnp.zeros((1, 1))),
        rows,
        Gaussian(1.0),
        kernel=SGLD(step),
        prior=GaussianPrior(PRIOR_SCALE),
        key=KEY,
        num_samples=12_000,
        num_warmup=200,
        num_chains=NUM_CHAINS,
        batch_size=FEW,
    )
    precision = NUM_DATA + 1 / PRIOR_SCALE**2
    squares = (weights(found)[..., 0] - float(y.sum()) / precision) ** 2
    a, b = 1 - step / 2 * precision, step / 2 * NUM_DATA
    of_rows = float(np.var(y, ddof=1))
    parts = {"size": FEW, "num_chains": NUM_CHAINS}
    expected = spread_over_epochs(a, b, step, of_rows, **parts)
    blocks = squares.mean(0).reshape(60, -1).mean(1)
    error = blocks.std(ddof=1) / np.sqrt(len(blocks))
    assert abs(blocks.mean() - expected) < 4.5 * error
    drawn_anew = (b**2 * of_rows / FEW + step) / (1 - a**2)
    assert drawn_anew - expected > 9 * error  # what memory has is told apart


@pytest.mark.parametrize(("num_chains", "share"), [(1, 0.66), (4, 0.89)])
def test_constant_sgd_would_be_too_narrow(num_chains: int, share: float):
    """Why it is refused: of N rows at the step that is right for batches drawn anew.

    There its variance is the posterior's, 1 / N; the law is that of the test above.
    """
    num_data, size = 20_000, 20
    step = 2 * size / num_data**2
    a, b = 1 - step * num_data, step * num_data
    assert b**2 / size / (1 - a**2) * num_data == pytest.approx(1, rel=2e-3)
    parts = {"size": size, "num_chains": num_chains, "num_data": num_data}
    found = spread_over_epochs(a, b, 0.0, 1.0, **parts)
    assert np.sqrt(found * num_data) == pytest.approx(share, abs=0.005)


class Kill:
    """Stops the chains at the first call after a step."""

    def __init__(self, step: int):
        self.at = step

    def start(self, plan: Any) -> None: ...

    def advance(self, step: int, record: dict[str, Any]) -> None:
        if step >= self.at:
            raise KeyboardInterrupt

    def stop(self) -> None: ...


def assert_same(a: Any, b: Any) -> None:
    same = np.testing.assert_array_equal
    jax.tree.map(same, (a.positions, a.info), (b.positions, b.info))
    jax.tree.map(same, a.chain_info, b.chain_info)


@pytest.mark.parametrize("at", [3, 27])
def test_resume_is_bit_identical(
    at: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    """In the warm-up and between samples. Catches (seen) batches from the first on."""
    monkeypatch.setattr(_run, "_CALL_SECONDS", 0.0)  # one step or sample in each call
    monkeypatch.setattr(_from_disk, "_MAX_STEPS", 4)
    kernel, options = KERNELS["cyclical"], {"thin": 2, "save_every": 0.0}
    whole = run(kernel, streamed(), **options)
    folder = tmp_path / "samples"
    with pytest.raises(KeyboardInterrupt):
        run(kernel, streamed(), folder=folder, callbacks=[Kill(at)], **options)
    assert_same(run(kernel, streamed(), folder=folder, resume=True, **options), whole)
    other = streamed(buffer=60)
    with pytest.raises(CheckpointError, match="its order is rows shuffled among 45"):
        run(kernel, other, folder=folder, resume=True, **options)
    same = streamed(same=True)
    with pytest.raises(CheckpointError, match="checksum of data and starts"):
        run(kernel, same, folder=folder, resume=True, **options)


def test_a_block_that_goes_missing_loses_no_state(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    """Put back, the chains go on. Catches (seen) an error that leaves no state."""
    monkeypatch.setattr(_run, "_CALL_SECONDS", 0.0)
    rows, folder = streamed(buffer=1), tmp_path / "samples"
    whole = run(KERNELS["sgld"], rows)
    broken = dataclasses.replace(
        rows, shards=dataclasses.replace(rows.shards, broken=(0,))
    )
    with pytest.raises(DataError, match="block 0 is gone"):
        run(KERNELS["sgld"], broken, folder=folder)
    assert (folder / "state.npz").exists()
    assert_same(run(KERNELS["sgld"], rows, folder=folder, resume=True), whole)


REFUSED = {
    "hmc": (HMC(3), {}, "`HMC` sees all training rows at each step, and rows on disk"),
    "constant": (ConstantSGD(), {}, "lives on the noise of batches that are drawn"),
    "several": (SGHMC(0.01, 1.0, num_integration_steps=2), {}, "takes several batches"),
    "naive": (NaiveSGHMC(0.01, 1), {}, "takes several batches in one step"),
    "estimate": (SGHMC(0.01, 5.0, noise_estimate=1.0), {}, "takes off .`noise_estim"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_other_rows_is_refused(name: str):
    kernel, options, said = REFUSED[name]
    with pytest.raises(ValueError, match=said):
        run(kernel, streamed(), **options)


def test_rows_on_disk_are_never_taken_for_those_in_memory():
    """A sample that stood for all rows would be a wide posterior, without a word."""
    rows, network = streamed(), Plane(jnp.zeros((DIM, 1)))
    how: dict[str, Any] = {"prior": GaussianPrior(PRIOR_SCALE)}
    with pytest.raises(TypeError, match="those of `split` are on disk: give `sample`"):
        Potential(network, rows, Gaussian(SIGMA), **how)
    with pytest.raises(ValueError, match="over rows in memory, and those of `split`"):
        optimised_starts(network, rows, Gaussian(SIGMA), key=KEY, **how)
    held = rows.in_memory()
    potential = Potential(network, held, Gaussian(SIGMA), num_data=NUM_DATA, **how)
    starts = jax.tree.map(lambda a: a[None], potential.start)
    chains: dict[str, Any] = {"key": KEY, "num_samples": 2, "num_warmup": 0}
    batch = potential.of_batch(*map(jnp.asarray, (held.x[:4], held.y[:4])))
    for own in (potential, Tempered(potential, 2.0), batch, Tempered(batch, 2.0)):
        with pytest.raises(ValueError, match="has 40 of 120 rows: give it bare, and"):
            run_chains(SGLD(1e-3), own, starts, **chains)
    own = Potential(network, held, Gaussian(SIGMA), **how)
    with pytest.raises(ValueError, match="120 rows on disk, and the potential 40 rows"):
        run_chains(SGLD(1e-3), own, starts, rows=rows, **chains)
    mesh = jax.make_mesh((1,), ("chains",))
    with pytest.raises(ValueError, match="on one device without a mesh: leave `mesh`"):
        run(SGLD(1e-3), rows, mesh=mesh)


def test_a_batch_that_is_too_large_is_a_chains_part_of_the_rows():
    """Catches one clipped to all rows, which several chains cannot each have."""
    whole = run(SGLD(1e-3), streamed(), batch_size=40)
    clipped = run(SGLD(1e-3), streamed(), batch_size=10_000)
    np.testing.assert_array_equal(weights(clipped), weights(whole))
    potential = Potential(
        Plane(jnp.zeros((DIM, 1))),
        streamed().in_memory(),
        Gaussian(SIGMA),
        prior=GaussianPrior(PRIOR_SCALE),
        num_data=NUM_DATA,
        batch_size=41,
    )
    starts = jax.tree.map(lambda a: jnp.stack([a] * 3), potential.start)
    with pytest.raises(ValueError, match="`num_chains` 3 times `batch_size` 41, "):
        run_chains(
            SGLD(1e-3), potential, starts, rows=streamed(), key=KEY, num_samples=2
        )


def test_rows_that_may_be_sorted_are_said():
    """Chains over sorted blocks are too wide, and R-hat is 1.00: a note must say so."""
    said = lambda rows: [n for n in run(SGLD(1e-3), rows).notes if "sorted" in n]
    assert "among 45 of 120" in said(streamed())[0]
    assert not said(streamed(buffer=NUM_DATA))
    assert not said(streamed(blocks=(1,) * NUM_DATA))
