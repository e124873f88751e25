"""Which form each convolution of a trained run takes on this machine."""

from typing import Any

import jax
import jax.numpy as jnp

from ..functions import map_draws
from ..network import in_inference
from ..nn.conv import ConvCall, forms_of_all, recorded_convs
from ..prediction import FittedByDraw
from ..recipe import TrainedRun


def list_convolutions(run: TrainedRun) -> list[dict[str, Any]]:
    """The run's convolutions in their order, each shape once.

    Args:
        run: its model is traced, and nothing is computed.

    Returns:
        For each: `images` that come in and `outputs`, as height×width×channels; the
        `kernel`, with its stride; and the forms of `convolution`, `input gradient` and
        `kernel gradient`, by the names that `ornstein.nn.conv_form` takes. Of anything
        but a CPU they are all `"plain"`: XLA's own. No rows for other data than images.
    """
    data, fit = run.prepared.data, run.fit
    if len(data.example_shape) != 3:
        return []
    if isinstance(fit, FittedByDraw):
        fit = fit.for_draws(1)
    model, state = in_inference(fit.model), fit.state

    def outputs(x, key):
        output = lambda draw: draw.output
        return map_draws(output, model, x, key=key, num_draws=1, state=state)

    x = jax.ShapeDtypeStruct((1, *data.example_shape), jnp.float32)
    with recorded_convs() as calls:
        jax.eval_shape(outputs, x, jax.random.key(0))
    return [_row(call) for call in dict.fromkeys(calls)]


def _row(call: ConvCall) -> dict[str, Any]:
    geometry, num_in, num_out, dtype, is_transposed = call
    if jax.default_backend() == "cpu":
        forms = forms_of_all(geometry, num_in, num_out, dtype)
    else:
        forms = dict.fromkeys(("conv", "input gradient", "kernel gradient"), "plain")
    images = (*geometry.image_shape, num_in)
    outputs = (*geometry.out_shape, num_out)
    forward, back = forms["conv"], forms["input gradient"]
    kernel = "×".join(map(str, geometry.kernel_shape))
    if geometry.stride > 1:
        kernel += f", stride {geometry.stride}"
    if is_transposed:
        images, outputs, forward, back = outputs, images, back, forward
        kernel += ", transposed"
    return {
        "images": "×".join(map(str, images)),
        "kernel": kernel,
        "outputs": "×".join(map(str, outputs)),
        "convolution": forward,
        "input gradient": back,
        "kernel gradient": forms["kernel gradient"],
    }
