"""The corruptions of CIFAR-10-C, one function each."""

from ._base import SEVERITIES as SEVERITIES, Corruption as Corruption, Images as Images
from ._registry import (
    CORRUPTIONS as CORRUPTIONS,
    check_corruption as check_corruption,
    corrupt as corrupt,
)
