"""Targets: checked at the door, and shaped like the output they belong to."""

from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, Shaped

Targets: TypeAlias = Shaped[Array, "..."] | Shaped[np.ndarray, "..."]
"""Class numbers, yes or no, or real numbers; rows first."""


def working_dtype(output: Float[Array, "..."]):
    """At least float32: a log likelihood in half precision loses the small gains."""
    is_half = jnp.finfo(output.dtype).bits < 32
    return jnp.float32 if is_half else output.dtype


def fit(y: Targets, shape: tuple[int, ...]) -> Shaped[Array, "..."]:
    """`y`, repeated over the axes of draws before its own; never over its rows."""
    if y.ndim > len(shape) or y.shape != shape[len(shape) - y.ndim :]:
        raise ValueError(
            f"Targets of shape {y.shape} do not fit a likelihood of shape {shape}: "
            "give one target for each row, and as many columns as outputs."
        )
    return jnp.broadcast_to(y, shape)


def fit_columns(
    y: Targets, output: Float[Array, "*lead outputs"]
) -> Float[Array, "*lead outputs"]:
    """`y` in the shape and type of `output`; a vector of targets is one column."""
    y = y[..., None] if y.ndim < min(output.ndim, 2) else y
    return fit(y.astype(working_dtype(output)), output.shape)


def check_rows(y: np.ndarray):
    if y.ndim == 0 or y.shape[0] == 0:
        raise ValueError(
            f"Got targets of shape {y.shape}, but need at least one row: give (rows,) "
            "or (rows, outputs)."
        )
    if not jnp.issubdtype(y.dtype, jnp.number) and y.dtype != bool:
        raise ValueError(
            f"Got targets of type {y.dtype}, but need numbers: encode the classes as "
            "0, 1, 2, ... first."
        )
    if not np.all(np.isfinite(y)):
        raise ValueError(
            f"{np.sum(~np.isfinite(y))} targets are NaN or infinite, but all must be "
            "finite: drop those rows or fill them in."
        )


def check_columns(y: np.ndarray, num_outputs: int, name: str):
    columns = y.shape[1:] or (1,)
    if columns != (num_outputs,):
        raise ValueError(
            f"`{name}` got targets of shape {y.shape} for a network with {num_outputs} "
            f"outputs: give targets of shape (rows, {num_outputs}), or a network with "
            "as many outputs as target columns."
        )


def check_one_each(log_prob: Any, num_rows: int) -> None:
    """Refuse a log likelihood that is not one number of each row.

    Broadcast against others, one of a wrong shape is a loss all the same.

    Args:
        log_prob: has the shape of the likelihood of a batch.
        num_rows: in that batch.
    """
    if log_prob.shape != (num_rows,):
        raise ValueError(
            f"The log likelihood of a batch of {num_rows} rows has shape "
            f"{log_prob.shape}, where each row has one number: let the network give "
            "(rows, outputs), and a likelihood of your own sum over all but rows."
        )
