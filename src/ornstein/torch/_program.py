"""A random function as compiled programs of its arrays: the half that is JAX.

Forward and backward are two programs. What the backward one needs of the forward one
passes between them as arrays, so that nothing is computed twice.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np

from .._types import Array, Float, PyTree
from ..functions import (
    FROZEN,
    AbstractRandomFunction,
    Draw,
    check_labels,
    map_draws,
)
from ..network import batch_states, in_inference, initial_state

Arrays: TypeAlias = tuple[Array, ...]

KEYS = "threefry2x32"
"""How keys are made of words."""
NUM_WORDS = 2
"""Of 32 bits, in a key."""


class Place(NamedTuple):
    """Where an array of a random function stands, and what it is for.

    Attributes:
        name: its path, such as "layers.0.weight".
        label: by which it is trained, or "frozen".
    """

    name: str
    label: str

    @property
    def is_trained(self) -> bool:
        """Whether training moves it."""
        return self.label != FROZEN


class Outputs(NamedTuple):
    """What a draw gives, but for what only people read.

    Attributes:
        output: the likelihood's parameters for each row.
        kl: KL in nats of what all examples share, with the energy of points.
        local_kl: KL in nats of each example's own latents.
    """

    output: PyTree[Float[Array, "batch ..."]]
    kl: Float[Array, ""]
    local_kl: Float[Array, " batch"]


class Program:
    """The programs of a random function, compiled once for each shape of its inputs.

    Args:
        model: the random function.

    Attributes:
        places: of the arrays that its callers own: parameters, what stays as it is
            among floating-point numbers, and batch statistics.
        statistics: which of them are batch statistics, by number.
        first: the arrays themselves, as the model has them.
    """

    def __init__(self, model: AbstractRandomFunction):
        self.name = type(model).__name__
        labels = model.labels()
        check_labels(model, labels)
        labels = jax.tree.map(
            lambda label, leaf: label if eqx.is_array(leaf) else None, labels, model
        )
        arrays, self._rest = eqx.partition(model, eqx.is_array)
        leaves, self._treedef = jax.tree_util.tree_flatten_with_path(arrays)
        numbers = jax.tree.unflatten(self._treedef, range(len(leaves)))
        of_state = set(jax.tree.leaves([s.init for s in batch_states(numbers)]))
        self._owned = [
            i
            for i, (_, leaf) in enumerate(leaves)
            if i in of_state or eqx.is_inexact_array(leaf)
        ]
        self._leaves = tuple(leaf for _, leaf in leaves)
        labels = jax.tree.leaves(labels)
        self.places = [
            Place(_name_of(leaves[i][0]), FROZEN if i in of_state else labels[i])
            for i in self._owned
        ]
        self.statistics = [n for n, i in enumerate(self._owned) if i in of_state]
        self.first = self.arrays_of(model)
        static = ("is_training", "treedef")
        self._forward = jax.jit(self._apply, static_argnames=static)
        self._draws = jax.jit(self._apply_often, static_argnames=("treedef", "number"))
        self._linearised = jax.jit(
            self._apply_with_vjp, static_argnames=(*static, "moves")
        )
        self._backward = jax.jit(lambda vjp, cotangents: vjp(cotangents)[0])

    def __deepcopy__(self, memo: dict) -> "Program":
        """Itself: it holds nothing that changes, and compiled programs are shared."""
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "A `RandomFunction` is not pickled, for a pickle runs code when it is "
            "loaded: save module.state_dict(), or call module.save(path), and build it "
            "again."
        )

    def forward(self, owned: Arrays, x: Arrays, words: Any, index: Any, **how: Any):
        """A draw on a batch.

        Args:
            owned: the arrays of `places`.
            x: leaves of the batch.
            words: of a key.
            index: which draw, or `None`.
            how: `is_training` and the `treedef` of the batch.

        Returns:
            The draw's `Outputs`, and batch statistics for the next call.
        """
        return self._forward(owned, x, words, index, **how)

    def linearised(
        self, owned: Arrays, x: Arrays, words: Any, index: Any, **how: Any
    ) -> tuple[Outputs, Arrays, Callable]:
        """As `forward`, and the way back, to be given to `backward`.

        Args:
            owned: the arrays of `places`.
            x: leaves of the batch.
            words: of a key.
            index: which draw, or `None`.
            how: and `moves`: of owned arrays and leaves of the batch, in this order,
                which have a gradient.
        """
        return self._linearised(owned, x, words, index, **how)

    def backward(self, vjp: Callable, cotangents: Outputs) -> list[Array]:
        """Gradients of what moves."""
        return self._backward(vjp, cotangents)

    def draws(
        self, owned: Arrays, x: Arrays, words: Any, *, treedef: Any, number: int
    ) -> PyTree[Float[Array, "draws batch ..."]]:
        """The outputs of draws 0 to `number - 1`, as `ornstein.predict` has them."""
        return self._draws(owned, x, words, treedef=treedef, number=number)

    def model(self, owned: Sequence[Array]) -> AbstractRandomFunction:
        """The random function with these arrays.

        Args:
            owned: the arrays of `places`.
        """
        leaves = list(self._leaves)
        for i, leaf in zip(self._owned, owned, strict=True):
            leaves[i] = leaf
        return eqx.combine(jax.tree.unflatten(self._treedef, leaves), self._rest)

    def arrays_of(self, model: AbstractRandomFunction) -> Arrays:
        """Those of `places`, in another model of the same structure."""
        leaves = jax.tree.leaves(eqx.filter(model, eqx.is_array))
        return tuple(leaves[i] for i in self._owned)

    def _apply(self, owned, x, words, index, *, is_training, treedef):
        model = self.model(owned)  # in training what was given frozen stays frozen
        model = model if is_training else in_inference(model)
        draw = model(
            jax.tree.unflatten(treedef, x),
            key=jax.random.wrap_key_data(words, impl=KEYS),
            index=index,
            state=initial_state(model),
        )
        energy = 0.0 if draw.energy is None else draw.energy
        outputs = Outputs(draw.output, draw.kl + energy, draw.local_kl)
        return outputs, self._statistics_of(model, draw)

    def _apply_with_vjp(self, owned, x, words, index, *, moves, **how):
        given = (*owned, *x)

        def run(moving: list[Array]):
            moving_ones = iter(moving)
            whole = [
                next(moving_ones) if is_moving else leaf
                for leaf, is_moving in zip(given, moves, strict=True)
            ]
            owned_ones, rows = whole[: len(owned)], whole[len(owned) :]
            return self._apply(tuple(owned_ones), tuple(rows), words, index, **how)

        moving = [
            leaf for leaf, is_moving in zip(given, moves, strict=True) if is_moving
        ]
        outputs, vjp, statistics = jax.vjp(run, moving, has_aux=True)
        return outputs, statistics, vjp

    def _apply_often(self, owned, x, words, *, treedef, number):
        model = in_inference(self.model(owned))
        return map_draws(
            lambda draw: draw.output,
            model,
            jax.tree.unflatten(treedef, x),
            key=jax.random.wrap_key_data(words, impl=KEYS),
            num_draws=number,
            state=initial_state(model),
        )

    def _statistics_of(self, model: AbstractRandomFunction, draw: Draw) -> Arrays:
        """In the order of `statistics`."""
        if not self.statistics or draw.state is None:
            return ()
        state = draw.state
        new = eqx.tree_at(
            lambda model: [index.init for index in batch_states(model)],
            model,
            [state.get(index) for index in batch_states(model)],
        )
        arrays = self.arrays_of(new)
        return tuple(arrays[number] for number in self.statistics)


def _name_of(path: tuple) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def words_of(seed: int) -> np.ndarray:
    """Those of `jax.random.key(seed)`."""
    return np.asarray(jax.random.key_data(jax.random.key(seed, impl=KEYS)))
