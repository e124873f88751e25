"""Where chains start, and what R-hat can see from there."""

import logging
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.mcmc import HMC
from ornstein.potential import Potential
from ornstein.prior import GaussianPrior
from ornstein.sampling import _chains, load_samples, sample, save_samples
from ornstein.sampling._starts import APART, apart, starts_of
from ornstein.sgmcmc import SGLD

PRIOR = GaussianPrior(1.5)
KERNEL = HMC(5, 0.02, adapt_step_size=False, adapt_mass=False)


class Squared(eqx.Module):
    """y = w², which w and -w explain alike; x is asked for the sign of w."""

    w: jax.Array

    def __call__(self, x):
        return jnp.where(x > 0, self.w**2, self.w)


def two_modes(num_rows: int = 20):
    """Rows of w² alone, and one of w itself that says next to nothing."""
    x = np.ones((num_rows, 1), "float32")
    x[0] = -1.0
    y = np.full((num_rows, 1), 1.0, "float32")
    y[0] = 0.0
    return SimpleNamespace(x=x, y=y)


def run(kernel=KERNEL, **options):
    options = {"num_samples": 200, "num_warmup": 100, "num_chains": 6} | options
    return sample(
        Squared(jnp.array([0.9])),
        two_modes(),
        orn.Gaussian(0.5),
        kernel=kernel,
        prior=PRIOR,
        key=jr.key(2),
        **options,
    )


def r_hat(samples) -> float:
    return float(np.max(samples.function_diagnostics(two_modes().x[:2]).r_hat))


def test_chains_from_one_point_do_not_show_another_mode_and_say_so(caplog):
    """Catches (seen) starts within 0.01 of the network as the default: R-hat is 1.0 on
    half of the posterior, and nobody is told."""
    with caplog.at_level(logging.WARNING, "ornstein"):
        near = run(jitter=0.01)
    assert r_hat(near) < 1.02
    assert np.all(near.positions[0].w > 0)  # the mode at -1 is missed
    assert near.starts == "from one point within 0.01"
    (note,) = near.notes
    assert "from one point within 0.01: other modes are not seen" in note
    assert note in caplog.text
    away = run()
    assert r_hat(away) > 1.5
    assert away.starts == APART
    assert any("do not agree" in note for note in away.notes)
    given = run(starts=jax.tree.map(lambda a: jnp.asarray(a[:, -1]), near.positions))
    assert given.starts == "where `starts` put them"


def potential(prior=PRIOR, network=None, **options):
    network = orn.nn.MLP(3, 1, [50], key=jr.key(0)) if network is None else network
    x = jr.normal(jr.key(1), (10, 3))
    return Potential(
        network,
        SimpleNamespace(x=x, y=x[:, :1]),
        orn.Gaussian(0.3, learn_scale=True),
        prior=prior,
        likelihood_prior=GaussianPrior(0.5, mean=-1.0),
        **options,
    )


def test_short_draws_are_the_priors():
    """Of a narrow prior nothing is cut: every number of every chain, by its moments.
    Catches a key used for two arrays or two chains."""
    narrow = potential(GaussianPrior(0.01))
    drawn = apart(narrow, 400, key=jr.key(3))
    params = np.concatenate(
        [np.asarray(a).reshape(400, -1) for a in jax.tree.leaves(drawn[0])], axis=1
    )
    size = params.size**-0.5
    assert abs(params.mean() / 0.01) < 4.5 * size
    assert abs(params.var() / 1e-4 - 1) < 4.5 * 2**0.5 * size
    across = np.corrcoef(params.T) - np.eye(params.shape[1])
    assert np.max(abs(across)) < 6.5 / 20  # of 30,000 pairs


def test_chains_start_apart_but_no_further_out_than_the_network():
    """From a wide prior fixed steps leave the finite numbers. An array of zeros has no
    size, and is shortened by what the others are together, here in numpy; the scale is
    the likelihood's own. Catches (seen) a bias at full width, a hundred times theirs.
    """
    zero = lambda net: net.layers[-1].bias
    network = orn.nn.MLP(3, 1, [50], key=jr.key(0))
    network = eqx.tree_at(zero, network, jnp.zeros_like(zero(network)))
    wide = potential(GaussianPrior(30.0), network)
    params, scale = starts_of(wide, 8, jitter=None, key=jr.key(4)).positions
    *leaves, last = jax.tree.leaves(params)
    *own, _ = jax.tree.leaves(wide.start[0])
    for drawn, one in zip(leaves, own, strict=True):
        rows = np.asarray(drawn).reshape(8, -1)
        length = np.linalg.norm(np.asarray(one))
        if length > 0:
            lengths = np.linalg.norm(rows, axis=1)
            np.testing.assert_allclose(lengths, length, rtol=1e-4)
            assert length / 2 < np.linalg.norm(rows[0] - rows[1]) < 2.001 * length
    draws = [wide.prior.sample(wide.start[0], key=k) for k in jr.split(jr.key(4), 8)]
    length = np.sqrt(sum(np.sum(np.asarray(a, float) ** 2) for a in own))
    for found, draw in zip(np.asarray(last), draws, strict=True):
        *others, bias = [np.asarray(a, float) for a in jax.tree.leaves(draw)]
        known = [a for a, b in zip(others, own, strict=True) if np.any(b)]
        ratio = length / np.sqrt(sum(np.sum(a**2) for a in known))
        assert ratio < 0.1
        np.testing.assert_allclose(found, bias * ratio, rtol=1e-4)
    (log_scale,) = jax.tree.leaves(scale)
    np.testing.assert_allclose(log_scale, np.full(8, np.log(0.3)), rtol=1e-5)


def test_a_folder_says_where_its_chains_started(tmp_path):
    samples = run(folder=tmp_path / "run")
    save_samples(tmp_path / "kept", samples)
    for name in ("run", "kept"):
        like = Squared(jnp.array([0.0]))
        back = load_samples(tmp_path / name, like, orn.Gaussian(0.5))
        assert back.starts == samples.starts


def test_starts_and_jitter_are_one_or_the_other():
    with pytest.raises(ValueError, match="both say where chains start"):
        run(starts=(jnp.zeros((6, 1)), None), jitter=0.1)


def test_no_key_is_used_twice():
    """Catches (seen) the key of the chains, with which their starts were checked."""
    target, key = potential(batch_size=5), jr.key(1)
    starts = apart(target, 2, key=jr.key(0))
    with jax.debug_key_reuse(True):
        _chains._check_starts(SGLD(1e-3), target, starts, key=key)
        _chains._chain_keys(key, 2)
