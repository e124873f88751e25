"""Panels of bands, surfaces and softmax samples hold the numbers they were given."""

import io

import numpy as np
import pytest

from ornstein import plot


def test_band_panels():
    """Catches rows for columns, and a band between the wrong pair of quantiles."""
    x = np.linspace(-1, 1, 5)
    levels = np.array(plot.BAND_QUANTILES)
    np.testing.assert_allclose(levels, [0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
    of = lambda centre: centre + np.tile(levels[:, None], (1, 5))
    panels = {"a": {"one": of(0), "two": of(1)}, "b": {"one": of(2), "two": of(3)}}
    data = (np.array([[0.5]]), np.array([[2.5]]))
    figure = plot.band_panels(x, panels, data=data, ylim=(-1.0, 5.0))
    figure.savefig(io.BytesIO(), dpi=40)
    assert len(figure.axes) == 4
    for centre, axes in enumerate(figure.axes):
        widest = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
        assert widest.min() == pytest.approx(centre + 0.025)
        assert widest.max() == pytest.approx(centre + 0.975)
        median, points = axes.lines
        np.testing.assert_allclose(median.get_ydata(), centre + 0.5)
        assert np.ravel(points.get_data()).tolist() == [0.5, 2.5]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["one", "two", "one", "two"]
    assert figure.axes[2].get_ylabel() == "b: y"


def test_band_panels_refuse():
    x = np.linspace(-1, 1, 5)
    with pytest.raises(ValueError, match="a, one has 3 quantiles"):
        plot.band_panels(x, {"a": {"one": np.zeros((3, 5))}})
    two = {"one": np.zeros((7, 5)), "two": np.zeros((7, 5))}
    with pytest.raises(ValueError, match=r"Rows have \[1, 2\] panels"):
        plot.band_panels(x, {"a": two, "b": {"one": two["one"]}})


def test_loss_surfaces():
    """Catches a transposed grid: the loss rises along the second direction only."""
    xs, ys = np.linspace(-1, 1, 5), np.linspace(-2, 2, 4)
    rising = np.tile(ys[:, None], (1, 5))
    points = np.array([[0.5, -1.0], [-0.5, 1.0]])
    surfaces = {"loss": rising, "flat": np.ones((4, 5)), "third": rising}
    figure = plot.loss_surfaces(xs, ys, surfaces, points=points)
    figure.savefig(io.BytesIO(), dpi=40)
    axes = figure.axes[0]
    dots, star = axes.lines
    np.testing.assert_array_equal(np.asarray(dots.get_data()).T, points)
    assert np.ravel(star.get_data()).tolist() == [0, 0]
    contours = axes.collections[0]
    assert contours.levels[0] == -2
    assert contours.levels[-1] == 2
    assert [axes.get_title(loc="left") for axes in figure.axes[:3]] == list(surfaces)


def test_softmax_samples():
    probs = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    image = np.arange(12.0).reshape(3, 4, 1)
    panels = {
        "low": [(image, probs, "a"), (image, probs[::-1], "b")],
        "high": [(image[..., 0], probs, "c")],
    }
    figure = plot.softmax_samples(panels, class_names=("x", "y", "z"))
    figure.savefig(io.BytesIO(), dpi=40)
    axes = figure.axes[1]
    *dots, mean = axes.lines
    found = np.stack([np.asarray(line.get_ydata()) for line in dots], axis=1)
    np.testing.assert_array_equal(
        found if found.shape == probs.shape else found.T, probs
    )
    np.testing.assert_allclose(mean.get_ydata(), [0.4, 0.2, 0.4])
    picture = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(picture, image[..., 0] / 11)
    titles = [figure.axes[i].get_title(loc="left") for i in (1, 3, 5)]
    assert titles == ["a", "b", "c"]


def test_logarithmic_axis():
    figure = plot.method_curves(
        {"a": [1.0, 2.0]}, xs=[1.0, 100.0], xlabel="x", ylabel="y", has_log_x=True
    )
    assert figure.axes[0].get_xscale() == "log"
