"""Where a run's chains start: at members that it optimises, or where another ended."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from .._mesh import agreed_here
from .._processes import is_first
from .._types import PRNGKeyArray
from ..potential import Potential
from ..sampling import SamplingCallback, Starts, optimised_starts, starts_of_members
from ..train import CheckpointError, Fit, load_hyperparameters, load_model, save_model

FROM_PRIOR, FROM_MEMBERS = "prior", "members"
_FILE = "starts.npz"


def starts_file(samples: Path) -> Path:
    """Where a run keeps its chains' starts.

    Args:
        samples: the folder of its samples.
    """
    return samples.with_name(_FILE)


def choose_starts(
    start_from: str,
    arguments: dict[str, Any],
    file: Path | None,
    *,
    num_chains: int,
    num_steps: int,
    batch_size: int | None,
    members: Fit | None,
    key: PRNGKeyArray,
    callbacks: Sequence[SamplingCallback],
) -> Starts | None:
    """Starts, kept in a file as soon as they are there: a killed run goes on from them.

    Members that were not ready when a run was killed are optimised again, to the same
    bits.

    Args:
        start_from: "prior", "members", or the run that `members` are of.
        arguments: network, data, likelihood and priors, as `Potential` takes them.
        file: where they are kept, if they are; those that are there are read.
        num_chains: side by side.
        num_steps: of members that are optimised.
        batch_size: rows behind such a step; all of them if `None`.
        members: another run's, or `None`.
        key: of members that are optimised.
        callbacks: hear about those.

    Returns:
        `None` for chains that start from the prior.

    Raises:
        CheckpointError: if the file is damaged or of other chains.
        ValueError: for members that no chain can start from.
    """
    if start_from == FROM_PRIOR:
        return None
    (is_there,) = agreed_here(file is not None and file.exists())
    if file is not None and is_there:
        return _load(file, sample_potential(arguments), num_chains)
    if start_from == FROM_MEMBERS:
        names = ("network", "split", "likelihood")
        model, split, likelihood = (arguments[name] for name in names)
        priors = {k: value for k, value in arguments.items() if k not in names}
        starts = optimised_starts(
            model,
            split,
            likelihood,
            **priors,
            key=key,
            num_chains=num_chains,
            num_steps=num_steps,
            batch_size=batch_size,
            callbacks=callbacks,
        )
    else:
        assert members is not None
        potential = sample_potential(arguments)
        starts = starts_of_members(members, potential, num_chains)
        starts = starts._replace(how=f"{starts.how}, of {start_from}")
    if file is None or not is_first():
        return starts
    file.parent.mkdir(parents=True, exist_ok=True)
    save_model(file, starts.positions, hyperparameters={"how": starts.how})
    return starts


def sample_potential(arguments: dict[str, Any]) -> Potential:
    """The potential whose positions chains have, of the rows that are in memory.

    Args:
        arguments: network, data, likelihood and priors of the chains.
    """
    return Potential(**arguments | {"split": arguments["split"].in_memory()})


def _load(file: Path, potential: Potential, num_chains: int) -> Starts:
    spread = lambda a: jax.numpy.zeros((num_chains, *a.shape), a.dtype)
    positions = load_model(file, jax.tree.map(spread, potential.start))
    how = load_hyperparameters(file).get("how")
    if not isinstance(how, str):
        raise CheckpointError(
            f"{file} does not say where chains started: put the file back, or sample "
            "again into another folder."
        )
    return Starts(positions, how)
