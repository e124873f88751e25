"""Three estimators of the KL: one expected value, one expected gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import X, away_from_prior, small_model

from ornstein.functions import Integrator
from ornstein.sde import KL, Fixed, FullMonteCarlo, StickTheLanding

NUM_DRAWS = 3000


@pytest.mark.slow
def test_estimators_agree_in_value_and_gradient():
    """Over every parameter: w0's mean and spread, the drift, the inducing inputs; on
    the same draws. Catches a term that is not a martingale: u at the wrong end of the
    step, another Brownian path, (seen) a sampled KL(w0) with a wrong normalisation."""

    def run(estimator):
        model = away_from_prior(
            small_model(
                estimator=estimator,
                width_sizes=(),
                drift_widths=(2,),
                num_inducing=1,
                integrator=Integrator(stepsize=Fixed(0.25)),
            ),
            scale=1.0,
        )
        params, static = eqx.partition(model, eqx.is_inexact_array)

        def kl(params, key):
            return eqx.combine(params, static)(jnp.asarray(X[:1]), key=key).kl

        one = jax.value_and_grad(kl)
        many = jax.jit(jax.vmap(lambda key: one(params, key)))
        value, gradient = many(jr.split(jr.key(4), NUM_DRAWS))
        leaves = [g.reshape(NUM_DRAWS, -1) for g in jax.tree.leaves(gradient)]
        return np.concatenate([value[:, None], *leaves], axis=1).astype(float)

    reference = run(KL())
    for estimator in (FullMonteCarlo(), StickTheLanding()):
        difference = run(estimator) - reference
        spread = difference.std(axis=0)
        differs = spread > 1e-5
        # All but the readout, and what only rescales.
        assert np.count_nonzero(differs) > 60
        z = difference.mean(axis=0)[differs] / spread[differs] * np.sqrt(NUM_DRAWS)
        assert np.abs(z).max() < 4.5, np.abs(z).max()
