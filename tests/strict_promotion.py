"""Strict promotion of dtypes and ranks for our code, and users' rules for foreign code.

JAX's switches hold for everybody: optax's Adam multiplies floats with an integer count,
and numpyro's `sample` broadcasts ranks, so under them hardly a fit would run. Contexts
around each foreign call would have to be in the package. So JAX's two checks are
wrapped: one that fails asks who called `jax.numpy`, and only our files answer for it.
"""

import importlib.util
import sys
import sysconfig
from pathlib import Path

import jax
from jax._src import dtypes  # the checks are not public
from jax._src.numpy import util as numpy_util

_JAX = str(Path(jax.__file__).parent)
_STDLIB = sysconfig.get_path("stdlib")
_SITE_PACKAGES = sysconfig.get_path("purelib")
_SPEC = importlib.util.find_spec("ornstein")  # finds it without importing it
assert _SPEC is not None
assert _SPEC.origin is not None
_OURS = str(Path(_SPEC.origin).parent)


def enforce() -> None:
    """Switch strictness on, for the process."""
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    strict_dtypes = dtypes.lattice_result_type
    strict_ranks = numpy_util._rank_promotion_warning_or_error

    def lattice_result_type(*args):
        try:
            return strict_dtypes(*args)
        except jax.dtypes.TypePromotionError:
            if _called_by_us():
                raise
        with jax.numpy_dtype_promotion("standard"):
            return strict_dtypes(*args)

    def rank_promotion_warning_or_error(*args):
        try:
            strict_ranks(*args)
        except ValueError:
            if _called_by_us():
                raise

    dtypes.lattice_result_type = lattice_result_type
    numpy_util._rank_promotion_warning_or_error = rank_promotion_warning_or_error


def _called_by_us() -> bool:
    """Whether the innermost caller outside JAX and the standard library is ours."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        is_passed_over = file.startswith(_JAX) or file == __file__
        is_installed = file.startswith(_SITE_PACKAGES)  # which lies under the stdlib
        if not is_passed_over and (is_installed or not file.startswith(_STDLIB)):
            return not is_installed or file.startswith(_OURS)
        frame = frame.f_back
    return True
