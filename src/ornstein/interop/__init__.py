"""Other libraries' objects from ours, and ours from theirs."""

from ._arviz import to_arviz as to_arviz
from ._torchvision import load_torchvision as load_torchvision
