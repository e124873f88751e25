"""When a minibatch chain stops optimising and starts sampling."""

import equinox as eqx
import jax
import numpy as np

from .._gather import gathered
from .._types import Array, Float, PRNGKeyArray
from ..mcmc import AbstractKernel, AbstractState
from ..sgmcmc import AbstractMinibatchKernel, noise_ratio
from ..train import check_positive
from ._advance import Sampler

_MOST_BYTES = 2**28
"""Of gradients of single rows, from which the noise is estimated."""


class BurnIn(eqx.Module):
    r"""End a minibatch kernel's warm-up once injected noise dominates gradient noise.

    The warm-up ends at the first check at which the `noise_ratio` of every chain is
    below the threshold; for SGLD $\varepsilon \lambda_{\max}(V) / 4 < 0.1$. Where that
    never happens, `num_warmup` rules. A small step satisfies it before the chain has
    reached the posterior: `min_steps` is there for that.

    Args:
        threshold: of the ratio.
        check_every: steps from one check to the next.
        min_steps: of the warm-up, at least.

    References:
        Welling & Teh (2011), section 4.2.
    """

    threshold: float = 0.1
    check_every: int = 100
    min_steps: int = 0

    def __check_init__(self):
        check_positive(check_every=self.check_every)
        if not self.threshold > 0:
            raise ValueError(
                f"`threshold` must be positive, got {self.threshold}: 0.1 lets "
                "gradient noise add a tenth to the variance of a step."
            )


def noise_ratios(
    sampler: Sampler, states: AbstractState, *, key: PRNGKeyArray
) -> Float[np.ndarray, " chains"]:
    """Gradient noise over injected noise in each chain."""
    size = sum(leaf[0].nbytes for leaf in jax.tree.leaves(states.position))
    num_rows = int(np.clip(_MOST_BYTES // size, 8, 100))
    ratios = _noise_ratios(sampler, states, key, num_rows)
    return np.asarray(gathered(ratios, sampler.mesh))


def has_noise_ratio(kernel: AbstractKernel) -> bool:
    """Whether a kernel says what gradient noise is to the noise that it injects."""
    return isinstance(kernel, AbstractMinibatchKernel)


@eqx.filter_jit
def _noise_ratios(
    sampler: Sampler, states: AbstractState, key: PRNGKeyArray, num_rows: int
) -> Float[Array, " chains"]:
    kernel = sampler.kernel
    assert isinstance(kernel, AbstractMinibatchKernel)

    def ratio(state):
        return noise_ratio(sampler.potential, state, kernel, key=key, num_rows=num_rows)

    return jax.lax.map(ratio, states)
