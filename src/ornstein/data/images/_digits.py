"""The 8 × 8 handwritten digits that come with scikit-learn: no file, no network."""

import numpy as np

from .._assemble import split_and_assemble
from .._base import Data


def digits() -> Data:
    """1,797 grey images of 10 digits, with a stratified 20 % for the test.

    The test split is always that of `random_state=0`, so that figures compare.

    References:
        Alpaydin & Kaynak, *Optical Recognition of Handwritten Digits*, UCI (1998).
    """
    from sklearn.datasets import load_digits

    x, y = map(np.asarray, load_digits(return_X_y=True))
    return split_and_assemble(
        "digits",
        x.reshape(-1, 8, 8, 1).astype(np.uint8),  # pixels are 0 … 16
        y,
        test_fraction=0.2,
        seed=0,
        class_names=[str(digit) for digit in range(10)],
    )
