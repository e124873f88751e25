"""Where a run of training is kept."""

import math

import equinox as eqx

from .saving import RunFolder


class Run(eqx.Module):
    """A folder for metrics, events and checkpoints, and how they are kept.

    Attributes:
        folder: of the run.
        resume: whether to go on from the folder's newest checkpoint. The result is, bit
            for bit on one machine, that of a run that was never interrupted; pass `fit`
            the same arguments.
        checkpoint_every: seconds from one checkpoint to the next; 0 for one after each
            compiled call.
    """

    folder: RunFolder
    resume: bool = False
    checkpoint_every: float = 30.0

    def __check_init__(self) -> None:
        if not isinstance(self.folder, RunFolder):
            raise TypeError(
                f"`Run.folder` must be a `RunFolder`, got "
                f"{type(self.folder).__name__}: make one with "
                "`RunFolder.create(path, config)`, or `RunFolder.open(path)`."
            )
        if math.isnan(self.checkpoint_every) or self.checkpoint_every < 0:
            raise ValueError(
                f"`Run.checkpoint_every` must be seconds, at least 0, got "
                f"{self.checkpoint_every}."
            )
