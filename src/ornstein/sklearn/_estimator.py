"""What both estimators share: tables in, a posterior predictive out."""

import abc
import numbers
import operator
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .._types import Float, Shaped
from ..data import (
    Data,
    Split,
    Standardisation,
    TableEncoding,
    check_scaling,
    standardised,
)
from ..recipe import (
    TableFit,
    TablePrediction,
    fit_table,
    table_inputs,
    table_recipe,
    weighted_rows,
)

if TYPE_CHECKING:
    import pandas as pd

NAME = "X"
_validated: Any = validate_data  # its stubs know texts alone


class Targets(NamedTuple):
    """What is predicted, as a network learns it.

    Attributes:
        y: class numbers (rows,), or numbers (rows, outputs) in standard units.
        class_names: of class numbers; empty for numbers.
        scaling: what was done to numbers.
    """

    y: Shaped[np.ndarray, "rows ..."]
    class_names: tuple[str, ...] = ()
    scaling: Standardisation | None = None


class AbstractBayesianEstimator(BaseEstimator):
    """A network with a posterior, for tables.

    Attributes:
        method: the family or kernel.
        options: of `ornstein train`, or `ornstein sample` for chains, by name.
        num_draws: networks averaged over in predictions.
        random_state: of everything random.
    """

    method: str
    options: Mapping[str, Any] | None
    num_draws: SupportsIndex | None
    random_state: int | np.random.RandomState | None

    @abc.abstractmethod
    def _targets(
        self, y: Shaped[np.ndarray, "..."], weight: Float[np.ndarray, " rows"]
    ) -> Targets:
        """Targets as a network learns them.

        Args:
            y: as they were given, of the rows that count.
            weight: of these rows.
        """

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        encoding: TableEncoding | None = None,
    ) -> None:
        """Learn: sets `fit_` and `encoding_`.

        Args:
            X: an array or a table.
            y: targets.
            sample_weight: of each row.
            encoding: of the table; by default it is learned from these rows.
        """
        vars(self).pop("fit_", None)  # what fails answers nothing
        self._draws()
        frame, y, is_text = self._training_table(X, y)
        weight = _check_sample_weight(
            sample_weight, frame, dtype=np.float64, ensure_non_negative=True
        )
        counts = weight > 0
        frame, weight = frame[counts], weight[counts]
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if encoding is None:
            encoding, x, notes = table_inputs(
                frame,
                list(frame.columns),
                is_asked=not is_text,
                weights=None if np.all(weight == 1) else weight,
            )
        else:
            x, notes = encoding.apply(frame, NAME)
        for note in notes:
            warnings.warn(str(note), UserWarning, stacklevel=3)
        if not encoding.feature_names:
            raise ValueError(
                f"{NAME} has no column that can be learned from: each is empty or has "
                "another text in every row."
            )
        targets = self._targets(y[counts], weight)
        names = encoding.feature_names
        scaling = weighted_scaling(x, weight)
        check_scaling(scaling, x, NAME, names)
        units = standardised(scaling, x, NAME, names)
        train = weighted_rows(units, targets.y, weight, self.method)
        data = Data(
            name=NAME,
            task="classification" if targets.class_names else "regression",
            train=train,
            test=Split(train.x[:1], targets.y[:1]),
            num_classes=len(targets.class_names) or None,
            class_names=targets.class_names,
            x_scaling=scaling,
            y_scaling=targets.scaling,
            feature_names=names,
            encoding=encoding,
        )
        recipe = table_recipe(self.method, len(x), dict(self.options or {}), seed=seed)
        self.fit_: TableFit = fit_table(recipe, data)
        self.encoding_ = encoding

    def _predict(self, X: Any) -> TablePrediction:
        check_is_fitted(self, "fit_")
        found = self.fit_.predict(self._table(X), num_draws=self._draws())
        for note in found.whole.inputs.notes:
            warnings.warn(str(note), UserWarning, stacklevel=4)
        return found

    def _draws(self) -> int | None:
        """`num_draws` as a number of Python's."""
        found = self.num_draws
        if found is None:
            return None
        is_whole = isinstance(found, numbers.Integral) and not isinstance(found, bool)
        if not is_whole or operator.index(found) < 1:
            raise ValueError(
                f"`num_draws` must be a whole number above 0, got {found!r}: write 100."
            )
        return operator.index(found)

    def _training_table(
        self,
        X: Any,
        y: Any,
    ) -> tuple["pd.DataFrame", np.ndarray, bool]:
        """A table, targets, and whether the table may hold text."""
        import pandas as pd

        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        frame = _with_text(X)
        kwargs = self._target_checks()
        if frame is None:
            rows, y = _validated(
                self,
                X,
                y,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
                **kwargs,
            )
            names = getattr(self, "feature_names_in_", None)
            names = _default_names(rows.shape[1]) if names is None else names
            return pd.DataFrame(rows, columns=list(names)), np.asarray(y), False
        _validated(self, frame, skip_check_array=True)
        # They may be of any kind, and the targets are checked beside numbers.
        rows = np.zeros((len(frame), 1))
        _, y = check_X_y(rows, y, ensure_min_samples=2, **kwargs)
        return frame, np.asarray(y), True

    @abc.abstractmethod
    def _target_checks(self) -> dict[str, Any]:
        """What `sklearn.utils.check_X_y` is told of the targets."""

    def _table(self, X: Any) -> "pd.DataFrame":
        """Rows to predict, with the columns of training."""
        import pandas as pd

        frame = _with_text(X)
        if frame is not None:
            _validated(self, frame, reset=False, skip_check_array=True)
            return frame
        rows = _validated(
            self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        names = getattr(self, "feature_names_in_", None)
        names = _default_names(rows.shape[1]) if names is None else names
        return pd.DataFrame(rows, columns=list(names))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")


def _with_text(X: Any) -> "pd.DataFrame | None":
    """A table with other columns than numbers; `None` of all else."""
    import pandas as pd

    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if not isinstance(X, pd.DataFrame) or 0 in X.shape:
        return None
    names = list(map(str, X.columns))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{NAME} has two columns of one name, {twice!r}: rename one.")
    is_plain = [
        pd.api.types.is_numeric_dtype(kind) and isinstance(kind, np.dtype)
        for kind in X.dtypes
    ]
    if all(is_plain):
        return None
    return X.set_axis(names, axis=1)


def _default_names(num_columns: int) -> list[str]:
    return [f"x{i}" for i in range(num_columns)]


def weighted_scaling(
    values: Float[np.ndarray, "rows columns"], weight: Float[np.ndarray, " rows"]
) -> Standardisation:
    """Mean 0 and standard deviation 1 of rows that count as their weights say.

    Args:
        values: finite.
        weight: positive.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.average(values, axis=0, weights=weight)
        variance = np.average(np.square(values - mean[None]), axis=0, weights=weight)
    is_constant = values.max(0) == values.min(0)
    return Standardisation(mean, np.where(is_constant, 1.0, np.sqrt(variance)), (0,))
