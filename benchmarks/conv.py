"""Convolutions inside loops and for many kernels: ours against XLA's own.

    python benchmarks/conv.py

Prints milliseconds a call (median, compiling apart) and ratios. On 2 quiet cores,
"gradient in a scan / outside" should be near 1 for ours, and near 40 for XLA's. With
`--forms` it prints instead, in GFLOP/s of the plain convolution's operations, what
Eigen and Winograd make of the 3×3 shapes of `nn`: the numbers beside the thresholds of
`nn/conv/_winograd.py`.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ornstein.nn import ConvBlock, conv2d, num_parameters
from ornstein.nn.conv import _forms, _winograd
from ornstein.nn.conv._geometry import Geometry

SHAPES = ((28, 32), (14, 32), (16, 32), (32, 16), (8, 64), (16, 64), (32, 64), (8, 128))
SHAPES += ((4, 256), (4, 512))


def lax_conv(x, kernel):
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def milliseconds(name: str, fn: Callable, *args, repeats: int, per: int = 1) -> float:
    start = time.perf_counter()
    compiled = jax.jit(fn).lower(*args).compile()
    compile_seconds = time.perf_counter() - start
    jax.block_until_ready(compiled(*args))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        times.append(time.perf_counter() - start)
    result = 1e3 * statistics.median(times) / per
    print(f"{name:52s} {result:9.1f} ms   compiled in {compile_seconds:.1f} s")
    return result


def in_a_scan(conv: Callable, num_steps: int) -> Callable:
    """A loss whose gradient has `num_steps` gradients of a 33-to-32 convolution."""

    def loss(x, kernel):
        def step(x, _):
            y = conv(x, kernel)
            return 0.01 * jnp.concatenate([y, y[..., :1]], -1), None

        return jnp.sum(lax.scan(step, x, None, length=num_steps)[0])

    return loss


def many_kernels(conv: Callable) -> Callable:
    return lambda x, kernels: jnp.sum(jax.vmap(conv)(x, kernels) ** 2)


def block_in_a_scan(block: ConvBlock, num_steps: int) -> tuple[Callable, ConvBlock]:
    """A loss of the block's arrays and images, and those arrays."""
    arrays, static = eqx.partition(block, eqx.is_array)

    def loss(arrays, h):
        block = eqx.combine(arrays, static)

        def step(h, t):
            return h + 0.1 * block(t, h), None

        times = jnp.linspace(0, 1, num_steps)
        return jnp.sum(lax.scan(step, h, times)[0] ** 2)

    return loss, arrays


def gflops(fn: Callable, a, b, *, in_scan: bool, operations: int, repeats: int):
    """Of one call: of several in a loop, or of one by itself."""
    num_calls = 4 if in_scan else 1

    def run(a, b):
        def step(shift, _):
            out = fn(a + shift, b)
            return 1e-20 * out.ravel()[0], None  # or the calls would be one

        return lax.scan(step, jnp.zeros(()), None, length=num_calls)[0]

    compiled = jax.jit(run if in_scan else fn).lower(a, b).compile()
    jax.block_until_ready(compiled(a, b))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(compiled(a, b))
        times.append(time.perf_counter() - start)
    return operations * num_calls / statistics.median(times) / 1e9


def forms(repeats: int) -> None:
    """The table of shapes: Eigen's form, Winograd's, and the one that is taken."""
    never = lambda *_: False
    pays = (_winograd.conv_pays, _winograd.gradient_pays)
    pairs = (
        (_forms.cpu_conv, _winograd.conv),
        (_forms.cpu_kernel_gradient, _winograd.kernel_gradient),
    )
    print("\n128 images, GFLOP/s: convolution, kernel gradient (Eigen, Winograd)")
    for (size, channels), in_scan in itertools.product(SHAPES, (False, True)):
        keys = jax.random.split(jax.random.key(0), 3)
        x, g = (jax.random.normal(k, (128, size, size, channels)) for k in keys[:2])
        kernel = jax.random.normal(keys[2], (3, 3, channels, channels))
        geometry = Geometry(1, ((1, 1), (1, 1)), (size, size), (3, 3))
        what = {
            "in_scan": in_scan,
            "operations": 2 * 128 * size**2 * 9 * channels**2,
            "repeats": repeats,
        }
        row = f"{size}×{size}, {channels:3d}, {'in a scan' if in_scan else 'alone'}"
        taken = []
        for pair, does_pay, other in zip(pairs, pays, (kernel, g), strict=True):
            _winograd.conv_pays = _winograd.gradient_pays = never
            speeds = [gflops(partial(f, geometry), x, other, **what) for f in pair]
            _winograd.conv_pays, _winograd.gradient_pays = pays
            taken.append(speeds[does_pay(geometry, channels, channels, x.dtype)])
            row += "  " + " ".join(f"{speed:4.0f}" for speed in speeds)
        print(f"{row}  gradient / convolution {taken[1] / taken[0]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slow", action="store_true", help="also XLA's in a scan")
    parser.add_argument("--forms", action="store_true", help="the table of shapes")
    options = parser.parse_args()
    if options.forms:
        return forms(options.repeats)
    repeats, num_steps = options.repeats, 10
    x_key, kernel_key, block_key = jax.random.split(jax.random.key(0), 3)
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}")

    print("\n33 to 32 channels, 3×3, 128 images of 28×28: value and gradient")
    x = jax.random.normal(x_key, (128, 28, 28, 33))
    kernel = jax.random.normal(kernel_key, (3, 3, 33, 32)) / 17
    outside = {}
    for name, conv in (("ours", conv2d), ("lax", lax_conv)):
        loss = lambda x, kernel, conv=conv: jnp.sum(conv(x, kernel) ** 2)
        gradient = jax.value_and_grad(loss, (0, 1))
        outside[name] = milliseconds(
            f"{name}, outside a loop", gradient, x, kernel, repeats=repeats
        )
    gradient = jax.value_and_grad(in_a_scan(conv2d, num_steps), (0, 1))
    inside = milliseconds(
        "ours, a step of a scan", gradient, x, kernel, repeats=repeats, per=num_steps
    )
    print(f"ours: in a scan / outside {inside / outside['ours']:.2f}")
    print(f"ours in a scan / lax outside {inside / outside['lax']:.2f}")
    if options.slow:
        gradient = jax.value_and_grad(in_a_scan(lax_conv, 2), (0, 1))
        slow = milliseconds(
            "lax, a step of a scan", gradient, x, kernel, repeats=1, per=2
        )
        print(f"lax: in a scan / outside {slow / outside['lax']:.1f}")

    print("\n8 draws, 32 to 32 channels, 3×3, 128 images of 8×8: value and gradient")
    x = jax.random.normal(x_key, (8, 128, 8, 8, 32))
    kernels = jax.random.normal(kernel_key, (8, 3, 3, 32, 32)) / 17
    several = {
        name: milliseconds(
            f"{name} under vmap",
            jax.value_and_grad(many_kernels(conv), (0, 1)),
            x,
            kernels,
            repeats=repeats,
        )
        for name, conv in (("ours", conv2d), ("lax", lax_conv))
    }
    print(f"lax / ours {several['lax'] / several['ours']:.1f}")

    block = ConvBlock(3, 32, key=block_key)
    print(
        f"\nConvBlock(3, 32), {num_parameters(block)} parameters, 128 images of 28×28"
    )
    h = jax.random.normal(x_key, (128, 28, 28, 3))
    loss, arrays = block_in_a_scan(block, num_steps)
    milliseconds(
        "value and gradient, a step of a scan",
        jax.value_and_grad(loss, (0, 1)),
        arrays,
        h,
        repeats=repeats,
        per=num_steps,
    )


if __name__ == "__main__":
    main()
