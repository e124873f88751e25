"""The part of the posterior drift that a network computes: NN of Xu et al. (2022)."""

from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..._normals import scaled_normal
from ..._types import Array, Float, Params, PRNGKeyArray, PyTree, RealScalar
from ...nn import MLP, tanh

_Block = TypeVar("_Block")


class WeightDrift(eqx.Module):
    r"""$NN_\phi(w, t, s) = c\,\sigma \circ \mathrm{net}(w / \rho, t, s)$, first 0.

    A bottleneck: every weight feeds a few hidden units, and a few hidden units feed
    every weight, so that parameters and time are linear in the number of weights (Xu
    et al., 2022, "Image Classification": hidden widths 2, 128, 2). It sees $t$, and
    what the path has done to the inducing inputs, $s$. In units of the diffusion
    $\sigma$ its output is the control $u$; its input is in units of $\rho$, the
    weights' scale under the prior. Weights stay leaf by leaf: a flat vector would be
    copied at every step.

    Attributes:
        reads: for each leaf of w a matrix (entries of the leaf, first width).
        read_rest: t and s to the first hidden layer.
        hidden: the layers between.
        writes: for each leaf of w a matrix (last width, entries of the leaf); zero at
            first, so that the posterior starts as the prior.
        biases: for each leaf of w an array like it; zero at first.
        input_scale: $1/\rho$ of each leaf.
        output_scale: $c\,\sigma$ of each leaf.
    """

    reads: PyTree[Float[Array, "entries width"]]
    read_rest: MLP
    hidden: MLP
    writes: PyTree[Float[Array, "width entries"]]
    biases: Params
    input_scale: PyTree[float]
    output_scale: PyTree[float]

    def __init__(
        self,
        weights: Params,
        *,
        width_sizes: Sequence[int] = (2, 128, 2),
        summary_size: int = 0,
        weight_scale: PyTree[float],
        drift_scale: PyTree[float],
        key: PRNGKeyArray,
    ):
        r"""Build for weights like these.

        Args:
            weights: a tree of the weights' shapes.
            width_sizes: hidden widths; at least one.
            summary_size: how many numbers describe the inducing inputs; 0 for none.
            weight_scale: $\rho$ of each leaf.
            drift_scale: $c\,\sigma$ of each leaf.
            key: randomness of the initial parameters.
        """
        if not width_sizes or min(width_sizes) < 1:
            raise ValueError(
                f"`width_sizes` must be one or more positive widths, got {width_sizes}."
            )
        reads_key, rest_key, hidden_key = jr.split(key, 3)
        leaves, treedef = jax.tree.flatten(weights)
        num_weights = sum(leaf.size for leaf in leaves)
        first, last = width_sizes[0], width_sizes[-1]
        keys = jax.tree.unflatten(treedef, list(jr.split(reads_key, len(leaves))))

        def read(leaf: Array, leaf_key: PRNGKeyArray) -> Array:
            shape = (leaf.size, first)
            return scaled_normal(leaf_key, shape, num_weights**-0.5, leaf.dtype)

        self.reads = jax.tree.map(read, weights, keys)
        self.read_rest = MLP(1 + summary_size, first, (), key=rest_key)
        self.hidden = MLP(first, last, width_sizes[1:-1], key=hidden_key)
        self.writes = jax.tree.map(
            lambda leaf: jnp.zeros((last, leaf.size), leaf.dtype), weights
        )
        self.biases = jax.tree.map(jnp.zeros_like, weights)
        # Numbers, not arrays, which training (and `MeanField`) would take for weights.
        self.input_scale = jax.tree.map(lambda s: 1 / s, weight_scale)
        self.output_scale = drift_scale

    def __call__(
        self, t: RealScalar, w: Params, summary: Float[Array, " summary"]
    ) -> Params:
        """NN at time t, a tree like `w`."""
        parts = jax.tree.map(
            lambda leaf, matrix, scale: (scale * leaf).reshape(-1) @ matrix,
            w,
            self.reads,
            self.input_scale,
        )
        time = jnp.broadcast_to(t, (1,)).astype(summary.dtype)
        rest = self.read_rest(jnp.concatenate([time, summary]))
        z = sum(jax.tree.leaves(parts), rest)
        z = tanh(self.hidden(tanh(z)))
        return jax.tree.map(
            lambda matrix, bias, scale: (
                scale * ((z @ matrix).reshape(bias.shape) + bias)
            ),
            self.writes,
            self.biases,
            self.output_scale,
        )


class NoDrift(eqx.Module):
    r"""$NN_\phi = 0$: the posterior's paths are the prior's."""

    def __call__(
        self, t: RealScalar, w: Params, summary: Float[Array, " summary"]
    ) -> Params:
        """Zeros like `w`."""
        del t, summary
        return jax.tree.map(jnp.zeros_like, w)


def drop_drift(block: _Block) -> _Block:
    """The solve whose posterior's paths are the prior's.

    In place of the drift, not its parameters times 0: a drift of one's own may have
    none, or be no zero map without them.

    Args:
        block: an `SDEBlock`.
    """
    return eqx.tree_at(lambda b: b.drift, block, NoDrift())
