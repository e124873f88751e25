"""Step sizes that are lowered in the warm-up, against a closed form and themselves."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest

import ornstein as orn
from ornstein.cli import main
from ornstein.data import Split
from ornstein.potential import AbstractPotential, Potential
from ornstein.recipe import SampleRecipe, open_sampling, prepare
from ornstein.recipe._kernels import noise_limit_of
from ornstein.recipe._sampling_options import SamplingOptions
from ornstein.sampling import BurnIn, NoiseLimit, load_samples, run_chains
from ornstein.sampling._advance import Sampler
from ornstein.sampling._noise_limit import StepControl, _factor_for
from ornstein.sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    ConstantSGD,
    Cyclical,
    NaiveSGHMC,
    PreconditionedSGLD,
)
from ornstein.train import NonFiniteError

NOISE, PRIOR_SCALE, ROWS = 0.05, 1.5, 120
KERNELS = {
    "sgld": SGLD(2e-4),
    "sghmc": SGHMC(1e-2, 10.0),
    "sgnht": SGNHT(1e-2, 10.0),
    "psgld": PreconditionedSGLD(0.1),
}
"""All too fast: of a noise of 0.05 the posterior is narrow."""


def regression() -> SimpleNamespace:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3)).astype("float32")
    y = (x @ [1.0, -2.0, 0.5] + 0.3 + NOISE * rng.normal(size=ROWS)).astype("float32")
    return SimpleNamespace(x=x, y=y)


def run(kernel: Any, **options: Any) -> Any:
    settings = {"num_samples": 150, "num_warmup": 800, "num_chains": 4, "thin": 5}
    return orn.sample(
        options.pop("network", eqx.nn.Linear(3, 1, key=jr.key(0))),
        regression(),
        orn.Gaussian(NOISE),
        kernel=kernel,
        prior=orn.GaussianPrior(PRIOR_SCALE),
        key=jr.key(3),
        **settings | {"batch_size": 40} | options,
    )


def exact_covariance(x: np.ndarray, noise: float, prior_scale: float) -> np.ndarray:
    design = np.concatenate([x, np.ones((len(x), 1))], axis=1).astype(float)
    precision = design.T @ design / noise**2
    return np.linalg.inv(precision + np.eye(len(precision)) / prior_scale**2)


def widths(samples: Any, covariance: np.ndarray) -> np.ndarray:
    """Of the chains, in the posterior's standard deviations, in its own directions."""
    weight, bias = samples.positions[0].weight, samples.positions[0].bias
    flat = np.concatenate([weight[:, :, 0], bias], axis=-1).reshape(-1, len(covariance))
    values, vectors = np.linalg.eigh(covariance)
    return np.std(flat.astype(float) @ vectors, axis=0) / np.sqrt(values)


@pytest.mark.parametrize("name", KERNELS)
def test_samples_are_as_wide_as_the_posterior(name: str):
    """With a threshold of 0.1 but for a twentieth; without one much wider, or lost."""
    kernel = KERNELS[name]
    covariance = exact_covariance(regression().x, NOISE, PRIOR_SCALE)
    samples = run(kernel, noise_limit=NoiseLimit(0.1), num_samples=300, thin=10)
    assert samples.info["step_size"].max() < kernel.step_size / 2
    assert np.all(samples.chain_info["noise_ratio"] < 0.3)
    found = widths(samples, covariance)
    assert np.all(np.abs(found - 1) < 0.25), found


def test_without_it_they_are_not():
    """In steps that lose no chain. Of the noise ratio r they are √(1 + r) as wide."""
    plain = at_mode(SGLD(4e-6), num_samples=600, thin=10, batch_size=5)
    ratio = float(plain.chain_info["noise_ratio"].max())
    assert ratio > 1
    covariance = exact_covariance(regression().x, NOISE, PRIOR_SCALE)
    assert 0.5 < widths(plain, covariance).max() / np.sqrt(1 + ratio) < 1.3
    limited = at_mode(
        SGLD(4e-6),
        num_samples=600,
        thin=10,
        batch_size=5,
        noise_limit=NoiseLimit(ratio / 4),
    )
    assert limited.chain_info["noise_ratio"].max() < ratio / 2
    found = widths(plain, covariance).max() - widths(limited, covariance).max()
    assert found > 0.2


def at_mode(kernel: Any, **options: Any) -> Any:
    """Chains that start at the posterior's mean."""
    split = regression()
    design = np.concatenate([split.x, np.ones((ROWS, 1))], axis=1).astype(float)
    covariance = exact_covariance(split.x, NOISE, PRIOR_SCALE)
    mode = jnp.asarray(covariance @ design.T @ split.y / NOISE**2, jnp.float32)
    network = eqx.nn.Linear(3, 1, key=jr.key(0))
    where = lambda linear: (linear.weight, linear.bias)
    network = eqx.tree_at(where, network, (mode[None, :3], mode[3:]))
    return run(kernel, network=network, jitter=1e-5, **options)


@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_chains_at_a_mode_are_not_lost(temperature: float):
    """They climb by T D / 2. Catches (seen) hot chains that start again and again."""
    kernel = SGLD(2e-7, temperature=temperature)
    limited = at_mode(kernel, noise_limit=NoiseLimit(3.0))
    assert "step_size_factor" not in limited.chain_info
    plain = at_mode(kernel)
    jax.tree.map(np.testing.assert_array_equal, plain.positions, limited.positions)


def test_a_thermostat_takes_out_what_is_the_same_everywhere():
    """Catches (seen) a ratio of 54, "7.4 times as wide", of chains that are right."""
    num = 50

    class Noisy(AbstractPotential):
        def __call__(self, position):
            return 0.5 * jnp.sum(position**2)

        def estimate(self, position, *, key):
            return self(position) + 20.0 * jr.normal(key, (num,)) @ position

    kernel = SGNHT(0.02, 0.2)
    chains = run_chains(
        kernel,
        Noisy(),
        jnp.zeros((2, num)),
        key=jr.key(0),
        num_warmup=4000,
        num_samples=400,
        thin=10,
    )
    assert chains.chain_info["noise_ratio"].max() < 8
    assert 0.9 < np.std(chains.positions) < 1.15


def test_chains_that_start_again_have_a_warm_up(tmp_path: Path):
    """Catches (seen) a burn-in that is over at step 0."""
    rule = BurnIn(threshold=30.0, check_every=5000)
    limit = NoiseLimit(2.0)
    samples = at_mode(SGLD(5e-5), noise_limit=limit, burn_in=rule)
    assert samples.chain_info["step_size_factor"][0] < 0.5
    assert np.all(samples.chain_info["num_warmup"] == 800)


def test_momentum_of_nothing():
    """A step takes all of it. Catches (seen) a friction that is rounded above that."""
    step = (0.02 / 54) ** 0.5
    samples = run(SGHMC(step, 1 / step), noise_limit=NoiseLimit(0.5), num_warmup=400)
    assert samples.chain_info["step_size_factor"][0] < 0.5


def test_rows_on_disk_of_which_memory_has_a_sample():
    """Catches (seen) an energy of all rows, which nobody can have."""
    split = regression()
    held = Split(split.x[:40], split.y[:40])
    potential = Potential(
        eqx.nn.Linear(3, 1, key=jr.key(0)),
        held,
        orn.Gaussian(NOISE),
        prior=orn.GaussianPrior(PRIOR_SCALE),
        batch_size=20,
        num_data=ROWS,
    )
    starts = jax.tree.map(lambda a: jnp.stack([a, a]), potential.start)
    kernel = SGLD(2e-5)
    keys = jr.split(jr.key(1), 2)
    sampler = Sampler(kernel, potential, keys)
    states = sampler.init(starts, keys)
    control = StepControl(NoiseLimit(1.0), sampler, states)
    assert not control.is_lost(states)
    far = eqx.tree_at(
        lambda s: s.position, states, jax.tree.map(lambda a: a + 50.0, starts)
    )
    assert control.is_lost(far)
    control.fitted(far, jr.key(0), is_early=True)  # above its starts: no descent
    assert control.factor == 0.25
    control.fitted(states, jr.key(0), is_early=False)
    assert control.factor != 0.25


@pytest.mark.parametrize("name", ["sghmc", "sgld"])
def test_as_the_command_line_runs_it(name: str, tmp_path: Path):
    """Without an option of the kernel, on rows with little noise.

    Seen failing without the limit, where chains leave the finite numbers; and with one
    that took lost chains for noisy ones: an RMSE of 160 standard deviations.
    """
    split = regression()
    table = pd.DataFrame(split.x, columns=["a", "b", "c"]).assign(y=split.y)
    table.to_csv(tmp_path / "table.csv", index=False)
    line = f"sample --data {tmp_path}/table.csv --target y --network mlp --width none"
    line += " --prior gaussian --prior-scale 1 --likelihood gaussian --scale 0.03"
    line += f" --no-learn-scale --num-warmup 1500 --num-samples 150 --kernel {name}"
    assert main([*line.split(), "--out", str(tmp_path / "run")]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    recipe = SampleRecipe.from_json(config["sampling"])
    prepared = prepare(recipe.recipe)
    folder = tmp_path / "run" / "checkpoints" / "samples"
    samples = open_sampling(recipe, prepared, folder)
    covariance = exact_covariance(np.asarray(prepared.data.train.x), 0.03, 1.0)
    x = np.asarray(prepared.data.test.x, float)
    design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    exact = np.sqrt(np.einsum("ri,ij,rj->r", design, covariance, design))
    values = np.asarray(samples.function_values(prepared.data.test.x))[..., 0]
    found = values.std((0, 1)) / exact
    assert np.all((found > 0.8) & (found < 2.2)), found
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["step_size_factor"][0] < 0.5
    assert max(result["noise_ratio"]) < 5


def test_a_typed_step_is_kept():
    """And that of cycles, of kernels that see all rows, and of constant SGD."""
    of = lambda **options: noise_limit_of(SamplingOptions(**options), 1_000)
    assert isinstance(of(kernel="sghmc"), NoiseLimit)
    assert of(kernel="sghmc", step_size=1e-3) is None
    assert of(kernel="sghmc", cycles=2) is None
    assert of(kernel="hmc") is None
    assert of(kernel="constant-sgd") is None
    assert of(kernel="sghmc", num_warmup=0) is None


def test_a_limit_leaves_chains_a_way_to_go():
    """Catches (seen) MNIST's, which stayed where they started for want of steps."""
    limit = lambda **options: noise_limit_of(SamplingOptions(**options), 60_000)
    few, many = limit(num_warmup=500), limit(num_warmup=10**6)
    assert few is not None
    assert few.threshold == pytest.approx(2000 * 600 / 1000)
    assert many is not None
    assert many.threshold == 3.0


class Kill:
    """Ctrl-C at the first call at or after each of some steps."""

    def __init__(self, *steps: int):
        self.steps = list(steps)

    def start(self, plan: Any) -> None:
        pass

    def advance(self, step: int, record: dict[str, Any]) -> None:
        if self.steps and step >= self.steps[0]:
            del self.steps[0]
            raise KeyboardInterrupt

    def stop(self) -> None:
        pass


@pytest.mark.parametrize("at", [3, 500, 820])
def test_interrupted_chains_go_on_to_the_same_bits(at: int, tmp_path: Path):
    """Before they were lost, between checks, and while they are sampled."""
    options = {"noise_limit": NoiseLimit(0.5), "thin": 1, "num_samples": 30}
    kernel = KERNELS["sgld"]
    whole = run(kernel, **options)
    folder = tmp_path / "samples"
    with pytest.raises(KeyboardInterrupt):
        run(kernel, folder=folder, callbacks=[Kill(at)], **options)
    resumed = run(kernel, folder=folder, resume=True, **options)
    jax.tree.map(
        np.testing.assert_array_equal,
        (whole.positions, whole.chain_info, whole.info),
        (resumed.positions, resumed.chain_info, resumed.info),
    )
    assert set(whole.chain_info) == {"num_warmup", "noise_ratio", "step_size_factor"}
    again = load_samples(
        folder, eqx.nn.Linear(3, 1, key=jr.key(0)), orn.Gaussian(NOISE)
    )
    assert again.num_samples == 30


def test_a_step_that_suits_is_kept_to_the_bit():
    """Nothing is compiled anew, and no number changes, where chains are cool."""
    options = {"num_samples": 20, "num_warmup": 100}
    plain = run(SGLD(1e-10), **options)
    limited = run(SGLD(1e-10), noise_limit=NoiseLimit(), **options)
    jax.tree.map(np.testing.assert_array_equal, plain.positions, limited.positions)
    assert "step_size_factor" not in limited.chain_info


def test_chains_that_are_lost_again_and_again():
    """They end as they did, with the sentence for it."""
    rule = NoiseLimit(num_restarts=2)
    with pytest.raises(NonFiniteError, match="left the finite numbers in the warm-up"):
        run(SGLD(1e6), noise_limit=rule)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (orn.HMC(3), "`HMC` is none: leave `noise_limit` out"),
        (ConstantSGD(), "`ConstantSGD` is none"),
        (SGLD(Cyclical(1e-3, 100)), "the `step_size` of `SGLD` is a schedule"),
        (NaiveSGHMC(1e-4, 5), "`NaiveSGHMC` is none"),
        (SGLD(1e-6, temperature=0.0), r"has none \(`temperature` is 0.0\)"),
        (SGHMC(1e-5, 0.0), r"has none \(`friction` is 0.0\)"),
    ],
)
def test_kernels_without_a_step_to_lower(kernel: Any, said: str):
    with pytest.raises(ValueError, match=said):
        run(kernel, noise_limit=NoiseLimit())


def test_rules_that_cannot_be():
    with pytest.raises(ValueError, match="`threshold` must be positive, got 0"):
        NoiseLimit(0.0)
    with pytest.raises(ValueError, match="`num_checks` must be at least 1"):
        NoiseLimit(num_checks=0)
    with pytest.raises(ValueError, match="`num_restarts` must not be negative"):
        NoiseLimit(num_restarts=-1)


def test_checks_end_before_the_warm_up():
    rule = NoiseLimit(num_checks=4)
    due = [step for step in range(1001) if rule.is_due(step, 1000)]
    assert due == [200, 400, 600, 800]
    assert [rule.next_check(step, 1000) for step in (0, 200, 800)] == [200, 400, 1000]


@pytest.mark.parametrize(
    ("ratio", "halved", "factor"),
    [
        (8.0, 2.0, 0.5),  # as the square of the step: SGHMC
        (4.0, 2.0, 0.5),  # as the step: SGLD
        (1e6, 5e5, 0.25),
        (1e-6, 5e-7, 4.0),
        (np.inf, np.inf, 0.25),
        (np.nan, np.nan, 1.0),
        (0.0, 0.0, 1.0),
    ],
)
def test_factors(ratio: float, halved: float, factor: float):
    assert _factor_for(ratio, halved, 2.0) == pytest.approx(factor)


def test_hot_samples_are_called_that():
    """In a note and as a fault, once: not beside what a `burn_in` says of it."""
    hot = run(SGLD(1e-5), batch_size=5, num_samples=20, num_warmup=20)
    assert hot.chain_info["noise_ratio"].max() > 8
    split = regression()
    rows = SimpleNamespace(x=jnp.asarray(split.x), y=jnp.asarray(split.y))
    found = orn.diagnose(hot, rows, key=jr.key(0))
    said = {finding.name: finding.message for finding in found.findings}
    assert "times as wide as the posterior" in said["chains-heated"]
    assert sum("Gradient noise" in note for note in hot.notes) == 1
    rule = BurnIn()
    noted = run(SGLD(1e-5), batch_size=5, num_samples=20, num_warmup=20, burn_in=rule)
    assert sum("Gradient noise" in note for note in noted.notes) == 1
    cool = run(SGLD(1e-10), num_samples=20, num_warmup=20)
    found = orn.diagnose(cool, rows, key=jr.key(0))
    assert "chains-heated" not in {finding.name for finding in found.findings}
    assert found.numbers["noise_ratio"] < 0.1
