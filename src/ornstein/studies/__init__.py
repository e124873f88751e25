"""Figures and tables of the papers, each by one name."""

from ._registry import EXPERIMENTS as EXPERIMENTS
from ._shelf import Shelf as Shelf
from ._study import Experiment as Experiment, Study as Study
