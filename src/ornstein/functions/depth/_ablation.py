"""Relatives of a trained SDE-BNN, to compare it with: what does its posterior do?"""

from ._put_back import silence, start_at_prior
from ._sdebnn import SDEBNN
from ._weight_drift import drop_drift


def without_drift(model: SDEBNN) -> SDEBNN:
    r"""The model with $NN_\phi$ zeroed: weights move as under the prior.

    What this costs on held-out data is what the posterior of the path does.
    """
    return model.over_blocks(drop_drift)


def without_noise(model: SDEBNN) -> SDEBNN:
    r"""The $\sigma = 0$ twin: a point $w_0$, the same drift, no noise, no KL."""
    return model.over_blocks(silence)


def prior_of(model: SDEBNN) -> SDEBNN:
    r"""The same network with weights drawn from the prior, $w_0$ included.

    What is a point has no prior, and stays where it is: $w_0$ without a Gaussian start,
    and the weights that `where` did not choose.
    """
    return without_drift(model).over_blocks(start_at_prior)
