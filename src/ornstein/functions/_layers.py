"""The linear and convolutional layers inside any network, found and replaced.

What acts on a layer rather than on a weight (dropout, noise on a layer's inputs, noise
on its outputs) replaces each layer of a network by one that carries the noise.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax

from .._types import Array, Float, PRNGKeyArray, PyTree
from ..nn import AbstractLayer, Layer, PerRow, is_layer, layers_of, num_inputs


def replace_layers(network: PyTree, new: Sequence[Callable]) -> PyTree:
    """The network with its layers replaced, in the order of `layers_of`.

    Raises:
        ValueError: if layers have their weights from each other.
    """
    is_shared = lambda node: isinstance(node, eqx.nn.Shared)
    shared = filter(is_shared, jax.tree.leaves(network, is_leaf=is_shared))
    if any(layers_of(node) for node in shared):
        raise ValueError(
            "Layers with tied weights (`eqx.nn.Shared`) have no noise of their own: "
            "use `MeanField(network, prior)` with its default noise, which draws such "
            "weights once."
        )
    nodes, treedef = jax.tree.flatten(network, is_leaf=is_layer)
    replacements = iter(new)
    nodes = [next(replacements) if is_layer(n) else n for n in nodes]
    assert next(replacements, None) is None
    return jax.tree.unflatten(treedef, nodes)


def takes_one_example(layer: Layer) -> bool:
    """Whether a layer has no axis of rows: Equinox's, which run under `vmap`."""
    return not isinstance(layer, AbstractLayer)


class ScaledInputs(eqx.Module):
    """A layer whose inputs, and perhaps bias, are multiplied before it meets them.

    Attributes:
        layer: the layer.
        scale: a number for each feature that comes in (and each row).
        bias_scale: a number for each feature that goes out (and each row), or `None`.
    """

    layer: Layer
    scale: Array | PerRow
    bias_scale: Array | PerRow | None = None

    def __call__(
        self, x: Float[Array, "..."], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "..."]:
        """As the layer is called; `eqx.nn.Sequential` gives every layer a key."""
        del key
        layer = self.layer
        bias = None if layer.bias is None else layer.bias.ravel()
        if num_inputs(layer) == 1:
            # A single number may as well multiply the output, whose gradient costs
            # nothing: that of a first convolution's input is half of LeNet's step.
            y = layer(x)
            scale = beside(self.scale, y, layer).astype(y.dtype)
            added = 0.0 if bias is None else beside(bias, y, layer)
            y = (y - added) * scale + added
        else:
            y = layer(x * beside(self.scale, x, layer).astype(x.dtype))
        if self.bias_scale is None or bias is None:
            return y
        # The layer has added its bias once.
        bias_scale = beside(self.bias_scale, y, layer).astype(y.dtype)
        return y + beside(bias, y, layer) * (bias_scale - 1)


def with_inputs_scaled(
    layer: Layer,
    scale: Float[Array, " in_size"],
    bias_scale: Float[Array, " out_size"] | None = None,
) -> Layer:
    r"""The layer whose own weights are $U \mathrm{diag}(z)$: `ScaledInputs`, folded.

    Args:
        layer: with weights $U$.
        scale: $z$, one for each feature that comes in.
        bias_scale: the same of the bias.
    """
    weight = layer.weight
    if isinstance(layer, AbstractLayer):
        scaled = weight * scale.reshape((1,) * layer.num_pixel_axes + (-1, 1))
    elif isinstance(layer, eqx.nn.Conv):  # (out, in / groups, *taps)
        taps = (1,) * layer.num_spatial_dims
        grouped = weight.reshape(layer.groups, -1, *weight.shape[1:])
        by_group = scale.reshape(layer.groups, 1, -1, *taps)
        scaled = (grouped * by_group).reshape(weight.shape)
    else:
        scaled = weight * scale[None]
    layer = eqx.tree_at(lambda layer: layer.weight, layer, scaled)
    if bias_scale is None or layer.bias is None:
        return layer
    bias = layer.bias * bias_scale.reshape(layer.bias.shape)
    return eqx.tree_at(lambda layer: layer.bias, layer, bias)


def beside(value: Array | PerRow, x: Float[Array, "..."], layer: Layer) -> Array:
    """Numbers for each feature (and row), shaped to multiply a layer's input or output.

    Args:
        value: (features,), shared by all rows; or each row's own: (rows, features), and
            (features,) where an adapter has dealt them.
        x: the array to multiply.
        layer: whose input or output x is.

    Raises:
        ValueError: if a layer without an axis of rows met all rows' numbers at once, or
            one of ours an array of other features.
    """
    if isinstance(value, PerRow):
        value = value.value
        has_rows = x.ndim > 1 and x.shape[0] == value.shape[0]
        if value.ndim > 1 and (takes_one_example(layer) or not has_rows):
            raise ValueError(
                f"A layer met an input of shape {x.shape}, and noise of each of "
                f"{value.shape[0]} rows: let the network keep rows first, and if it "
                "takes one example, wrap it in `ornstein.nn.PerExample` (or "
                "`ChannelsFirst`) instead of calling `jax.vmap` in it."
            )
    if takes_one_example(layer):  # (features, *pixels); `value` is (features,)
        shape = value.shape + (1,) * (x.ndim - value.ndim)
        return value.reshape(shape[: x.ndim])  # `x` may be a scalar
    if x.ndim == 0 or value.shape[-1] not in (1, x.shape[-1]):
        # It would broadcast to features that the layer has not.
        raise ValueError(
            f"A layer of {value.shape[-1]} features met an array of shape {x.shape}."
        )
    between = (1,) * (x.ndim - value.ndim)
    if value.ndim == 1:
        return value.reshape(between + value.shape)
    return value.reshape(value.shape[:1] + between + value.shape[1:])
