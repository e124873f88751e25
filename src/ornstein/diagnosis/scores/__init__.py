"""A fit's scores, beside those of a constant guess and of a calibrated model."""

from ._bound_below_constant import bound_below_constant as bound_below_constant
from ._confidence_off import confidence_off as confidence_off
from ._coverage_off import coverage_off as coverage_off
from ._known_by_heart import known_by_heart as known_by_heart
from ._worse_than_constant import worse_than_constant as worse_than_constant
