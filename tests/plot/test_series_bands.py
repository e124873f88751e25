"""Panels of sequences: what is drawn, and what is refused."""

import numpy as np
import pytest

from ornstein.plot import BAND_QUANTILES, SeriesPanel, band_panels, series_bands

QUANTILES = np.linspace(-1, 1, len(BAND_QUANTILES))[:, None] + np.zeros(3)
SEEN = (np.array([0.0, 1.0]), np.array([0.1, 0.2]))


def panel(**changes) -> SeriesPanel:
    return SeriesPanel(np.arange(3.0), QUANTILES, SEEN)._replace(**changes)


def test_each_panel_has_its_own_median_and_points():
    """Catches a median taken from another level, and points of another panel."""
    asked = (np.array([2.0]), np.array([5.0]))
    rows = [[panel()], [panel(quantiles=QUANTILES + 3, asked=asked, title="b")]]
    axes = series_bands(rows, xlabel="days").axes
    for one, middle, points in zip(axes, (0.0, 3.0), (2, 3), strict=True):
        median, *dots = one.lines
        np.testing.assert_allclose(median.get_ydata(), middle, atol=1e-12)
        assert sum(len(line.get_xdata()) for line in dots) == points
    assert [one.get_xlabel() for one in axes] == ["", "days"]


def test_dates_are_dates_on_the_axis():
    """Catches dates that are counted, and ticks that repeat the year."""
    days = np.datetime64("2024-01-20") + np.arange(0, 30, 10)
    seen = (days[:2], SEEN[1])
    figure = series_bands([[panel(ts=days, seen=seen)]], xlabel="day")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert "Feb" in labels
    assert not any("2024" in label for label in labels)
    assert axes.xaxis.get_offset_text().get_text() == "2024-Feb"


def test_the_lowest_band_panels_name_the_input():
    """Seen failing: rows of an array of axes are new objects each time."""
    row = {"model": QUANTILES}
    figure = band_panels(np.arange(3.0), {"a": row, "b": row}, xlabel="days")
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "days"]


def test_uneven_rows_and_other_quantiles_are_refused():
    with pytest.raises(ValueError, match=r"Rows have \[1, 2\] panels"):
        series_bands([[panel()], [panel(), panel()]])
    with pytest.raises(ValueError, match="has 2 quantiles"):
        series_bands([[panel(quantiles=QUANTILES[:2])]])
