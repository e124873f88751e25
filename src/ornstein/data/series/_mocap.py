"""Motion capture: 23 recorded walks of one person."""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from ..._files import UnreadableError, read_mat
from ..._sentence import Sentence
from .._base import Data
from .._error import DataError, DataNotFoundError
from ._assemble_series import Sequences, assemble_series

_FILE = "mocap/mocap35.mat"
_SOURCE = "the data of github.com/cagatayyildiz/ODE2VAE"
_PARTS = (("Xtr", 16), ("Xval", 3), ("Xtest", 4))  # to learn, to choose, to test
_NUM_FRAMES = 300
_NUM_SENSORS = 50
_FRAME = 0.1  # from one frame to the next
MOCAP_NOTE = (
    "mocap is in raw units, frames 0.1 apart as in the code of ODE2VAE: say beside a "
    "test error which frames were given, which were scored, and how many draws were "
    "averaged before squaring."
)


def mocap(data_dir: Path | None) -> Data:
    """Subject 35 of CMU's motion capture, as Li et al. (2020) have it.

    16 training, 3 validation and 4 test sequences of 300 frames with 50 sensors each,
    preprocessed by Wang et al. (2007), every frame observed. Values stay in raw units,
    as the published errors are. Times are 0, 0.1, ..., 29.9: those of ODE²VAE's code,
    from which the file comes.

    A test row holds all frames, as x and as y. Li et al. encode the first three and
    score a prediction of the others: hide the later ones from a model whose
    recognition network would read them.

    Args:
        data_dir: the folder with `mocap/mocap35.mat`.

    Raises:
        DataNotFoundError: if it is not there.
        DataError: if the file is damaged or is another.

    References:
        Li, Wong, Chen & Duvenaud, *Scalable Gradients for Stochastic Differential
        Equations* (2020); Yıldız, Heinonen & Lähdesmäki, *ODE²VAE* (2019); Wang, Fleet
        & Hertzmann, *Gaussian Process Dynamical Models for Human Motion* (2007).
    """
    if data_dir is None:
        raise DataNotFoundError(
            Sentence(
                "mocap needs a folder with {}: name it with {data_dir} or "
                "ORNSTEIN_DATA (the file: {}).",
                _FILE,
                _SOURCE,
            )
        )
    path = data_dir / _FILE
    if not path.exists():
        raise DataNotFoundError(f"There is no {path}: get it from {_SOURCE}.")
    try:
        arrays = read_mat(path, [variable for variable, _ in _PARTS])
    except UnreadableError as error:
        raise DataError(
            f"{path} ({path.stat().st_size:,} bytes) cannot be read as a MATLAB file: "
            f"{error}; get it again from {_SOURCE}."
        ) from error
    train, validation, test = (
        _sequences(arrays.get(variable), (count, _NUM_FRAMES, _NUM_SENSORS), path)
        for variable, count in _PARTS
    )
    return assemble_series(
        "mocap", train, test, validation=validation, notes=[MOCAP_NOTE]
    )


def _sequences(
    values: Float[np.ndarray, "..."] | None, shape: tuple[int, int, int], path: Path
) -> Sequences:
    if values is None or values.shape != shape or not np.isfinite(values).all():
        raise DataError(
            f"{path} should hold 16, 3 and 4 sequences of 300 x 50 finite numbers, as "
            f"Xtr, Xval and Xtest, and does not: get it again from {_SOURCE}."
        )
    ts = np.tile(_FRAME * np.arange(_NUM_FRAMES), (shape[0], 1))
    return Sequences(ts, values)
