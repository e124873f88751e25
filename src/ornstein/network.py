"""Plain networks, as the random functions built around them see them."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ._tree import is_at
from ._types import Array, Float, Int, Params, PyTree
from .nn import PerExample, PerRow

Network: TypeAlias = Callable[..., PyTree[Float[Array, "batch ..."]]]
"""A module from a batch (rows first) to the likelihood's parameters of each row."""

_Module = TypeVar("_Module")

_OF_ONE_VECTOR = (eqx.nn.MLP, eqx.nn.Linear)

PROBE_ROWS = 1_009
"""A prime, so that no layer has that size, nor a reshaped batch that many rows."""


class SolveReport(eqx.Module):
    r"""What the solves behind one call of a function on a batch cost and did.

    Attributes:
        num_drift_evaluations: of all solves, forward.
        roughness: $R_K = \int_0^1 \|d^K h / dt^K\|^2 dt$, the mean over rows and
            features, summed over solves; 0 where the `Integrator` asks for none. Kelly,
            Bettencourt, Johnson & Duvenaud (2020), "Learning Differential Equations
            that are Easy to Solve".
        reversible_gap: the largest $|y - \hat y|$ at a solve's end; 0 for solvers that
            have no $\hat y$.
    """

    num_drift_evaluations: Int[Array, ""]
    roughness: Float[Array, ""]
    reversible_gap: Float[Array, ""]


def merge_reports(reports: Sequence[SolveReport]) -> SolveReport | None:
    """The report of several solves, one after another; `None` of none."""
    if not reports:
        return None
    return SolveReport(
        num_drift_evaluations=sum(
            (r.num_drift_evaluations for r in reports), jnp.zeros((), int)
        ),
        roughness=sum((r.roughness for r in reports), jnp.zeros(())),
        reversible_gap=jnp.max(jnp.stack([r.reversible_gap for r in reports])),
    )


def mean_report(report: SolveReport | None) -> SolveReport | None:
    """One report of several calls, whose reports have a leading axis."""
    if report is None:
        return None
    return SolveReport(
        num_drift_evaluations=jnp.max(report.num_drift_evaluations),
        roughness=jnp.mean(report.roughness),
        reversible_gap=jnp.max(report.reversible_gap),
    )


def as_network(module: Network) -> Network:
    """The module, made to take a batch where it is known to take one example.

    Args:
        module: any callable; `eqx.nn.MLP` and `eqx.nn.Linear` are wrapped in
            `PerExample`, others are taken as they are.

    Raises:
        TypeError: if it cannot be called, is a class, or a random function already.
    """
    if hasattr(module, "num_strata"):
        raise TypeError(
            f"A network is needed, got the random function `{type(module).__name__}`: "
            "give the network that it is made of."
        )
    if isinstance(module, type):
        raise TypeError(
            f"A network is needed, got the class {module.__name__}: make one, as in "
            f"{module.__name__}(..., key=jax.random.key(0))."
        )
    if not callable(module):
        raise TypeError(
            f"A network must be callable, got {type(module).__name__}: give a module "
            "that maps a batch of inputs, rows first, to outputs."
        )
    module = PerExample(module) if isinstance(module, _OF_ONE_VECTOR) else module
    return with_named_state(module)


def unwrapped(network: Network) -> Network:
    """The module that `as_network` was given, where it made it take a batch.

    Args:
        network: what `as_network` returned, or another.
    """
    is_wrapped = isinstance(network, PerExample) and network.num_axes == 1
    if is_wrapped and isinstance(network.module, _OF_ONE_VECTOR):
        return network.module
    return network


class NetworkOutput(NamedTuple):
    """What a network gives for a batch.

    Attributes:
        output: the likelihood's parameters for each row.
        state: batch statistics for the next call, or `None`.
        report: of the differential equations that it solved, or `None`.
    """

    output: PyTree[Float[Array, "batch ..."]]
    state: eqx.nn.State | None
    report: SolveReport | None


def call_network(
    network: Network, x: PyTree[Array], state: eqx.nn.State | None = None
) -> NetworkOutput:
    """Apply a network to a batch, with its batch statistics if it keeps any.

    A network of a single example, as Equinox's own are, is mapped over the rows: which
    it is, is seen from the shapes that it takes and gives. One that solves differential
    equations has a method `solve`, from a batch to its output and a `SolveReport`.

    Raises:
        ValueError: if the batch has not the shape that it takes, or it loses rows, or
            keeps batch statistics and is given none. Its other errors pass, with a note
            of where they were raised.
    """
    is_stateful = has_batch_state(network)
    if is_stateful and state is None:
        raise ValueError(
            f"`{type(network).__name__}` keeps batch statistics and was given none: "
            "pass `state=fit.state`, or `state=eqx.nn.State(model)` of the random "
            "function for a new one."
        )
    network = _of_rows(network, x, state)
    try:
        called = _apply(network, x, state)
    except (TypeError, ValueError) as error:
        shapes = [leaf.shape for leaf in jax.tree.leaves(x)]
        failed = (
            f"`{type(network).__name__}` failed on a batch of shape "
            f"{shapes[0] if len(shapes) == 1 else shapes}"
        )
        if _is_about_shapes(error) and len(shapes) > 1:
            raise ValueError(
                f"{failed} ({error}): a network of several arrays is given them whole, "
                "rows first; let one of a single example map itself over the rows, by "
                "`jax.vmap` in its `__call__`."
            ) from error
        if _is_about_shapes(error):
            raise ValueError(
                f"{failed} ({error}), and on a single row of it: give rows first of "
                "the shape that it takes, and wrap one of images with channels first "
                "in `ornstein.nn.ChannelsFirst`."
            ) from error
        error.add_note(f"{failed}.")
        raise
    num_rows = jax.tree.leaves(x)[0].shape[0]
    for leaf in jax.tree.leaves(called.output):
        if leaf.ndim == 0 or leaf.shape[0] != num_rows:
            raise ValueError(
                f"`{type(network).__name__}` returned shape {leaf.shape} for "
                f"{num_rows} rows, but each row needs its own output: give rows first, "
                "x[None] for a single example."
            )
    return called


def _apply(
    network: Network, x: PyTree[Array], state: eqx.nn.State | None
) -> NetworkOutput:
    if has_batch_state(network):
        return NetworkOutput(*network(x, state), report=None)
    solve = getattr(network, "solve", None)
    if solve is None:
        return NetworkOutput(network(x), state, None)
    output, report = solve(x)
    return NetworkOutput(output, state, report)


def _is_about_shapes(error: Exception) -> bool:
    """Whether it says, as JAX and Equinox do, that arrays do not fit together."""
    return "shape" in str(error)


def _of_rows(network: Network, x: Any, state: eqx.nn.State | None) -> Network:
    """The network, mapped over the rows if it takes one example and no batch.

    Seen from shapes alone, of a number of rows that is no size of a layer: a matrix of
    weights may fit as many rows as it has columns.
    """
    is_ours = type(network).__module__.partition(".")[0] == __name__.partition(".")[0]
    if is_ours or getattr(x, "ndim", 0) == 0:
        return network
    if _gives_rows(network, x, state):
        return network
    mapped = PerExample(network, num_axes=x.ndim - 1)
    if _gives_rows(mapped, x, state, 2):
        return mapped
    if _gives_rows(in_inference(mapped), x, state, 2):
        raise ValueError(
            f"`{type(network).__name__}` has dropout of its own (`eqx.nn.Dropout`), "
            "and nobody gives it keys: leave it out and wrap the network in "
            "`ornstein.MCDropout`, or give `eqx.nn.inference_mode(network)`."
        )
    return network


def _gives_rows(
    network: Network, x: Array, state: eqx.nn.State | None, least_ndim: int = 1
) -> bool:
    """Whether as many rows come out as go in."""
    is_per_row = lambda node: isinstance(node, PerRow)

    def output(network: Network, x: Array, state: eqx.nn.State | None) -> PyTree:
        def repeated(node: Any) -> Any:
            if not is_per_row(node):
                return node
            rows = jnp.arange(PROBE_ROWS) % node.value.shape[0]
            return PerRow(node.value[rows])

        network = jax.tree.map(repeated, network, is_leaf=is_per_row)
        return _apply(network, x, state).output

    rows = jax.ShapeDtypeStruct((PROBE_ROWS, *x.shape[1:]), x.dtype)
    try:
        found = eqx.filter_eval_shape(output, network, rows, state)
    except Exception:
        return False
    return all(
        leaf.ndim >= least_ndim and leaf.shape[0] == PROBE_ROWS
        for leaf in jax.tree.leaves(found)
    )


def batch_states(module: PyTree) -> list[eqx.nn.StateIndex]:
    """Where a module keeps batch statistics (`nn.BatchNorm` and the like)."""
    is_state = lambda node: isinstance(node, eqx.nn.StateIndex)
    return [n for n in jax.tree.leaves(module, is_leaf=is_state) if is_state(n)]


def has_batch_state(module: PyTree) -> bool:
    """Whether a module keeps batch statistics (`nn.BatchNorm` and the like)."""
    return bool(batch_states(module))


def with_named_state(module: Network) -> Network:
    """The module with batch statistics that are found by their place in it.

    By default Equinox finds them by an object made with the layer, so that no two
    networks are one program, and their state can't be printed. Its `make_with_state`
    names them too, but takes their first values out of the module.
    """
    if not has_batch_state(module):
        return module
    flat, treedef = jax.tree_util.tree_flatten_with_path(module, is_leaf=_is_index)
    new = {}  # by the old: a layer that stands in two places keeps one state
    nodes = []
    for path, node in flat:
        if _is_index(node) and not isinstance(node.marker, str):
            if node.marker not in new:
                new[node.marker] = eqx.nn.StateIndex(node.init)
                name = jax.tree_util.keystr(path)
                object.__setattr__(new[node.marker], "marker", name)
            node = new[node.marker]
        nodes.append(node)
    return jax.tree.unflatten(treedef, nodes)


def in_inference(model: _Module) -> _Module:
    """`eqx.nn.inference_mode`, of random functions too.

    Equinox's refuses a tree of some of a network's leaves (the means of `MeanField`,
    the samples of a chain), whose `inference` fields are `None`.

    Args:
        model: any tree.
    """
    has_mode = lambda node: getattr(node, "inference", None) is not None

    def modes(model: _Module) -> tuple:
        nodes = jax.tree.leaves(model, is_leaf=has_mode)
        return tuple(node.inference for node in nodes if has_mode(node))

    return eqx.tree_at(modes, model, replace_fn=lambda _: True)


def initial_state(module: PyTree) -> eqx.nn.State | None:
    """The batch statistics that a module starts with; `None` if it keeps none.

    Raises:
        ValueError: if the module gave them away (`eqx.nn.make_with_state` did).
    """
    if not has_batch_state(module):
        return None
    try:
        return eqx.nn.State(module)
    except ValueError as error:
        raise ValueError(
            f"`{type(module).__name__}` keeps batch statistics, whose first values "
            "`eqx.nn.make_with_state` took out of it: pass its state as `state=`."
        ) from error


def without_batch_state(module: Network) -> Network:
    """A network as `as_network` makes it, if it keeps no batch statistics."""
    network = as_network(module)
    if has_batch_state(network):
        raise ValueError(
            "The network keeps batch statistics (batch normalisation), so that its "
            "output for a row depends on the other rows: use `nn.FilterResponseNorm`, "
            "`eqx.nn.GroupNorm` or `LayerNorm` instead."
        )
    return network


def split_where(
    network: PyTree, where: Callable[[Any], PyTree] | None
) -> tuple[PyTree, PyTree]:
    """The floating-point arrays chosen by `where`, and the rest; `None` elsewhere.

    Args:
        network: any tree.
        where: the network to one of its subtrees, or to a tuple of them. It chooses
            places: an array that stands elsewhere too is not chosen there.
    """
    # Batch statistics are no parameters.
    is_state = is_at(network, batch_states)
    is_chosen = jax.tree.map(
        lambda leaf, chosen, state: eqx.is_inexact_array(leaf) and chosen and not state,
        network,
        is_at(network, (lambda whole: whole) if where is None else where),
        is_state,
    )
    return eqx.partition(network, is_chosen)


def parameter_parts(network: Network) -> dict[str, Callable[[Any], PyTree]]:
    """What a network's parameters are for: where each part of them is, by its name.

    A network that tells them apart has a method of this name, such as one in whitened
    coordinates, with its `"start"`, `"path"` and `"points"`. Any other has one part,
    `"weights"`.

    Args:
        network: as it was before `as_network`.
    """
    own = getattr(network, "parameter_parts", None)
    return {"weights": lambda whole: whole} if own is None else own()


def parameter_masks(network: Network, params: Params) -> dict[str, PyTree[bool]]:
    """For each part of a network's parameters, which leaves of `params` it has.

    Args:
        network: as it was before `as_network`.
        params: some of its arrays, with `None` in place of the others.

    Returns:
        Trees like `params`, by the part's name: parts without any of them left out.
        What no part has is `"weights"`.
    """
    is_none = lambda node: node is None
    left, masks = jax.tree.map(lambda leaf: True, params), {}
    for name, where in parameter_parts(network).items():
        mask = jax.tree.map(
            lambda leaf, is_there: None if leaf is None else is_there,
            params,
            is_at(network, where),
            is_leaf=is_none,
        )
        mask = jax.tree.map(operator.and_, mask, left)
        left = jax.tree.map(operator.xor, left, mask)
        if any(jax.tree.leaves(mask)):
            masks[name] = mask
    if any(jax.tree.leaves(left)):
        masks["weights"] = left
    return masks


def _is_index(node: object) -> bool:
    return isinstance(node, eqx.nn.StateIndex)
