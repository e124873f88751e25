"""Modules that take one example, made to take any leading axes."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, RealScalar


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
        module: for example `eqx.nn.Conv2d(1, 8, 3, key=key)`.
    """

    module: Callable[[Array], Array]

    def __call__(
        self, x: Float[Array, "*lead height width channels"]
    ) -> Float[Array, "..."]:
        """Apply to images of any leading axes."""

        def one(module: Callable[[Array], Array], x: Array) -> Array:
            y = module(jnp.moveaxis(x, -1, 0))
            return jnp.moveaxis(y, 0, -1) if y.ndim == 3 else y

        return _over_lead(one, self.module, x, 3)


class PerExample(eqx.Module):
    """`jax.vmap` over the leading axes, for a module of one example.

    Args:
        module: a map of `x`, or of `(t, x)`.
        num_axes: how many axes an example has.
    """

    module: Callable[..., Array]
    num_axes: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.num_axes < 0:
            raise ValueError(f"`num_axes` must not be negative, got {self.num_axes}.")

    def __call__(self, *args: RealScalar | Float[Array, "..."]) -> Float[Array, "..."]:
        """Call as `(x)` or `(t, x)`; only x has leading axes."""
        *times, x = args
        x = jnp.asarray(x)
        if x.ndim < self.num_axes:
            raise ValueError(
                f"An example has {self.num_axes} axes and `x` only {x.ndim}, of shape "
                f"{x.shape}: set `num_axes`, or give whole examples."
            )
        return _over_lead(lambda m, x: m(*times, x), self.module, x, self.num_axes)


class Flattened(eqx.Module):
    """Gives a network of vectors whole images, or other arrays.

    Args:
        network: a map of the last axis, such as `MLP`.
        num_axes: how many axes an example has; they are joined into one.
    """

    network: Callable[[Array], Array]
    num_axes: int = eqx.field(static=True, default=3)

    def __check_init__(self):
        if self.num_axes < 1:
            raise ValueError(f"`num_axes` must be at least 1, got {self.num_axes}.")

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Apply to examples of any leading axes."""
        return self.network(x.reshape(*x.shape[: x.ndim - self.num_axes], -1))


def _over_lead(
    fn: Callable[[Callable[..., Array], Array], Array],
    module: Callable[..., Array],
    x: Array,
    num_axes: int,
) -> Array:
    lead = x.shape[: x.ndim - num_axes]
    if not lead:
        return fn(module, x)
    is_per_row = lambda node: isinstance(node, PerRow)
    # Only `PerRow` values are mapped; the module's own arrays are shared by all rows.
    axes = jax.tree.map(
        lambda n: 0 if is_per_row(n) else None, module, is_leaf=is_per_row
    )
    flat = x.reshape(-1, *x.shape[x.ndim - num_axes :])
    y = eqx.filter_vmap(fn, in_axes=(axes, 0))(module, flat)
    return y.reshape(*lead, *y.shape[1:])
