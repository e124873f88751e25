"""Chains run by `sample`: against a closed form, a plain loop, and themselves."""

import logging
from types import SimpleNamespace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.cli._flags import flagged
from ornstein.functions import MCDropout, ess_bulk
from ornstein.mcmc import HMC, AbstractKernel, RandomWalkMetropolis, warm_up_stages
from ornstein.potential import DensityPotential
from ornstein.prior import GaussianPrior
from ornstein.sampling import (
    BurnIn,
    _run,
    load_samples,
    run_chains,
    sample,
    save_samples,
)
from ornstein.sgmcmc import SGLD, ConstantSGD, Cyclical

NOISE, PRIOR_SCALE = 0.4, 1.5


def regression(num_rows: int = 30):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, 2)).astype("float32")
    x[:, 1] += 0.7 * x[:, 0]
    y = (x @ [1.0, -2.0] + 0.5 + NOISE * rng.normal(size=num_rows)).astype("float32")
    return SimpleNamespace(x=x, y=y)


def linear():
    return eqx.nn.Linear(2, 1, key=jr.key(0))


def sgld(step_size):
    return SGLD(jnp.asarray(step_size))  # an array: one compilation for all of them


def fixed_hmc(step_size):
    return HMC(3, jnp.asarray(step_size), adapt_step_size=False, adapt_mass=False)


def run(kernel, split=None, **options):
    options = {"num_samples": 20, "num_warmup": 10, "num_chains": 2} | options
    return sample(
        options.pop("model", linear()),
        regression() if split is None else split,
        options.pop("likelihood", orn.Gaussian(NOISE)),
        kernel=kernel,
        prior=GaussianPrior(PRIOR_SCALE),
        key=jr.key(3),
        **options,
    )


def test_linear_regression_is_exact():
    """The whole path equals the conjugate posterior predictive.

    Catches a lost prior, a likelihood counted twice, chains kept in the warm-up, and
    draws that repeat a sample.
    """
    split = regression()
    samples = run(HMC(num_integration_steps=4), split, num_samples=1500, num_warmup=300)
    design = np.concatenate([split.x, np.ones((30, 1))], axis=1).astype(float)
    covariance = np.linalg.inv(
        design.T @ design / NOISE**2 + np.eye(3) / PRIOR_SCALE**2
    )
    mean = covariance @ design.T @ split.y.astype(float) / NOISE**2
    new = np.array([[0.3, -1.0], [3.0, 2.0], [0.0, 0.0]], "float32")
    rows = np.concatenate([new, np.ones((3, 1))], axis=1).astype(float)
    exact_mean = rows @ mean
    exact_spread = np.einsum("ri,ij,rj->r", rows, covariance, rows)
    prediction = orn.predict(
        samples, jnp.asarray(new), key=jr.key(0), num_draws=samples.num_strata
    )
    values = np.asarray(samples.function_values(new))
    num = np.asarray(ess_bulk(values))[:, 0]
    num_square = np.asarray(ess_bulk((values - values.mean((0, 1))) ** 2))[:, 0]
    assert num.min() > 500
    z_mean = (prediction.mean[:, 0] - exact_mean) / np.sqrt(exact_spread / num)
    spread = np.asarray(prediction.epistemic)[:, 0]
    z_spread = (spread / exact_spread - 1) / np.sqrt(2 / num_square)
    assert np.max(np.abs(z_mean)) < 4.5, z_mean
    assert np.max(np.abs(z_spread)) < 4.5, z_spread
    np.testing.assert_allclose(prediction.aleatoric, NOISE**2, rtol=1e-5)


def correlated():
    precision = jnp.array([[2.0, 1.2], [1.2, 1.0]])
    return DensityPotential(lambda q: -0.5 * q["a"] @ precision @ q["a"])


def starts(num_chains: int):
    return {"a": jr.normal(jr.key(9), (num_chains, 2))}


@pytest.mark.parametrize("thin", [1, 3])
def test_chains_are_a_plain_loop(thin):
    """Chain by chain and step by step, with the documented keys.

    Catches a key that is used twice, a wrong stage in the warm-up, and a sample kept
    at the wrong step. With `thin` it is every k-th of the same chain.
    """
    kernel, potential = RandomWalkMetropolis(step_size=0.5), correlated()
    num_warmup, num_samples = 20, 5
    chains = run_chains(
        kernel,
        potential,
        starts(3),
        key=jr.key(4),
        num_samples=num_samples,
        num_warmup=num_warmup,
        thin=thin,
    )
    step, warm_up = (
        jax.jit(lambda s, key: kernel.step(potential, s, key=key)),
        jax.jit(lambda s, stage, key: kernel.warm_up(potential, s, stage, key=key)),
    )
    stages = warm_up_stages(num_warmup)
    for chain in range(3):
        init_key, step_key = jr.split(jr.fold_in(jr.key(4), chain))
        start = jax.tree.map(lambda a, c=chain: a[c], starts(3))
        state = kernel.init(potential, start, key=init_key)
        for t in range(num_warmup):
            stage = jax.tree.map(lambda a, t=t: a[t], stages)
            state, _ = warm_up(state, stage, jr.fold_in(step_key, t))
        kept, divergent = [], False
        for t in range(num_warmup, num_warmup + thin * num_samples):
            state, info = step(state, jr.fold_in(step_key, t))
            kept.append(state.position["a"])
            divergent |= bool(info.is_divergent)
        np.testing.assert_allclose(
            chains.positions["a"][chain], kept[thin - 1 :: thin], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            chains.info["step_size"][chain], float(state.step_size), rtol=1e-6
        )
    np.testing.assert_array_equal(chains.chain_info["num_warmup"], [num_warmup] * 3)


class Kill:
    """Stops the chains at the first call after a step."""

    def __init__(self, step: int, num_steps: int = 10 + 20 * 2):
        self.at, self.num_steps, self.steps = step, num_steps, []

    def start(self, plan):
        assert plan.num_steps == self.num_steps

    def advance(self, step, record):
        self.steps.append(step)
        if step >= self.at:
            raise KeyboardInterrupt

    def stop(self):
        self.steps.append(None)


@pytest.mark.parametrize("at", [3, 27])
@pytest.mark.parametrize("kernel", [HMC(3), sgld(1e-3)], ids=["HMC", "SGLD"])
def test_resume_is_bit_identical(at, kernel, tmp_path, monkeypatch):
    """Catches a state, a key or a count that a killed run forgets."""
    monkeypatch.setattr(_run, "_CALL_SECONDS", 0.0)  # one step or sample in each call
    options = {"thin": 2, "save_every": 0.0}
    whole = run(kernel, **options)
    folder = tmp_path / "samples"
    kill = Kill(at)
    with pytest.raises(KeyboardInterrupt):
        run(kernel, folder=folder, callbacks=[kill], **options)
    assert at <= kill.steps[-2] <= at + 1
    assert kill.steps[-1] is None
    resumed = run(kernel, folder=folder, resume=True, **options)
    again = run(kernel, folder=folder, resume=True, **options)  # nothing left to do
    for other in (resumed, again):
        jax.tree.map(
            np.testing.assert_array_equal,
            (whole.positions, whole.info, whole.chain_info),
            (other.positions, other.info, other.chain_info),
        )
    with pytest.raises(FileExistsError, match="resume=True"):
        run(kernel, folder=folder, **options)


def test_interrupted_chains_leave_their_samples(tmp_path, monkeypatch):
    """And a note of how many there are, in the words of each door. Catches (seen) a
    note of all that were asked for, and one on chains that are whole."""
    monkeypatch.setattr(_run, "_CALL_SECONDS", 0.0)
    options = {"thin": 2, "save_every": 0.0}
    whole = run(HMC(3), **options)
    load = lambda: load_samples(folder, linear(), orn.Gaussian(NOISE))
    for at in (3, 27):
        folder = tmp_path / str(at)
        with pytest.raises(KeyboardInterrupt):
            run(HMC(3), folder=folder, callbacks=[Kill(at)], **options)
        if at == 3:
            with pytest.raises(orn.train.CheckpointError, match="no samples yet"):
                load()
    part = load()
    assert 8 <= part.num_samples <= 9
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a, b[:, : part.num_samples]),
        part.positions,
        whole.positions,
    )
    said = f"interrupted: there are {part.num_samples} of 20 samples of each; "
    (note,) = part.notes
    assert said + "`sample(..., resume=True)` goes on." in note
    assert said + "`ornstein sample` with --resume goes on." in flagged(note)
    run(HMC(3), folder=folder, resume=True, **options)
    assert load().notes == ()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"num_samples": 30}, "its num_samples is 20, not 30"),
        ({"kernel": HMC(4)}, "its kernel is HMC"),
        ({"split": regression(40)}, "its data shapes"),
        ({"split": SimpleNamespace(x=regression().x, y=-regression().y)}, "checksum"),
        ({"likelihood": orn.Gaussian(1.0)}, "its likelihood"),
    ],
)
def test_resume_refuses_another_run(change, match, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "refuses"
    kernel = HMC(3)
    run(kernel, folder=folder, resume=True)
    options = {"kernel": kernel} | change
    with pytest.raises(orn.train.CheckpointError, match=match):
        run(**options, folder=folder, resume=True)


def test_resume_refuses_chains_of_unequal_length(tmp_path):
    folder = tmp_path / "samples"
    run(HMC(3), folder=folder)
    weight = np.load(folder / "0.npy")
    np.save(folder / "0.npy", weight[:, :7])
    with pytest.raises(orn.train.CheckpointError, match="chains of unequal length"):
        run(HMC(3), folder=folder, resume=True)
    np.save(folder / "0.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(orn.train.CheckpointError, match="cannot be read"):
        run(HMC(3), folder=folder, resume=True)


def test_saved_samples_come_back(tmp_path):
    samples = run(
        sgld(1e-3),
        likelihood=orn.Gaussian(NOISE, learn_scale=True),
        likelihood_prior=GaussianPrior(1.0),
    )
    save_samples(tmp_path / "kept", samples)
    likelihood = orn.Gaussian(1.0, learn_scale=True)
    back = load_samples(tmp_path / "kept", linear(), likelihood)
    assert isinstance(jax.tree.leaves(back.positions)[0], np.memmap)
    jax.tree.map(
        np.testing.assert_array_equal,
        (samples.positions, samples.info, samples.chain_info),
        (back.positions, back.info, back.chain_info),
    )
    x = jnp.asarray(regression().x)
    ours, theirs = (
        orn.predict(s, x, key=jr.key(0), num_draws=7).outputs for s in (samples, back)
    )
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(FileExistsError, match="another folder"):
        save_samples(tmp_path / "kept", samples)
    wide = eqx.nn.Linear(3, 1, key=jr.key(0))
    with pytest.raises(orn.train.CheckpointError, match="another model's"):
        load_samples(tmp_path / "kept", wide, likelihood)
    with pytest.raises(orn.train.CheckpointError, match="only one of them"):
        load_samples(tmp_path / "kept", linear(), orn.Gaussian(1.0))
    with pytest.raises(orn.train.CheckpointError, match="holds no samples"):
        load_samples(tmp_path, linear(), likelihood)


def test_a_jitter_is_of_its_size():
    """Catches chains that start alike, and a jitter of another size."""
    from ornstein.sampling._starts import jittered

    position = {"a": jnp.arange(3000.0), "b": jnp.ones(2)}
    found = jittered(position, 2, 0.01, key=jr.key(0))
    noise = np.asarray(found["a"] - position["a"][None])
    assert noise.std() == pytest.approx(0.01, rel=0.1)
    assert abs(np.corrcoef(noise)[0, 1]) < 0.1


def test_starts_can_be_given():
    first = run(HMC(3))
    last = jax.tree.map(lambda a: jnp.asarray(a[:, -1]), first.positions)
    # No step moves far: what comes first is where it started.
    second = run(fixed_hmc(1e-6), num_warmup=0, starts=last)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b[:, 0], atol=1e-3),
        last,
        second.positions,
    )
    with pytest.raises(ValueError, match="has 2 positions, and `num_chains` is 3"):
        run(HMC(3), num_chains=3, starts=last)


def test_a_batch_size_larger_than_the_data_is_said(caplog):
    """Seen failing: 100 rows that were asked for were taken for the default."""
    asked = []
    for options in ({"batch_size": 100}, {}):
        caplog.clear()
        with caplog.at_level(logging.INFO, "ornstein"):
            run(sgld(1e-4), num_samples=4, **options)
        asked.append("batch_size=100 clipped to the 30 rows" in caplog.text)
    assert asked == [True, False]


def test_burn_in_ends_once_injected_noise_dominates():
    """The ratio of SGLD is proportional to its step; see `noise_ratio`."""
    falling = Cyclical(2e-3, cycle_length=200, exploration=0.0)  # to 0 at step 200
    rule = BurnIn(threshold=0.1, check_every=10)
    options = {"num_samples": 4, "num_warmup": 190, "batch_size": 5}
    samples = run(SGLD(falling), burn_in=rule, **options)
    num_warmup = samples.chain_info["num_warmup"][0]
    assert 10 < num_warmup < 190
    assert num_warmup % 10 == 0
    assert np.all(samples.chain_info["noise_ratio"] < 0.1)
    earlier = run(SGLD(falling), **options | {"num_warmup": int(num_warmup) - 10})
    assert np.any(earlier.chain_info["noise_ratio"] >= 0.1)


def test_chains_interrupted_as_their_burn_in_ends_go_on_sampling(tmp_path):
    """To the same bits. Seen failing where a resumed warm-up was never over."""
    options = {"burn_in": BurnIn(threshold=1.0, check_every=10), "batch_size": 5}
    options |= {"num_warmup": 200, "num_samples": 4, "folder": tmp_path / "samples"}
    whole = run(sgld(1e-3), **options | {"folder": None})
    num_warmup = whole.chain_info["num_warmup"][0]
    assert num_warmup < 200
    with pytest.raises(KeyboardInterrupt):
        run(sgld(1e-3), callbacks=[Kill(num_warmup, 204)], **options)
    resumed = run(sgld(1e-3), resume=True, **options)
    jax.tree.map(
        np.testing.assert_array_equal,
        (whole.positions, whole.chain_info),
        (resumed.positions, resumed.chain_info),
    )


class BatchKernel(AbstractKernel):
    """One's own, as the guide asks for it: SGLD's steps, and no `noise_weight`."""

    is_minibatch: ClassVar[bool] = True

    def init(self, potential, position, *, key):
        return sgld(1e-3).init(potential, position, key=key)

    def step(self, potential, state, *, key):
        return sgld(1e-3).step(potential, state, key=key)

    def warm_up(self, potential, state, stage, *, key):
        return self.step(potential, state, key=key)


def test_a_minibatch_kernel_needs_no_noise_weight_but_for_burn_in():
    """Seen failing at the warm-up's end, on an assertion without a word."""
    samples = run(BatchKernel(), batch_size=5)
    same = run(sgld(1e-3), batch_size=5)
    jax.tree.map(np.testing.assert_array_equal, samples.positions, same.positions)
    assert "noise_ratio" not in samples.chain_info
    with pytest.raises(ValueError, match="`BatchKernel` has no `noise_weight`"):
        run(BatchKernel(), batch_size=5, burn_in=BurnIn())


def test_burn_in_that_never_ends_is_reported(caplog):
    rule = BurnIn(check_every=10)
    with caplog.at_level(logging.WARNING, "ornstein"):
        samples = run(sgld(1e-2), burn_in=rule, batch_size=5, num_warmup=30)
    assert np.all(samples.chain_info["num_warmup"] == 30)
    assert np.all(samples.chain_info["noise_ratio"] > 0.1)
    assert samples.num_samples == 20
    assert "times the injected noise" in caplog.text


def test_samples_are_kept_in_the_sampling_phase_alone():
    """Of cycles of 10 steps the last 3 are kept; `thin` counts between them."""
    cycle = Cyclical(1e-3, cycle_length=10, exploration=0.65)
    samples = run(SGLD(cycle), num_samples=6, num_warmup=0)
    assert np.all(samples.info["is_sampling"])
    steps = np.array([7, 8, 9, 17, 18, 19])
    sizes = jax.vmap(cycle)(jnp.asarray(steps))
    np.testing.assert_allclose(samples.info["step_size"][0], sizes, rtol=1e-5)
    # In step with the cycle, `thin` alone would land on step 4 of each for ever.
    samples = run(SGLD(cycle), num_samples=3, num_warmup=5, thin=10)
    sizes = jax.vmap(cycle)(jnp.asarray([17, 27, 37]))
    np.testing.assert_allclose(samples.info["step_size"][0], sizes, rtol=1e-5)


def test_a_chain_that_diverges_says_what_to_do(tmp_path):
    with pytest.raises(
        orn.train.NonFiniteError, match=r"Chain \d.*step size 10.*by 10"
    ):
        run(sgld(10.0), num_warmup=60)
    with pytest.raises(orn.train.NonFiniteError, match="samples of each chain"):
        run(sgld(10.0), num_warmup=0)
    folder = tmp_path / "chains"
    with pytest.raises(orn.train.NonFiniteError, match=r"the \d+ before it are in"):
        run(sgld(10.0), num_warmup=0, folder=folder)
    found = load_samples(folder, linear(), orn.Gaussian(NOISE))
    assert all(np.all(np.isfinite(a)) for a in jax.tree.leaves(found.positions))


def test_a_step_that_rejects_everything_is_said(caplog):
    with caplog.at_level(logging.WARNING, "ornstein"):
        run(fixed_hmc(50.0), num_warmup=0)
    assert "step size of 50 rejects everything" in caplog.text
    assert len(caplog.records) == 1  # not what follows from it, too


def test_chains_that_disagree_are_said(caplog):
    """Catches (seen) the advice for trajectories after a kernel that has none."""
    far = run(HMC(3))
    far = jax.tree.map(lambda a: jnp.asarray(a[:, -1]), far.positions)
    far = jax.tree.map(lambda a: a.at[0].add(10.0), far)
    with caplog.at_level(logging.WARNING, "ornstein"):
        run(sgld(1e-5), starts=far, num_warmup=0)
    assert "do not agree" in caplog.text
    assert "sample longer (`num_warmup`, `num_samples` or `thin`), or" in caplog.text
    said = flagged(caplog.records[-1].msg)
    assert "with the same --data, but longer (--num-warmup, --num-samples or" in said
    with caplog.at_level(logging.WARNING, "ornstein"):
        run(fixed_hmc(1e-3), starts=far, num_warmup=0)
    said = flagged(caplog.records[-1].msg)
    assert "longer (first --num-integration-steps, then --num-warmup, --num" in said


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"num_samples": 0}, ValueError, "`num_samples` must be at least 1"),
        ({"num_chains": 0}, ValueError, "`num_chains` must be at least 1"),
        ({"thin": 0}, ValueError, "`thin` must be at least 1"),
        ({"num_warmup": -1}, ValueError, "must not be negative"),
        ({"jitter": -1.0}, ValueError, "`jitter` must not be negative"),
        ({"resume": True}, ValueError, "needs the `folder`"),
        ({"burn_in": BurnIn()}, ValueError, "sees all data"),
        ({"model": MCDropout(eqx.nn.MLP(2, 1, 4, 1, key=jr.key(0)), rate=0.5)},
         TypeError, "random function `MCDropout`"),
        ({"model": lambda x: x[:, :1]}, ValueError, "no parameters"),
        ({"likelihood": orn.Gaussian(1.0, learn_scale=True)}, ValueError,
         "needs a prior"),
    ],
)  # fmt: skip
def test_bad_arguments(options, error, match):
    with pytest.raises(error, match=match):
        run(HMC(3), **options)
    with pytest.raises(ValueError, match="`threshold` must be positive"):
        BurnIn(threshold=0.0)


def test_what_a_compiled_program_refuses_is_one_sentence():
    same = SimpleNamespace(x=np.ones((5, 2), "float32"), y=np.ones(5, "float32"))
    with pytest.raises(ValueError, match=r"^`ConstantSGD` samples by .*position\.$"):
        run(ConstantSGD(), same, num_chains=1)


def test_a_start_without_a_density_names_the_term():
    bad = eqx.tree_at(lambda m: m.bias, linear(), jnp.array([jnp.nan]))
    with pytest.raises(ValueError, match="log prior"):
        run(HMC(3), model=bad, jitter=0.0)
    with pytest.raises(ValueError, match=r"\[1, 2\] chains"):
        run_chains(
            HMC(3),
            DensityPotential(lambda q: -jnp.sum(q[0]) - jnp.sum(q[1])),
            (jnp.zeros((1, 2)), jnp.zeros((2, 2))),
            key=jr.key(0),
        )


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_kernel_or_network_is_refused():
    """Reported: an optimiser for a kernel ended in an AttributeError."""
    with pytest.raises(TypeError, match=r"`kernel` must be an `AbstractKernel`.*IVON"):
        run(orn.IVON())
    model = orn.SDEBNN.for_vectors(2, 1, key=jr.key(0))
    with pytest.raises(TypeError, match=r"`SDEBNN`: give `orn.whiten\(model\)`"):
        run(HMC(3), model=model)
    starts = run(HMC(3), num_chains=3).positions
    starts = jax.tree.map(lambda a: a[:, -1], starts)
    with pytest.raises(ValueError, match="has 3 positions.*give `num_chains=3`"):
        run(HMC(3), starts=starts)
