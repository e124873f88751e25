"""How good predictions are, and how honest: functions of arrays."""

from ._accuracy import accuracy as accuracy, top_k_accuracy as top_k_accuracy
from ._brier import brier as brier
from ._corruption import (
    mean_corruption_error as mean_corruption_error,
    relative_corruption_error as relative_corruption_error,
)
from ._coverage import (
    interval_coverage as interval_coverage,
    regression_calibration_error as regression_calibration_error,
)
from ._crps import gaussian_crps as gaussian_crps, sample_crps as sample_crps
from ._diversity import disagreement as disagreement, pairwise_kl as pairwise_kl
from ._ece import (
    Reliability as Reliability,
    adaptive_ece as adaptive_ece,
    classwise_ece as classwise_ece,
    ece as ece,
    max_calibration_error as max_calibration_error,
    reliability as reliability,
    resampled_ece as resampled_ece,
)
from ._entropy import (
    entropy as entropy,
    split_entropy as split_entropy,
    split_variance as split_variance,
)
from ._mean_error import mean_and_error as mean_and_error
from ._nll import nll as nll
from ._ood import aupr as aupr, auroc as auroc, fpr95 as fpr95
from ._overconfidence import overconfidence_error as overconfidence_error
from ._rmse import rmse as rmse
from ._selective import aurc as aurc, risk_coverage as risk_coverage
from ._total_variation import total_variation as total_variation
