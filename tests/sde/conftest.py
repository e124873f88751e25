"""What the tests of the engine share."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module")
def double() -> Iterator[None]:
    """Double precision for a module's tests and fixtures."""
    with jax.enable_x64(True):
        yield
