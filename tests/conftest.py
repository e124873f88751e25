"""Fixtures, and an environment stricter than users have."""

import gc
import os
import random
from collections.abc import Iterator
from pathlib import Path

import jax
import jaxtyping
import pytest
import strict_promotion
import tree_types
from programs import forget_programs_if_many

_CACHE_ROOT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
_COMPILATION_CACHE = os.environ.get(
    "JAX_COMPILATION_CACHE_DIR", str(_CACHE_ROOT / "ornstein" / "jax")
)

# A test runs its programs once or twice: compiling them with less care takes a quarter
# to a half of the time. `XLA_FLAGS= make test` has them as users do.
_QUICKLY_COMPILED = (
    "--xla_cpu_parallel_codegen_split_count=1 --xla_backend_optimization_level=0"
)
if jax.__version_info__ < (0, 11):  # a flag that XLA does not know ends the process
    _QUICKLY_COMPILED += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", _QUICKLY_COMPILED)

# Tracing makes objects by the million, few of them in cycles: looking for those took a
# tenth of the time.
gc.set_threshold(20_000, 10, 10)

# Here rather than in a fixture: parametrisations make arrays during collection.
strict_promotion.enforce()
tree_types.check_by_beartype()
jax.config.update("jax_compilation_cache_dir", _COMPILATION_CACHE)
# Most programs here compile in 0.06 s, and there are so many that they take most of a
# run: kept too, tests of SDE-BNNs take 18 s of a processor and not 76.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)

_SEED_VARIABLE = "ORNSTEIN_TEST_SEED"


class GetKey:
    """A fresh typed key a call, from a seed that a failure's report shows.

    As `equinox.internal.GetKey`, which returns untyped keys.
    """

    def __init__(self, seed: int):
        self.seed = seed
        self._key = jax.random.key(seed)

    def __call__(self) -> jax.Array:
        self._key, key = jax.random.split(self._key)
        return key

    def __repr__(self) -> str:
        return f"GetKey({_SEED_VARIABLE}={self.seed})"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=int,
        metavar="N",
        help="run tests of fresh keys alone, each with N of them",
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    num_seeds = session.config.getoption("--seeds")
    if num_seeds is not None and num_seeds < 1:
        raise pytest.UsageError(f"--seeds must be at least 1, got {num_seeds}.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    num_seeds = metafunc.config.getoption("--seeds")
    if num_seeds is not None and "getkey" in metafunc.fixturenames:
        metafunc.parametrize("getkey", range(num_seeds), indirect=True)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if config.getoption("--seeds") is None:
        return
    has_key = lambda item: "getkey" in getattr(item, "fixturenames", ())
    config.hook.pytest_deselected(items=[item for item in items if not has_key(item)])
    items[:] = [item for item in items if has_key(item)]


@pytest.fixture
def getkey(request: pytest.FixtureRequest) -> GetKey:
    """Fresh keys each run; `ORNSTEIN_TEST_SEED=...` repeats a run."""
    fixed = os.environ.get(_SEED_VARIABLE)
    if fixed is None:
        seed = random.SystemRandom().randrange(2**31 - 1)
    else:
        seed = int(fixed) + getattr(request, "param", 0)
    line = f"repeat with {_SEED_VARIABLE}={seed}"
    request.node.add_report_section("setup", "getkey", line)
    return GetKey(seed)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without the types that tests execute: what a user meets."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True, scope="module")
def _forget_programs() -> Iterator[None]:
    """At a module's end: over a whole run, compiled programs fill the memory."""
    yield
    forget_programs_if_many()


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets; without one the test is skipped."""
    folder = os.environ.get("ORNSTEIN_DATA")
    if not folder:
        pytest.skip("set ORNSTEIN_DATA to a folder with the data sets (mnist, uci, …)")
    if not Path(folder).is_dir():
        pytest.fail(f"ORNSTEIN_DATA={folder} is not a folder")
    return Path(folder)
