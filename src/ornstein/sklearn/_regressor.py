"""Numbers, with how far they may be off."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
from sklearn.base import RegressorMixin

from .._types import Float, Shaped
from ..data import check_scaling, standardised
from ._estimator import AbstractBayesianEstimator, Targets, weighted_scaling


class BayesianRegressor(RegressorMixin, AbstractBayesianEstimator):
    """A regression whose predictions are distributions.

    Takes arrays, and tables of pandas as they are: text, dates and missing cells are
    encoded as `ornstein train` encodes a file. Columns are standardised inside.

    Args:
        method: `"auto"` (chains of a network whose layers learn their prior's width,
            for up to some 10,000 rows; an ensemble for more), a family of `ornstein
            train` such as `"sdebnn"`, `"mean-field"` or `"ensemble"`, or a kernel of
            `ornstein sample` such as `"hmc"` or `"sgld"`.
        options: of these commands, by name, such as `{"width": "100"}` or
            `{"steps": 5000}`.
        num_draws: networks averaged over in predictions; the method's own by default.
        random_state: of everything random.

    Attributes:
        fit_: what was learned.
        encoding_: how columns became numbers.
        n_features_in_: columns.
        feature_names_in_: their names, if they had any.

    Example:
        ```python
        model = BayesianRegressor(random_state=0).fit(X, y)
        mean, std = model.predict(X_new, return_std=True)
        low, high = model.predict_quantiles(X_new, [0.05, 0.95]).T
        ```
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        options: Mapping[str, Any] | None = None,
        num_draws: SupportsIndex | None = None,
        random_state: Any = None,
    ):
        self.method = method
        self.options = options
        self.num_draws = num_draws
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "BayesianRegressor":
        """Learn.

        Args:
            X: an array (rows, columns) of numbers, NaN where there is none, or a table.
            y: numbers (rows,) or (rows, outputs).
            sample_weight: how much each row counts (rows,); 2 is two such rows.

        Raises:
            ValueError: for what cannot be learned from, or options that cannot be.
        """
        self._fit(X, y, sample_weight)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
    ) -> Any:
        """The predictive mean, and how far targets lie from it.

        Args:
            X: rows, with the columns of training.
            return_std: whether to give the standard deviation too, noise included.

        Returns:
            Means in the targets' shape and units, or (means, standard deviations).
        """
        found = self._predict(X)
        mean = self._shaped(found.asked(found.whole.mean))
        if not return_std:
            return mean
        return mean, self._shaped(found.asked(found.whole.std))

    def predict_quantiles(
        self,
        X: Any,
        quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    ) -> Float[np.ndarray, "..."]:
        """Quantiles of each target, noise included.

        Args:
            X: rows, with the columns of training.
            quantiles: their levels, between 0 and 1.

        Returns:
            (rows, quantiles), or (rows, outputs, quantiles), in the targets' units.
        """
        levels = np.asarray(quantiles)
        is_number = levels.ndim == 1 and levels.size and levels.dtype.kind == "f"
        if not (is_number and np.all((levels > 0) & (levels < 1))):
            raise ValueError(
                "`quantiles` must be a list of levels above 0 and below 1, such as "
                f"[0.05, 0.95], got {quantiles!r}."
            )
        found = self._predict(X)
        each = [self._shaped(found.asked(found.whole.quantile(q))) for q in quantiles]
        return np.stack(each, axis=-1)

    def log_prob(self, X: Any, y: Any) -> Float[np.ndarray, " rows"]:
        """The log of the predictive density at targets, noise included.

        Args:
            X: rows, with the columns of training.
            y: their targets, (rows,) or (rows, outputs).

        Returns:
            nats of each row, outputs together, per the targets' own units.

        Raises:
            ValueError: for other rows or columns than those that are predicted.
        """
        found = self._predict(X)
        scaling = self.fit_.prepared.data.y_scaling
        assert scaling is not None
        values = np.asarray(y, np.float64)
        if len(values) != found.num_rows:
            raise ValueError(
                f"`X` has {found.num_rows} rows and `y` has {len(values)}: give a "
                "target for each row."
            )
        if not np.isfinite(values).all():
            raise ValueError("`y` has NaN or infinite values: leave those rows out.")
        values = values.reshape(found.num_rows, -1)
        num_targets = np.size(scaling.scale)
        if values.shape[1] != num_targets:
            raise ValueError(
                f"`y` has {values.shape[1]} columns, and the model learned "
                f"{num_targets}: give each row a number for each of these."
            )
        more = found.whole.prediction.num_rows - found.num_rows
        units = np.pad(scaling.apply(values), ((0, more), (0, 0)))
        of_units = found.asked(found.whole.prediction.log_prob(units))
        return np.asarray(of_units, np.float64) - float(np.sum(np.log(scaling.scale)))

    def predict_uncertainty(self, X: Any) -> dict[str, Float[np.ndarray, "..."]]:
        """Standard deviations: of the mean for want of data, and of the noise.

        In the target's units, and not variances, as `Prediction.epistemic` and the
        columns of `ornstein predict` are: those are their squares.

        Args:
            X: rows, with the columns of training.

        Returns:
            `"epistemic"`, `"aleatoric"` and `"total"`, whose squares add up.
        """
        found = self._predict(X)
        prediction = found.whole.prediction
        scale = self.fit_.prepared.data.y_scaling.scale  # type: ignore[union-attr]
        parts = {
            name: self._shaped(found.asked(np.sqrt(np.asarray(variance)) * scale))
            for name, variance in (
                ("epistemic", prediction.epistemic),
                ("aleatoric", prediction.aleatoric),
            )
        }
        return parts | {"total": self._shaped(found.asked(found.whole.std))}

    def _targets(
        self, y: Shaped[np.ndarray, "..."], weight: Float[np.ndarray, " rows"]
    ) -> Targets:
        self.is_vector_ = y.ndim == 1
        values = y.reshape(len(y), -1).astype(np.float64)
        scaling = weighted_scaling(values, weight)
        check_scaling(scaling, values, "y")
        return Targets(standardised(scaling, values, "y"), scaling=scaling)

    def _target_checks(self) -> dict[str, Any]:
        return {"multi_output": True, "y_numeric": True}

    def _shaped(self, values: Float[np.ndarray, "rows outputs"]) -> Any:
        values = np.asarray(values, np.float64)
        return values[:, 0] if self.is_vector_ else values

    def __sklearn_tags__(self) -> Any:
        tags = RegressorMixin.__sklearn_tags__(self)
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags
