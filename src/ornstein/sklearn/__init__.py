"""Bayesian networks for tables as estimators of scikit-learn."""

from ._classifier import BayesianClassifier as BayesianClassifier
from ._regressor import BayesianRegressor as BayesianRegressor
