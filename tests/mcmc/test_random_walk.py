"""Metropolis-Hastings with a proposal that is not symmetric."""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from mcmc.chains import run_chains, z_score

from ornstein.mcmc import AbstractProposal, RandomWalkMetropolis
from ornstein.potential import DensityPotential

SHAPE, RATE = 2.5, 1.5
GAMMA = DensityPotential(lambda x: (SHAPE - 1) * jnp.log(x) - RATE * x)


class LogNormalWalk(AbstractProposal):
    """A step of the logarithm, which goes up as often as down: asymmetric in x."""

    scale: float
    has_density: bool = True

    def sample(self, position, *, key):
        return position * jnp.exp(self.scale * jax.random.normal(key))

    def log_prob(self, new, given):
        if not self.has_density:
            return jnp.zeros(())
        return norm.logpdf(jnp.log(new), jnp.log(given), self.scale) - jnp.log(new)


def z_of_moments(proposal: AbstractProposal) -> tuple[float, float]:
    chains = run_chains(
        RandomWalkMetropolis(proposal=proposal),
        GAMMA,
        jnp.asarray(1.0),
        key=jax.random.key(0),
        num_chains=16,
        num_warm_up=50,
        num_steps=4_000,
    )
    square = SHAPE * (SHAPE + 1) / RATE**2
    return (
        z_score(chains.positions, SHAPE / RATE),
        z_score(chains.positions**2, square),
    )


def test_hastings_ratio_corrects_an_asymmetric_proposal():
    """On a Gamma density: exact first and second moment."""
    assert max(map(abs, z_of_moments(LogNormalWalk(1.2)))) < 4.5


def test_without_the_ratio_the_moments_are_wrong():
    """What the source's eq. (11) would sample: Gamma(shape - 1), far off."""
    assert min(map(abs, z_of_moments(LogNormalWalk(1.2, has_density=False)))) > 20
