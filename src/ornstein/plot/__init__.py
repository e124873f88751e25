"""Figures; each function returns a Matplotlib `Figure` and touches no global state."""

from ._animate import animate_trajectories as animate_trajectories
from ._bands import predictive_bands as predictive_bands
from ._gallery import image_gallery as image_gallery
from ._reliability import reliability_diagram as reliability_diagram
from ._training import training_curves as training_curves
from ._trajectories import trajectories as trajectories
