"""Other libraries' objects from ours, and ours from theirs."""

from ._arviz import to_arviz as to_arviz
from ._safetensors import (
    load_safetensors as load_safetensors,
    save_safetensors as save_safetensors,
)
from ._torchvision import load_torchvision as load_torchvision
