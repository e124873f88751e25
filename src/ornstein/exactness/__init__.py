"""Every method that claims a posterior, held to an exact answer."""

from ._cases import (
    CONSTANT_SGD as CONSTANT_SGD,
    ClaimedCase as ClaimedCase,
    LinearCase as LinearCase,
    command_line_cases as command_line_cases,
    expanded_claims as expanded_claims,
    linear_cases as linear_cases,
    linear_claims as linear_claims,
    logistic_claims as logistic_claims,
)
from ._chains import (
    Estimate as Estimate,
    Plan as Plan,
    compare as compare,
    estimate as estimate,
    extrapolate as extrapolate,
    known as known,
    run_chains as run_chains,
    warm_state as warm_state,
)
from ._expanded_weight import (
    ExpandedWeight as ExpandedWeight,
    expanded_weight as expanded_weight,
)
from ._function_cases import function_cases as function_cases
from ._functions import (
    NUM_DRAWS as NUM_DRAWS,
    NUM_MEMBERS as NUM_MEMBERS,
    ensemble_rows as ensemble_rows,
    function_rows as function_rows,
)
from ._moment_equation import gradient_map as gradient_map, lyapunov as lyapunov
from ._path_cases import (
    PathCase as PathCase,
    best_diagonal as best_diagonal,
    path_cases as path_cases,
    path_function_cases as path_function_cases,
    path_posterior as path_posterior,
    path_potential as path_potential,
    path_rows as path_rows,
    path_split as path_split,
    whitened_regression as whitened_regression,
)
from ._targets import (
    BATCH_SIZE as BATCH_SIZE,
    LinearRegression as LinearRegression,
    LogisticRegression as LogisticRegression,
    Moments as Moments,
    linear_regression as linear_regression,
    logistic_regression as logistic_regression,
    position_at as position_at,
    two_features as two_features,
)
from ._variational import (
    draw_laplace as draw_laplace,
    draw_swag as draw_swag,
    fit_mean_field as fit_mean_field,
    mean_field_optimum as mean_field_optimum,
    swag_moments as swag_moments,
)
