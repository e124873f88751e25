"""How good a trained run is on new rows whose targets are known."""

import dataclasses
from typing import Any

from ..data import Data, LabelledInputs
from ..evaluation import evaluate, in_target_units, refuse_non_finite_predictions
from ._run_prediction import RunPrediction


@dataclasses.dataclass(frozen=True)
class RunEvaluation:
    """Scores of rows of the user's own, and what they are scores of.

    Attributes:
        scores: by name, as `ornstein.evaluate` has them: for classes `accuracy`, `nll`,
            `ece`, `brier`, …; for numbers `rmse`, `nll`, `crps`, `coverage_90`, …, in
            the units in which the model learned, and `rmse_in_target_units` and
            `nll_in_target_units` of one target. `nll_se` is the standard error of `nll`
            over the rows.
        prediction: of the rows.
    """

    scores: dict[str, float]
    prediction: RunPrediction

    @property
    def num_rows(self) -> int:
        """How many rows had a target, and were judged."""
        return self.prediction.num_rows

    @property
    def notes(self) -> tuple[str, ...]:
        """Which rows were left out, and what of the others training had not shown."""
        return self.prediction.notes


def judged(
    prediction: RunPrediction, rows: LabelledInputs, data: Data
) -> RunEvaluation:
    """A prediction by its rows' targets.

    Args:
        prediction: of `rows.inputs`.
        rows: with their targets.
        data: what the run knows of its data.

    Raises:
        NonFiniteError: if a prediction is not a number.
    """
    own = prediction.prediction
    refuse_non_finite_predictions(own)
    scores: dict[str, Any] = evaluate(own, rows.y)
    return RunEvaluation(scores | in_target_units(scores, data), prediction)
