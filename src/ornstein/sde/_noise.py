"""Which leaves of a state are noisy, and the Brownian increments that drive them."""

import math
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from .._normals import standard_normal
from .._types import Array, Float, PRNGKeyArray, PyTree, Shaped


def is_none(x: Any) -> bool:
    """Whether `x` is the mark of a noise-free leaf."""
    return x is None


def match_noise(diffusion: PyTree, y: PyTree[Array]) -> PyTree:
    """A diffusion's value in the structure of `y`, with `None` on noise-free leaves.

    Args:
        diffusion: what `diffusion(t, y, args)` returned: `None` stands for a leaf or
            for a whole subtree; a number or an array broadcasts to its leaf, and one
            leaf covers the whole subtree of `y` that it stands for.
        y: the state.

    Raises:
        ValueError: a structure that isn't a prefix of the state's.
        NotImplementedError: general noise, which has more axes than its leaf.
    """

    def expand(g: Any, subtree: PyTree) -> PyTree:
        return jax.tree.map(lambda _: g, subtree)

    try:
        spread = jax.tree.map(expand, diffusion, y, is_leaf=is_none)
    except ValueError as error:
        raise ValueError(
            f"`diffusion` returned {jax.tree.structure(diffusion)}, which is not a "
            f"prefix of the state's {jax.tree.structure(y)}; return the state's own "
            "structure, with `None` for a leaf or subtree without noise."
        ) from error
    return jax.tree.map(
        lambda leaf, g: None if g is None else _broadcast(g, leaf), y, spread
    )


def _broadcast(g: Any, leaf: Array) -> Array:
    g = jnp.asarray(g, leaf.dtype)
    if g.ndim > leaf.ndim:
        raise NotImplementedError(
            f"`diffusion` has shape {g.shape} for a state leaf of shape {leaf.shape}: "
            "general (matrix) noise needs Lévy areas, which cannot be simulated "
            "exactly; write the noise as diagonal, one Brownian motion for each entry "
            "of the leaf."
        )
    sizes = zip(reversed(g.shape), reversed(leaf.shape), strict=False)
    if not all(size in (1, wanted) for size, wanted in sizes):
        raise ValueError(
            f"`diffusion` has shape {g.shape}, which does not broadcast to its state "
            f"leaf of shape {leaf.shape}; return a number or an array of that shape."
        )
    return g if g.ndim in (0, leaf.ndim) else jnp.broadcast_to(g, leaf.shape)


def add_noise(y: PyTree[Array], g: PyTree, dw: PyTree, scale: float = 1.0) -> PyTree:
    """`y + scale g dW` on the noisy leaves, `y` itself on the others."""
    if g is None:
        return y

    def add(gi: Any, dwi: Any, yi: Any) -> Any:
        return yi if gi is None else yi + scale * gi * dwi

    return jax.tree.map(add, g, dw, y, is_leaf=is_none)


def inner(u: PyTree, dw: PyTree) -> Float[Array, ""]:
    """The inner product of two trees that share their `None`s."""
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), u, dw)
    return jnp.asarray(sum(jax.tree.leaves(products)))


class Increments(eqx.Module):
    r"""Brownian increments as a function of a key and of a step's number.

    Nothing is stored, so that any step can be drawn again, by a reverse pass too.
    With `num_fine > 1` step $k$ is the sum of the `num_fine` increments of a finer
    grid that are numbered $k\,n, \dots, k\,n + n - 1$, so that solves of several
    steps share one path.

    With `use_levy` the space-time Lévy area $H = \frac{1}{h}\int_s^t (W_{s,r} -
    \frac{r - s}{h} W_{s,t})\,dr \sim N(0, h/12)$ comes along, independent of $W$.

    Attributes:
        key: decides the path.
        shapes: shape and dtype name of each noisy leaf of the state.
        treedef: the state's structure, with `None` where there is no noise.
        num_fine: increments of the finer grid in a step.
        use_levy: whether the solver needs $H$.
    """

    key: PRNGKeyArray
    shapes: tuple[tuple[tuple[int, ...], str], ...] = eqx.field(static=True)
    treedef: Any = eqx.field(static=True)
    num_fine: int = eqx.field(static=True)
    use_levy: bool = eqx.field(static=True)

    def __call__(
        self, step: Shaped[Array, ""], t0: Float[Array, ""], t1: Float[Array, ""]
    ) -> tuple[PyTree, PyTree | None]:
        """The increment of step number `step`, from `t0` to `t1`: $W$ and $H$."""
        dt = (t1 - t0) / self.num_fine
        if self.num_fine == 1:
            return self._fine(step, dt)
        # `unsigned` like fold_in's own data, so that long fine grids do not overflow.
        first = step.astype(jnp.uint32) * self.num_fine
        numbers = first + jnp.arange(self.num_fine, dtype=jnp.uint32)
        w, h = jax.vmap(lambda n: self._fine(n, dt))(numbers)
        total = jax.tree.map(lambda a: jnp.sum(a, axis=0), w)
        if h is None:
            return total, None

        def area(w: Array, h: Array) -> Array:
            before = jnp.cumsum(w, axis=0) - w
            mean = jnp.mean(before + w / 2 + h, axis=0)
            return mean - jnp.sum(w, axis=0) / 2

        return total, jax.tree.map(area, w, h)

    def _fine(self, number: Array, dt: Array) -> tuple[PyTree, PyTree | None]:
        key = jr.fold_in(self.key, number)
        if not self.use_levy:
            return self._normals(key, jnp.sqrt(dt)), None
        w_key, h_key = jr.split(key)
        return (
            self._normals(w_key, jnp.sqrt(dt)),
            self._normals(h_key, jnp.sqrt(dt / 12)),
        )

    @property
    def size(self) -> int:
        """How many normals one step draws."""
        each = 1 + int(self.use_levy)
        return each * self.num_fine * sum(math.prod(s) for s, _ in self.shapes)

    def _normals(self, key: PRNGKeyArray, scale: Array) -> PyTree:
        # One call for all leaves of a dtype: a call for each costs more than drawing.
        out: list[Array | None] = [None] * len(self.shapes)
        dtypes = sorted({dtype for _, dtype in self.shapes})
        keys = [key] if len(dtypes) == 1 else jr.split(key, len(dtypes))
        for dtype, dtype_key in zip(dtypes, keys, strict=True):
            mine = [i for i, (_, other) in enumerate(self.shapes) if other == dtype]
            sizes = [math.prod(self.shapes[i][0]) for i in mine]
            flat = standard_normal(dtype_key, (sum(sizes),), dtype) * scale.astype(
                dtype
            )
            start = 0
            for i, size in zip(mine, sizes, strict=True):
                out[i] = flat[start : start + size].reshape(self.shapes[i][0])
                start += size
        return jax.tree.unflatten(self.treedef, out)


def noisy_leaves(g: PyTree, y: PyTree[Array]) -> tuple[tuple, Any]:
    """Shapes with dtypes, and structure, of the noisy leaves of `y`."""
    noisy = jax.tree.map(
        lambda gi, yi: None if gi is None else yi, g, y, is_leaf=is_none
    )
    leaves, treedef = jax.tree.flatten(noisy)
    return tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves), treedef


class NoiseTerm(diffrax.AbstractTerm):
    """Diagonal noise with given increments, as the solvers of diffrax want it."""

    diffusion: Any
    w: PyTree
    h: PyTree | None
    dt: Float[Array, ""]
    zeros: PyTree[Array]

    def vf(self, t: Any, y: PyTree, args: Any) -> PyTree:
        """The diffusion at `(t, y)`."""
        return self.diffusion(t, y)

    def contr(self, t0: Any, t1: Any, use_levy: bool = False, **kwargs: Any) -> PyTree:
        """This step's increment, with its Lévy area where the solver asks for it."""
        del t0, t1, kwargs
        if not use_levy:
            return self.w
        if self.h is None:
            return diffrax.BrownianIncrement(dt=self.dt, W=self.w)
        return diffrax.SpaceTimeLevyArea(dt=self.dt, W=self.w, H=self.h)

    def prod(self, vf: PyTree, control: PyTree) -> PyTree:
        """`g dW`, with zeros on noise-free leaves, which XLA folds away."""
        return add_noise(self.zeros, vf, control)
