"""Files of named tensors: safetensors only, from a path or the Hugging Face hub."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from .._files import UnreadableError, check_regular
from ..data import expanded

_OF_THE_HUB = re.compile(r"(?P<repository>[\w-][\w.-]*/[\w.-]+)(/(?P<file>.+))?")
_HUB_FILE = "model.safetensors"
_PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")
_ZIP, _PICKLE = b"PK\x03\x04", b"\x80"


class WeightsFile:
    """An open safetensors file: tensors are read only when they are asked for.

    Attributes:
        name: of the file, for messages.
        shapes: of all tensors.
        dtypes: as safetensors writes them, such as `"F32"`.
    """

    def __init__(self, path: Path):
        self.name = path.name
        try:
            check_regular(path)
        except UnreadableError as error:
            raise ValueError(
                f"{path} cannot be read: {error}; give a .safetensors file."
            ) from error
        _check_is_safetensors(path)
        try:
            self._file = safe_open(path, framework="numpy")
        except (SafetensorError, OSError) as error:
            raise ValueError(
                f"{path} cannot be read as safetensors ({error}): it is cut short or "
                "something else; fetch it again."
            ) from error
        slices = {name: self._file.get_slice(name) for name in self._file.keys()}
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tuple(found.get_shape()) for name, found in slices.items()
        }
        self.dtypes: Mapping[str, str] = {
            name: found.get_dtype() for name, found in slices.items()
        }

    def read(self, name: str) -> np.ndarray:
        """A tensor."""
        try:
            return self._file.get_tensor(name)
        except (SafetensorError, AttributeError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.name}: {name} has the type {self.dtypes[name]}, which NumPy "
                "does not have: convert it to F32."
            ) from error


def find_weights(source: str | Path) -> Path:
    """The file that `source` means, fetched from the hub if need be.

    Args:
        source: a path, or `owner/name` or `owner/name/file.safetensors` of the hub,
            where no file of that name is.

    Raises:
        FileNotFoundError: if it is neither there nor to be had.
        ValueError: for the name of a pickle.
    """
    path = expanded(source)
    if path.exists() and not path.is_dir():
        return path
    if path.suffix.lower() in _PICKLES:
        raise _refused(str(source))
    match = _OF_THE_HUB.fullmatch(str(source))
    is_file = path.suffix == ".safetensors"
    if (
        isinstance(source, Path)
        or path.is_dir()
        or match is None
        or is_file != bool(match["file"])
    ):
        raise FileNotFoundError(
            f"There is no file {source}: give a .safetensors file, or `owner/name` or "
            "`owner/name/file.safetensors` on the Hugging Face hub."
        )
    return _from_hub(match["repository"], match["file"] or _HUB_FILE)


def _from_hub(repository: str, file: str) -> Path:
    remedy = (
        f"download {file} from huggingface.co/{repository} and give its path instead"
    )
    try:
        # Of the extra `vision`.
        from huggingface_hub import (  # pyright: ignore[reportMissingImports]
            hf_hub_download,
        )
    except ImportError:
        raise FileNotFoundError(
            f"There is no file {repository}, and huggingface_hub, which would fetch it "
            f"by that name, is not installed; `pip install ornstein[vision]`, or "
            f"{remedy}."
        ) from None
    fetch: Callable[..., Any] = hf_hub_download
    try:
        return Path(fetch(repository, file))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(
            f"There is no file {repository}, and the hub did not give {file} of that "
            f"repository ({type(error).__name__}); try again with a network, or "
            f"{remedy}."
        ) from error


def _check_is_safetensors(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(9)
    # A safetensors file is the length of its header, 8 bytes that may begin like those
    # of a pickle, and the header, which is JSON.
    if start[8:] == b"{":
        return
    is_pickle = start.startswith((_ZIP, _PICKLE)) or path.suffix.lower() in _PICKLES
    if is_pickle:
        raise _refused(str(path))


def _refused(name: str) -> ValueError:
    converted = Path(name).with_suffix(".safetensors").name
    return ValueError(
        f"{name} is a pickle, which runs code of its writer's choice when it is "
        "loaded, so it is refused: if you trust it, convert it once with `from "
        "safetensors.torch import save_file; save_file(torch.load("
        f'"{Path(name).name}", weights_only=True), "{converted}")`.'
    )
