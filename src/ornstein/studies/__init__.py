"""Figures and tables of the papers, each by one name."""

from ._experiment import Experiment as Experiment, Study as Study
from ._registry import EXPERIMENTS as EXPERIMENTS
from ._shelf import Shelf as Shelf
