"""2-D convolutions that stay fast inside loops, gradients and many-kernel batches."""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
from jax import lax
from jax.custom_batching import custom_vmap
from jax.typing import DTypeLike

from ..._mesh import num_row_parts
from ..._types import Array, Float
from ._choice import preferred_form
from ._forms import (
    cpu_conv,
    cpu_input_gradient,
    cpu_kernel_gradient,
    plain_conv,
    plain_input_gradient,
    plain_kernel_gradient,
)
from ._geometry import Geometry, Pads


class ConvCall(NamedTuple):
    """One convolution of a program.

    Attributes:
        geometry: its static numbers; of a transposed one, those of its adjoint.
        num_in: channels of the geometry's images.
        num_out: of its outputs.
        dtype: of both.
        is_transposed: whether the program goes from outputs to images.
    """

    geometry: Geometry
    num_in: int
    num_out: int
    dtype: DTypeLike
    is_transposed: bool


_calls: contextvars.ContextVar[list[ConvCall] | None] = contextvars.ContextVar(
    "_calls", default=None
)


@contextlib.contextmanager
def recorded_convs() -> Iterator[list[ConvCall]]:
    """The convolutions that are traced within the context, in a list that grows."""
    calls: list[ConvCall] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def _record(call: ConvCall) -> None:
    calls = _calls.get()
    if calls is not None:
        calls.append(call)


def _batched(
    cpu_fn: Callable, plain_fn: Callable, *, folds: bool
) -> Callable[[Geometry, Array, Array], Array]:
    """One of the three forms, with its platform and its batching rule.

    Under `vmap` over the second operand (a kernel a draw) XLA would make a grouped
    convolution, 8 times slower on a CPU than a loop over draws and right on a GPU.

    Args:
        cpu_fn: the form for the CPU.
        plain_fn: the form for anything else.
        folds: whether axis 0 of the first operand is a batch axis of the result, so
            that a further one can join it.
    """

    # Cached, so that JAX's own caches meet the same functions again; for each form that
    # is asked for, and number of devices, or those caches would give an earlier one.
    @functools.cache
    def build(
        geometry: Geometry, preferred: str | None, num_parts: int
    ) -> Callable[[Array, Array], Array]:
        del preferred
        on_cpu = functools.partial(cpu_fn, geometry)
        elsewhere = functools.partial(plain_fn, geometry)

        @custom_vmap
        def call(a: Array, b: Array) -> Array:
            return lax.platform_dependent(a, b, cpu=on_cpu, default=elsewhere)

        @call.def_vmap
        def rule(axis_size: int, in_batched: list[bool], a: Array, b: Array):
            a_batched, b_batched = in_batched
            if folds and not b_batched and num_parts > 1:
                # Images first, or what devices have of them would be brought together.
                out = call(a.swapaxes(0, 1).reshape(-1, *a.shape[2:]), b)
                return out.reshape(-1, axis_size, *out.shape[1:]).swapaxes(0, 1), True
            if folds and not b_batched:
                out = call(a.reshape(-1, *a.shape[2:]), b)
                return out.reshape(axis_size, -1, *out.shape[1:]), True

            def loop(a: Array, b: Array) -> Array:
                if not a_batched:
                    return lax.map(lambda b: call(a, b), b)
                if not b_batched:
                    return lax.map(lambda a: call(a, b), a)
                return lax.map(lambda ab: call(*ab), (a, b))

            axes = (0 if a_batched else None, 0 if b_batched else None)
            grouped = jax.vmap(elsewhere, axes)
            return lax.platform_dependent(a, b, cpu=loop, default=grouped), True

        return call

    return lambda geometry, a, b: build(geometry, preferred_form(), num_row_parts())(
        a, b
    )


# The trio is closed under differentiation (see `_forms.py`), to any order. The
# derivative rule is outside the batching rule: inside it, differentiating would meet
# the loop over draws instead of these three functions.
# Their names are those of their operations in compiled programs and profiles.
_conv = jax.custom_vjp(
    jax.named_scope("conv")(_batched(cpu_conv, plain_conv, folds=True)),
    nondiff_argnums=(0,),
)
_input_gradient = jax.custom_vjp(
    jax.named_scope("conv_input_gradient")(
        _batched(cpu_input_gradient, plain_input_gradient, folds=True)
    ),
    nondiff_argnums=(0,),
)
_kernel_gradient = jax.custom_vjp(
    jax.named_scope("conv_kernel_gradient")(
        _batched(cpu_kernel_gradient, plain_kernel_gradient, folds=False)
    ),
    nondiff_argnums=(0,),
)


def _conv_bwd(geometry: Geometry, operands: tuple[Array, Array], g: Array):
    x, kernel = operands
    return _input_gradient(geometry, g, kernel), _kernel_gradient(geometry, x, g)


def _input_gradient_bwd(geometry: Geometry, operands: tuple[Array, Array], x: Array):
    g, kernel = operands
    return _conv(geometry, x, kernel), _kernel_gradient(geometry, x, g)


def _kernel_gradient_bwd(
    geometry: Geometry, operands: tuple[Array, Array], kernel: Array
):
    x, g = operands
    return _input_gradient(geometry, g, kernel), _conv(geometry, x, kernel)


_conv.defvjp(lambda s, x, k: (_conv(s, x, k), (x, k)), _conv_bwd)
_input_gradient.defvjp(
    lambda s, g, k: (_input_gradient(s, g, k), (g, k)), _input_gradient_bwd
)
_kernel_gradient.defvjp(
    lambda s, x, g: (_kernel_gradient(s, x, g), (x, g)), _kernel_gradient_bwd
)


def _check_stride(stride: int) -> None:
    if stride < 1:
        raise ValueError(
            f"`stride` must be a positive integer, got {stride}: write 1 for none."
        )


def _check_channels(x: Array, kernel: Array) -> None:
    if x.shape[-1] != kernel.shape[2]:
        raise ValueError(
            f"The images have {x.shape[-1]} channels and the kernel expects "
            f"{kernel.shape[2]}: images are (..., height, width, channels) and kernels "
            "(height, width, in_channels, out_channels)."
        )


def _same_pads(
    image_shape: tuple[int, int], kernel_shape: tuple[int, int], stride: int
) -> Pads:
    pads = lax.padtype_to_pads(image_shape, kernel_shape, (stride, stride), "SAME")
    (top, bottom), (left, right) = pads
    return (int(top), int(bottom)), (int(left), int(right))


def conv2d(
    x: Float[Array, "*lead height width in_channels"],
    kernel: Float[Array, "kernel_height kernel_width in_channels out_channels"],
    *,
    stride: int = 1,
    padding: str | Pads = "SAME",
) -> Float[Array, "*lead out_height out_width out_channels"]:
    r"""Convolution (cross-correlation) of images with a kernel.

    $y_{i,o} = \sum_{m,c} x_{s i + m - a,\, c}\, k_{m,c,o}$ along each axis, with $s$
    the stride and $a$ the zeros padded before. On a CPU it and its gradients run as
    ordinary forward convolutions, also inside `lax.scan`, and several kernels under
    `vmap` run one after another; elsewhere it is `lax.conv_general_dilated`.

    Reverse-mode only, to any order: `jvp` and `jet` don't pass through. Images need
    no `vmap`: with one, the gradient of a shared kernel is a loop over the images,
    whereas leading axes of `x` cost nothing.

    Args:
        x: images, any number of leading axes.
        kernel: the taps, of the dtype of `x`.
        stride: along both axes.
        padding: `"SAME"` (the output has ⌈size / stride⌉ pixels), `"VALID"`, or the
            zeros before and after each axis.

    Returns:
        The filtered images.

    Raises:
        ValueError: for a stride below 1, channels that differ, or a kernel larger
            than the padded image.
    """
    _check_stride(stride)
    _check_channels(x, kernel)
    image_shape = (x.shape[-3], x.shape[-2])
    kernel_shape = (kernel.shape[0], kernel.shape[1])
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise ValueError(
                f'`padding` must be "SAME", "VALID" or pairs of integers, '
                f"got {padding!r}."
            )
        same = padding == "SAME"
        pads: Pads = (
            _same_pads(image_shape, kernel_shape, stride) if same else ((0, 0), (0, 0))
        )
    else:
        pads = padding
    geometry = Geometry(stride, pads, image_shape, kernel_shape)
    if min(geometry.out_shape) < 1:
        raise ValueError(
            f"A kernel of {kernel_shape} does not fit images of {image_shape} padded "
            f'by {pads}: use a smaller kernel or padding="SAME".'
        )
    _record(ConvCall(geometry, *kernel.shape[2:], x.dtype, is_transposed=False))
    y = _conv(geometry, x.reshape(-1, *x.shape[-3:]), kernel)
    return y.reshape(*x.shape[:-3], *y.shape[1:])


def conv2d_transpose(
    x: Float[Array, "*lead height width in_channels"],
    kernel: Float[Array, "kernel_height kernel_width in_channels out_channels"],
    *,
    stride: int = 2,
) -> Float[Array, "*lead out_height out_width out_channels"]:
    r"""Transposed convolution: `stride` times as many pixels along each axis.

    The adjoint of `conv2d(y, swapped, stride=stride)` with `"SAME"` padding, where
    `swapped` is `kernel` with its last two axes exchanged:
    $\langle \mathrm{conv}(y), x \rangle = \langle y, \mathrm{conv^T}(x) \rangle$.
    (As `torch.nn.ConvTranspose2d`, and `lax.conv_transpose` with
    `transpose_kernel=True`.) On a CPU it is computed in its polyphase form, one
    convolution to stride² · out_channels channels and an interleaving of pixels.

    Reverse-mode only, as `conv2d`.

    Args:
        x: images, any number of leading axes.
        kernel: the taps, of the dtype of `x`.
        stride: the factor by which height and width grow.

    Returns:
        Images of `stride * height` by `stride * width` pixels.

    Raises:
        ValueError: for a stride below 1 or channels that differ.
    """
    _check_stride(stride)
    _check_channels(x, kernel)
    image_shape = (stride * x.shape[-3], stride * x.shape[-2])
    kernel_shape = (kernel.shape[0], kernel.shape[1])
    pads = _same_pads(image_shape, kernel_shape, stride)
    geometry = Geometry(stride, pads, image_shape, kernel_shape)
    kernel = kernel.swapaxes(2, 3)
    _record(ConvCall(geometry, *kernel.shape[2:], x.dtype, is_transposed=True))
    y = _input_gradient(geometry, x.reshape(-1, *x.shape[-3:]), kernel)
    return y.reshape(*x.shape[:-3], *y.shape[1:])
