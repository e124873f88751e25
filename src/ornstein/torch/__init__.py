"""PyTorch's front end: random functions as `torch.nn.Module`s. Extra `torch`."""

from ._build import (
    implicit as implicit,
    sdebnn as sdebnn,
    sdebnn_for_images as sdebnn_for_images,
)
from ._from_torch import from_torch as from_torch
from ._random_function import RandomFunction as RandomFunction, TorchDraw as TorchDraw
