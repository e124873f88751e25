"""Figures hold the numbers they were given; `savefig` draws every artist once."""

import io

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from PIL import Image

from ornstein import metrics, plot
from ornstein.likelihood import Categorical, Cauchy, Gaussian
from ornstein.prediction import Prediction, Summary

X = np.array([0.0, 2.0, 1.0, 3.0])  # not sorted
OUTPUTS = jr.normal(jr.key(0), (12, 4, 2))
TS = np.linspace(0, 1, 5)
HS = np.asarray(jr.normal(jr.key(1), (6, 5, 3)))


def draw(figure):
    figure.savefig(io.BytesIO(), dpi=40)


def legend_texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_pyplot_stays_out():
    """Catches a figure that pyplot would show, and keep alive."""
    before = pyplot.get_fignums()  # of other libraries' tests
    plot.trajectories(TS, HS)
    assert pyplot.get_fignums() == before


def test_predictive_bands():
    """Catches the wrong column, unsorted inputs, and bands without the noise."""
    prediction = Prediction(OUTPUTS, Gaussian(0.5))
    data = (np.array([0.5, 1.5]), np.array([[9.0, 1.0], [9.0, 2.0]]))
    figure = plot.predictive_bands(
        X, prediction, data=data, column=1, xlabel="time (s)", ylabel="height (m)"
    )
    draw(figure)
    (axes,) = figure.axes
    order = np.argsort(X)
    for band, level in zip(axes.collections, (0.95, 0.8, 0.5), strict=True):
        lower, upper = prediction.interval(level)
        corners = np.asarray(band.get_paths()[0].vertices)
        for x, low, high in zip(X, lower[:, 1], upper[:, 1], strict=True):
            ys = corners[corners[:, 0] == x][:, 1]
            np.testing.assert_allclose([ys.min(), ys.max()], [low, high], rtol=1e-5)
    *draws, median, points = axes.lines
    assert len(draws) == 8
    np.testing.assert_allclose(draws[3].get_ydata(), OUTPUTS[3, order, 1])
    np.testing.assert_allclose(
        median.get_ydata(), prediction.median[order, 1], rtol=1e-5
    )
    np.testing.assert_array_equal(points.get_xdata(), [0.5, 1.5])
    np.testing.assert_array_equal(points.get_ydata(), [1.0, 2.0])
    assert axes.get_xlabel() == "time (s)"
    assert axes.get_ylabel() == "height (m)"
    assert legend_texts(axes)[-2:] == ["median", "data"]


def test_heavy_tails_do_not_flatten_the_picture():
    """Catches limits from the outer quantiles of a Cauchy, and data cut off."""
    prediction = Prediction(OUTPUTS, Cauchy(0.1))
    data = (np.array([1.0]), np.array([25.0]))
    axes = plot.predictive_bands(X, prediction, data=data).axes[0]
    assert axes.get_ylim()[1] > 25
    wide = plot.predictive_bands(X, Prediction(OUTPUTS[:1], Cauchy(50.0)))
    inner = Prediction(OUTPUTS[:1], Cauchy(50.0)).interval(0.8)
    low, high = wide.axes[0].get_ylim()
    span = float(jnp.max(inner[1][:, 0]) - jnp.min(inner[0][:, 0]))
    assert span < high - low < 1.8 * span


def test_bad_bands():
    summary = Summary(OUTPUTS[0], OUTPUTS[0], OUTPUTS[0])
    with pytest.raises(ValueError, match="keep_draws=True"):
        plot.predictive_bands(X, Prediction(None, Gaussian(1.0), summary=summary))
    with pytest.raises(ValueError, match="against one input"):
        plot.predictive_bands(np.ones((4, 2)), Prediction(OUTPUTS, Gaussian(1.0)))
    with pytest.raises(ValueError, match="likelihood of real targets"):
        plot.predictive_bands(X, Prediction(OUTPUTS, Categorical()))


def test_trajectories():
    """Catches draws and inputs exchanged, and one colour for all inputs."""
    figure = plot.trajectories(TS, HS, labels=("a", "b", "c"), title="paths")
    draw(figure)
    (axes,) = figure.axes
    collections = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert len(collections) == 3
    for i, lines in enumerate(collections):
        segments = np.stack(lines.get_segments())
        np.testing.assert_allclose(segments[..., 1], HS[:, :, i])
        np.testing.assert_allclose(segments[0, :, 0], TS)
        np.testing.assert_allclose(axes.lines[i].get_ydata(), HS[:, :, i].mean(0))
    assert len({to_hex(lines.get_color()[0]) for lines in collections}) == 3
    assert legend_texts(axes) == ["a", "b", "c"]
    assert axes.get_ylim()[0] < HS.min() < HS.max() < axes.get_ylim()[1]


def test_bad_trajectories():
    with pytest.raises(ValueError, match="give one coordinate"):
        plot.trajectories(TS, HS[..., 0])
    with pytest.raises(ValueError, match="NaN or infinite"):
        plot.trajectories(TS, np.where(HS > 1, np.nan, HS))
    with pytest.raises(ValueError, match="2 labels for 3 inputs"):
        plot.trajectories(TS, HS, labels=("a", "b"))


def test_animation_grows(tmp_path):
    """Catches frames that are all alike, and one input's paths drawn for all."""
    apart = HS + 20 * np.arange(3)
    path = plot.animate_trajectories(
        tmp_path / "paths.gif", TS, apart, num_frames=4, frames_per_second=5
    )
    with Image.open(path) as image:
        assert image.n_frames == 4
        ink = []
        for frame in range(image.n_frames):
            image.seek(frame)
            dark = np.asarray(image.convert("L")) < 250
            ink.append(np.mean(dark))
    # Halfway along the depth, away from the axes: a third of the height each.
    middle = dark[10:270, 230:330]
    assert all(third.any() for third in np.array_split(middle, 3))
    assert ink == sorted(ink)
    assert ink[-1] > 1.2 * ink[0]
    with pytest.raises(ValueError, match="`num_frames`"):
        plot.animate_trajectories(path, TS, HS, num_frames=0)


def test_reliability_diagram():
    """Catches gaps drawn from the wrong end, and an ECE of other bins."""
    probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.05, 0.95], [0.4, 0.6], [0.6, 0.4]])
    y = np.array([0, 1, 1, 0, 0])
    bins = metrics.reliability(probs, y, num_bins=5)
    figure = plot.reliability_diagram(bins, title="toy")
    draw(figure)
    top, bottom = figure.axes
    bars, gaps = (container.patches for container in top.containers)
    np.testing.assert_allclose([bar.get_height() for bar in bars], [0.5, 0, 1])
    np.testing.assert_allclose([bar.get_x() for bar in bars], [0.4, 0.6, 0.8])
    ends = [gap.get_y() + gap.get_height() for gap in gaps]
    np.testing.assert_allclose(ends, [0.6, 0.8, 0.925], rtol=1e-6)
    shares = [bar.get_height() for bar in bottom.containers[0].patches]
    np.testing.assert_allclose(shares, [0.4, 0.2, 0.4])
    error = float(metrics.ece(probs, y, num_bins=5))
    assert top.get_title(loc="left") == f"toy: ECE {error:.3f}"


def test_training_curves():
    """Catches validation drawn as a quantity of its own."""
    history = {"nll": [3.0, 2.0, 1.0], "validation_nll": [3.5, 2.5, 2.0], "kl": [1.0]}
    figure = plot.training_curves(history, units={"nll": "nats"})
    draw(figure)
    first, second = figure.axes
    np.testing.assert_array_equal(first.lines[0].get_ydata(), history["nll"])
    np.testing.assert_array_equal(first.lines[1].get_ydata(), history["validation_nll"])
    np.testing.assert_array_equal(first.lines[0].get_xdata(), [1, 2, 3])
    assert legend_texts(first) == ["training", "validation"]
    assert [axes.get_ylabel() for axes in (first, second)] == ["nll (nats)", "kl"]
    assert second.get_legend() is None
    with pytest.raises(ValueError, match="empty history"):
        plot.training_curves({})


def test_image_gallery():
    """Catches images in the wrong order, and standardised ones clipped to [0, 1]."""
    images = np.asarray(jr.normal(jr.key(2), (3, 4, 5, 1)))
    figure = plot.image_gallery(images, ["a", "b", "c"], num_columns=2, title="all")
    draw(figure)
    assert [axes.get_title() for axes in figure.axes] == ["a", "b", "c", ""]
    for axes, image in zip(figure.axes[:3], images[..., 0], strict=True):
        expected = (image - image.min()) / np.ptp(image)
        np.testing.assert_allclose(axes.images[0].get_array(), expected)
    assert not figure.axes[3].images
    constant = plot.image_gallery(np.ones((1, 2, 2, 3)), ["flat"])
    np.testing.assert_array_equal(constant.axes[0].images[0].get_array(), 0)


def test_bad_gallery():
    with pytest.raises(ValueError, match="1 titles for 2 images"):
        plot.image_gallery(np.ones((2, 3, 3)), ["a"])
    with pytest.raises(ValueError, match="2 channels"):
        plot.image_gallery(np.ones((1, 3, 3, 2)), ["a"])


def test_validation_at_some_epochs_is_a_line():
    """Catches (seen) points between gaps, of which a line draws nothing."""
    values = [np.nan, 3.0, np.nan, 2.0, np.nan, 1.0]
    figure = plot.training_curves({"nll": [6.0] * 6, "validation_nll": values})
    line = figure.axes[0].lines[1]
    np.testing.assert_array_equal(line.get_xdata(), [2, 4, 6])
    np.testing.assert_array_equal(line.get_ydata(), [3, 2, 1])


def test_every_method_has_a_curve():
    """Of nine. Catches (seen) a seventh that is left out, and two that look alike."""
    curves = {f"method {i}": [0.0, float(i)] for i in range(9)}
    lines = plot.method_curves(curves, xlabel="x", ylabel="y").axes[0].lines
    assert len(lines) == 9
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 9
