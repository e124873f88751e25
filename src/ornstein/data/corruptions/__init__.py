"""Images unlike the training data: the corruptions of CIFAR-10-C, and noise."""

from ._base import SEVERITIES as SEVERITIES, Corruption as Corruption
from ._corrupted_images import (
    CorruptedImages as CorruptedImages,
    corrupted_images as corrupted_images,
)
from ._registry import (
    CORRUPTIONS as CORRUPTIONS,
    check_corruption as check_corruption,
    corrupt as corrupt,
)
from ._unlike import (
    gaussian_noise_like as gaussian_noise_like,
    mix_with_noise as mix_with_noise,
    rotate_images as rotate_images,
    salt_and_pepper as salt_and_pepper,
)
