"""The options of a run of Markov chains."""

import dataclasses
from pathlib import Path
from typing import Literal

from ..data import expanded
from ._chain_starts import FROM_MEMBERS, FROM_PRIOR
from .options import ActivationName, SolverName, StemName

KernelName = Literal[
    "adaptive-sgld",
    "constant-sgd",
    "hmc",
    "langevin",
    "mclmc",
    "nuts",
    "partial-hmc",
    "psgld",
    "random-walk",
    "sghmc",
    "sgld",
    "sgnht",
]
"""What `ornstein sample --kernel` takes."""
SampledNetwork = Literal["mlp", "hierarchical", "sdebnn"]
"""What `ornstein sample --network` takes."""


@dataclasses.dataclass(frozen=True)
class SamplingOptions:
    """The network, its prior, and the chains.

    Attributes:
        kernel: what moves the chains. adaptive-sgld, constant-sgd, psgld, sghmc, sgld
            and sgnht see a batch at each step, the others all rows.
        network: mlp; hierarchical, an mlp beside a linear map, each layer of which
            learns how wide its weights are; or sdebnn, weights that move through depth,
            sampled in coordinates in which all of w0, path and readout is N(0, 1) a
            priori.
        width: hidden widths of the network (of sdebnn: of f_h), such as 50-50.
        activation: of its hidden layers.
        sigma: of sdebnn: diffusion of the weights, in units of their prior scale.
        rate: of sdebnn: of the Ornstein-Uhlenbeck prior; 0 is Brownian motion.
        start_scale: of sdebnn: standard deviation of w0 a priori, in units of
            1/sqrt(fan-in).
        point_scale: of sdebnn: that of what does not move, such as the readout.
        augment: of sdebnn: zero features (channels) appended to the input.
        blocks: of sdebnn: solves at each scale of images, such as 1-1.
        space_to_depth: of sdebnn: halve images into channels before the first block.
        stem: of sdebnn: patches, in the place of that, whitens squares of 2 by 2
            pixels: --width channels of each.
        normalised: of sdebnn, for images: f_h normalises each image before its
            convolutions, strided convolutions double the channels from scale to scale,
            and the readout is of pooled and normalised hidden units.
        solver: of sdebnn: of its differential equation.
        dt: of sdebnn: the solver's step; it divides the depth, which is 1.
        path_modes: of sdebnn: modes of each weight's path such as 2, which any step
            of the solver can meet; by default the path's increments over the steps
            of dt, which coarser steps can.
        prior: of every weight by itself; fan-in is a gaussian in units of
            1/sqrt(fan-in). hierarchical and sdebnn take gaussian alone.
        prior_scale: standard deviation (laplace: width) of the prior; 1 for
            hierarchical and sdebnn.
        expand_parameters: sample each hidden weight matrix as a product P V Q, which
            gives the weights another prior; with sghmc this is PX-SGHMC.
        step_size: full-data kernels adapt it, and only start here; 0.1 by default, of
            mclmc 0.01.
            Minibatch kernels have a default that suits the number of rows, lowered in
            the warm-up where the noise of batches is above that of the kernel.
        momentum: what a step keeps of the one before, for partial-hmc, sghmc and sgnht.
        num_integration_steps: leapfrog steps of hmc and partial-hmc; by default hmc
            has on a table 400,000 over the number of training rows, from 50 to 1,000.
        start_from: where chains start: at draws of the prior that are no larger than
            the network; at members that are optimised first; or where the RUN (its
            folder) of `ornstein train` ended, with the options of its network: of
            --model ensemble one chain at each member, of map or deterministic all at
            one point.
        start_steps: of Adam, for members that are optimised first.
        num_samples: kept of each chain.
        num_warmup: steps before the first of them.
        num_chains: side by side.
        thin: steps from one kept sample to the next.
        store_every: of each chain's samples each so many-th is stored; with more than
            1 the result has what all of them say of the test rows, as all_samples.
        cycles: of a minibatch kernel's step size, each a cosine from its peak to 0,
            whose first four fifths explore and whose last gives its share of the
            samples; the warm-up is part of the first. 0 keeps the step size as it is.
        batch_size: rows behind a step of a minibatch kernel.
        test_draws: samples averaged over in tests and predictions.
        seed: of everything random.
    """

    kernel: KernelName = "sghmc"
    network: SampledNetwork = "mlp"
    width: str = "50-50"
    activation: ActivationName = "tanh"
    sigma: float = 0.2
    rate: float = 1.0
    start_scale: float = 2.0
    point_scale: float = 1.0
    augment: int = 2
    blocks: str = "1"
    space_to_depth: bool = False
    stem: StemName = "none"
    normalised: bool = False
    solver: SolverName = "euler"
    dt: float = 0.125
    path_modes: int | None = None
    prior: Literal["gaussian", "fan-in", "laplace"] = "fan-in"
    prior_scale: float = 1.5
    expand_parameters: bool = False
    step_size: float | None = None
    momentum: float = 0.9
    num_integration_steps: int | None = 20
    start_from: str = FROM_PRIOR
    start_steps: int = 2000
    num_samples: int = 200
    num_warmup: int = 500
    num_chains: int = 4
    thin: int = 1
    store_every: int = 1
    cycles: int = 0
    batch_size: int = 100
    test_draws: int = 200
    seed: int = 0


OF_WHITENED = (
    *("sigma", "rate", "start_scale", "point_scale", "augment", "blocks"),
    *("space_to_depth", "stem", "normalised", "solver", "dt", "path_modes"),
)
"""Options that the network sdebnn alone reads."""


def starts_from_run(start_from: str | None) -> Path | None:
    """The run at whose end chains start, if they do.

    Args:
        start_from: the option; `None` where it was not given.
    """
    is_run = start_from not in (None, FROM_PRIOR, FROM_MEMBERS)
    return expanded(str(start_from)) if is_run else None
