"""Damaged files of every format are read well or refused in a sentence."""

import random
from collections import Counter
from pathlib import Path

import pytest
from files.guard import complaint, guarded
from files.mutate import mutated
from files.readers import READERS
from hypothesis import HealthCheck, Phase, given, note, settings, strategies as st

FEW = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # the example says enough, and shrinking takes minutes
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, max_examples=2000, derandomize=False)


@pytest.fixture(scope="module")
def homes(tmp_path_factory) -> dict[str, tuple[Path, Path, bytes]]:
    """A folder for each reader, its file, and what is in it."""
    made = {}
    for name, reader in READERS.items():
        home = tmp_path_factory.mktemp("home")
        path = reader.make(home)
        made[name] = (home, path, path.read_bytes())
    return made


@pytest.mark.parametrize("name", READERS)
def test_what_is_not_damaged_is_read(name: str, homes):
    """Catches seeds that every reader refuses, with which the others prove nothing."""
    assert READERS[name].read(homes[name][0]) is not None


def check_mutated(homes: dict, name: str, rng: random.Random, seen: Counter) -> None:
    home, path, data = homes[name]
    new = mutated(data, READERS[name], path, rng)
    path.write_bytes(new)
    try:
        error = guarded(lambda: READERS[name].read(home))
    finally:
        path.write_bytes(data)
    seen[name, error is None] += 1
    note(f"{name}: {new[:2000]!r}")
    assert not complaint(error), complaint(error)


NAME = st.sampled_from(sorted(READERS))
RNG = st.randoms(use_true_random=False)


def test_two_hundred_damaged_files(homes):
    """No foreign exception, hang, or gigabyte.

    Catches any reader that trusts a header: each was seen to fail here with a
    `RecursionError`, `MemoryError`, `KeyError` or `TypeError` before it was bounded.
    """
    seen: Counter = Counter()

    @FEW
    @given(NAME, RNG)
    def check(name: str, rng: random.Random):
        check_mutated(homes, name, rng, seen)

    check()
    assert sum(seen.values()) >= 200


@pytest.mark.slow
def test_two_thousand_damaged_files(homes):
    """Likewise, others each time; every reader refuses some of them."""
    seen: Counter = Counter()

    @MANY
    @given(NAME, RNG)
    def check(name: str, rng: random.Random):
        check_mutated(homes, name, rng, seen)

    check()
    assert sum(seen.values()) >= 2000
    refused = {name for name, is_read in seen if not is_read}
    assert refused >= set(READERS) - {"corruptions"}, "makes its damaged files again"
