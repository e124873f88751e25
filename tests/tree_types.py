"""The leaves of `PyTree[...]` checked by beartype, as all other types are here.

jaxtyping checks each leaf by a typechecker of its own, which binds a signature for it
anew: a sixth of the time of tests of fits went there.
"""

from collections.abc import Callable
from typing import Any

from beartype.door import is_bearable
from jaxtyping import _typeguard


def check_by_beartype() -> None:
    """Have it so, for the process."""
    _typeguard.typechecked = _typechecked


def _typechecked(accepts_leaf: Callable[[Any], None]) -> Callable[[Any], None]:
    """The function of one leaf, which refuses others than its annotation says."""
    (leaf_type,) = accepts_leaf.__annotations__.values()

    def accepts(leaf: Any) -> None:
        if not is_bearable(leaf, leaf_type):
            raise TypeError

    return accepts
