"""Motion capture against its file, and toy sequences against their laws."""

import numpy as np
import pytest
import scipy.io

import ornstein.data as od
from ornstein.data.series._toy_series import (
    geometric_brownian_motion,
    stochastic_lorenz,
)

TOYS = (
    "toy/segmented-cosine",
    "toy/segmented-cosine-10",
    "toy/irregular-sine",
    "toy/two-points",
    "toy/gbm",
    "toy/lorenz",
)


def splits(data):
    return [part for part in (data.train, data.validation, data.test) if part]


def observed(series):
    """The only series' times and values where something was observed."""
    at = series.mask[0, :, 0]
    return series.ts[0, at], series.values[0, at, 0]


def test_mocap_is_the_file_in_raw_units(data_dir):
    """Catches mixed-up parts, another time scale and a hidden scaling (each seen)."""
    data = od.load("mocap", data_dir=data_dir)
    file = scipy.io.loadmat(data_dir / "mocap" / "mocap35.mat")
    for part, name in zip(splits(data), ("Xtr", "Xval", "Xtest"), strict=True):
        np.testing.assert_array_equal(part.x.values, file[name].astype(np.float32))
        np.testing.assert_array_equal(part.y.values, part.x.values)
        assert part.x.mask.all()
        np.testing.assert_allclose(part.x.ts[-1], np.arange(300) / 10, rtol=1e-6)
    assert data.task == "series"
    assert (len(data.train), data.example_shape, data.num_outputs) == (
        16,
        (300, 50),
        50,
    )
    assert data.y_scaling is None
    assert "raw units" in data.notes[0]


def save_mocap(folder, **arrays):
    shapes = {"Xtr": (16, 300, 50), "Xval": (3, 300, 50), "Xtest": (4, 300, 50)}
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()} | arrays
    (folder / "mocap").mkdir()
    path = folder / "mocap" / "mocap35.mat"
    scipy.io.savemat(path, arrays)
    return path


def test_mocap_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.delenv("ORNSTEIN_DATA", raising=False)
    with pytest.raises(od.DataNotFoundError, match="mocap needs a folder with mocap/"):
        od.load("mocap")
    with pytest.raises(od.DataNotFoundError, match=r"There is no .*mocap35\.mat"):
        od.load("mocap", data_dir=tmp_path)
    path = save_mocap(tmp_path, Xtest=np.full((4, 300, 50), np.nan))
    with pytest.raises(od.DataError, match="should hold 16, 3 and 4 sequences"):
        od.load("mocap", data_dir=tmp_path)
    for content in (
        path.read_bytes()[:200_000],
        b"MATLAB",
        b"not a mat file" * 20,
        b"",
    ):
        path.write_bytes(content)
        with pytest.raises(od.DataError, match="cannot be read as a MATLAB file"):
            od.load("mocap", data_dir=tmp_path)


@pytest.mark.parametrize("name", TOYS)
def test_toy_is_listed_and_always_the_same(name):
    first, second = od.load(name), od.load(name)
    assert od.list_data()[name]
    assert first.task == "series"
    for one, other in zip(splits(first), splits(second), strict=True):
        assert np.array_equal(one.y.values, other.y.values)
        assert np.array_equal(one.x.ts, other.x.ts)
        np.testing.assert_array_equal(one.x.ts, one.y.ts)
        assert one.x.shape[1:] == one.y.shape[1:]
    assert first.num_outputs == first.train.y.shape[-1]
    assert first.example_shape == first.train.x.shape[1:]


@pytest.mark.parametrize(
    ("name", "curve", "spans", "ends"),
    [
        (
            "toy/segmented-cosine",
            lambda t: np.cos(2 * np.pi * t),
            [(0.3, 0.8, 10), (1.2, 1.5, 10)],
            (0.0, 2.0),
        ),
        (
            "toy/segmented-cosine-10",
            lambda t: np.cos(2 * np.pi * t),
            [(0.4, 0.6, 5), (0.8, 1.0, 5)],
            (0.4, 1.0),
        ),
    ],
)
def test_segmented_curves(name, curve, spans, ends):
    """Catches other segments, a wrong phase, a test that shows its answers (seen)."""
    data = od.load(name)
    ts, values = observed(data.train.x)
    np.testing.assert_allclose(ts, np.concatenate([np.linspace(*s) for s in spans]))
    np.testing.assert_allclose(values, curve(ts), atol=1e-6)
    assert (data.train.x.ts[0, 0], data.train.x.ts[0, -1]) == ends
    check_curve_test(data, curve)


def check_curve_test(data, curve):
    seen, asked = data.test.x, data.test.y
    np.testing.assert_array_equal(observed(seen), observed(data.train.x))
    assert not (seen.mask & asked.mask).any()
    assert (seen.mask | asked.mask).all()
    ts, values = observed(asked)
    np.testing.assert_allclose(values, curve(ts), atol=1e-6)
    assert len(ts) > 90


def test_irregular_sine():
    """16 times of the source's generator and seed; 0.8 sin(2 pi t)."""
    data = od.load("toy/irregular-sine")
    ts, values = observed(data.train.x)
    expected = np.sort(np.random.RandomState(42).uniform(0.4, 1.6, 16))
    np.testing.assert_allclose(ts, expected, rtol=1e-6)
    np.testing.assert_allclose(values, 0.8 * np.sin(2 * np.pi * ts), atol=1e-6)
    assert (data.train.x.ts[0, 0], data.train.x.ts[0, -1]) == (0.0, 2.0)
    check_curve_test(data, lambda t: 0.8 * np.sin(2 * np.pi * t))


def test_two_points_are_two_features_of_one_time():
    series = od.load("toy/two-points").train.x
    np.testing.assert_array_equal(series.ts, [[0, 3]])
    np.testing.assert_array_equal(series.mask, [[[False, False], [True, True]]])
    np.testing.assert_array_equal(series.values[0, 1], [5, -5])


def test_geometric_brownian_motion_has_its_moments():
    """Of the log from the start on, and of its increments, which are independent.

    Catches a forgotten Itô term, a wrong volatility, and steps of one size for gaps of
    several (each seen).
    """
    num_paths = 20_000
    ts = np.array([0.0, 0.1, 0.5, 1.0])
    rng = np.random.default_rng(1)
    paths = geometric_brownian_motion(ts, num_paths, rng=rng)[..., 0]
    assert paths[:, 0].mean() == pytest.approx(1, abs=4.5 * 0.3 / num_paths**0.5)
    assert paths[:, 0].std() == pytest.approx(0.3, rel=4.5 / (2 * num_paths) ** 0.5)
    start = paths[:, 0] > 0  # 4e-4 of the Gaussian starts are not
    steps = np.diff(np.log(paths[start]), axis=1)
    gaps = np.diff(ts)
    se_mean = np.sqrt(0.25 * gaps / len(steps))
    z_mean = (steps.mean(0) - 0.875 * gaps) / se_mean
    z_var = (steps.var(0) / (0.25 * gaps) - 1) / np.sqrt(2 / len(steps))
    z_corr = np.corrcoef(steps.T)[np.triu_indices(3, 1)] * np.sqrt(len(steps))
    assert np.abs([z_mean, z_var, z_corr]).max() < 4.5


def test_gbm_is_measured_until_a_time_and_asked_for_after():
    """The moments of what is measured; and what is asked is not shown.

    Catches measurements without noise (seen), and a test that begins too early (seen).
    """
    data = od.load("toy/gbm")
    seen, asked = data.test.x, data.test.y
    assert (len(data.train), data.train.x.ts[0, -1]) == (500, np.float32(0.6))
    np.testing.assert_array_equal(data.train.x.values, seen.values[:, :31])
    np.testing.assert_array_equal(seen.mask[0, :, 0], seen.ts[0] <= 0.601)
    np.testing.assert_array_equal(asked.mask, ~seen.mask)
    assert not seen.values[~seen.mask].any()
    values = (seen.values + asked.values)[..., 0].astype(np.float64)
    assert values.min() > -0.45  # positive paths, less the noise of 0.1
    ts = np.linspace(0, 1, 51)
    mean = np.exp(ts)
    variance = 1.09 * np.exp(2.25 * ts) - np.exp(2 * ts) + 0.01
    z = (values.mean(0) - mean) / np.sqrt(variance / 500)
    assert np.abs(z).max() < 4.5
    # Second differences: the path's own are of order dt, the noise's are 6 noise².
    second = np.diff(values[:, :5], n=2, axis=1)
    # X² dt/4 twice, with E[X²] = 1.09 at the start
    path = 2 * 1.09 * 0.25 * 0.02
    assert np.mean(second**2) == pytest.approx(0.06 + path, rel=0.15)


def test_lorenz_is_its_euler_chain():
    """Against a plain loop over paths with the same normals.

    Catches a wrong sign or constant, a drift seen at the new state, and steps that do
    not fit the gap (each seen).
    """
    ts, num_paths, num_substeps = np.array([0.0, 0.05, 0.08]), 3, 4
    paths = stochastic_lorenz(
        ts, num_paths, rng=np.random.default_rng(2), num_substeps=num_substeps
    )
    rng = np.random.default_rng(2)
    state = rng.standard_normal((num_paths, 3))
    normals = rng.standard_normal((2, num_substeps, num_paths, 3))
    for path in range(num_paths):
        x, y, z = state[path]
        for gap in range(2):
            np.testing.assert_allclose(paths[path, gap], [x, y, z], rtol=1e-12)
            dt = (ts[gap + 1] - ts[gap]) / num_substeps
            for step in range(num_substeps):
                db = np.sqrt(dt) * normals[gap, step, path]
                x, y, z = (
                    x + 10.0 * (y - x) * dt + 0.1 * x * db[0],
                    y + (x * (28.0 - z) - y) * dt + 0.28 * y * db[1],
                    z + (x * y - 8.0 / 3.0 * z) * dt + 0.3 * z * db[2],
                )
        np.testing.assert_allclose(paths[path, 2], [x, y, z], rtol=1e-12)


def test_lorenz_is_standardised_by_its_training_series():
    """Catches a scale that saw the test, or is one of all features (both seen)."""
    data = od.load("toy/lorenz")
    assert [part.x.shape for part in splits(data)] == [
        (256, 100, 3),
        (64, 100, 3),
        (64, 100, 3),
    ]
    values = data.train.x.values.astype(np.float64)
    np.testing.assert_allclose(values.mean((0, 1)), 0, atol=1e-5)
    np.testing.assert_allclose(values.std((0, 1)), 1, rtol=1e-5)
    assert np.abs(data.test.x.values.mean((0, 1))).min() > 1e-4
    raw = data.y_scaling.undo(values)
    # The attractor's own spread, to a tenth; and its z, which is positive.
    np.testing.assert_allclose(raw.std((0, 1)), [7.9, 9.0, 11.0], rtol=0.25)
    assert raw[:, 50:, 2].min() > 0


def test_validation_of_series_refits_the_scale():
    """Catches a scale that saw the validation series, and lost masks (both seen)."""
    rng = np.random.default_rng(3)
    values = rng.normal(5, 3, (10, 4, 2))
    mask = rng.random((10, 4, 2)) < 0.7
    mask[:, 0] = True
    series = od.Series.of(np.arange(40.0).reshape(10, 4), values, mask)
    scaling = od.Standardisation.fit(series)
    scaled = scaling.apply(series)
    split = od.Split(scaled, scaled)
    data = od.Data(
        name="own",
        task="series",
        train=split,
        test=split,
        x_scaling=scaling,
        y_scaling=scaling,
    ).with_validation(0.2)
    kept = (data.train.x.ts[:, 0] / 4).astype(int)
    np.testing.assert_array_equal(data.train.x.mask, mask[kept])
    for feature in range(2):
        raw = values[kept, :, feature][mask[kept, :, feature]]
        own = data.train.x.values[..., feature][data.train.x.mask[..., feature]]
        assert len(own) == len(raw)
        np.testing.assert_allclose(own.mean(dtype=np.float64), 0, atol=1e-6)
        np.testing.assert_allclose(own.std(dtype=np.float64), 1, rtol=1e-5)
        np.testing.assert_allclose(data.y_scaling.mean[feature], raw.mean(), rtol=1e-5)
        np.testing.assert_allclose(data.y_scaling.scale[feature], raw.std(), rtol=1e-5)
    np.testing.assert_array_equal(data.test.x.mask, mask)
    assert not data.test.x.values[~mask].any()
    again = data.y_scaling.undo(data.test.y.values)[mask]
    np.testing.assert_allclose(again, values[mask], rtol=1e-5)


def test_feature_that_was_never_observed():
    values = np.full((2, 3, 2), np.nan)
    values[..., 0] = 1.0
    with pytest.raises(od.DataError, match=r"Feature 1, counting from 0, has no obs"):
        od.Standardisation.fit_observed(values)
