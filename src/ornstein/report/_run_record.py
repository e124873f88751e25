"""All that a run's folder says of it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._files import UnreadableError, parse_json, read_bytes, read_json
from ..data import Data, load_schema
from ..functions import PosteriorSamples
from ..prediction import Fitted, Prediction, predict
from ..recipe import Keys, load_run
from ..train import CheckpointError, RunFolder
from .rows import KeptRows, judge_rows, load_rows, record_chains

_MAX_METRICS = 2**26


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """What a report of a run is made of.

    Attributes:
        path: of its folder.
        config: what decided it.
        result: its scores.
        known: of its data, without rows; `None` for a run of before.
        history: a record for each epoch; empty for chains.
        evaluation: what `ornstein evaluate` wrote last, or `None`.
        kept: its test rows, or `None`.
        missing: sentences on what the folder does not say.
    """

    path: Path
    config: dict[str, Any]
    result: dict[str, Any]
    known: Data | None
    history: list[dict[str, Any]]
    evaluation: dict[str, Any] | None
    kept: KeptRows | None
    missing: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its folder's."""
        return self.path.resolve().name

    @property
    def task(self) -> str:
        """`"classification"`, `"regression"` or `"series"`."""
        if self.known is not None:
            return self.known.task
        return "classification" if "accuracy" in self.result else "regression"

    @property
    def rows(self) -> str:
        """What its rows are, for words with their number."""
        return "series" if self.task == "series" else "rows"

    @property
    def climbed_bound(self) -> bool:
        """Whether training climbed a bound on the evidence, and not to a mode."""
        objective = self.result.get("objective")
        if objective is None:  # a run of before, or chains
            return self.result.get("elbo") is not None
        return objective in ("elbo", "importance-weighted")

    def option(self, part: str, name: str) -> Any:
        """An option of its recipe; `None` where there is none of that name.

        Args:
            part: `"data"`, `"model"`, `"training"`, ….
            name: of the option.
        """
        group = self.config.get("recipe", {}).get(part, {})
        return group.get(name) if isinstance(group, dict) else None


def keep_rows(fit: Fitted, prediction: Prediction, data: Data) -> KeptRows:
    """What a run keeps for its report, so that it needs neither model nor data.

    Args:
        fit: what was trained, or samples.
        prediction: of the test rows.
        data: whose test rows they are.
    """
    rows, chains = judge_rows(prediction, data), None
    if isinstance(fit.model, PosteriorSamples) and data.task != "series":
        names = tuple(map(str, data.class_names))
        chains = record_chains(fit.model, data.test.x, names)
    return KeptRows(rows, chains)


def read_run(
    folder: str | Path, *, say: Callable[[str], None] | None = None
) -> RunRecord:
    """What the folder of a finished run says.

    Args:
        folder: of the run.
        say: takes a line where test rows are predicted again, which takes a while.

    Raises:
        FileNotFoundError: if there is no run, or one without a result.
        ValueError: if a file of it is damaged.
    """
    run = RunFolder.open(Path(folder))
    config, result = run.config, run.read_result()
    missing: list[str] = []
    schema = run.path / "data.json"
    known = load_schema(schema) if schema.is_file() else None
    if known is None:
        missing.append(
            "The run keeps no data.json, as runs of earlier versions: what its file "
            "was (fingerprint, columns) is not known."
        )
    evaluation = run.path / "evaluation.json"
    kept = load_rows(run.path)
    if kept is None or _is_of_before(kept, known):
        try:
            kept = _judged_again(run.path, say)
        except (ValueError, OSError, CheckpointError) as error:
            kept = None
            missing.append(
                "Calibration, uncertainty by row, examples and most standard errors "
                "are missing, for the run keeps no test rows of this version, and "
                f"they cannot be predicted again: {error}"
            )
    return RunRecord(
        run.path,
        config,
        result,
        known,
        _history(run, missing),
        _object(evaluation) if evaluation.is_file() else None,
        kept,
        tuple(missing),
    )


def _is_of_before(kept: KeptRows, known: Data | None) -> bool:
    """Whether rows are series whose numbers of values were not kept."""
    is_series = known is not None and known.task == "series"
    return is_series and "num_values" not in kept.rows.columns


def _judged_again(folder: Path, say: Callable[[str], None] | None) -> KeptRows:
    if say is not None:
        say(f"{folder} keeps no test rows of this version: predicting them again")
    run = load_run(folder).with_rows()
    recipe, data = run.prepared.recipe, run.prepared.data
    key, num_draws = Keys.of(recipe).test, recipe.training.test_draws
    prediction = predict(run.fit, data.test.x, key=key, num_draws=num_draws)
    return keep_rows(run.fit, prediction, data)


def _history(run: RunFolder, missing: list[str]) -> list[dict[str, Any]]:
    if not run.metrics.is_file():
        return []
    try:
        lines = read_bytes(run.metrics, limit=_MAX_METRICS).splitlines()
        records = [parse_json(line) for line in lines if line.strip()]
    except UnreadableError as error:
        missing.append(
            f"Learning curves are missing, for metrics.jsonl is damaged ({error})."
        )
        return []
    return [record for record in records if isinstance(record, dict)]


def _object(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except UnreadableError as error:
        raise ValueError(
            f"{path} is damaged ({error}): evaluate the run again, or delete it."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object: evaluate the run again.")
    return content
