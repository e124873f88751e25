"""What a trained run says about new rows, with names and in the data's own units."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Float
from ..data import Data, Inputs, in_raw_units
from ..likelihood import AbstractLocationScaleLikelihood, Categorical
from ..prediction import Prediction

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True)
class RunPrediction:
    """The predictive distribution of rows of the user's own.

    Attributes:
        padded: of the rows, and of the last one again up to one of a few sizes: what
            is computed of them compiles once for each.
        data: what the run knows of its data.
        inputs: the rows.
    """

    padded: Prediction
    data: Data
    inputs: Inputs

    @property
    def num_rows(self) -> int:
        """How many rows were given."""
        return len(self.inputs.x)

    @property
    def prediction(self) -> Prediction:
        """Of the rows alone, in the units in which the model learned."""
        own, number = self.padded, self.num_rows
        outputs = jax.tree.map(
            lambda leaf: jnp.asarray(np.asarray(leaf)[:, :number]), own.outputs
        )
        summary = jax.tree.map(
            lambda leaf: jnp.asarray(np.asarray(leaf)[:number]), own.summary
        )
        return Prediction(outputs, own.likelihood, summary=summary)

    def _own(self, values: Any) -> Float[np.ndarray, "rows ..."]:
        """Those of the rows that were given."""
        return np.asarray(values)[: self.num_rows]

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the rows training had not shown."""
        return tuple(self.inputs.notes)

    @property
    def classes(self) -> list[str]:
        """The most probable class of each row, by its name."""
        names = list(self.data.class_names)
        return [names[i] for i in self.probs.argmax(1)]

    @property
    def probs(self) -> Float[np.ndarray, "rows classes"]:
        """Class probabilities averaged over draws, in the order of `class_names`."""
        return self._own(self.padded.probs)

    @property
    def mean(self) -> Float[np.ndarray, "rows outputs"]:
        """The predictive mean, in the targets' own units."""
        return in_raw_units(self._own(self.padded.mean), self.data.y_scaling)

    @property
    def std(self) -> Float[np.ndarray, "rows outputs"]:
        """The predictive standard deviation, in the targets' own units."""
        scale = 1.0 if self.data.y_scaling is None else self.data.y_scaling.scale
        return np.sqrt(self._own(self.padded.variance)) * scale

    def quantile(
        self, q: float | Sequence[float] | Float[np.ndarray, " levels"]
    ) -> Float[np.ndarray, "*levels rows outputs"]:
        """A quantile of each target, noise included, in its own units.

        Args:
            q: its level, above 0 and below 1, or several, which come first.
        """
        values = np.asarray(self.padded.quantile(q))[..., : self.num_rows, :]
        return in_raw_units(values, self.data.y_scaling)

    def interval(
        self, level: float = 0.9
    ) -> tuple[Float[np.ndarray, "rows outputs"], Float[np.ndarray, "rows outputs"]]:
        """The central interval with this probability, in the targets' own units.

        Args:
            level: above 0 and below 1.
        """
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def to_columns(self, level: float = 0.9) -> dict[str, list]:
        """What `ornstein predict` writes, column by column.

        `epistemic` and `aleatoric` of numbers are variances, in the targets' own units
        squared, whose sum is `std` squared; of classes they are nats, whose sum is
        `entropy`.

        Args:
            level: the probability of the intervals of numbers.
        """
        return beside(self.inputs.labels, self._columns(level))

    def to_columns_beside(self, level: float = 0.9) -> dict[str, list]:
        """`to_columns`, after the columns of the table that was given.

        Args:
            level: the probability of the intervals of numbers.
        """
        given = self.inputs.labels | self.inputs.columns
        return beside(given, self._columns(level))

    def _columns(self, level: float) -> dict[str, list]:
        said = prediction_columns(self.padded, self.data, level)
        return {name: values[: self.num_rows] for name, values in said.items()}

    def to_frame(self, level: float = 0.9) -> "pd.DataFrame":
        """`to_columns` as a table, with the index of the table that was given.

        Args:
            level: the probability of the intervals of numbers.
        """
        import pandas as pd

        return pd.DataFrame(self.to_columns(level), index=self.inputs.index)


def beside(given: dict[str, list], said: dict[str, list]) -> dict[str, list]:
    """Both; what is given and called as something said is an input by its name.

    Args:
        given: columns of a table.
        said: columns of a prediction of its rows.
    """
    named: dict[str, list] = {}
    for name, cells in given.items():
        own = name
        while own in said or own in named or (own != name and own in given):
            own += " (input)"
        named[own] = cells
    return {**named, **said}


def prediction_columns(
    prediction: Prediction, data: Data, level: float
) -> dict[str, list]:
    """A prediction of rows as columns, in the data's own units and names.

    Args:
        prediction: in the units in which the model learned.
        data: what is known of them.
        level: the probability of the intervals of numbers.
    """
    if isinstance(prediction.likelihood, Categorical):
        probs = np.asarray(prediction.probs)
        names = list(data.class_names)
        columns: dict[str, Any] = {"prediction": [names[i] for i in probs.argmax(1)]}
        columns |= {f"p({name})": probs[:, i] for i, name in enumerate(names)}
        columns["entropy"] = np.asarray(prediction.entropy)
    elif isinstance(prediction.likelihood, AbstractLocationScaleLikelihood):
        return by_target(numbers_in_units(prediction, data, level), data)
    else:
        probs = np.asarray(prediction.probs)
        names = _target_names(data, probs.shape[1])
        columns = {f"p({name})": probs[:, i] for i, name in enumerate(names)}
    columns["epistemic"] = np.asarray(prediction.epistemic)
    columns["aleatoric"] = np.asarray(prediction.aleatoric)
    return {name: list(values) for name, values in columns.items()}


def numbers_in_units(
    prediction: Prediction, data: Data, level: float
) -> dict[str, Float[np.ndarray, "..."]]:
    """Of real targets, in the units that they had before they were standardised.

    Args:
        prediction: in the units in which the model learned.
        data: what is known of them.
        level: the probability of the interval.
    """
    lower, upper = prediction.interval(level)
    values = {"median": prediction.median, "lower": lower, "upper": upper}
    if prediction.summary is not None:
        values = {"mean": prediction.mean, **values}
    raw = lambda value: in_raw_units(np.asarray(value), data.y_scaling)
    numbers = {name: raw(value) for name, value in values.items()}
    if prediction.summary is not None and prediction.summary.aleatoric is not None:
        scale = 1.0 if data.y_scaling is None else data.y_scaling.scale
        for name in ("epistemic", "aleatoric"):
            numbers[name] = np.asarray(getattr(prediction, name)) * np.square(scale)
    return numbers


def by_target(
    numbers: dict[str, Float[np.ndarray, "rows targets"]], data: Data
) -> dict[str, list]:
    """A column for each number of each target, named after the target if several.

    Args:
        numbers: by name.
        data: whose targets they are.
    """
    num_columns = numbers["median"].shape[1]
    names = _target_names(data, num_columns)
    suffix = lambda name: "" if num_columns == 1 else f" of {name}"
    return {
        f"{what}{suffix(name)}": list(value[:, i])
        for i, name in enumerate(names)
        for what, value in numbers.items()
    }


def _target_names(data: Data, num_columns: int) -> list[str]:
    if len(data.target_names) == num_columns:
        return list(data.target_names)
    stem = "value" if data.task == "series" else "y"
    return [f"{stem}{i}" for i in range(num_columns)]
