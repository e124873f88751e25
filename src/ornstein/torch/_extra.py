"""PyTorch itself, or a sentence that says how to come by it."""

try:
    import torch as torch
    from torch.nn.utils import prune as prune
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "`ornstein.torch` needs PyTorch: install it with `pip install "
        "'ornstein[torch]'`."
    ) from error
