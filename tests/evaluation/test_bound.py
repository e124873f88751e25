"""The bound of series, against its parts one path at a time."""

import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.evaluation import series_evidence_bound
from ornstein.functions import FirstFrames
from ornstein.train import Fit


@pytest.mark.parametrize("estimator", [orn.sde.KL(), orn.sde.StickTheLanding()])
def test_bound_of_series(estimator):
    """A mean over series and paths; catches a sum, a KL left out, paths shared, and
    (seen) the closed forms in place of what an estimator with a term in dB gives."""
    ts, values = np.arange(4) / 4, np.arange(24.0).reshape(3, 4, 2) / 10
    x = orn.Series.of(ts, values)
    frames = FirstFrames(2, 2, 1, key=jr.key(0))
    model = orn.LatentSDE.make(frames, 2, estimator=estimator, key=jr.key(1))
    likelihood = orn.OverTime(orn.Gaussian(0.5))
    fitted = Fit(model, likelihood, None, {})
    found = series_evidence_bound(fitted, Split(x, x), key=jr.key(2), num_draws=5)
    elbos, kls = [], []
    for key in jr.split(jr.key(2), 5):
        draw = model(x, key=key)
        kls.append(np.mean(draw.local_kl))
        elbos.append(np.mean(likelihood.log_prob(draw.output, x)) - kls[-1])
    assert found["elbo"] == pytest.approx(np.mean(elbos), rel=1e-4)
    assert found["kl"] == pytest.approx(np.mean(kls), rel=1e-4)
    assert found["kl"] > 0
