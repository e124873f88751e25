"""A fitted prediction as a StableHLO program that needs no ornstein to run."""

import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from .._files import write_atomically
from .._sentence import OptionError
from .._types import Array, Float, PRNGKeyArray
from .._version import __version__
from ..data import Column, Data, Standardisation
from ..functions import map_draws
from ..likelihood import AbstractClassLikelihood, AbstractLocationScaleLikelihood
from ..network import in_inference
from ..prediction import Fitted, FittedByDraw, Prediction

LEVELS = (0.05, 0.5, 0.95)
"""Of the quantiles of numbers."""

_PLATFORMS = ("cpu", "cuda")


class Exported(NamedTuple):
    """What was written.

    Attributes:
        program: the file that `jax.export.deserialize` reads.
        description: the JSON file beside it: what goes in, and what comes out.
    """

    program: Path
    description: Path


def description_of(program: Path) -> Path:
    """Where the JSON file of an exported program is.

    Args:
        program: the program's file.
    """
    return program.with_name(f"{program.name}.json")


def export_fit(
    fit: Fitted,
    data: Data,
    path: Path,
    *,
    key: PRNGKeyArray,
    num_draws: int,
    num_rows: int | None = None,
) -> Exported:
    """Write what a fit predicts as a program, with weights and draws in it.

    It takes raw inputs, float32, and returns a dictionary. For classes: `probs`,
    `entropy`, `epistemic`, `aleatoric`; for numbers, in the targets' own units:
    `quantiles` (levels, rows, outputs) and, where they exist, `mean`, `std`,
    `epistemic`, `aleatoric` (variances).

    Args:
        fit: the model.
        data: what is known of its data.
        path: the program's file; a JSON file beside it says what it takes.
        key: which functions are drawn.
        num_draws: functions averaged over.
        num_rows: that it takes, for models that cannot be traced for any number.

    Raises:
        ValueError: for sequences, models that must know how many rows there are, and
            without flatbuffers.
    """
    for name, count in (("num_draws", num_draws), ("num_rows", num_rows)):
        if count is not None and count < 1:
            raise ValueError(f"`{name}` must be at least 1, got {count}.")
    if data.task == "series":
        raise ValueError(
            f"{data.name} holds sequences, whose lengths a program would have to know: "
            "only models of rows and images are exported."
        )
    if importlib.util.find_spec("flatbuffers") is None:
        raise ValueError(
            "Programs are kept by flatbuffers, which is not installed: pip install "
            "'ornstein[export]'."
        )
    program = _program(fit, data, key=key, num_draws=num_draws)
    if num_rows is None:
        (rows,) = jax.export.symbolic_shape("rows")
    else:
        rows = num_rows
    shape = (rows, *_input_shape(data))
    like = jax.ShapeDtypeStruct(shape, jnp.float32)
    try:
        exported = jax.export.export(jax.jit(program), platforms=_PLATFORMS)(like)
    except Exception as error:
        if num_rows is not None:
            raise
        raise OptionError(
            "This {} cannot be exported for any number of rows ({}): give the number "
            "that the program shall take, such as {num_rows} 64.",
            type(fit.model).__name__,
            str(error).splitlines()[0].rstrip("."),
        ) from error
    outputs = jax.tree.map(
        lambda leaf: [str(size) for size in leaf.shape],
        jax.tree.unflatten(exported.out_tree, exported.out_avals),
    )
    said = _description(data) | {
        "outputs": outputs,
        "num_draws": num_draws,
        "num_rows": num_rows,
        "platforms": list(_PLATFORMS),
        "versions": {"ornstein": __version__, "jax": jax.__version__},
    }
    files = Exported(path, description_of(path))
    write_atomically(files.program, bytes(exported.serialize()))
    text = json.dumps(said, indent=2, ensure_ascii=False)
    write_atomically(files.description, text.encode())
    return files


def _program(
    fit: Fitted, data: Data, *, key: PRNGKeyArray, num_draws: int
) -> Callable[[Array], dict[str, Array]]:
    """From raw inputs to what is said of them."""
    if isinstance(fit, FittedByDraw):
        fit = fit.for_draws(num_draws)
    model, likelihood, state = in_inference(fit.model), fit.likelihood, fit.state
    as_features = _features(data)
    # A key is no array that a program may hold; its numbers are.
    key_data, impl = np.asarray(jax.random.key_data(key)), jax.random.key_impl(key)

    def program(x: Array) -> dict[str, Array]:
        outputs = map_draws(
            lambda draw: draw.output,
            model,
            as_features(x),
            key=jax.random.wrap_key_data(jnp.asarray(key_data), impl=impl),
            num_draws=num_draws,
            state=state,
            draws_at_once=1,
        )
        return _said(Prediction(outputs, likelihood), data)

    return program


def _said(prediction: Prediction, data: Data) -> dict[str, Array]:
    """What `RunPrediction` says, by the same names."""
    likelihood = prediction.likelihood
    if isinstance(likelihood, AbstractClassLikelihood):
        names = ("probs", "entropy", "epistemic", "aleatoric")
        return {name: getattr(prediction, name) for name in names}
    assert isinstance(likelihood, AbstractLocationScaleLikelihood)
    mean, scale = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    if data.y_scaling is not None:
        scaling = (data.y_scaling.mean, data.y_scaling.scale)
        mean, scale = (np.float32(part).reshape(1, -1) for part in scaling)
    quantiles = [prediction.quantile(level) * scale + mean for level in LEVELS]
    said = {"quantiles": jnp.stack(quantiles)}
    if prediction.summary is None:
        return said
    said["mean"] = prediction.mean * scale + mean
    if prediction.summary.aleatoric is not None:
        said["std"] = jnp.sqrt(prediction.variance) * scale
        for name in ("epistemic", "aleatoric"):
            said[name] = getattr(prediction, name) * jnp.square(scale)
    return said


def _input_shape(data: Data) -> tuple[int, ...]:
    if data.encoding is None:
        return data.example_shape
    return (len(data.encoding.columns),)


def _features(data: Data) -> Callable[[Array], Array]:
    """From raw inputs to what the model takes: gaps, categories, standard units."""
    columns = () if data.encoding is None else data.encoding.columns
    standard = _standard(data.x_scaling)
    if not columns:
        return standard
    numbers = [i for i, c in enumerate(columns) if c.kind != "category"]
    gaps = [i for i in numbers if columns[i].has_gaps]
    fills = np.array([[columns[i].fill for i in numbers]], np.float32)

    def features(x: Float[Array, "rows columns"]) -> Float[Array, "rows features"]:
        is_empty = jnp.isnan(x)
        known = x[:, np.array(numbers, int)]
        parts = [jnp.where(jnp.isnan(known), fills, known)]
        parts += [is_empty[:, np.array(gaps, int)].astype(jnp.float32)]
        parts += [
            (
                x[:, i, None] == np.arange(len(c.categories), dtype=np.float32)[None]
            ).astype(jnp.float32)
            for i, c in enumerate(columns)
            if c.kind == "category"
        ]
        return standard(jnp.concatenate(parts, axis=1))

    return features


def _standard(scaling: Standardisation | None) -> Callable[[Array], Array]:
    """Standard units, in single precision but for the last bits of the mean.

    The mean is a number of single precision and a rest: a column of large numbers with
    a small spread, such as dates, keeps its digits.
    """
    if scaling is None:
        return lambda x: x
    mean = np.asarray(scaling.mean, np.float64)
    high = mean.astype(np.float32)
    scale = np.asarray(scaling.scale, np.float32)
    # Of a column whose spread single precision does not see, such as a constant one,
    # numbers are the mean or they are not.
    is_seen = scale >= np.spacing(np.abs(high))
    is_constant = (np.asarray(scaling.scale) == 1) & (np.abs(mean - high) > 1e-6)
    rest = np.where(is_seen & ~is_constant, mean - high, 0).astype(np.float32)

    def standard(x: Array) -> Array:
        whole = lambda part: part.reshape((1,) * (x.ndim - part.ndim) + part.shape)
        return ((x - whole(high)) - whole(rest)) / whole(scale)

    return standard


def _description(data: Data) -> dict[str, Any]:
    """What goes in, and the names of what comes out."""
    inputs: dict[str, Any] = {
        "dtype": "float32",
        "shape": ["rows", *_input_shape(data)],
    }
    if data.encoding is None:
        inputs["columns"] = [{"name": name} for name in data.feature_names]
        inputs["units"] = "the training data's own"
    else:
        inputs["columns"] = _columns(data.encoding.columns)
        inputs["empty"] = (
            "NaN; of a category the place of (empty) where its `categories` have "
            "that, else as any other text, -1"
        )
    return {
        "data": data.name,
        "task": data.task,
        "inputs": inputs,
        "class_names": list(data.class_names),
        "target_names": list(data.target_names),
        "quantile_levels": [] if data.class_names else list(LEVELS),
    }


def _columns(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """How each column's cells become the number that goes in."""
    means = {
        "number": "as it is",
        "boolean": "0 or 1",
        "date": "days since 1970-01-01",
        "category": "its place in `categories`, from 0; -1 for any other",
    }
    return [
        {"name": c.name, "kind": c.kind, "given as": means[c.kind]}
        | ({"categories": list(c.categories)} if c.kind == "category" else {})
        for c in columns
    ]
