"""What the runs of a sweep came to: a table, and means over seeds and splits."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import write_atomically
from ..recipe import commit, versions
from ..train import RunFolder
from ._folder import SweepFolder
from ._grid import typed
from ._job import is_done

if TYPE_CHECKING:
    import pandas as pd

REPLICATES = ("seed", "split")
"""Options that repeat a run rather than change what it is: means are over them."""


@dataclasses.dataclass(frozen=True)
class SweepTable:
    """A sweep's finished runs, one a row.

    Nothing in it says when, where or how fast: the same runs, however often they were
    interrupted, make the same table.

    Attributes:
        rows: of each run its name, its settings, and every number of its result.
        settings: the columns that are settings.
        missing: names of runs without a result.
        seconds: that the runs took together, all calls of them.
        devices: that they ran on.
    """

    rows: Sequence[dict[str, Any]]
    settings: Sequence[str]
    missing: Sequence[str]
    seconds: float
    devices: Sequence[str]

    @property
    def scores(self) -> list[str]:
        """The columns that are numbers of results."""
        own = {"run", *self.settings}
        return list(dict.fromkeys(n for row in self.rows for n in row if n not in own))

    def frame(self) -> "pd.DataFrame":
        """The rows as a `DataFrame`."""
        import pandas as pd

        return pd.DataFrame(
            list(self.rows), columns=["run", *self.settings, *self.scores]
        )

    def summary(self) -> list[dict[str, Any]]:
        """Of each setting of the options other than seeds and splits, means over these.

        Returns:
            dictionaries with `settings`, the number of `runs`, and by score the `mean`
            and its `standard_error`: `None` for one run, or where a run has no number.
        """
        if not self.rows:
            return []
        frame = self.frame()
        by = [name for name in self.settings if name not in REPLICATES]
        groups = frame.groupby(by, sort=False, dropna=False) if by else [((), frame)]
        found = []
        for values, group in groups:
            scores = group[self.scores].astype(float)
            mean, error = scores.mean(skipna=False), scores.sem(skipna=False)
            if set(REPLICATES) <= set(self.settings):  # seeds of one split are not free
                of_split = scores.groupby(group["split"]).mean()
                if len(of_split) > 1:
                    is_whole = scores.notna().all()
                    mean = of_split.mean().where(is_whole)
                    error = of_split.sem().where(is_whole)
            found.append(
                {
                    "settings": dict(zip(by, values, strict=True)),
                    "runs": len(group),
                    "mean": _numbers(mean),
                    "standard_error": _numbers(error),
                }
            )
        return found

    def write(self, folder: Path, command: str) -> list[Path]:
        """Write `table.csv` and, with its provenance, `table.json`.

        Args:
            folder: to write to.
            command: as it was typed.
        """
        csv, whole = folder / "table.csv", folder / "table.json"
        content = {
            "rows": list(self.rows),
            "summary": self.summary(),
            "missing": list(self.missing),
            "provenance": {
                "command": command,
                "commit": commit(),
                "versions": versions(),
                "devices": list(self.devices),
                "run_seconds": round(self.seconds, 1),
            },
        }
        text = self.frame().to_csv(index=False, lineterminator="\n")
        write_atomically(csv, text.encode())
        write_atomically(whole, json.dumps(content, indent=2).encode())
        return [csv, whole]


def read_table(sweep: SweepFolder | str | Path) -> SweepTable:
    """The table of the runs that are finished now.

    Args:
        sweep: or its folder.

    Raises:
        FileNotFoundError: if there is no sweep.
        ValueError: if a run's result is damaged.

    Example:
        ```python
        table = orn.sweep.read_table("sweeps/yacht")
        table.frame().groupby("learning_rate")["nll"].mean()
        ```
    """
    sweep = sweep if isinstance(sweep, SweepFolder) else SweepFolder.open(sweep)
    settings = list(sweep.grid.values)
    rows, missing, seconds, devices = [], [], 0.0, set()
    for cell in sweep.cells:
        if not is_done(sweep.run(cell), sweep.end(cell)):
            missing.append(cell.name)
            continue
        run = RunFolder(sweep.run(cell))
        result = run.read_result()
        provenance = _checked(result, run)
        seconds += provenance.get("seconds") or 0.0
        devices |= {provenance["device"]} if "device" in provenance else set()
        scores = {
            name: value
            for name, value in result.items()
            if name not in settings and _is_score(name, value)
        }
        own = {option: typed(value) for option, value in cell.settings.items()}
        rows.append({"run": cell.name, **own, **scores})
    return SweepTable(rows, settings, missing, seconds, sorted(devices))


def _checked(result: Mapping[str, Any], run: RunFolder) -> dict[str, Any]:
    """The provenance of a result, whose numbers a float can hold.

    Raises:
        ValueError: for another.
    """
    provenance = result.get("provenance", {})
    try:
        kinds = [(provenance, dict), (provenance.get("seconds"), int | float | None)]
        is_whole = all(isinstance(value, kind) for value, kind in kinds)
        is_whole &= isinstance(provenance.get("device", ""), str)
        for value in (*result.values(), provenance.get("seconds")):
            if type(value) is int:
                float(value)
    except (AttributeError, OverflowError):
        is_whole = False
    if not is_whole:
        raise ValueError(
            f"{run.path / 'result.json'} is damaged: judge the run again with "
            "`ornstein evaluate`."
        )
    return provenance


def _is_score(name: str, value: Any) -> bool:
    """Numbers, and what is none because it is not finite; not how long it took."""
    is_number = value is None or type(value) in (bool, int, float)
    return is_number and "seconds" not in name


def _numbers(values: "pd.Series[float]") -> dict[str, float | None]:
    return {
        str(name): float(value) if math.isfinite(value) else None
        for name, value in values.items()
    }
