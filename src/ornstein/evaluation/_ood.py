"""Inputs unlike the training data, and how well a fit tells them from test rows."""

import jax
import numpy as np

from .._types import Float, PRNGKeyArray
from ..data import (
    Data,
    gaussian_noise_like,
    in_raw_units,
    in_standard_units,
    rotate_images,
)
from ..prediction import Fitted, Prediction, predict
from ._evaluate import evaluate_ood

_LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601


def ood_scores(
    fit: Fitted,
    data: Data,
    inside: Prediction,
    *,
    num_draws: int,
    key: PRNGKeyArray,
) -> dict[str, dict[str, float]]:
    """How well uncertainty tells strange inputs from test rows.

    Gaussian noise with the data's mean and deviation; for images also themselves turned
    by 90 degrees.

    Args:
        fit: a fit.
        data: what it was trained on.
        inside: its prediction of the test rows.
        num_draws: functions averaged over.
        key: of the noise, and which functions.
    """
    noise_key, draws_key = jax.random.split(key)
    strange = {"noise": np.asarray(gaussian_noise_like(data.test, key=noise_key))}
    if len(data.example_shape) == 3:
        strange["rotated"] = rotate_images(data.test.x, 90.0)
    found = {}
    for name, x in strange.items():
        outside = predict(fit, x, key=draws_key, num_draws=num_draws)
        found[name] = evaluate_ood(inside, outside)
    return found


def inputs_like(other: Data, data: Data) -> Float[np.ndarray, "rows ..."]:
    """The test rows of other data, as a model of `data` takes them.

    Images are brought to the size of `data` (bilinearly), to its channels (grey is
    repeated, colour becomes luminance), and to its range of pixels: the brightest one
    of the training images is as bright. All are standardised as `data` was.

    Args:
        other: any data.
        data: what the model was trained on.

    Raises:
        ValueError: for rows that cannot be made alike.
    """
    ours, theirs = data.example_shape, other.example_shape
    if len(ours) != len(theirs) or (len(ours) == 1 and ours != theirs):
        what = lambda shape: (
            "images" if len(shape) == 3 else f"rows of {shape[0]} numbers"
        )
        raise ValueError(
            f"{other.name} has {what(theirs)}, and the model takes {what(ours)} such "
            f"as those of {data.name}: give other data."
        )
    raw = _raw(other, other.test.x)
    if len(ours) == 3:
        raw = _with_channels(raw, ours[-1], other.name)
        raw = raw * (_brightest(data) / _brightest(other))
        if raw.shape[1:3] != ours[:2]:
            raw = np.asarray(jax.image.resize(raw, (len(raw), *ours), "linear"))
    return in_standard_units(raw.astype(np.float32), data.x_scaling)


def _raw(data: Data, x: np.ndarray) -> np.ndarray:
    return in_raw_units(x, data.x_scaling).astype(np.float32)


def _brightest(data: Data) -> np.float32:
    # By channel, so that no second copy of the training images is needed.
    channels = data.train.in_memory().x.max(axis=(0, 1, 2), keepdims=True)
    return _raw(data, channels[0]).max()


def _with_channels(raw: np.ndarray, num_channels: int, name: str) -> np.ndarray:
    own = raw.shape[-1]
    if own == num_channels:
        return raw
    if own == 1:
        return np.repeat(raw, num_channels, axis=-1)
    if (own, num_channels) == (3, 1):
        return raw @ _LUMINANCE[:, None]
    raise ValueError(
        f"Images of {name} have {own} channels and the model takes {num_channels}: "
        "only grey and red-green-blue ones can be made alike."
    )
