"""Scores of single test rows beside a result of table 1, to compare models by."""

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._files import UnreadableError, read_npz, write_atomically
from ..._sentence import OptionError
from ..._types import Bool, Float
from ...metrics import mean_and_error, resampled_ece
from ...prediction import Prediction


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
    def of(prediction: Prediction, y: np.ndarray) -> "RowScores":
        """Those of a prediction of classes.

        Args:
            prediction: of the rows.
            y: their classes.
        """
        log_prob, num_units = prediction.row_scores(y)
        probs = np.asarray(prediction.probs)
        return RowScores(
            np.asarray(-log_prob / num_units, np.float32),
            probs.max(-1).astype(np.float32),
            probs.argmax(-1) == np.asarray(y),
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


def beside_twin(pairs: list[tuple[RowScores, RowScores]]) -> dict[str, float]:
    """How much worse a model is than its twin: NLL and ECE, means over seeds.

    Standard errors are those over test rows, which both have met: not of seeds, nor of
    draws. That of the ECE is of a bootstrap.

    Args:
        pairs: the model's and its twin's, of each seed.
    """
    differences = [np.float64(ours.nll) - its.nll for ours, its in pairs]
    mean, error = mean_and_error(np.mean(differences, axis=0))
    models = [*(ours for ours, _ in pairs), *(its for _, its in pairs)]
    resampled = resampled_ece(
        np.stack([model.confidence for model in models]),
        np.stack([model.is_right for model in models]),
    )
    ours, its = np.split(resampled, 2, axis=1)
    eces = (ours - its).mean(axis=1)
    return {
        "nll_minus_twin": mean,
        "nll_minus_twin_se_rows": error,
        "ece_minus_twin": float(eces[0]),
        "ece_minus_twin_se_rows": float(eces[1:].std(ddof=1)),
        "seeds_beside_twin": len(pairs),
    }
