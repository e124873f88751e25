"""Modules that take one example, made to take any leading axes."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PyTree, RealScalar

Output: TypeAlias = PyTree[Float[Array, "..."]] | tuple[PyTree, eqx.nn.State]
"""An array, or several, and the state of batch statistics where one was given."""


class PerRow(eqx.Module):
    """A value that each row of a batch has for itself, inside a module.

    `ChannelsFirst` and `PerExample` deal its entries to the rows that they map over.

    Attributes:
        value: rows first.
    """

    value: Array


class ChannelsFirst(eqx.Module):
    """Gives Equinox's own image layers the axis order of this package.

    `module` maps one image (channels, height, width) to another, or to anything
    without pixels, such as logits; the adapter takes (..., height, width, channels).

    Args:
        module: for example `eqx.nn.Conv2d(1, 8, 3, key=key)`. With batch statistics it
            maps (image, state) to (output, state); its `eqx.nn.BatchNorm` layers have
            `axis_name="batch"`.
    """

    module: Callable[..., Any]

    def __call__(
        self,
        x: Float[Array, "*lead height width channels"],
        state: eqx.nn.State | None = None,
    ) -> Output:
        """Apply to images of any leading axes."""

        def one(module: Callable[..., Any], x: Array, *state: eqx.nn.State) -> Any:
            y, *new = _as_tuple(module(jnp.moveaxis(x, -1, 0), *state), state)
            last = lambda each: jnp.moveaxis(each, 0, -1) if each.ndim == 3 else each
            return (jax.tree.map(last, y), *new)

        return _over_lead(one, self.module, x, 3, state)


class PerExample(eqx.Module):
    """`jax.vmap` over the leading axes, for a module of one example.

    Args:
        module: a map of `x`, or of `(t, x)`; with batch statistics, of `(x, state)` to
            (output, state), its `eqx.nn.BatchNorm` layers having `axis_name="batch"`.
        num_axes: how many axes an example has.
    """

    module: Callable[..., Any]
    num_axes: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.num_axes < 0:
            raise ValueError(f"`num_axes` must not be negative, got {self.num_axes}.")

    def __call__(
        self, *args: RealScalar | Float[Array, "..."] | eqx.nn.State
    ) -> Output:
        """Call as `(x)`, `(t, x)` or `(x, state)`; only x has leading axes."""
        state = args[-1] if isinstance(args[-1], eqx.nn.State) else None
        *times, x = args if state is None else args[:-1]
        x = jnp.asarray(x)
        if x.ndim < self.num_axes:
            raise ValueError(
                f"An example has {self.num_axes} axes and `x` only {x.ndim}, of shape "
                f"{x.shape}: set `num_axes`, or give whole examples."
            )

        def one(module: Callable[..., Any], x: Array, *state: eqx.nn.State) -> Any:
            return _as_tuple(module(*times, x, *state), state)

        return _over_lead(one, self.module, x, self.num_axes, state)


class Flattened(eqx.Module):
    """Gives a network of vectors whole images, or other arrays.

    Args:
        network: a map of the last axis, such as `MLP`; with batch statistics, of
            (x, state) to (output, state).
        num_axes: how many axes an example has; they are joined into one.
    """

    network: Callable[..., Any]
    num_axes: int = eqx.field(static=True, default=3)

    def __check_init__(self):
        if self.num_axes < 1:
            raise ValueError(f"`num_axes` must be at least 1, got {self.num_axes}.")

    def __call__(
        self, x: Float[Array, "..."], state: eqx.nn.State | None = None
    ) -> Output:
        """Apply to examples of any leading axes."""
        flat = x.reshape(*x.shape[: x.ndim - self.num_axes], -1)
        return self.network(flat) if state is None else self.network(flat, state)


class WholeBatch(eqx.Module):
    """Says that a network is meant to be given a batch whole, rows first.

    For a network of one's own whose output for a row depends on the other rows, as that
    of a normalisation by the batch's own mean does: `fit`, `sample` and `predict`
    refuse it without. What is predicted for a row is then of the batch that it stands
    in: `predict` fills its last block with copies of the last row, unless it is given
    `pad_rows=False` and a `batch_size` of all rows.

    Args:
        network: of a batch; with batch statistics, of (x, state) to (output, state).
    """

    network: Callable[..., Any]

    def __call__(self, x: PyTree[Array], state: eqx.nn.State | None = None) -> Output:
        """Apply to a batch."""
        return self.network(x) if state is None else self.network(x, state)


def _as_tuple(result: Any, state: tuple[eqx.nn.State, ...]) -> tuple:
    """(output, state) of a module that was given one, else (output,)."""
    return tuple(result) if state else (result,)


def _over_lead(
    fn: Callable[..., tuple],
    module: Callable[..., Any],
    x: Array,
    num_axes: int,
    state: eqx.nn.State | None,
) -> Output:
    """`fn(module, example, *state)` to (output, *state), over the leading axes of x."""
    states = () if state is None else (state,)
    lead = x.shape[: x.ndim - num_axes]
    if not lead:
        y, *states = fn(module, x, *states)
        return (y, *states) if states else y
    is_per_row = lambda node: isinstance(node, PerRow)
    # Only `PerRow` values are mapped; the module's own arrays are shared by all rows.
    axes = jax.tree.map(
        lambda n: 0 if is_per_row(n) else None, module, is_leaf=is_per_row
    )
    flat = x.reshape(-1, *x.shape[x.ndim - num_axes :])
    in_axes, out_axes = (axes, 0, *(None for _ in states)), (0, *(None for _ in states))
    over_rows = eqx.filter_vmap(
        fn, in_axes=in_axes, out_axes=out_axes, axis_name="batch"
    )
    y, *states = over_rows(module, flat, *states)
    y = jax.tree.map(lambda each: each.reshape(*lead, *each.shape[1:]), y)
    return (y, *states) if states else y
