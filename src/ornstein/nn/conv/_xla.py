"""XLA's own convolution, in the layout that its CPU backend is fast on."""

from jax import lax

from ..._types import Array
from ._geometry import Pads


def convolve(
    x: Array,
    kernel: Array,
    stride: int | tuple[int, int],
    pads: Pads,
    kernel_dilation: int = 1,
) -> Array:
    """Images (NHWC) with a kernel (HWIO)."""
    strides = (stride, stride) if isinstance(stride, int) else stride
    return lax.conv_general_dilated(
        x,
        kernel,
        strides,
        pads,
        rhs_dilation=(kernel_dilation, kernel_dilation),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
