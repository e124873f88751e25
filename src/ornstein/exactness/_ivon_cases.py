"""A network that is affine in its weights, fitted by natural gradients."""

from collections.abc import Callable
from functools import partial

import numpy as np

from .._types import PRNGKeyArray
from ..data import Split
from ..functions import MeanField, Reparameterised
from ..likelihood import Gaussian
from ..network import Network
from ..nn import Linear
from ..prior import GaussianPrior
from ..train import IVON
from ._functions import FunctionCase
from ._targets import LinearRegression
from ._variational import mean_field_optimum


def linear_network(dim: int, *, key: PRNGKeyArray) -> Linear:
    """One output, without bias.

    Args:
        dim: features.
        key: of its weights.
    """
    return Linear(dim, 1, use_bias=False, key=key)


def _make_normal(
    network: Callable[..., Network], target: LinearRegression, *, key: PRNGKeyArray
) -> MeanField:
    prior = GaussianPrior(target.prior_scale)
    noise = Reparameterised()
    return MeanField(network(target.x.shape[1], key=key), prior, noise=noise)


def ivon_case(
    network: Callable[..., Network], target: LinearRegression, batch_size: int | None
) -> FunctionCase:
    """Mean field by IVON.

    Args:
        network: a number of features and a key to a network that is linear in them, and
            affine in its weights, of which each is the slope of one.
        target: the data.
        batch_size: rows of a batch; all by default.
    """
    num_data, dim = target.x.shape
    batches = "" if batch_size is None else f", batches of {batch_size}"
    rows = num_data if batch_size is None else batch_size
    return FunctionCase(
        f"MeanField by IVON{batches}",
        "optimum of its bound, linear regression",
        partial(_make_normal, network, target),
        Split(target.x.astype(np.float32), target.y.astype(np.float32)[:, None]),
        Gaussian(target.scale),
        # On the unit vectors a linear layer shows its weights.
        np.eye(dim, dtype=np.float32),
        tuple(range(dim)),
        mean_field_optimum(target),
        target.posterior(),
        {
            "num_epochs": 6000 * rows // num_data,
            "batch_size": rows,
            "num_draws": 16,
            "optimiser": IVON(),
        },
    )
