"""What is said of a network that takes neither its batch nor the rows of it."""

import inspect
import math
from typing import Any

import equinox as eqx
import jax

from .._types import Array, PyTree
from ..nn import MLP, ChannelsFirst, Flattened, Linear, PerExample
from ._module import Network
from ._rows import name_of, output_of, takes_batches, without_adapters
from ._state import in_inference


def explain(
    network: Network,
    x: PyTree[Array],
    state: eqx.nn.State | None,
    error: Exception,
) -> Exception:
    """The error to raise for a batch that a network failed on.

    Args:
        network: as `as_network` made it.
        x: the batch.
        state: batch statistics, or `None`.
        error: what the batch met. Others than those about shapes come back as they are,
            with a note.
    """
    name = name_of(network)
    leaves = jax.tree.leaves(x)
    if without_key := _without_key(network):
        return ValueError(without_key)
    if len(leaves) > 1:
        shapes = [leaf.shape for leaf in leaves]
        failed = f"`{name}` failed on a batch of shapes {shapes}"
        if not _is_about_shapes(error):
            return _noted(error, failed)
        return ValueError(
            f"{failed} ({error}): a network of several arrays is given them whole, "
            "rows first; let one of a single example map itself over the rows, by "
            "`jax.vmap` in its `__call__`."
        )
    (rows,) = leaves
    if other_width := _other_width(network, rows.shape[1:]):
        return ValueError(other_width)
    if takes_batches(network):
        return _of_batches(network, rows, error)
    mapped = PerExample(network, num_axes=max(rows.ndim - 1, 0))
    alone: Exception | None = None
    try:
        output_of(mapped, rows, state)
    except Exception as found:
        alone = found
    if alone is None:
        return ValueError(scalar_rows(name))
    if _runs(in_inference(mapped), rows, state):
        return ValueError(
            f"{_own_dropout(name)}, or give `eqx.nn.inference_mode(network)`."
        )
    failed = f"`{name}` failed on a batch of shape {rows.shape}"
    told, told_alone = _is_about_shapes(error), _is_about_shapes(alone)
    if not told and (str(alone) == str(error) or not told_alone):
        return _noted(error, failed)
    return ValueError(
        f"`{name}` failed on a single row, of shape {rows.shape[1:]} ({_said(alone)}), "
        f"and on a batch of them ({_said(error)}): {_remedy(alone, rows.shape)}"
    )


def explain_chance(
    network: Network, x: Array, state: eqx.nn.State | None
) -> str | None:
    """What to say of a network that runs on this number of rows and on few others.

    Args:
        network: one that takes neither other batches nor rows.
        x: the batch.
        state: batch statistics, or `None`.

    Returns:
        `None` for one that cannot be traced, of which nothing is known.
    """
    name = name_of(network)
    try:
        output_of(PerExample(network, num_axes=x.ndim - 1), x, state)
    except jax.errors.JAXTypeError:
        return None
    except Exception as alone:
        return (
            f"`{name}` runs on a batch of {x.shape[0]} rows and not on other numbers "
            f"of them, so that it may mix them, nor on a single row, of shape "
            f"{x.shape[1:]} ({_said(alone)}): give one that takes any number of rows, "
            "rows first, or a single row; if it is meant so, "
            "`ornstein.nn.WholeBatch(network)`."
        )
    return scalar_rows(name)


def scalar_rows(name: str) -> str:
    """The sentence about a network that gives no vector for a row.

    Args:
        name: of its class.
    """
    return (
        f"`{name}` gives a scalar for each row, where the likelihood's parameters are "
        "a vector: let it give shape (1,)."
    )


def _of_batches(network: Network, x: Array, error: Exception) -> Exception:
    """Of a network that says that it takes batches, or is mapped over rows."""
    name = name_of(network)
    if not isinstance(network, PerExample | ChannelsFirst):
        failed = f"`{name}` failed on a batch of shape {x.shape}"
        if not _is_about_shapes(error):
            return _noted(error, failed)
        return ValueError(
            f"{failed} ({_said(error)}): give rows first, of the shape that it takes."
        )
    num_axes = network.num_axes if isinstance(network, PerExample) else 3
    shape = x.shape[max(x.ndim - num_axes, 0) :]
    failed = f"`{name}` failed on an example of shape {shape}"
    if not (_is_about_shapes(error) or isinstance(error, jax.errors.JAXTypeError)):
        return _noted(error, failed)
    remedy = _remedy(error, x.shape)
    if isinstance(network, PerExample) and x.ndim - 1 != num_axes:
        remedy = (
            f"rows of `x` have shape {x.shape[1:]}: set num_axes={x.ndim - 1} of "
            f"`PerExample`, or {remedy}"
        )
    return ValueError(f"{failed} ({_said(error)}): {remedy}")


def _remedy(alone: Exception, shape: tuple[int, ...]) -> str:
    if isinstance(alone, jax.errors.TracerArrayConversionError):
        return "compute with `jax.numpy` in place of NumPy, which can't be traced."
    give = "give rows first of the shape that it takes"
    if len(shape) != 4:
        return f"{give}."
    return (
        f"{give}, and wrap one of images with channels first in "
        "`ornstein.nn.ChannelsFirst`."
    )


def _without_key(network: Network) -> str | None:
    """Of a network whose call requires a key."""
    own: Any = without_adapters(network)
    try:
        asked = inspect.signature(own).parameters.get("key")
    except (TypeError, ValueError):  # of a builtin
        return None
    if asked is None or asked.default is not inspect.Parameter.empty:
        return None
    name = name_of(network)
    let = "let `key` be None by default"
    is_dropout = lambda node: isinstance(node, eqx.nn.Dropout)
    if any(map(is_dropout, jax.tree.leaves(own, is_leaf=is_dropout))):
        return (
            f"{_own_dropout(name)}, or {let} and give `eqx.nn.inference_mode(network)`."
        )
    return (
        f"`{name}` needs a `key`, and nobody gives it keys: leave its noise out and "
        f"wrap the network in `ornstein.MCDropout`, or {let}."
    )


def _own_dropout(name: str) -> str:
    return (
        f"`{name}` has dropout of its own (`eqx.nn.Dropout`), and nobody gives it "
        "keys: leave it out and wrap the network in `ornstein.MCDropout`"
    )


def _other_width(network: Network, shape: tuple[int, ...]) -> str | None:
    """Of a network of vectors that are longer or shorter than the rows."""
    if isinstance(network, Flattened):
        shape = (math.prod(shape),)
    width = _width(without_adapters(network))
    if width is None or not shape or shape[-1] == width:
        return None
    has = f"{shape[-1]}" if len(shape) == 1 else f"rows of shape {shape}"
    if len(shape) > 1 and math.prod(shape) == width:
        give = "give x.reshape(len(x), -1)"
    else:
        give = "give the inputs that it was made for, or make one for these"
    numbers = "number" if width == 1 else "numbers"
    return (
        f"`{name_of(network)}` takes {width} {numbers} a row, and x has {has}: {give}."
    )


def _width(network: Network) -> int | None:
    """How many numbers a network takes, where that can be told."""
    if isinstance(network, eqx.nn.Sequential | MLP) and network.layers:
        return _width(network.layers[0])
    size = None
    if isinstance(network, eqx.nn.MLP | Linear):
        size = network.in_size
    elif isinstance(network, eqx.nn.Linear):
        size = network.in_features
    return size if isinstance(size, int) else None


def _noted(error: Exception, failed: str) -> Exception:
    error.add_note(f"{failed}.")
    return error


def _said(error: Exception) -> str:
    """The first line of an error, which may go on about JAX."""
    return str(error).strip().split("\n")[0].rstrip(". ") or type(error).__name__


def _is_about_shapes(error: Exception) -> bool:
    """Whether it says, as JAX and Equinox do, that arrays do not fit together."""
    return "shape" in str(error)


def _runs(network: Network, x: Array, state: eqx.nn.State | None) -> bool:
    try:
        output_of(network, x, state)
    except Exception:
        return False
    return True
