"""What `fit` refuses before any work."""

import dataclasses
import math
import numbers
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._kinds import check_arrays, check_kind
from .._types import PyTree
from ..data import Streamed
from ..functions import AbstractRandomFunction, Deterministic, Draw, check_draw
from ..likelihood import AbstractLikelihood, check_one_each, num_outputs_of
from ..network import check_parameters
from ._elbo import AbstractObjective


def check_positive(**counts: int) -> None:
    """Refuse counts below 1, by name."""
    for name, value in counts.items():
        if not isinstance(value, numbers.Integral):
            raise TypeError(
                f"`{name}` must be a whole number, got {value!r}: write {name}=10."
            )
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")


def check_decay(name: str, value: float | None) -> None:
    """Refuse a decay outside (0, 1); `None` means none."""
    if value is not None and not 0 < value < 1:
        raise ValueError(
            f"`{name}` must be between 0 and 1, got {value}: try 0.99, or None for "
            "none."
        )


def check_fraction(name: str, value: float) -> None:
    """Refuse what is no fraction of a run."""
    if not 0 <= value <= 1:
        raise ValueError(
            f"`{name}` must be a fraction of the run in [0, 1], got {value}."
        )


def check_clip_norm(value: float | None) -> None:
    """Refuse a norm that is not positive; `None` means no clipping."""
    if value is not None and not value > 0:
        raise ValueError(
            f"`clip_norm` must be positive, got {value}: write None for no clipping."
        )


def check_parts(
    objective: AbstractObjective, num_draws: int, accumulate: int, draw_per_part: bool
) -> None:
    """Refuse parts of a batch for an objective of whole ones, and draws of no parts."""
    if accumulate > 1 and num_draws > 1 and not objective.is_mean_over_rows:
        raise ValueError(
            f"`{type(objective).__name__}` takes each batch whole, and accumulate="
            f"{accumulate} cuts it into parts: use accumulate=1, or `ELBO()`."
        )
    check_kind("draw_per_part", draw_per_part, bool, "True")
    if draw_per_part and accumulate == 1:
        raise ValueError(
            "`draw_per_part` gives each part of a batch its own draw, and accumulate=1 "
            "leaves it whole: write accumulate=4."
        )


def check_data(split: Any, name: str) -> tuple[PyTree, PyTree]:
    """The inputs and targets of a split, if they can be trained on.

    Args:
        split: has `x` and `y`.
        name: of the split in messages.

    Raises:
        TypeError: for what is no split, such as a whole data set, or has no arrays, or
            has them on disk.
        ValueError: for no rows, unequal rows, NaN or infinity. Memory maps are not
            read through; a bad value in them stops the run at the step that meets it.
    """
    if isinstance(split, Streamed):
        raise TypeError(
            f"`{name}` stays on disk, and this takes rows in memory: load the data "
            f"without stream=True, or give `{name}.in_memory()`, a sample of the rows."
        )
    if not (hasattr(split, "x") and hasattr(split, "y")):
        raise TypeError(
            f"`{name}` must have `x` and `y`, got {type(split).__name__}: of a data "
            "set give a split, such as `data.train` or `data.validation`, and of "
            "arrays orn.data.Split(x, y)."
        )
    x, y = split.x, split.y
    check_arrays(f"{name}.x", x)
    check_arrays(f"{name}.y", y)
    rows = {leaf.shape[0] for leaf in jax.tree.leaves(x)}
    y_rows = {leaf.shape[0] for leaf in jax.tree.leaves(y)}
    if rows != y_rows or len(rows) != 1:
        raise ValueError(
            f"`{name}` has {_numbers(rows)} rows of inputs and {_numbers(y_rows)} of "
            "targets: give one target for each input."
        )
    if rows == {0}:
        raise ValueError(f"`{name}` has no rows: give at least one example.")
    for part, tree in (("inputs", x), ("targets", y)):
        for leaf in jax.tree.leaves(tree):
            is_number = jnp.issubdtype(leaf.dtype, jnp.floating)
            if isinstance(leaf, np.memmap) or not is_number:
                continue
            finite = np.isfinite(np.asarray(leaf)).reshape(leaf.shape[0], -1)
            bad = np.flatnonzero(~np.all(finite, axis=1))
            if bad.size:
                raise ValueError(
                    f"The {part} of `{name}` have NaN or infinite values in "
                    f"{bad.size} of {leaf.shape[0]} rows, first in row {bad[0]}: "
                    "remove or impute them."
                )
    return x, y


def check_fits(
    model: AbstractRandomFunction,
    likelihood: AbstractLikelihood,
    data: tuple[PyTree, PyTree],
    state: eqx.nn.State | None,
    num_rows: int,
) -> Draw:
    """Refuse targets that the likelihood, or the network's output, has no place for.

    Args:
        model: whose first member is called on a batch.
        likelihood: of its targets.
        data: inputs and targets.
        state: batch statistics, or `None`.
        num_rows: of a batch.

    Returns:
        the shapes of a draw.
    """
    like = lambda a: jax.ShapeDtypeStruct((num_rows, *a.shape[1:]), a.dtype)
    x, y = jax.tree.map(like, data)

    def call(x, key, state):
        member = model.member(0)
        draw = member(x, key=key, index=None, state=state)
        check_draw(member, draw, num_rows)
        return dataclasses.replace(draw, state=None)

    draw = eqx.filter_eval_shape(call, x, jax.random.key(0), state)
    leaves = jax.tree.leaves(draw.output)
    likelihood.check_targets(data[1], num_outputs_of(likelihood, draw.output))
    try:
        log_prob = eqx.filter_eval_shape(likelihood.log_prob, draw.output, y)
    except (AttributeError, TypeError) as error:
        if hasattr(draw.output, "shape"):
            raise
        raise TypeError(
            f"`{type(likelihood).__name__}` takes one array, and the output is a "
            f"{type(draw.output).__name__} of arrays of shapes "
            f"{[leaf.shape for leaf in leaves]}: let the network give one, or write "
            "`orn.CustomLikelihood`, which takes what it gives."
        ) from error
    check_one_each(log_prob, num_rows)
    if isinstance(model.member(0), Deterministic):
        check_parameters(model, "to train (floating-point arrays)")
    return draw


def check_on_disk(split: Any, *, in_memory: bool | None) -> Streamed | None:
    """Training rows that stay on disk, if these do.

    Raises:
        ValueError: if they are to be in memory all the same.
    """
    if not isinstance(split, Streamed):
        return None
    if in_memory:
        raise ValueError(
            "in_memory=True wants all rows on the device, and those of `split` are on "
            "disk: leave it out, or load the data without stream=True."
        )
    return split


def describe_failure(record: Mapping[str, Any], loss_terms: tuple[str, ...]) -> str:
    """Which part of the loss stopped being a number, and the likely cause."""
    bad = [name for name in loss_terms if not math.isfinite(record[name])]
    if "log_likelihood" in bad:
        return (
            "the log likelihood is not a number: outputs overflowed, or the "
            "likelihood's scale collapsed; lower the learning rate or the clip norm, "
            "or scale the targets"
        )
    if bad:
        return (
            f"{' and '.join(bad)} is not a number: a scale of the posterior or the "
            "drift overflowed; lower the learning rate, or start the posterior closer "
            "to the prior"
        )
    return (
        "the loss is a number but its gradient is not: a square root, logarithm or "
        "division at its edge; lower the learning rate or the step size of the solver"
    )


def _numbers(rows: set[int]) -> str:
    return " and ".join(map(str, sorted(rows)))
