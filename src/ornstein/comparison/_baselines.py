"""What scikit-learn has for a table, with the distribution that each implies.

Regressions that give a number alone are normal around it, with the standard deviation
of their residuals on folds of the training rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._types import Float, Shaped

_MOST_OF_PROCESS = 1500
"""Rows times classes of a Gaussian process, whose time is their number's cube."""
_MOST_OF_REGRESSION = 2000
_FOLDS = 5


class Normals(NamedTuple):
    """A normal predictive distribution of each row.

    Attributes:
        mean: in the targets' units.
        std: in the targets' units, noise included.
    """

    mean: Float[np.ndarray, " rows"]
    std: Float[np.ndarray, " rows"]


Fitted = Callable[[Float[np.ndarray, "rows features"]], Any]
"""Rows to class probabilities (rows, classes), or to `Normals`."""

_LEAST_STD = 1e-6
"""Of a method that guesses all rows which it has not seen: of the targets' spread."""


class Baseline(NamedTuple):
    """A method of scikit-learn.

    Attributes:
        name: as the table calls it.
        classify: training features, classes and a seed to what was fitted.
        regress: training features, numbers and a seed to what was fitted.
        is_small: whether so many rows and classes (0 for numbers) are few enough.
    """

    name: str
    classify: Callable[..., Fitted]
    regress: Callable[..., Fitted]
    is_small: Callable[[int, int], bool] = lambda rows, classes: True


def _logistic(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    del seed
    return LogisticRegression(max_iter=10_000).fit(x, y).predict_proba


def _ridge(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.linear_model import BayesianRidge

    del seed
    model: Any = BayesianRidge().fit(x, y)
    least = float(model.alpha_) ** -0.5  # the noise: of the weights there is more

    def predict(new: np.ndarray) -> Normals:
        # Rounding makes the weights' variance negative where columns say the same.
        with np.errstate(invalid="ignore"):
            mean, std = model.predict(new, return_std=True)
        return Normals(mean, np.fmax(std, least))

    return predict


def _forest_of_classes(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed).fit(x, y).predict_proba


def _forest(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.ensemble import RandomForestRegressor

    return _with_residuals(RandomForestRegressor(random_state=seed), x, y, seed)


def _mlp_of_classes(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(max_iter=2000, random_state=seed).fit(x, y).predict_proba


def _mlp(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    model = MLPRegressor(max_iter=2000, random_state=seed)
    scaled = TransformedTargetRegressor(model, transformer=StandardScaler())
    return _with_residuals(scaled, x, y, seed)


def _process_of_classes(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    kernel = 1.0 * RBF(np.sqrt(x.shape[1]))
    return GaussianProcessClassifier(kernel, random_state=seed).fit(x, y).predict_proba


def _process(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    kernel = 1.0 * RBF(np.sqrt(x.shape[1])) + WhiteKernel()
    model: Any = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    model.fit(x, y)
    return lambda new: Normals(*model.predict(new, return_std=True))


def _with_residuals(model: Any, x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(min(_FOLDS, len(y)), shuffle=True, random_state=seed)
    off = y - cross_val_predict(model, x, y, cv=folds)
    std = float(np.sqrt(np.mean(np.square(off))))
    std = max(std, _LEAST_STD * float(np.std(y))) or 1.0
    model.fit(x, y)

    def predict(new: np.ndarray) -> Normals:
        mean = model.predict(new)
        return Normals(mean, np.full(len(mean), std))

    return predict


def _is_few(num_rows: int, num_classes: int) -> bool:
    if num_classes == 0:
        return num_rows <= _MOST_OF_REGRESSION
    return num_rows * max(1, num_classes - 1) <= _MOST_OF_PROCESS


BASELINES = (
    Baseline("linear", _logistic, _ridge),
    Baseline("forest", _forest_of_classes, _forest),
    Baseline("mlp", _mlp_of_classes, _mlp),
    Baseline("gaussian-process", _process_of_classes, _process, _is_few),
)
"""Logistic or Bayesian ridge regression, a random forest, a network, and a Gaussian
process where the table is small."""


def fit_baseline(
    baseline: Baseline,
    x: Float[np.ndarray, "rows features"],
    y: Shaped[np.ndarray, " rows"],
    *,
    seed: int,
    is_classes: bool,
) -> Fitted:
    """Fit to standardised features.

    Args:
        baseline: the method.
        x: training features.
        y: class numbers, or numbers.
        seed: of everything random.
        is_classes: whether targets are classes.
    """
    fit = baseline.classify if is_classes else baseline.regress
    return fit(x, y, seed)
