r"""Parameter expansion: each matrix of a network as a product of three, $W = P V Q$.

The expanded network is one like any other, whose parameters are all P, V and Q; what
samples it moves W along a metric that P and Q change as they go.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Float, Params, PyTree
from ...network import SolveReport, as_network, without_batch_state
from ...nn import AbstractLayer, Layer, layers_of
from ...prior import AbstractPrior, ByLeaf, GaussianPrior
from .._layers import replace_layers


class ParameterExpanded(eqx.Module):
    r"""A network whose layers have the weights $W = P V Q$ and the bias $c\,Q$.

    With weights (in, out), $P$ is (in, in) and $Q$ (out, out); each tap of a kernel is
    multiplied by the same two. What is no linear or convolutional layer stays as it is.
    `expand_parameters` makes it.

    Attributes:
        network: with each layer's V and c in place of its weight and bias.
        left: P of each layer, in the order of the network's tree; `None` without.
        right: Q of each layer, likewise.
    """

    network: PyTree
    left: Params
    right: Params

    def __call__(self, x: PyTree[Array]) -> PyTree[Float[Array, "batch ..."]]:
        """Apply to a batch."""
        return self.solve(x)[0]

    def solve(
        self, x: PyTree[Array]
    ) -> tuple[PyTree[Float[Array, "batch ..."]], SolveReport | None]:
        """The output for a batch, and what solving cost if the network solves."""
        network: Any = as_network(self.collapse())
        solve = getattr(network, "solve", None)
        return (network(x), None) if solve is None else solve(x)

    def collapse(self) -> Any:
        """The plain network with W in each layer: the same function."""
        layers = layers_of(self.network)
        products = map(_product, layers, self.left, self.right)
        return replace_layers(self.network, list(products))

    def expanded_prior(
        self, prior: AbstractPrior, *, scale: float | None = 0.5**0.5
    ) -> ByLeaf:
        r"""The prior of P, V and Q, for `sample(prior=...)`.

        An entry of $W$ then has mean 0 and the variance $\sigma^4 s^2 \cdot
        \mathrm{in} \cdot \mathrm{out}$ (without one of P and Q, a $\sigma^2$ and its
        size are not there), and heavier tails than a normal.

        Args:
            prior: of the network itself: of V, c and all else, of scale s.
            scale: $\sigma$, of the normal prior of each entry of P and Q; the authors'
                energy $\|P\|^2 + \|Q\|^2$ by default. With `None` that of P is
                $1 / \sqrt{\mathrm{in}}$ and that of Q $1 / \sqrt{\mathrm{out}}$, and
                W has the variance $s^2$ that it has without P and Q.
        """

        def matrix(leaf: Array) -> GaussianPrior:
            return GaussianPrior(len(leaf) ** -0.5 if scale is None else scale)

        left, right = (jax.tree.map(matrix, m) for m in (self.left, self.right))
        return ByLeaf(ParameterExpanded(prior, left, right))


def expand_parameters(network: Any, *, include_ends: bool = False) -> ParameterExpanded:
    r"""Each layer's weights as $W = P V Q$, with $P = Q = I$ at first: PX-SGMCMC.

    A small step along $-\nabla U$ in P, V and Q moves W along

    $$-P P^\top\, \nabla_W U\, Q^\top Q
        - (P V)(P V)^\top\, \nabla_W U - \nabla_W U\, (V Q)^\top (V Q)$$

    (by V, by Q and by P): a preconditioner that grows with the singular values
    of P, V and Q, so that chains go further in as many steps. `sample` with `SGHMC` is
    PX-SGHMC, and with any other kernel the same idea; networks of the samples have
    `collapse()`.

    **The posterior is another one.** What is sampled exactly is the posterior under
    `expanded_prior`, under which W is a product of three normals: near 0 and far out
    more often than one normal, and dependent between entries.

    Slopes grow with P and Q: a step that suits the plain network may be too large, and
    the authors take a third of it.

    Chains start at draws of the prior unless told otherwise; `sample(jitter=0.0)`
    starts them at $P = Q = I$, as the authors do.

    Args:
        network: any network without batch statistics.
        include_ends: whether the inputs of the first layer and the outputs of the last
            one (in the order of the network's tree) are mixed too. The authors do not;
            a first P is as large as the square of the number of inputs.

    Raises:
        TypeError: for something that cannot be called.
        ValueError: for batch statistics, or a network in which nothing is expanded.

    References:
        Kim, Nam, Yun, Yang & Lee (2025), "Parameter Expanded Stochastic Gradient Markov
        Chain Monte Carlo", with one P and one Q a layer. Departs from their code, where
        scales and offsets of normalisation have a Q of their own, and the friction of P
        and Q is 1 where that of V is 100: kernels here have one friction for all.

    Example:
        >>> import jax, jax.numpy as jnp, ornstein as orn
        >>> mlp = orn.nn.MLP(3, 1, [8, 8], key=jax.random.key(0))
        >>> network = orn.expand_parameters(mlp)
        >>> prior = network.expanded_prior(orn.GaussianPrior(0.1))
        >>> network.left[1].shape
        (8, 8)
    """
    without_batch_state(network)
    if hasattr(network, "parameter_parts"):
        raise ValueError(
            f"The arrays of `{type(network).__name__}` are coordinates, and no weights "
            "that could be products: give a plain network, or sample this one as it is."
        )
    layers = layers_of(network)
    first, last = (None, None) if include_ends else (0, len(layers) - 1)
    left = [
        None if i == first else _identity(layer, _in_axis(layer))
        for i, layer in enumerate(layers)
    ]
    right = [
        None if i == last else _identity(layer, _out_axis(layer))
        for i, layer in enumerate(layers)
    ]
    if all(matrix is None for matrix in left + right):
        raise ValueError(
            f"`{type(network).__name__}` has {len(layers)} linear or convolutional "
            "layers, and without its own inputs and outputs nothing to expand: give a "
            "network with hidden units, or `include_ends=True` where there is a layer."
        )
    return ParameterExpanded(network, tuple(left), tuple(right))


def _product(layer: Layer, left: Array | None, right: Array | None) -> Layer:
    """The layer with the weight P V Q, and the bias c Q."""
    weight, bias = layer.weight, layer.bias
    if left is not None:
        axis = _in_axis(layer)
        weight = jnp.moveaxis(jnp.tensordot(left, weight, (1, axis)), 0, axis)
    if right is not None:
        axis = _out_axis(layer)
        weight = jnp.moveaxis(jnp.tensordot(right, weight, (0, axis)), 0, axis)
        if bias is not None:
            # Equinox's convolutions have theirs with axes of pixels.
            bias = (bias.ravel() @ right).reshape(bias.shape)
    return eqx.tree_at(
        lambda layer: (layer.weight, layer.bias),
        layer,
        (weight, bias),
        is_leaf=lambda node: node is None,
    )


def _identity(layer: Layer, axis: int) -> Array:
    return jnp.eye(layer.weight.shape[axis], dtype=layer.weight.dtype)


def _in_axis(layer: Layer) -> int:
    """Of the features that come in, in a layer's weight; Equinox's have out first."""
    return layer.weight.ndim - 2 if isinstance(layer, AbstractLayer) else 1


def _out_axis(layer: Layer) -> int:
    return layer.weight.ndim - 1 if isinstance(layer, AbstractLayer) else 0
