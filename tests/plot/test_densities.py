"""Histograms and ellipses hold the numbers they were given."""

import io

import numpy as np
import pytest

from ornstein import plot


def test_sampled_densities():
    """Catches heights at the wrong edges, and samplers under each other's names."""
    edges = np.array([-1.0, 0.0, 2.0])
    heights = {"a": np.array([0.4, 0.3]), "b": np.array([0.2, 0.4])}
    grid = np.linspace(-1, 2, 7)
    figure = plot.sampled_densities(edges, heights, (grid, 0.1 * grid**2), title="t")
    figure.savefig(io.BytesIO(), dpi=40)
    (axes,) = figure.axes
    for patch, (name, values) in zip(axes.patches, heights.items(), strict=True):
        found = patch.get_data()
        np.testing.assert_array_equal(found.values, values)
        np.testing.assert_array_equal(found.edges, edges)
        assert patch.get_label() == name
    corners = np.asarray(axes.collections[0].get_paths()[0].vertices)
    assert corners[:, 1].max() == pytest.approx(0.4)
    assert axes.get_xlim() == (-1, 2)


def test_bins_without_edges():
    grid = np.linspace(-1, 1, 5)
    with pytest.raises(ValueError, match="'a' has 2 bins and there are 2 edges"):
        plot.sampled_densities(np.array([0.0, 1.0]), {"a": np.ones(2)}, (grid, grid))


def test_covariance_ellipses():
    """Catches the root of the covariance transposed, and variances for deviations."""
    covariance = np.array([[4.0, 1.0], [1.0, 1.0]])
    panels = {"one": {"a": covariance, "b": np.eye(2)}, "two": {"a": np.eye(2)}}
    points = np.arange(6.0).reshape(3, 2)
    figure = plot.covariance_ellipses(panels, samples={"one": points}, radius=3.0)
    figure.savefig(io.BytesIO(), dpi=40)
    one, two = figure.axes
    dots, ellipse, circle = one.lines
    np.testing.assert_array_equal(np.asarray(dots.get_data()).T, points)
    ellipse = np.asarray(ellipse.get_data())
    radii = np.einsum("ip,ij,jp->p", ellipse, np.linalg.inv(covariance), ellipse)
    np.testing.assert_allclose(radii, 9)
    assert ellipse[0].max() == pytest.approx(6, rel=1e-2)
    np.testing.assert_allclose(np.linalg.norm(circle.get_data(), axis=0), 3)
    assert len(two.lines) == 1
    assert [one.get_title(loc="left"), two.get_title(loc="left")] == ["one", "two"]
    low, high = two.get_xlim()
    assert low < -6
    assert high > 6
