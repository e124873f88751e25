"""What a fit is worth: scores, bounds, the solver's dial, corruptions, strangers."""

from ._ablation import ablation_scores as ablation_scores, nll_gain as nll_gain
from ._audit import (
    Retraining as Retraining,
    audit as audit,
    check_claims as check_claims,
)
from ._audit_result import Audit as Audit, Relative as Relative, Verdict as Verdict
from ._bound import (
    evidence_bound as evidence_bound,
    series_evidence_bound as series_evidence_bound,
)
from ._corruptions import corruption_scores as corruption_scores
from ._dial import dial as dial, dial_settings as dial_settings
from ._evaluate import (
    as_classes as as_classes,
    component_diversity as component_diversity,
    evaluate as evaluate,
    evaluate_ood as evaluate_ood,
)
from ._fit_scores import (
    fit_scores as fit_scores,
    in_target_units as in_target_units,
    num_trained as num_trained,
    refuse_non_finite_predictions as refuse_non_finite_predictions,
)
from ._noise_sweep import (
    entropy_correlation as entropy_correlation,
    noise_sweep as noise_sweep,
)
from ._ood import inputs_like as inputs_like, ood_scores as ood_scores
