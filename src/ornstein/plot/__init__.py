"""Figures; each function returns a Matplotlib `Figure` and touches no global state."""

from ._animate import animate_trajectories as animate_trajectories
from ._band_panels import band_panels as band_panels
from ._bands import (
    BAND_QUANTILES as BAND_QUANTILES,
    predictive_bands as predictive_bands,
)
from ._comparison import (
    ComparedMethod as ComparedMethod,
    method_comparison as method_comparison,
)
from ._curves import method_curves as method_curves
from ._densities import sampled_densities as sampled_densities
from ._ellipses import covariance_ellipses as covariance_ellipses
from ._gallery import image_gallery as image_gallery
from ._joint import (
    Margin as Margin,
    joint_samples as joint_samples,
    margin_panels as margin_panels,
)
from ._loss_surface import loss_surfaces as loss_surfaces
from ._reliability import reliability_diagram as reliability_diagram
from ._series_bands import SeriesPanel as SeriesPanel, series_bands as series_bands
from ._softmax_samples import softmax_samples as softmax_samples
from ._training import training_curves as training_curves
from ._trajectories import trajectories as trajectories
