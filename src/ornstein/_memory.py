"""A device without room, in one sentence that names what needs less."""

import contextlib
from collections.abc import Iterator

import jax

from ._sentence import Sentence

_EXHAUSTED = "RESOURCE_EXHAUSTED"


def is_exhausted(error: BaseException) -> bool:
    """Whether an error is of memory: Python's own, or a device's.

    Args:
        error: any.
    """
    of_device = isinstance(error, jax.errors.JaxRuntimeError)
    return isinstance(error, MemoryError) or (of_device and _EXHAUSTED in str(error))


@contextlib.contextmanager
def room_for(what: str, remedy: Sentence) -> Iterator[None]:
    """Say what needs less memory where there is not enough.

    Args:
        what: that is computed, as in "a step of training".
        remedy: what to write, after a colon.

    Raises:
        MemoryError: in place of the device's own error.
    """
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        is_told = error.args and isinstance(error.args[0], Sentence)
        if is_told or not is_exhausted(error):
            raise
        raise not_enough(what, error, remedy) from error


def not_enough(what: str, error: BaseException, remedy: Sentence) -> MemoryError:
    """The error that says so.

    Args:
        what: that is computed.
        error: what was met.
        remedy: what to write.
    """
    lines = str(error).removeprefix(f"{_EXHAUSTED}: ").splitlines()
    why = f" ({lines[0].rstrip('.')})" if lines else ""
    template = "There is not enough memory for {}{}: {}."
    return MemoryError(Sentence(template, what, why, remedy))
