"""What a fit is worth: scores, bounds, the solver's dial, corruptions, strangers."""

from ._audit import (
    NO_PATH_KL as NO_PATH_KL,
    Judged as Judged,
    gain as gain,
    in_target_units as in_target_units,
    judge as judge,
    num_trained as num_trained,
    refuse_non_finite_predictions as refuse_non_finite_predictions,
)
from ._corruptions import judge_corruptions as judge_corruptions
from ._dial import dial as dial, turned_models as turned_models
from ._evaluate import (
    component_diversity as component_diversity,
    evaluate as evaluate,
    evaluate_ood as evaluate_ood,
)
from ._noise_sweep import (
    entropy_correlation as entropy_correlation,
    noise_sweep as noise_sweep,
)
from ._ood import as_inputs as as_inputs, judge_ood as judge_ood
from ._series_bound import bound_of_series as bound_of_series
