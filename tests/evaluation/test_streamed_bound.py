"""The bound of rows on disk, of which a sample is in memory."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Int

import ornstein as orn
from ornstein.data import AbstractShards, Split, Streamed
from ornstein.evaluation import evidence_bound
from ornstein.train import Fit


class Elsewhere(AbstractShards):
    """60 rows that nobody reads."""

    block_rows: Int[np.ndarray, " blocks"]
    digest: str = "elsewhere"
    x_like: jax.ShapeDtypeStruct = jax.ShapeDtypeStruct((2,), np.float32)
    y_like: jax.ShapeDtypeStruct = jax.ShapeDtypeStruct((1,), np.float32)

    def read(self, block: int):
        raise AssertionError("the sample is enough")


def test_a_sample_stands_for_all_rows():
    """Catches a likelihood of the sample alone (a third), or a scaled KL."""
    rng = np.random.default_rng(0)
    sample = Split(rng.normal(size=(20, 2)).astype("f"), np.ones((20, 1), "f"))
    network = eqx.nn.MLP(2, 1, 3, 1, key=jr.key(0))
    model = orn.MeanField(network, orn.GaussianPrior(1.0))
    fitted = Fit(model, orn.Gaussian(1.0), None, {})
    how = {"key": jr.key(1), "num_draws": 3}
    of_sample = evidence_bound(fitted, sample, **how)
    of_all = evidence_bound(fitted, Streamed(Elsewhere(np.array([60])), sample), **how)
    assert of_all["kl"] == of_sample["kl"] > 0
    likelihood = of_sample["elbo"] + of_sample["kl"]
    assert of_all["elbo"] + of_all["kl"] == pytest.approx(3 * likelihood, rel=1e-6)
    assert of_all["elbo_se"] > of_sample["elbo_se"]  # of rows that were not seen, too
