"""What training does at a batch whose loss or gradient is not a number."""

import equinox as eqx

from .._sentence import Choice, Sentence
from ._check import check_positive


class AbstractOnNonFinite(eqx.Module):
    """Whether such a batch is passed over, and how often in a row.

    Attributes:
        most_in_a_row: batches; one more stops the training.
    """

    most_in_a_row: eqx.AbstractVar[int]


def skipped_note(num_skipped: int, num_steps: int) -> Sentence:
    """What readers of a fit's numbers must know of the steps that were passed over.

    Args:
        num_skipped: of them.
        num_steps: in all.
    """
    return Sentence(
        "{:,} of {:,} steps were skipped, as their loss or gradient was not a number: "
        "what was learnt is of the other batches; {} stops at the first, and says why.",
        num_skipped,
        num_steps,
        Choice("`on_nonfinite=Stop()`", "{on_nonfinite} stop"),
    )


class Stop(AbstractOnNonFinite):
    """Stop at the first one, so that its cause is found."""

    most_in_a_row: int = eqx.field(default=0, init=False)


class Skip(AbstractOnNonFinite):
    """Pass it over: parameters, moments and batch statistics stay as they were.

    The step counts, for rates that follow the run (but IVON's, which wait), for the
    batches' order, and in running means of the weights, where they count as they are.
    `history["num_skipped"]` has their number, and `Fit.notes` a sentence. For long runs
    of models that meet a bad batch now and then; where many are bad, what is skipped
    decides what is learnt: stop, and lower the learning rate.

    Args:
        most_in_a_row: batches; one more stops the training.
    """

    most_in_a_row: int = 10

    def __check_init__(self) -> None:
        check_positive(most_in_a_row=self.most_in_a_row)
