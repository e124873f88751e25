"""The figures of a run."""

from ._figures import save_figure as save_figure, write_figures as write_figures
from ._series import series_figure as series_figure
