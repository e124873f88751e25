"""The benchmark of latent SDEs: its peer solves our problem, and it measures memory."""

import jax.random as jr
import pytest

pytest.importorskip("torchsde", reason="needs the extra `bench`")

from benchmarks import latent
from benchmarks.peers import latent_check


def test_peer_gives_our_loss_and_gradient():
    """Seen to fail: a KL without its half, noise of another scale, a context that
    gradients do not reach.
    """
    latent_check.check_latent_peer(num_frames=6, key=jr.key(1))


def test_growth_is_an_exponent():
    """Catches memory of another gradient among the rows."""
    steps = (100, 400, 1600)
    rows = {
        f"{name}, {n} steps": {"num_steps": n, "temp_mb": 3 * n**power}
        for name, power in {latent.CHECKPOINTED: 0.5, latent.BACKPROP: 1.0}.items()
        for n in steps
    }
    assert latent.growth(rows, latent.CHECKPOINTED) == pytest.approx(0.5)
    assert latent.growth(rows, latent.BACKPROP) == pytest.approx(1.0)


def test_checkpoints_need_less_memory_than_backpropagation():
    """Catches a benchmark that compiles the same gradient twice."""
    rows = latent.measure_memory((100,))
    checkpointed, backprop = (row["temp_mb"] for row in rows.values())
    assert 0 < checkpointed < backprop / 2
