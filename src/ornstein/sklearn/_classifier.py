"""Classes, with probabilities that know what the rows do not say."""

from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from .._types import Float, Shaped
from ._estimator import AbstractBayesianEstimator, Targets


class BayesianClassifier(ClassifierMixin, AbstractBayesianEstimator):
    """A classification whose probabilities are averaged over a posterior.

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
        classes_: in the order of `predict_proba`'s columns.
        fit_: what was learned.
        encoding_: how columns became numbers.
        n_features_in_: columns.
        feature_names_in_: their names, if they had any.

    Example:
        ```python
        model = BayesianClassifier(random_state=0).fit(X, y)
        probs = model.predict_proba(X_new)
        unsure = model.predict_uncertainty(X_new)["epistemic"]
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "BayesianClassifier":
        """Learn.

        Args:
            X: an array (rows, columns) of numbers, NaN where there is none, or a table.
            y: classes (rows,).
            sample_weight: how much each row counts (rows,); 2 is two such rows.

        Raises:
            ValueError: for what cannot be learned from, or options that cannot be.
        """
        self._fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> Shaped[np.ndarray, " rows"]:
        """The most probable class.

        Args:
            X: rows, with the columns of training.
        """
        most = self.predict_proba(X).argmax(1)
        return self.classes_[most]

    def predict_proba(self, X: Any) -> Float[np.ndarray, "rows classes"]:
        """Probabilities averaged over the posterior, columns as `classes_`.

        Args:
            X: rows, with the columns of training.
        """
        found = self._predict(X)
        probs = np.asarray(found.asked(found.whole.probs), np.float64)
        return probs / probs.sum(1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Float[np.ndarray, "rows classes"]:
        """Logarithms of `predict_proba`.

        Args:
            X: rows, with the columns of training.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_uncertainty(self, X: Any) -> dict[str, Float[np.ndarray, " rows"]]:
        """Entropy in nats, split into what more data would and would not tell.

        Args:
            X: rows, with the columns of training.

        Returns:
            `"epistemic"` (the mutual information of class and network) and
            `"aleatoric"` add up to `"total"`.
        """
        found = self._predict(X)
        parts = {
            "epistemic": found.whole.prediction.epistemic,
            "aleatoric": found.whole.prediction.aleatoric,
            "total": found.whole.prediction.entropy,
        }
        return {
            name: np.asarray(found.asked(value), np.float64)
            for name, value in parts.items()
        }

    def _targets(
        self, y: Shaped[np.ndarray, "..."], weight: Float[np.ndarray, " rows"]
    ) -> Targets:
        del weight
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class alone, {str(self.classes_[0])!r}: give rows of two "
                "classes or more."
            )
        return Targets(numbers.astype(np.int32), tuple(map(str, self.classes_)))

    def _target_checks(self) -> dict[str, Any]:
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = ClassifierMixin.__sklearn_tags__(self)
        tags.input_tags.allow_nan = True
        return tags
