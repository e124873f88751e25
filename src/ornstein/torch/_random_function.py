"""Any random function as a `torch.nn.Module`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from .._kinds import check_kind
from .._types import Array, Float, PyTree
from ..functions import AbstractRandomFunction
from ..interop import load_safetensors, save_safetensors
from ._dlpack import Views, check_inputs, check_owned, precision_of, to_jax, to_torch
from ._extra import torch
from ._gradient import Call
from ._program import NUM_WORDS, Program, words_of


class TorchDraw(NamedTuple):
    """What one call of a `RandomFunction` gives; every tensor has its gradient.

    Attributes:
        output: the likelihood's parameters for each row: logits, means.
        kl: what a loss counts once per data set, however large the batch: KL(q || p)
            in nats of what all examples share, and the energy of points with a prior.
        local_kl: KL in nats of each example's own latents, which scales as its
            likelihood does; zeros for a function without any.
    """

    output: PyTree[Float[torch.Tensor, "batch ..."]]
    kl: Float[torch.Tensor, ""]
    local_kl: Float[torch.Tensor, " batch"]

    def divergence(self, num_data: int) -> Float[torch.Tensor, ""]:
        r"""What to add to a mean negative log likelihood: $-\mathrm{ELBO} / N$ is both.

        $\mathrm{KL} / N + \frac{1}{n} \sum_i \mathrm{local\_kl}_i$, nats per example.

        Args:
            num_data: $N$, examples in the whole data set, not in the batch.

        Raises:
            ValueError: for no examples.
        """
        if num_data < 1:
            raise ValueError(
                f"`num_data` is the number of training rows, got {num_data}: write "
                "len(dataset)."
            )
        return self.kl / num_data + self.local_kl.mean()


class RandomFunction(torch.nn.Module):
    """A random function whose weights PyTorch trains and whose numbers JAX computes.

    `module(x)` is a `TorchDraw`, with gradients to the weights and to `x`. What `fit`
    would train are its parameters, under the names of the JAX model's fields; priors
    and batch statistics are buffers. Both live in PyTorch's memory, which JAX reads.

    In the mode of training, rows of a batch may meet different functions, as in `fit`.
    In that of evaluation a call is *one* function for all rows, of any stratum. Seeds
    come from PyTorch's generator, so that `torch.manual_seed` decides all draws.

    Forward and backward are compiled once for each shape of `x`: drop a last, smaller
    batch. Under `torch.no_grad()` no backward program is made. `module.double()`
    computes in double precision. There is no gradient of a gradient.

    Args:
        model: any random function of this package, with a single member: those of an
            ensemble train one by one, `RandomFunction(ensemble.member(i))`.
        example_shape: of a row of `x`, to be checked; any is taken without it.
        channels_first: `x` are images (rows, channels, height, width), as PyTorch has
            them, and the model takes (rows, height, width, channels).

    Raises:
        TypeError: for what is no random function.
        ValueError: for an ensemble.

    Example:
        ```python
        >>> import torch
        >>> import ornstein.torch
        >>> module = ornstein.torch.sdebnn(4, 3)
        >>> draw = module(torch.randn(10, 4))
        >>> tuple(draw.output.shape), draw.kl.requires_grad
        ((10, 3), True)

        ```
    """

    def __init__(
        self,
        model: AbstractRandomFunction,
        *,
        example_shape: tuple[int, ...] | None = None,
        channels_first: bool = False,
    ):
        torch.nn.Module.__init__(self)
        remedy = "`orn.MeanField(network, prior)`, or `orn.Deterministic(network)`"
        check_kind("model", model, AbstractRandomFunction, remedy)
        if model.num_members > 1:
            raise ValueError(
                f"This {type(model).__name__} has {model.num_members} members, which "
                "train one by one: make a module of each, "
                "`RandomFunction(ensemble.member(i))`."
            )
        self.example_shape = None if example_shape is None else tuple(example_shape)
        self.channels_first = channels_first
        self.num_strata = model.num_strata
        self._program, self._views = Program(model), Views()
        # Where each array stands among the modules; `to` and the like replace tensors.
        self._seats: list[tuple[torch.nn.Module, str]] = []
        for place, array in zip(self._program.places, self._program.first, strict=True):
            self._seats.append(_seated(self, place.name, array, place.is_trained))

    @torch.compiler.disable
    def forward(
        self, x: PyTree, *, index: int | None = None, seed: int | None = None
    ) -> TorchDraw:
        """One draw of the function on a batch.

        Args:
            x: the batch, rows first: a tensor, or a tree of tensors (a `Series`).
            index: draw this one, the same function for every row in either mode: a
                function of the seed and of the index.
            seed: of the draw, `jax.random.key(seed)`; from PyTorch's generator without
                one. With a seed and no index, evaluation draws index 0.

        Raises:
            TypeError: for what is no tensor, or a sparse or complex one, or of another
                floating-point type than the parameters; for what is no whole number.
            ValueError: for tensors on another device or of another shape, numbers of
                too many bits, and whatever the random function refuses.
        """
        _check_number("index", index, num_bits=32)
        owned = self._owned()
        leaves, treedef, dtype = self._checked(x, owned)
        words = _words(seed)
        if index is None and not self.training:
            index = 0 if seed is not None else int(torch.randint(self.num_strata, ()))
        if self.training:  # they are replaced below, and a gradient may need these
            for number in self._program.statistics:
                owned[number] = owned[number].clone()
        tensors = (*owned, *leaves)
        call = Call(
            self._program,
            len(owned),
            self._views,
            dtype,
            (words, None if index is None else np.int32(index)),
            {"is_training": self.training, "treedef": treedef},
        )
        moves = tuple(t.requires_grad and torch.is_grad_enabled() for t in tensors)
        try:
            if any(moves):
                outputs = call.with_gradient(tensors, moves)
            else:
                outputs = call.without_gradient(tensors)
        except (TypeError, ValueError) as error:
            raise self._refused(leaves, error) from error
        if self.training:
            self._keep(call.statistics)
        output, kl, local_kl = outputs
        return TorchDraw(output, kl, local_kl)  # pyright: ignore[reportArgumentType]

    @torch.no_grad()
    def draws(
        self, x: PyTree, num_draws: int, *, seed: int | None = None
    ) -> PyTree[Float[torch.Tensor, "draws batch ..."]]:
        """The outputs of several draws, without gradients, as `ornstein.predict` has.

        Draw i is the same function for every row, and for other batches with this seed;
        a model with strata uses stratum i mod `num_strata`. Average probabilities over
        draws, never logits. In the mode of evaluation, whatever the module is in.

        Args:
            x: the batch, rows first.
            num_draws: how many.
            seed: of all draws; from PyTorch's generator without one.

        Raises:
            TypeError: as `forward` does.
            ValueError: as `forward` does; for fewer than one draw.
        """
        _check_whole("num_draws", num_draws, "num_draws=16")
        if num_draws < 1:
            raise ValueError(f"`num_draws` must be at least 1, got {num_draws}.")
        owned = self._owned()
        leaves, treedef, dtype = self._checked(x, owned)
        try:
            with precision_of(dtype):
                outputs = self._program.draws(
                    self._views.of(owned),
                    tuple(map(to_jax, leaves)),
                    _words(seed),
                    treedef=treedef,
                    number=num_draws,
                )
        except (TypeError, ValueError) as error:
            raise self._refused(leaves, error) from error
        jax.block_until_ready(outputs)
        return jax.tree.map(to_torch, outputs)

    def parameters_labelled(self, label: str) -> Iterator[torch.nn.Parameter]:
        """The parameters of one kind, for an optimiser's groups.

        Args:
            label: "weights", or "noise" for what makes an implicit network random.

        Raises:
            ValueError: if there are none of this kind.
        """
        places = self._program.places
        labels = sorted({place.label for place in places if place.is_trained})
        if label not in labels:
            raise ValueError(
                f'`label` must be one of {", ".join(labels)}, got "{label}".'
            )
        chosen = [place.label == label for place in places]
        owned = zip(self._owned(), chosen, strict=True)
        return (t for t, is_one in owned if is_one)  # pyright: ignore[reportReturnType]

    def to_jax(self) -> AbstractRandomFunction:
        """A copy of the random function with the weights and statistics of now.

        What the rest of ornstein takes: `orn.prediction.FittedModel(module.to_jax(),
        orn.Categorical())` for `predict` and `evaluate`, `save_model`, `prune`. A model
        with batch statistics has them as its first ones: of `model = module.to_jax()`
        write `FittedModel(model, orn.Categorical(), eqx.nn.State(model))`.
        """
        owned = self._owned()
        with precision_of(self._dtype(owned)):
            return self._program.model([jax.numpy.array(to_jax(t)) for t in owned])

    def save(self, path: str | Path) -> None:
        """Write all parameters and buffers as safetensors, whole or not at all.

        `ornstein.interop.load_safetensors` reads the file into a JAX model, without
        PyTorch; other programs find each tensor under its field's name.

        Args:
            path: of the file.
        """
        save_safetensors(path, self.to_jax())

    def load(self, path: str | Path) -> None:
        """Read what `save`, or `ornstein.interop.save_safetensors`, wrote.

        Args:
            path: of the file.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: for a pickle, a damaged file, or tensors that do not fit.
        """
        owned = self._owned()
        with precision_of(self._dtype(owned)):
            new = self._program.arrays_of(load_safetensors(path, self.to_jax()))
        with torch.no_grad():
            for tensor, array in zip(owned, new, strict=True):
                tensor.copy_(to_torch(array))

    def __repr__(self) -> str:
        """In one line: it has a module for every field of the model."""
        shape = "" if self.example_shape is None else f", rows {self.example_shape}"
        number = sum(parameter.numel() for parameter in self.parameters())
        return f"RandomFunction({self._program.name}{shape}, {number:,} parameters)"

    def _owned(self) -> list[torch.Tensor]:
        """In the order of the program's places."""
        return [getattr(module, name) for module, name in self._seats]

    @staticmethod
    def _dtype(owned: list[torch.Tensor]) -> torch.dtype:
        floats = (tensor.dtype for tensor in owned if tensor.is_floating_point())
        return next(floats, torch.float32)

    def _checked(
        self, x: PyTree, owned: list[torch.Tensor]
    ) -> tuple[list[torch.Tensor], Any, torch.dtype]:
        """Leaves of the batch as the model takes them, their tree, and the type."""
        like = next((t for t in owned if t.is_floating_point()), None)
        check_owned(like)
        check_inputs(x, like=like, example_shape=self.example_shape)
        leaves, treedef = jax.tree.flatten(x)
        if self.channels_first:
            leaves = [leaf.movedim(1, -1) for leaf in leaves]
        # JAX's whole numbers.
        is_long = lambda leaf: leaf.dtype == torch.int64
        leaves = [leaf.to(torch.int32) if is_long(leaf) else leaf for leaf in leaves]
        return leaves, treedef, self._dtype(owned)

    def _keep(self, statistics: tuple[Array, ...]) -> None:
        if not statistics:
            return
        owned = self._owned()
        with torch.no_grad():
            for number, array in zip(self._program.statistics, statistics, strict=True):
                owned[number].copy_(to_torch(array))

    def _refused(self, leaves: list[torch.Tensor], error: Exception) -> Exception:
        reason = str(error).strip().split("\n")[0].rstrip(".:")
        if " failed on a batch of shape " not in reason:  # a network says so itself
            shapes = [tuple(leaf.shape) for leaf in leaves]
            shape = shapes[0] if len(shapes) == 1 else shapes
            reason = f"This {self._program.name} failed on shape {shape}: {reason}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        return kind(f"{reason}.")


def _seated(
    root: torch.nn.Module, name: str, array: Array, is_trained: bool
) -> tuple[torch.nn.Module, str]:
    """A tensor of an array, put where its dotted name says; modules on the way."""
    *folders, last = name.split(".")
    node = root
    for folder in folders:
        folder = _free(node, folder)
        if folder not in node._modules:
            node.add_module(folder, torch.nn.Module())
        node = node.get_submodule(folder)
    last = _free(node, last)
    tensor = torch.tensor(np.asarray(array))
    if is_trained:
        node.register_parameter(last, torch.nn.Parameter(tensor))
    else:
        node.register_buffer(last, tensor)
    return node, last


def _free(node: torch.nn.Module, name: str) -> str:
    """The name, or one that is nothing else's of the module."""
    is_taken = name in node.__dict__ or hasattr(type(node), name)
    return f"{name}_" if is_taken else name


def _words(seed: int | None) -> np.ndarray:
    _check_number("seed", seed, num_bits=64)
    if seed is not None:
        return words_of(seed)
    words = torch.randint(2**32, (NUM_WORDS,), dtype=torch.int64)
    return words.numpy().astype(np.uint32)


def _check_number(name: str, number: Any, *, num_bits: int) -> None:
    """Refuse what is no number of a draw; `None` is none."""
    if number is None:
        return
    _check_whole(name, number, f"{name}=0, or leave it out")
    most = 2 ** (num_bits - 1) - 1
    if not -most - 1 <= number <= most:
        raise ValueError(
            f"`{name}` must be a number of {num_bits} bits, from {-most - 1} to "
            f"{most}, got {number}."
        )


def _check_whole(name: str, number: Any, write: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(
            f"`{name}` must be a whole number, got {type(number).__name__}: write "
            f"{write}."
        )
