"""Prediction: draws of a fitted random function, and what they say together."""

from ._fitted import (
    Fitted as Fitted,
    FittedByDraw as FittedByDraw,
    FittedModel as FittedModel,
    check_fitted as check_fitted,
)
from ._predict import pad_few as pad_few, predict as predict
from ._prediction import Prediction as Prediction
from ._recalibrate import (
    IsotonicRegression as IsotonicRegression,
    TemperatureScaling as TemperatureScaling,
    isotonic_regression as isotonic_regression,
    temperature_scaling as temperature_scaling,
)
from ._summary import Summary as Summary, summarise as summarise
