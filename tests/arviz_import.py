"""ArviZ, imported by several processes at once."""

import tempfile
from typing import Any

import pytest


def import_arviz() -> Any:
    """ArviZ, or a skip.

    The first import of a day writes the date into a cache by way of a file of one name:
    of two workers that do so at once, one finds it gone and fails.
    """
    with tempfile.TemporaryDirectory() as cache, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache)
        return pytest.importorskip("arviz", reason="arviz (extra `arviz`)")
