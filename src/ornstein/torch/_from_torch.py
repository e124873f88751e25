"""PyTorch's layers as Equinox's, which compute the same in JAX."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._kinds import check_kind
from .._types import Array
from ..nn import PerExample
from ._extra import prune, torch

_FUNCTIONS: dict[type, Callable] = {
    torch.nn.ReLU: jax.nn.relu,
    torch.nn.SiLU: jax.nn.silu,
    torch.nn.Sigmoid: jax.nn.sigmoid,
    torch.nn.Tanh: jnp.tanh,
}
_AXES = {torch.nn.Linear: 1, torch.nn.Conv1d: 2, torch.nn.Conv2d: 3}
_POOLS = {
    torch.nn.MaxPool2d: eqx.nn.MaxPool2d,
    torch.nn.AvgPool2d: eqx.nn.AvgPool2d,
}
_USUAL = {
    "dilation": 1,
    "return_indices": False,
    "count_include_pad": True,
    "divisor_override": None,
}
_KNOWN = (
    "Sequential, Linear, Conv1d, Conv2d, MaxPool2d, AvgPool2d, Flatten, Identity, "
    "ReLU, LeakyReLU, ELU, GELU, SiLU, Softplus, Sigmoid and Tanh"
)


def from_torch(
    network: torch.nn.Module, *, example_ndim: int | None = None
) -> PerExample:
    """A network of PyTorch's layers, in JAX, with a copy of its weights.

    For what makes a network Bayesian: `orn.MeanField(from_torch(network), prior)`,
    `orn.ImplicitBNN`, `orn.MCDropout`. Images stay (rows, channels, height, width).

    Args:
        network: `torch.nn.Sequential`, or a layer: linear and convolutional layers,
            pooling, flattening and activations, nested as deep as you like.
        example_ndim: axes of one example; by default what the first layer with weights
            takes: 3 for `Conv2d`, 1 for `Linear`, so give it where one flattens first.

    Returns:
        The network of a batch, rows first.

    Raises:
        TypeError: for what is no module, a layer that has no counterpart, by name, or
            weights of a type that JAX would round: float64 without `jax_enable_x64`.
        ValueError: for options that have none, forward hooks other than those of
            `torch.nn.utils.prune`, two layers with the same weights, or weights
            without numbers, on the device meta.
    """
    remedy = "`torch.nn.Sequential(...)` (a network of JAX's goes as it is)"
    check_kind("network", network, torch.nn.Module, remedy)
    _check_no_hooks(network)
    layers = list(_layers(network, ""))
    _check_untied(network)
    if example_ndim is None:
        found = [_AXES[type(m)] for m in network.modules() if type(m) in _AXES]
        example_ndim = found[0] if found else 1
    return PerExample(eqx.nn.Sequential(layers), example_ndim)


def _layers(module: Any, name: str) -> Iterator[Any]:
    if _computes_as(module, torch.nn.Sequential):
        # Not `named_children`: these name a layer that stands twice once.
        for child, inner in module._modules.items():
            yield from _layers(inner, f"{name}.{child}" if name else child)
    elif not _computes_as(module, torch.nn.Identity):
        yield _layer(module, name)


def _computes_as(module: Any, kind: Any) -> bool:
    """Whether a module is of a class, and computes nothing else."""
    return isinstance(module, kind) and type(module).forward is kind.forward


def _check_untied(network: torch.nn.Module) -> None:
    """Refuse weights of two layers, of which there would be two copies."""
    owners: dict[int, str] = {}
    for name, module in network.named_modules(remove_duplicate=False):
        for parameter in module.parameters(recurse=False):
            first = owners.setdefault(id(parameter), name)
            if first != name:
                raise ValueError(
                    f"layer {name}, a `{type(module).__name__}`, has the weights of "
                    f"layer {first}, and copies would learn apart: give it its own."
                )


def _check_no_hooks(network: torch.nn.Module) -> None:
    """Refuse what computes more than its class: `weight_norm`'s hooks, for one.

    Those of pruning are carried out, as a call does: weights may have changed since.
    """
    for name, module in network.named_modules():
        hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
        while hooks and isinstance(hooks[0], prune.BasePruningMethod):
            hooks.pop(0)(module, ())
        if hooks:
            where = f"layer {name}, a" if name else "A"
            raise ValueError(
                f"{where} `{type(module).__name__}`, has the forward hook "
                f"{_name(hooks[0])}, which would be left out: remove it (of "
                "`weight_norm` and the like, by their `remove_...`)."
            )


def _name(hook: Any) -> str:
    found = hook if hasattr(hook, "__name__") else type(hook)
    return f"`{found.__name__}`"


def _layer(module: Any, name: str) -> eqx.Module:
    kind, where = type(module), f"layer {name}, a" if name else "A"
    if kind in _AXES:
        return _with_weights(module, f"{where} `{kind.__name__}`,")
    if kind in _POOLS:
        for option, usual in _USUAL.items():
            if getattr(module, option, usual) != usual:
                raise ValueError(
                    f"{where} `{kind.__name__}`, has {option}="
                    f"{getattr(module, option)}, which has no counterpart here: leave "
                    f"it {usual}."
                )
        if module.ceil_mode:
            _check_ceil(module, f"{where} `{kind.__name__}`,")
        options = (module.kernel_size, module.stride, module.padding)
        return _POOLS[kind](*options, use_ceil=module.ceil_mode)
    if kind is torch.nn.Flatten and (module.start_dim, module.end_dim) == (1, -1):
        return eqx.nn.Lambda(jnp.ravel)
    fn = _activation(module)
    if fn is None:
        raise TypeError(
            f"{where} `{kind.__name__}`, has no counterpart here: `from_torch` takes "
            f"{_KNOWN}."
        )
    return eqx.nn.Lambda(fn)


def _check_ceil(module: Any, what: str) -> None:
    """Refuse windows past the border that Equinox's pools count otherwise."""
    if type(module) is torch.nn.AvgPool2d:
        raise ValueError(
            f"{what} has ceil_mode=True, whose means at the border have no counterpart "
            "here: leave it False."
        )
    padding, stride, kernel = module.padding, module.stride, module.kernel_size
    if np.any(np.add(padding, stride) > np.asarray(kernel)):
        raise ValueError(
            f"{what} has ceil_mode=True with padding {padding} and stride {stride}, "
            f"together more than its kernel, {kernel}, which has no counterpart here: "
            "leave it False, or take a smaller stride or padding."
        )


def _activation(module: Any) -> Callable | None:
    for kind in (torch.nn.GELU, torch.nn.LeakyReLU, torch.nn.ELU, torch.nn.Softplus):
        if isinstance(module, kind) and not _computes_as(module, kind):
            return None
    match module:
        case torch.nn.GELU():
            return partial(jax.nn.gelu, approximate=module.approximate == "tanh")
        case torch.nn.LeakyReLU():
            return partial(jax.nn.leaky_relu, negative_slope=module.negative_slope)
        case torch.nn.ELU():
            return partial(jax.nn.elu, alpha=module.alpha)
        case torch.nn.Softplus() if (module.beta, module.threshold) == (1.0, 20.0):
            return jax.nn.softplus
    return _FUNCTIONS.get(type(module))


def _with_weights(module: Any, what: str) -> eqx.Module:
    key, use_bias = jax.random.key(0), module.bias is not None
    if isinstance(module, torch.nn.Linear):
        sizes = (module.in_features, module.out_features)
        like = eqx.nn.Linear(*sizes, use_bias=use_bias, key=key)
    else:
        if module.padding_mode != "zeros" or isinstance(module.padding, str):
            raise ValueError(
                f"{what} pads by {module.padding_mode}, {module.padding}: give "
                'numbers as `padding`, and padding_mode="zeros".'
            )
        like = eqx.nn.Conv(
            len(module.kernel_size),
            module.in_channels,
            module.out_channels,
            module.kernel_size,
            stride=module.stride,
            padding=module.padding,
            dilation=module.dilation,
            groups=module.groups,
            use_bias=use_bias,
            key=key,
        )
    copy = lambda tensor: _array(tensor, what)
    like = eqx.tree_at(lambda layer: layer.weight, like, copy(module.weight))
    if not use_bias:
        return like
    bias = copy(module.bias).reshape(like.bias.shape)
    return eqx.tree_at(lambda layer: layer.bias, like, bias)


def _array(tensor: torch.Tensor, what: str) -> Array:
    if tensor.device.type == "meta":
        raise ValueError(
            f"{what} has weights on the device meta, which are no numbers: load them "
            "before."
        )
    takes = [torch.float16, torch.float32]
    if jax.dtypes.canonicalize_dtype("float64") == "float64":
        takes.append(torch.float64)
    if tensor.dtype not in takes:
        raise TypeError(
            f"{what} has weights of {tensor.dtype}, which JAX would round here: write "
            "network.float(), and to compute in double precision `double()` of the "
            "module that is made of it."
        )
    return jnp.array(tensor.detach().cpu().numpy())
