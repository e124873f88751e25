"""The posterior of a network by Markov chains: `sample`."""

import dataclasses
import logging
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from .._kinds import check_key, check_kind
from .._mesh import (
    CHAINS,
    ROWS,
    check_same,
    checked_mesh,
    everywhere,
    fingerprint,
    num_along,
    put_rows,
)
from .._sentence import Sentence
from .._types import Params, PRNGKeyArray, PyTree
from ..data import Streamed
from ..functions import (
    SDEBNN,
    AbstractRandomFunction,
    Deterministic,
    LatentSDE,
    PosteriorSamples,
)
from ..likelihood import AbstractLikelihood
from ..mcmc import AbstractKernel
from ..network import Network
from ..potential import Potential
from ..prior import AbstractPrior
from ..train import Fit, check_data, check_positive
from ._burn_in import BurnIn
from ._callback import SamplingCallback
from ._chains import run_chains
from ._convergence import judge_chains
from ._from_disk import may_drift
from ._members import starts_of_members
from ._noise_limit import NoiseLimit
from ._running import RunningPrediction
from ._starts import GIVEN, Starts, starts_of

logger = logging.getLogger("ornstein")

_BATCH_SIZE = 100


def sample(
    model: Network,
    split: Any,
    likelihood: AbstractLikelihood,
    *,
    kernel: AbstractKernel,
    prior: AbstractPrior,
    key: PRNGKeyArray,
    num_samples: int = 1000,
    num_warmup: int = 1000,
    num_chains: int = 4,
    thin: int = 1,
    where: Callable[[Any], PyTree] | None = None,
    likelihood_prior: AbstractPrior | None = None,
    batch_size: int | None = None,
    burn_in: BurnIn | None = None,
    noise_limit: NoiseLimit | None = None,
    jitter: float | None = None,
    starts: Starts | Fit | AbstractRandomFunction | Params = None,
    folder: str | Path | None = None,
    resume: bool = False,
    save_every: float = 10.0,
    origin: dict[str, str] | None = None,
    mesh: Mesh | None = None,
    running: RunningPrediction | None = None,
    callbacks: Sequence[SamplingCallback] = (),
) -> PosteriorSamples:
    r"""Sample the posterior of a network's parameters by several Markov chains.

    Full-data kernels (`ornstein.mcmc`) see every row at every step; minibatch kernels
    (`ornstein.sgmcmc`) see `batch_size` rows, drawn anew with replacement. The chains
    run side by side in compiled calls of about a second.

    Rows that stay on disk (`data.Streamed`) are for minibatch kernels with one batch a
    step. They are read *without* replacement: a step takes the next `num_chains` times
    `batch_size` rows of the epoch and gives each chain a part, so that no two chains
    meet a row in the same epoch; a row counts N / `batch_size` times, as in memory
    (what is left over at the end of an epoch is not met in it: rows of blocks that are
    smaller than others are so met a little less often). Over an epoch the noise of such
    gradients cancels in part: chains come out less wide by it, where all rows are
    shuffled together `noise_ratio` (of random rows in memory) is a bound, and what is
    left pulls chains apart, so that R-hat errs upwards. `SGNHT` takes off noise as if
    all were there: one chain of it may come out too narrow (0.93 of a linear model's
    standard deviation for 1.20 in memory, four 1.15). `SGHMC(noise_estimate=...)` and
    `ConstantSGD` would have two thirds of it, and are refused. All chains read from the
    same `shuffle_buffer` of rows at a time. **Where it does not hold all of them, and
    they were written sorted, chains move together: seven times as wide in a linear
    model, with an R-hat of 1.00, a larger ESS and the same `noise_ratio`**
    (`benchmarks/streamed_chains.py`). A note says where that may be.

    Args:
        model: any network; a `Deterministic` is taken for its network.
        split: training data: has `x` and `y`, rows first; or `data.Streamed`.
        likelihood: of `y` given the network's output.
        kernel: such as `HMC(num_integration_steps=20)` or `SGLD(step_size=1e-5)`.
        prior: of the network's parameters.
        key: of starts and steps: see `run_chains`.
        num_samples: kept of each chain.
        num_warmup: steps of the warm-up, which find a step size and mass where the
            kernel adapts them, and are thrown away.
        num_chains: side by side.
        thin: steps from one kept sample to the next.
        where: the network to the subtree (or tuple of them) that is sampled; all of
            it by default.
        likelihood_prior: of a learned scale: of the likelihood's `log_scale`.
        batch_size: rows behind a minibatch kernel's step; clipped to the data (of rows
            on disk: to a chain's part of them), and the log says so. By default 100, or
            all of fewer.
        burn_in: ends a minibatch kernel's warm-up once injected noise dominates, at
            the latest after `num_warmup` steps: `BurnIn()`.
        noise_limit: lowers the step size of a minibatch kernel in the warm-up, until
            gradient noise heats no chain much: `NoiseLimit()`.
        jitter: start near the parameters that the network came with, at a normal
            distance of this standard deviation: for a network that was trained. R-hat
            then cannot show another mode. By default chains start apart, each at a
            draw of its own from the prior that is no larger in any array than the
            network: in directions of their own, but not overdispersed as R-hat asks. An
            R-hat near 1 says that chains from such starts met; give `starts` further
            out to ask for more.
        starts: positions to start from instead, chains first: (parameters, scale), as
            in `PosteriorSamples.positions[...][:, -1]`; or `optimised_starts(...)`; or
            the `Fit` of an `Ensemble` of this network (or the ensemble itself), one
            chain from each member; or of a `MAP` or `Deterministic` of it, at which all
            chains start: R-hat then cannot show another mode.
        folder: write samples here as the chains run; they are then read from there,
            and never all in memory. `load_samples` opens it again. Of several
            processes that share `mesh` the first alone writes, and the others read.
        resume: go on with the chains of that folder, bit for bit as if they had never
            stopped; pass the same arguments.
        save_every: seconds from one state to resume from to the next.
        origin: what the samples are made from, by name: kept in the `folder`, and a
            resumed run must agree.
        mesh: several devices, as in `jax.make_mesh((4,), ("chains",))`: along `chains`
            each runs some of them, along `data` each has some rows of the data (where
            every step sees all). The numbers are those of one device but for rounding,
            from which chains may part after many steps. Not of rows on disk.
        running: `RunningPrediction(x, y, store_every=100)` sums up what all samples
            predict for some inputs, and has a hundredth of them stored: for chains so
            long that they would fill a disk.
        callbacks: hear about the run; `ChainProgress(console)` for instance.

    Returns:
        The samples: a random function that `predict` takes.

    Raises:
        TypeError: for a random function in place of a network, an optimiser in place
            of a kernel, or members of another kind.
        ValueError: for arguments, data or starts that cannot work.
        NonFiniteError: if a chain leaves the finite numbers: the step size is too
            large.
        DataError: when it comes to rows on disk that cannot be read; with a `folder`
            the chains go on from there once they can.
        MemoryError: if the chains do not fit into memory, naming what needs less.
        FileExistsError: if the folder has samples and `resume` is false.
        CheckpointError: if what the folder has is of another run, or damaged.
    """
    if isinstance(model, Deterministic):
        model = model.network
    if isinstance(model, AbstractRandomFunction):
        remedy = "give the network inside it, or use `fit`"
        if isinstance(model, SDEBNN | LatentSDE):
            remedy = "give `orn.whiten(model)`, its prior as a network, or use `fit`"
        raise TypeError(
            f"`sample` needs a network, got the random function "
            f"`{type(model).__name__}`: {remedy}."
        )
    check_key(key)
    write = "orn.Gaussian(0.1) or orn.Categorical()"
    check_kind("likelihood", likelihood, AbstractLikelihood, write)
    check_kind("prior", prior, AbstractPrior, "orn.GaussianPrior(1.0)")
    check_kind("kernel", kernel, AbstractKernel, "orn.HMC(100) or orn.SGLD(1e-5)")
    rows = split if isinstance(split, Streamed) else None
    held = split if rows is None else rows.in_memory()
    check_data(held, "split")
    check_positive(num_chains=num_chains, num_samples=num_samples, thin=thin)
    num_chains, num_samples, thin, num_warmup = map(
        operator.index, (num_chains, num_samples, thin, num_warmup)
    )
    if jitter is not None and not 0 <= jitter < float("inf"):
        raise ValueError(f"`jitter` must not be negative, got {jitter}.")
    size = _BATCH_SIZE if batch_size is None else batch_size
    if rows is not None:  # each chain has a part of its own
        size = min(size, max(1, len(rows) // num_chains))
    potential = Potential(
        model,
        held,
        likelihood,
        prior=prior,
        likelihood_prior=likelihood_prior,
        where=where,
        batch_size=size,
        num_data=None if rows is None else len(rows),
    )
    if batch_size is not None and potential.batch_size < batch_size:
        whose = "" if rows is None else ", a chain's part"
        logger.info(
            "batch_size=%d clipped to the %d rows%s",
            *(batch_size, potential.batch_size, whose),
        )
    mesh = checked_mesh(mesh, (CHAINS, *ROWS), "sample")
    check_same(mesh, "sample", lambda: {"split": fingerprint((held.x, held.y))})
    start_key, chain_key = jax.random.split(key)
    if starts is None:
        chosen = starts_of(potential, num_chains, jitter=jitter, key=start_key)
    else:
        if jitter is not None:
            raise ValueError(
                "`starts` and `jitter` both say where chains start: give one of them."
            )
        if isinstance(starts, Fit | AbstractRandomFunction):
            chosen = starts_of_members(starts, potential, num_chains)
        else:
            chosen = starts if isinstance(starts, Starts) else Starts(starts, GIVEN)
            _check_like(chosen.positions, potential.start, num_chains)
    chains = run_chains(
        kernel,
        _put(potential, kernel, mesh),
        chosen.positions,
        key=chain_key,
        num_samples=num_samples,
        num_warmup=num_warmup,
        thin=thin,
        burn_in=burn_in,
        noise_limit=noise_limit,
        folder=folder,
        resume=resume,
        save_every=save_every,
        settings={
            "data shapes": [list(a.shape) for a in jax.tree.leaves((split.x, split.y))],
            "batch_size": potential.batch_size,
            "prior": eqx.tree_pformat((prior, likelihood_prior), short_arrays=False),
            "likelihood": eqx.tree_pformat(likelihood, short_arrays=False),
            # Activations, steps, scales: all but its arrays, which the starts tell.
            "network": eqx.tree_pformat(model),
            **({} if origin is None else {"origin": origin}),
        },
        how_started=chosen.how,
        mesh=mesh,
        rows=rows,
        running=running,
        callbacks=callbacks,
    )
    samples = PosteriorSamples(
        potential.network,
        potential.likelihood,
        chains.positions,
        info=chains.info,
        chain_info=chains.chain_info,
        starts=chosen.how,
        prior=prior,
    )
    notes = judge_chains(
        samples,
        potential.x,
        burn_in,
        has_trajectories=not kernel.is_minibatch
        and hasattr(kernel, "num_integration_steps"),
    )
    if rows is not None and may_drift(rows):
        text = (
            "Rows were shuffled among {:,} of {:,}: if the files are sorted, chains "
            "come out too wide, which R-hat does not see; shuffle rows when they are "
            "written, or give a larger {shuffle_buffer}."
        )
        notes.append(Sentence(text, rows.most_rows, len(rows)))
    for note in notes:
        logger.warning(note)
    return dataclasses.replace(samples, notes=tuple(notes))


def _check_like(starts: Params, position: Params, num_chains: int) -> None:
    """Refuse starts that are not one position for each chain."""
    shapes = lambda tree: [jnp.shape(a) for a in jax.tree.leaves(tree)]
    wanted = [(num_chains, *shape) for shape in shapes(position)]
    same = jax.tree.structure(starts) == jax.tree.structure(position)
    given = {shape[:1] for shape in shapes(starts)}
    if same and shapes(starts) == [(*n, *s[1:]) for n in given for s in wanted]:
        (num_given,) = next(iter(given))
        if num_given != num_chains:
            raise ValueError(
                f"`starts` has {num_given} positions, and `num_chains` is "
                f"{num_chains}: give `num_chains={num_given}`."
            )
    if not same or shapes(starts) != wanted:
        raise ValueError(
            "`starts` must be a pair (parameters, scale) like the position, with "
            f"num_chains={num_chains} in front of every leaf: expected shapes "
            f"{wanted}, got {shapes(starts)}."
        )


def _put(potential: Potential, kernel: AbstractKernel, mesh: Mesh | None) -> Potential:
    """On every device; but its rows cut where every step sees all of them."""
    rows = potential.x, potential.y
    potential = everywhere(potential, mesh)
    size = num_along(mesh, ROWS)
    why = ""
    if kernel.is_minibatch:
        why = f"each step of `{type(kernel).__name__}` sees a batch alone"
    elif potential.num_data % size:
        why = f"they do not divide the {potential.num_data} rows"
    if mesh is None or size == 1 or why:
        if size > 1:
            logger.warning("The %d devices for rows do the same: %s.", size, why)
        return potential
    return eqx.tree_at(lambda p: (p.x, p.y), potential, put_rows(rows, mesh))
