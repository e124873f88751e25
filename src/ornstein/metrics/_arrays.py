"""The arrays that metrics take."""

from typing import TypeAlias

import numpy as np

from .._types import Array

AnyArray: TypeAlias = Array | np.ndarray
"""Of JAX or NumPy: inside a compiled step or after it."""
