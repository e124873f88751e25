"""Likelihoods: what a network's output says about a target."""

from ._base import (
    AbstractClassLikelihood as AbstractClassLikelihood,
    AbstractLikelihood as AbstractLikelihood,
)
from ._bernoulli import Bernoulli as Bernoulli
from ._categorical import Categorical as Categorical
from ._cauchy import Cauchy as Cauchy
from ._custom import CustomLikelihood as CustomLikelihood
from ._gaussian import Gaussian as Gaussian
from ._laplace import Laplace as Laplace
from ._location_scale import (
    AbstractLocationScaleLikelihood as AbstractLocationScaleLikelihood,
)
from ._outputs import num_outputs_of as num_outputs_of
from ._over_time import OverTime as OverTime, of_one_value as of_one_value
from ._student_t import StudentT as StudentT
from ._targets import (
    Targets as Targets,
    check_one_each as check_one_each,
    fit_columns as fit_columns,
)
from ._units import (
    RowScores as RowScores,
    mixture_log_prob as mixture_log_prob,
    row_scores as row_scores,
    unit_log_prob as unit_log_prob,
)
from ._weighted import (
    Weighted as Weighted,
    WeightedTargets as WeightedTargets,
    of_unweighted as of_unweighted,
)
