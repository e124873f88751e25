"""The contract of random functions, checked before anything is trained by it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import PyTree
from ..network import check_alone, in_inference
from ._base import FROZEN, NOISE, WEIGHTS, AbstractRandomFunction, Draw
from ._draws import copied

_LABELS = (WEIGHTS, NOISE, FROZEN)


def check_labels(module: Any, labels: PyTree[str]) -> None:
    """Refuse labels that say nothing of a leaf, or what cannot be.

    Args:
        module: a random function, or a likelihood.
        labels: what its `labels()` say.

    Raises:
        ValueError: naming the leaf.
    """
    said = f"`{type(module).__name__}.labels()`"

    def check(path: tuple, leaf: Any, label: Any) -> None:
        place = jax.tree_util.keystr(path)
        if not (isinstance(label, str) and label in _LABELS):
            raise ValueError(
                f"{said} calls {place} {label!r}, which is no label: use 'weights' or "
                "'noise' for what is trained and 'frozen' for all else."
            )
        if label != FROZEN and not eqx.is_inexact_array(leaf):
            raise ValueError(
                f"{said} calls {place}, a leaf of type {type(leaf).__name__}, "
                f"{label!r}, but only floating-point arrays can be trained: label it "
                "'frozen'."
            )

    if jax.tree.structure(labels) != jax.tree.structure(module):
        raise ValueError(
            f"{said} must be a tree like the {type(module).__name__} itself, with a "
            f"label in place of each leaf, got one of type {type(labels).__name__}: "
            "return `jax.tree.map(lambda leaf: ..., self)`."
        )
    jax.tree_util.tree_map_with_path(check, module, labels)


def check_draw(model: Any, draw: Any, num_rows: int) -> None:
    """Refuse what a call on a batch gives, if it is none of its draws.

    Args:
        model: the random function.
        draw: what it gave.
        num_rows: of the batch.

    Raises:
        TypeError: for what is no `Draw`.
        ValueError: for parts of other shapes.
    """
    name = f"`{type(model).__name__}`"
    if not isinstance(draw, Draw):
        given = "an array" if eqx.is_array(draw) else type(draw).__name__
        raise TypeError(
            f"{name} must give an `ornstein.functions.Draw` of a batch, got {given}: "
            "return Draw(output=..., kl=..., local_kl=...)."
        )
    for part, shape in (("kl", ()), ("local_kl", (num_rows,))):
        found = jnp.shape(getattr(draw, part))
        if found != shape:
            raise ValueError(
                f"{name} gave a `{part}` of shape {found} for {num_rows} rows, where "
                f"{shape} is needed: `kl` is one number, in nats of the whole data "
                "set, and `local_kl` one for each row, `no_local_kl(x)` without any."
            )
    for leaf in jax.tree.leaves(draw.output):
        if jnp.shape(leaf)[:1] != (num_rows,):
            raise ValueError(
                f"{name} gave an output of shape {jnp.shape(leaf)} for {num_rows} "
                "rows, but each row needs its own: let rows come first."
            )


def check_rows_alone(
    model: AbstractRandomFunction, x: PyTree, state: eqx.nn.State | None
) -> None:
    """Refuse a function whose network gives a row what depends on the rows beside it.

    As it predicts: batch statistics are those that it has. See `network.check_alone`.

    Args:
        model: whose first member is looked at.
        x: inputs, rows first.
        state: batch statistics, or `None`.

    Raises:
        ValueError: saying how the network is wrapped.
    """
    check_alone(_first_draw, in_inference(model.member(0)), x, state)


def _first_draw(
    model: AbstractRandomFunction, x: PyTree, state: eqx.nn.State | None
) -> PyTree:
    return model(x, key=jax.random.key(0), index=0, state=copied(state)).output
