"""Convolutions inside loops and for many kernels: ours against XLA's own.

    python -m benchmarks.conv [--slow | --forms | --choose [--missing]] [--repeats N]
                              [--networks NAME...]

Prints milliseconds a call (median, compiling apart) and ratios. On 2 quiet cores,
"gradient in a scan / outside" should be near 1 for ours, and near 40 for XLA's. With
`--choose` it measures every form of every convolution of the networks in `nn`, in a
scan, and writes what this kind of processor takes into `nn/conv/measured.json` (half
an hour of two cores of an AMD EPYC with AVX2; with `--missing` where a form has no
speed yet; with `--networks sdebnn` of those alone). In a process of one core (`taskset
-c 0`) it writes what such processes take. With `--forms` it prints the GFLOP/s of the
form taken for the 3×3 shapes, in a scan and outside.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ornstein import nn
from ornstein._files import write_atomically
from ornstein.nn import ConvBlock, conv2d, num_parameters
from ornstein.nn.conv import ConvCall, _choice, _forms, recorded_convs

from ._timing import provenance

_MOST_NUMBERS = 128 * 28 * 28 * 32  # of an operand: fewer images where they are large
_MOST_OPERATIONS = 3e9


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


def gflops(
    fns: Mapping[str, Callable],
    a: Any,
    b: Any,
    *,
    in_scan: bool,
    operations: float,
    repeats: int,
) -> dict[str, float]:
    """Of one call: of four in a loop, on images of their own, or of one by itself.

    The best of the repeats, in which the functions take turns: for seconds on end such
    a machine is half as fast, whatever runs, so that a median of calls in a row may
    rank forms by when they ran. Results are kept, as those of a network are: XLA runs a
    convolution on all threads if its maximum is all that is asked for, and else on one.
    """
    if in_scan:
        a, b = (jnp.stack([operand] * 4) for operand in (a, b))

    def program(fn: Callable) -> Callable:
        def run(a, b):
            if not in_scan:
                return fn(a, b)
            return lax.map(lambda pair: fn(*pair), (a, b))

        return jax.jit(run).lower(a, b).compile()

    programs = {name: program(fn) for name, fn in fns.items()}
    seconds = dict.fromkeys(fns, math.inf)
    for i in range(repeats + 1):
        for name, run in programs.items():
            start = time.perf_counter()
            jax.block_until_ready(run(a, b))
            if i > 0:
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    num_calls = 4 if in_scan else 1
    return {name: operations * num_calls / s / 1e9 for name, s in seconds.items()}


_NETWORKS = ("lenet", "alexnet", "sdebnn", "resnet", "vgg16", "wide-resnet")


def networks() -> Iterator[tuple[str, Callable, tuple[int, int, int]]]:
    """Those of `nn` with convolutions, and the images that they are for."""
    keys = iter(jax.random.split(jax.random.key(0), 20))
    at = lambda block: partial(block, 0.5)
    yield "lenet", nn.LeNet(key=next(keys)), (28, 28, 1)
    yield "alexnet", nn.AlexNet(10, key=next(keys)), (224, 224, 3)
    yield "sdebnn", at(nn.ConvBlock(3, 32, key=next(keys))), (28, 28, 3)
    blocks = ((8, 14), (16, 16), (32, 16), (64, 16), (64, 8), (128, 8), (128, 4))
    for channels, size in blocks:
        width = max(32, channels)
        block = nn.NormedConvBlock(channels, width, key=next(keys))
        yield "sdebnn", at(block), (size, size, channels)
    for depth, size in ((20, 32), (18, 224)):
        network = nn.ResNet(depth, 10, norm=None, key=next(keys))
        yield "resnet", network, (size, size, 3)
    for width in (0.25, 1.0):
        vgg = nn.VGG16(10, width=width, norm=None, key=next(keys))
        yield "vgg16", vgg, (32, 32, 3)
    for depth, widen in ((16, 2), (28, 10)):
        wide = nn.WideResNet(depth, widen, 10, norm=None, key=next(keys))
        yield "wide-resnet", wide, (32, 32, 3)


def shapes(names: Sequence[str] = _NETWORKS) -> list[ConvCall]:
    """The convolutions of `networks`, and those that their gradients are made of."""
    with recorded_convs() as calls:
        for name, network, image_shape in networks():
            if name in names:
                x = jax.ShapeDtypeStruct((1, *image_shape), jnp.float32)
                eqx.filter_eval_shape(network, x)
    calls += [
        ConvCall(
            _forms._phases(call.geometry, call.num_in)[0],
            call.num_out,
            call.geometry.stride**2 * call.num_in,
            call.dtype,
            is_transposed=False,
        )
        for call in calls
    ]
    return [
        call
        for call in dict.fromkeys(call._replace(is_transposed=False) for call in calls)
        if _forms._dense(call.geometry) is None
    ]


def operands(
    call: ConvCall,
) -> tuple[dict[_choice.Face, tuple[jax.Array, jax.Array]], float]:
    """The pair of each face, and the plain convolution's operations."""
    geometry, num_in, num_out, dtype, _ = call
    image, out = (math.prod(s) for s in (geometry.image_shape, geometry.out_shape))
    taps = math.prod(geometry.kernel_shape)
    each = 2 * out * taps * num_in * num_out
    num = max(1, round(_MOST_NUMBERS / max(image * num_in, out * num_out)))
    num = max(1, min(128, num, round(_MOST_OPERATIONS / each)))
    rng = np.random.default_rng(0)
    normal = lambda *shape: jnp.asarray(rng.standard_normal(shape, np.float32), dtype)
    x = normal(num, *geometry.image_shape, num_in)
    kernel = normal(*geometry.kernel_shape, num_in, num_out)
    g = normal(num, *geometry.out_shape, num_out)
    pairs: dict[_choice.Face, tuple[jax.Array, jax.Array]] = {
        "conv": (x, kernel),
        "input gradient": (g, kernel),
        "kernel gradient": (x, g),
    }
    return pairs, num * each


def choose(repeats: int, names: Sequence[str], *, only_missing: bool) -> None:
    """Measure every form, and write down the speeds for this processor.

    With `only_missing`, of the shapes of which some form has none: a provenance more.
    Shapes of other networks than `names` stay as they are.
    """
    path = Path(_choice.__file__).with_name(_choice.TABLE)
    table = json.loads(path.read_text()) if path.exists() else {}
    before = table.get(_choice.machine(), {"shapes": [], "provenance": []})
    known = before["shapes"] if only_missing else []
    rows: list[dict[str, Any]] = []
    calls = shapes(names)
    is_all = set(names) == set(_NETWORKS)
    is_more = bool(known) or not is_all
    provenances = [*(before["provenance"] if is_more else []), provenance()]
    # Convolutions first: the phases of input gradients are made of them.
    for face, forms in _forms.FORMS.items():
        for call in calls:
            geometry, what = call.geometry, (call.num_in, call.num_out, call.dtype)
            pairs, operations = operands(call)
            fns = {
                name: partial(form.run, geometry)
                for name, form in forms.items()
                if form.suits(geometry, *what)
            }
            shape = {
                "face": face,
                "image": [*geometry.image_shape],
                "taps": [*geometry.kernel_shape],
                "stride": geometry.stride,
                "channels": [*what[:2]],
            }
            old = [row for row in known if shape.items() <= row.items()]
            if old and fns.keys() <= old[0]["gflops"].keys():
                rows.append(old[0])
                continue
            speeds = gflops(
                fns,
                *pairs[face],
                in_scan=True,
                operations=operations,
                repeats=repeats,
            )
            speeds = {name: round(speed, 1) for name, speed in speeds.items()}
            rows.append(shape | {"gflops": speeds})
            print(rows[-1], flush=True)
        _choice._table = lambda: rows
        _choice._nearest.cache_clear()
    if not is_all:
        rows = _merged(before["shapes"], rows)
    table[_choice.machine()] = {"provenance": provenances, "shapes": rows}
    write_table(path, table)


def _merged(before: list[dict], new: list[dict]) -> list[dict]:
    """Each in its old place: of equally near shapes the first one counts."""
    shapes = [_shape(row) for row in new]
    kept = [
        new[shapes.index(_shape(row))] if _shape(row) in shapes else row
        for row in before
    ]
    old = [_shape(row) for row in before]
    rows = kept + [row for row in new if _shape(row) not in old]
    return sorted(rows, key=lambda row: list(_forms.FORMS).index(row["face"]))


def _shape(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "gflops"}


def write_table(path: Path, table: dict[str, Any]) -> None:
    """One line for each shape, so that a change can be read."""
    parts = []
    for processor, measured in table.items():
        rows = ",\n".join("      " + json.dumps(row) for row in measured["shapes"])
        parts.append(
            f"  {json.dumps(processor)}: {{\n"
            f'    "provenance": {json.dumps(measured["provenance"])},\n'
            f'    "shapes": [\n{rows}\n    ]\n  }}'
        )
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_atomically(path, text.encode())


def forms(repeats: int) -> None:
    """The form taken for each 3×3 shape, in a scan and by itself."""
    faces: dict[_choice.Face, Callable] = {
        "conv": _forms.cpu_conv,
        "kernel gradient": _forms.cpu_kernel_gradient,
    }
    print("\nGFLOP/s: convolution, kernel gradient")
    for call in shapes():
        geometry, num_in, num_out, *_ = call
        if geometry.kernel_shape != (3, 3):
            continue
        pairs, operations = operands(call)
        names = _forms.forms_of_all(geometry, num_in, num_out, call.dtype)
        (height, width), stride = geometry.image_shape, geometry.stride
        row = f"{height}×{width}, {num_in} to {num_out}, stride {stride}:"
        for in_scan in (True, False):
            conv, gradient = (
                gflops(
                    {face: partial(fn, geometry)},
                    *pairs[face],
                    in_scan=in_scan,
                    operations=operations,
                    repeats=repeats,
                )[face]
                for face, fn in faces.items()
            )
            where = "in a scan" if in_scan else "alone"
            row += f"  {where} {conv:4.0f} {gradient:4.0f} ({gradient / conv:.2f})"
        print(f"{row}  {names['conv']}; {names['kernel gradient']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--slow", action="store_true", help="also XLA's in a scan")
    parser.add_argument("--forms", action="store_true", help="the forms taken")
    parser.add_argument("--choose", action="store_true", help="measure them anew")
    parser.add_argument("--missing", action="store_true", help="where forms have none")
    parser.add_argument(
        "--networks",
        nargs="+",
        choices=_NETWORKS,
        default=_NETWORKS,
        help="whose shapes --choose measures",
    )
    options = parser.parse_args()
    is_all = set(options.networks) == set(_NETWORKS)
    if (options.missing or not is_all) and not options.choose:
        parser.error("--missing and --networks say what --choose measures: give both")
    if options.choose:
        return choose(options.repeats, options.networks, only_missing=options.missing)
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
