"""What a model makes of each test row, so that models can be compared row by row."""

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._files import UnreadableError, read_npz, write_atomically
from .._sentence import OptionError
from .._types import Bool, Float
from ..evaluation import as_classes
from ..likelihood import AbstractClassLikelihood
from ..prediction import Prediction


class RowScores(NamedTuple):
    """What a model makes of each test row.

    Attributes:
        nll: nats.
        confidence: the largest class probability.
        is_right: whether that class is the row's.
    """

    nll: Float[np.ndarray, " rows"]
    confidence: Float[np.ndarray, " rows"]
    is_right: Bool[np.ndarray, " rows"]

    @staticmethod
    def of(prediction: Prediction, y: np.ndarray) -> "RowScores | None":
        """Those of a prediction of classes; of numbers `None`.

        Args:
            prediction: of the rows.
            y: their classes.
        """
        if not isinstance(prediction.likelihood, AbstractClassLikelihood):
            return None
        log_prob, num_units = prediction.row_scores(y)
        probs, classes = map(np.asarray, as_classes(prediction, y))
        return RowScores(
            np.asarray(-log_prob / num_units, np.float32),
            probs.max(-1).astype(np.float32),
            (probs.argmax(-1) == classes) & ~np.isnan(probs).any(-1),
        )

    @staticmethod
    def load(path: Path) -> "RowScores | None":
        """What `save` wrote; `None` of results of before they were kept.

        Args:
            path: of the file.

        Raises:
            ValueError: if the file is damaged.
        """
        if not path.is_file():
            return None
        try:
            found = read_npz(path, RowScores._fields).arrays
            return RowScores(**{name: found[name] for name in RowScores._fields})
        except (UnreadableError, KeyError) as error:
            raise OptionError(
                "{} does not hold the scores of test rows, or is damaged: remove it; "
                "the table does without.",
                path,
            ) from error

    def save(self, path: Path) -> None:
        """Write them.

        Args:
            path: of the file, `.npz`.
        """
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **self._asdict())
        write_atomically(path, buffer.getvalue())
